"""The exact answer: the only code that touches rows."""
