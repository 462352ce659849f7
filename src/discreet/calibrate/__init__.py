"""How far one unit can move an answer, and what that costs."""
