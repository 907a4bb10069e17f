"""Methods as people write them."""

from collections.abc import Mapping
from typing import Any

from fullmatch.reproduce.grid import METHODS

WRITTEN = {row.algorithm: row.name for row in METHODS}
LOSSES = {"entropy_meaning": "EML", "adaptive_negative": "ANL"}


def method_name(algorithm: Mapping[str, Any]) -> str:
    """The written name of a spec's table, such as FullMatch or FixMatch + EML."""
    name = str(algorithm["name"])
    host, full = WRITTEN.get(name, name), algorithm.get("full")
    if full is None:
        return host
    losses = [short for field, short in LOSSES.items() if full.get(field, True)]
    if len(losses) < 2:
        return " + ".join([host, *losses])
    return {"FixMatch": "FullMatch", "FlexMatch": "FullFlex"}.get(host, f"Full-{host}")
