"""Kept for specs that import `About` from here."""

from fullmatch.core import About as About
