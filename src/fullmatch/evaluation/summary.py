"""What a finished run says of itself: honest numbers, and how each of them was chosen."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

WINDOW = 20  # evaluations in the median
Z = 1.959963984540054  # two-sided 95 %


def summary(
    final: dict[str, dict[str, Any]], records: Sequence[dict[str, Any]], benchmark: bool
) -> dict[str, Any]:
    """Scores of student and teacher at the end, and over the run's evaluations."""
    found: dict[str, Any] = {}
    for who, scores in final.items():
        count = sum(map(sum, scores["confusion"]))
        entry = {"last": scores["top1"], "interval": wilson(scores["top1"], count), **scores}
        curve = [r["evaluation"][who]["top1"] for r in records if "evaluation" in r]
        if benchmark and curve:
            entry["median_last_20"] = statistics.median(curve[-WINDOW:])
            entry["best_chosen_on_test"] = max(curve)
        found[who] = entry
    return found


def wilson(share: float, count: int) -> list[float]:
    """The 95 % interval of a share that was counted on so many images."""
    centre = (share + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2)) / (1 + Z**2 / count)
    return [centre - half, centre + half]
