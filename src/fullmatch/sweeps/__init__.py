"""Sweeps: the same training with several settings and seeds, and which settings did best."""
