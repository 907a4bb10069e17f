"""`fullmatch list`: what there is."""

from typing import Literal


def list_(what: Literal["algorithms", "datasets", "models"], /) -> None:
    """Say what there is: algorithms, datasets or models."""
    from fullmatch.cli import terminal as display

    {
        "algorithms": display.list_algorithms,
        "datasets": display.list_datasets,
        "models": display.list_models,
    }[what]()
