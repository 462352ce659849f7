"""How far one unit can move an answer, and how much noise that needs."""
