"""For notebooks: studies of frames, and ledgers in memory."""
