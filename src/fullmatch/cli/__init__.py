"""The command line."""

from fullmatch.cli.app import main

__all__ = ["main"]
