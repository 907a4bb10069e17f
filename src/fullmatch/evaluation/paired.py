"""Two classifiers on the same pictures: how much better one is, and whether that is clear."""

import math
from typing import Any

from torch import Tensor

from fullmatch.evaluation.summary import Z
from fullmatch.report.sentences import anew, subject, unmeasured

SURE = 0.05  # chance of so one-sided a result if there were no difference


def paired(ours: Tensor, theirs: Tensor) -> dict[str, Any]:
    """From the shares (N,) of tries in which each picture was right, with either classifier.

    The verdict needs two things: an interval that leaves out zero, and a sign test over the
    pictures on which they differ. With few pictures the interval alone is too bold.
    """
    gap = ours - theirs
    count, gain = len(gap), float(gap.mean())
    # One difference more than was seen, since never having differed proves little.
    half = Z * math.sqrt(float((gap - gain).square().sum()) + 1) / count
    better, worse = int((gap > 0).sum()), int((gap < 0).sum())
    chance = sign_test(better, worse)
    clear = abs(gain) > half and chance < SURE
    verdict = ("helped" if gain > 0 else "hurt") if clear else "made no clear difference"
    return {
        "gain": gain,
        "interval": [gain - half, gain + half],
        "better": better,
        "worse": worse,
        "chance": chance,
        "verdict": verdict,
        "images": count,
    }


def sign_test(better: int, worse: int) -> float:
    """The two-sided chance of a split at least as uneven, if either side were equally likely."""
    total = better + worse
    all_ways = total * math.log(2) - math.lgamma(total + 1)
    # By logarithms: of thousands of pictures the numbers of ways would have thousands of digits.
    tail = sum(
        math.exp(-all_ways - math.lgamma(k + 1) - math.lgamma(total - k + 1))
        for k in range(min(better, worse) + 1)
    )
    return min(1.0, 2 * tail)


def spoken(found: dict[str, Any]) -> str:
    """The estimate in words."""
    gain = found["gain"]
    held, labels, parts = found["held_out"], found["labels"], found["parts"]
    of = f"{held} of " if parts > 1 and held < labels else ""
    how = f"a part of {held} held out" if parts == 1 else f"{parts} parts in turn"
    how += ", twice" if found["repeats"] > 1 else ""
    low, high = (f"{100 * bound:.0f}" for bound in found["interval"])
    less, more = (f"{100 * bound:+.1f}" for bound in gain["interval"])
    return (
        f"Estimated accuracy {100 * found['accuracy']:.1f} % (95 % interval {low} to {high}; "
        f"{of}{labels} labels, {how}), on the labels alone "
        f"{100 * found['labels_only']['accuracy']:.1f} %. {subject(found, 'pictures')} "
        f"{gain['verdict']}: {100 * gain['gain']:+.1f} points (95 % interval {less} to {more})."
        f"{unmeasured(found)}{anew(found)}"
    )
