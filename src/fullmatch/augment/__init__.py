"""Batched image operations on uint8 tensors, equal on every device."""
