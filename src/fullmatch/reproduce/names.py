"""Methods as people write them."""

from typing import Any

from fullmatch.reproduce.grid import METHODS

WRITTEN = {row.algorithm: row.name for row in METHODS}


def label(algorithm: dict[str, Any]) -> str:
    """The name of a spec's table, such as FullMatch or FixMatch + EML."""
    name = str(algorithm["name"])
    host, full = WRITTEN.get(name, name), algorithm.get("full")
    if full is None:
        return host
    parts = [
        short
        for field, short in (("entropy_meaning", "EML"), ("adaptive_negative", "ANL"))
        if full.get(field, True)
    ]
    if len(parts) < 2:
        return " + ".join([host, *parts])
    return {"FixMatch": "FullMatch", "FlexMatch": "FullFlex"}.get(host, f"Full-{host}")
