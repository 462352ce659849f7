"""Profiles: proposals for bounds and row limits from noisy histograms, charged like a question."""
