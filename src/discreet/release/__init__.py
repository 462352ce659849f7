"""Plans, releases and answers: ε is spent, then the exact integers get noise, once."""
