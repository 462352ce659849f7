"""Profiles: bounds and caps for people who do not know them, from noisy histograms that are charged like a question."""
