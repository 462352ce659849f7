"""Studies of frames, and ledgers that forget: what a notebook needs."""
