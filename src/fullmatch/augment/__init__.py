"""Batched image operations: uint8 tensors in, tensors out, the same on every device."""
