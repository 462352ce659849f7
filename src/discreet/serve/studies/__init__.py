"""A study as clients see it: its public facts, the errors of a plan as a function of ε, and its discovery."""
