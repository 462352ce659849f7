"""The operation of a server: its guard, log, metrics and state."""
