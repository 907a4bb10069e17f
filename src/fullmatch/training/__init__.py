"""Training: one step, the loop around it, and all that must survive a crash."""
