"""A finished model at work: predictions, novelty, export, card, suggestions."""
