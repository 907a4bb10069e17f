"""Fault cases, each with its promised outcome."""
