"""Training: one step, the loop around it, and the state that a checkpoint saves."""
