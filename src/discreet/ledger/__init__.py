"""What was spent: a chain of entries in SQLite or PostgreSQL that cannot be over-spent, and its anchor."""
