"""`python -m fullmatch`, for where the command itself is not on the path."""

from fullmatch.cli import main

main()
