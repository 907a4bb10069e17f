"""Two classifiers on the same images: how much better one is, and whether that is clear."""

import math

from torch import Tensor

from fullmatch.evaluation.intervals import Z
from fullmatch.storage.result import PairedComparison, Verdict

SIGNIFICANT = 0.05  # p-value below which a difference may be called clear


def compare_paired(ours: Tensor, theirs: Tensor) -> PairedComparison:
    """From the fractions (N,) of trials in which each classifier got an image right.

    The verdict needs two things: an interval without zero, and a sign test over the images on
    which they differ. With few images the interval by itself is too optimistic.
    """
    difference = ours - theirs
    images, gain = len(difference), float(difference.mean())
    # One more difference than was observed, since no difference at all proves little.
    half = Z * math.sqrt(float((difference - gain).square().sum()) + 1) / images
    better, worse = int((difference > 0).sum()), int((difference < 0).sum())
    p_value = sign_test(better, worse)
    verdict = Verdict.UNCLEAR
    if abs(gain) > half and p_value < SIGNIFICANT:
        verdict = Verdict.HELPED if gain > 0 else Verdict.HURT
    return PairedComparison(
        gain=gain,
        interval=(gain - half, gain + half),
        better=better,
        worse=worse,
        p_value=p_value,
        verdict=verdict,
        images=images,
    )


def sign_test(better: int, worse: int) -> float:
    """The two-sided p-value of such a split, if either side were equally likely."""
    from scipy.stats import binomtest  # slow to import, and rarely needed

    if better + worse == 0:
        return 1.0
    return float(binomtest(better, better + worse).pvalue)
