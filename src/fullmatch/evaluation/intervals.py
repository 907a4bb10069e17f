"""The 95 % interval of an accuracy."""

import math

Z = 1.959963984540054  # two-sided 95 %


def wilson_interval(accuracy: float, images: int) -> tuple[float, float]:
    """The Wilson score interval of an accuracy measured on so many images.

    By hand, since scipy's takes a whole number of successes, and an image that is held out twice
    may be right once.
    """
    scale = 1 + Z**2 / images
    center = (accuracy + Z**2 / (2 * images)) / scale
    half = Z * math.sqrt(accuracy * (1 - accuracy) / images + Z**2 / (4 * images**2)) / scale
    return center - half, center + half
