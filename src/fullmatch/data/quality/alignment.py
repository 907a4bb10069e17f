"""Whether two files show the same photo: as it is, mirrored, or cropped, judged by their pixels.

One picture is searched for in the other at several scales, first at 32 pixels by normalized
cross-correlation, then at 96 pixels. They are the same photo if fine detail agrees where they
overlap, everywhere in the overlap: two photos of the same kind share colors and coarse shapes, but
not the detail.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COARSE, FINE = 32, 96  # longer side of a picture in pixels, in the two searches
SCALES = tuple((1.06 ** -np.arange(13)).tolist())  # of one picture inside the other
FINE_SCALES = (0.97, 0.985, 1.0, 1.015, 1.03)  # around the best of these
FFT = 36  # at least the coarse side and its margins
MARGIN = 1  # pixels at every side, in case the smaller picture is slightly larger
LEAST_SIDE = 6  # pixels of the smaller picture in the coarse search
MIN_COARSE = 0.7  # correlation of candidates: the same photo has more, and few others do
PROMISING = 0.3  # correlation of fine detail before the scale is found exactly
MIN_DETAIL = 0.85  # correlation of fine detail: the same photo has more, others at most 0.75
MIN_BLOCKS = 0.7  # the same in three quarters of the blocks that have any detail
MIN_TEXTURE = 1.0  # gray levels; pictures with less detail cannot be compared
MAX_TINT = 25.0  # levels between mean colors: a red square is not a blue one
WHOLE = 0.94  # share of the area from which a picture is not called a crop

Floats = NDArray[np.float32]


class Likeness(StrEnum):
    """How a picture repeats another one."""

    COPY = "copy"
    MIRROR = "mirror image"
    CROP = "crop"
    MIRRORED_CROP = "mirrored crop"


class Overlap(NamedTuple):
    """Two pictures that show the same photo; `inner` is the part of it that the other shows."""

    likeness: Likeness
    first_is_inner: bool


class Placement(NamedTuple):
    """Where a smaller picture is in a larger one, and how well it correlates there."""

    correlation: float
    scale: float
    top: int
    left: int


@dataclass(frozen=True)
class ComparedPicture:
    """A picture prepared for comparisons with many others."""

    color: Image.Image  # longer side FINE
    shape: tuple[int, int]  # of the coarse picture with its margins
    spectrum: NDArray[np.complex64]  # of the coarse picture and of its square, (2, FFT, FFT/2)
    sizes: NDArray[np.int64]  # (S, 2) height and width of the templates
    templates: NDArray[np.complex64]  # (2, S, ...) spectra: as it is, and mirrored
    boxes: NDArray[np.complex64]  # (S, ...) spectra of ones as large as the templates


def prepare(image: Image.Image) -> ComparedPicture:
    """Shrink a color picture and compute what comparisons need of it."""
    from scipy import fft

    color = shrink(image, FINE)
    gray = color.convert("L")
    coarse = np.pad(to_array(shrink(gray, COARSE)), MARGIN, mode="edge")
    coarse = (coarse - coarse.mean()) / max(float(coarse.std()), 1e-3)
    smaller = [to_array(shrink(gray, round(COARSE * scale))) for scale in SCALES]
    padded = np.zeros((3, len(smaller), FFT, FFT), np.float32)
    for number, template in enumerate(smaller):
        centered = template - template.mean()
        centered /= max(float(np.linalg.norm(centered)), 1e-3)
        height, width = template.shape
        padded[0, number, :height, :width] = centered
        padded[1, number, :height, :width] = centered[:, ::-1]
        padded[2, number, :height, :width] = 1
    spectra = np.conj(fft.rfft2(padded))
    return ComparedPicture(
        color=color,
        shape=coarse.shape,
        spectrum=fft.rfft2(np.stack([coarse, coarse**2]), (FFT, FFT)),
        sizes=np.array([template.shape for template in smaller]),
        templates=spectra[:2],
        boxes=spectra[2],
    )


def find_overlap(first: ComparedPicture, second: ComparedPicture) -> Overlap | None:
    """How two pictures repeat each other; None if they are different photos."""
    best: Overlap | None = None
    most = 0.0
    for first_is_inner in (False, True):
        outer, inner = (second, first) if first_is_inner else (first, second)
        for mirrored, coarse in enumerate(search(outer, inner)):
            if coarse.correlation < MIN_COARSE:
                continue
            detail, share = compare_detail(outer.color, inner.color, bool(mirrored), coarse.scale)
            if detail > most:
                whole = share >= WHOLE
                likeness = (Likeness.CROP, Likeness.MIRRORED_CROP)[mirrored]
                if whole:
                    likeness = (Likeness.COPY, Likeness.MIRROR)[mirrored]
                best, most = Overlap(likeness, first_is_inner and not whole), detail
    return best


def search(outer: ComparedPicture, inner: ComparedPicture) -> tuple[Placement, Placement]:
    """The best place and scale of one picture in the other, as it is and mirrored."""
    from scipy import fft

    kernels = np.concatenate([inner.templates[0], inner.templates[1], inner.boxes])
    products = np.concatenate([outer.spectrum[0] * kernels, outer.spectrum[1] * inner.boxes])
    plain, mirrored, sums, squares = np.split(fft.irfft2(products, (FFT, FFT)), 4)
    pixels = inner.sizes.prod(axis=1)[:, None, None].astype(np.float32)
    spread = np.sqrt(np.maximum(squares - sums**2 / pixels, 0))
    steps = np.arange(FFT)
    last = np.array(outer.shape) - inner.sizes  # position of the last row and column
    usable = (steps <= last[:, :1])[:, :, None] & (steps <= last[:, 1:])[:, None, :]
    usable &= (inner.sizes.min(axis=1) >= LEAST_SIDE)[:, None, None]
    usable &= spread > 0.1 * np.sqrt(pixels)  # where it is blank, anything would correlate
    scale = np.where(usable, 1 / np.maximum(spread, 1e-6), 0)
    return best_placement(plain * scale), best_placement(mirrored * scale)


def best_placement(correlation: Floats) -> Placement:
    at = np.unravel_index(int(correlation.argmax()), correlation.shape)
    return Placement(float(correlation[at]), SCALES[at[0]], int(at[1]), int(at[2]))


def compare_detail(
    outer: Image.Image, inner: Image.Image, mirrored: bool, scale: float
) -> tuple[float, float]:
    """Correlation of detail in the overlap, and its share of the outer picture; 0 if too low."""
    if mirrored:
        inner = inner.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    frame = Frame(outer)
    best = max(frame.place(inner, scale * factor) for factor in FINE_SCALES)
    if frame.compare(inner, best)[0] < PROMISING:
        return 0.0, 0.0
    for step in (0.01, 0.005):
        near = (best.scale * (1 - step), best.scale * (1 + step))
        best = max(best, *(frame.place(inner, each) for each in near))
    detail, least, share = frame.compare(inner, best)
    return (0.0 if detail < MIN_DETAIL or least < MIN_BLOCKS else detail), share


class Frame:
    """A picture that others are searched for in, at the fine size."""

    def __init__(self, image: Image.Image) -> None:
        from scipy import fft

        margin = FINE // 32
        edges = ((margin, margin), (margin, margin), (0, 0))
        self.area = image.width * image.height
        self.pixels = np.pad(to_array(image), edges, mode="edge")
        gray = self.pixels.mean(axis=2)
        self.gray = gray - gray.mean()
        self.shape = tuple(fft.next_fast_len(length, real=True) for length in gray.shape)
        self.spectrum = fft.rfft2(self.gray, self.shape)
        sums = np.stack([self.gray, self.gray**2]).astype(np.float64)
        self.sums = np.pad(sums.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))

    def place(self, inner: Image.Image, scale: float) -> Placement:
        """The best place of a picture at one scale."""
        from scipy import fft

        template = to_array(shrink(inner, round(FINE * scale))).mean(axis=2)
        height, width = template.shape
        rows, columns = self.gray.shape[0] - height + 1, self.gray.shape[1] - width + 1
        if rows < 1 or columns < 1:
            return Placement(-1, scale, 0, 0)
        template -= template.mean()
        product = self.spectrum * np.conj(fft.rfft2(template, self.shape))
        match = fft.irfft2(product, self.shape)[:rows, :columns]
        corner = self.sums[:, height:, width:] + self.sums[:, :-height, :-width]
        totals = corner - self.sums[:, height:, :-width] - self.sums[:, :-height, width:]
        spread = np.sqrt(np.maximum(totals[1] - totals[0] ** 2 / template.size, 1e-3))
        correlation = match / (spread * max(float(np.linalg.norm(template)), 1e-3))
        top, left = np.unravel_index(int(correlation.argmax()), correlation.shape)
        return Placement(float(correlation[top, left]), scale, int(top), int(left))

    def compare(self, inner: Image.Image, at: Placement) -> tuple[float, float, float]:
        """Correlation of fine detail, the same in the worst blocks, and the share of the area."""
        if at.correlation < 0:
            return 0.0, 0.0, 0.0
        shown = to_array(shrink(inner, round(FINE * at.scale)))
        height, width, _ = shown.shape
        under = self.pixels[at.top : at.top + height, at.left : at.left + width]
        if not has_equal_tint(under, shown):
            return 0.0, 0.0, 0.0
        return *agreement(under, shown), height * width / self.area


def agreement(first: Floats, second: Floats) -> tuple[float, float]:
    """Correlation of the fine detail of aligned pictures: overall, and in the worst blocks."""
    details = [fine_detail(pixels.mean(axis=2)) for pixels in (first, second)]
    if min(float(detail.std()) for detail in details) < MIN_TEXTURE:
        return 0.0, 0.0
    pairs = list(zip(*map(split_blocks, details), strict=True))
    texture = np.array([max(float(a.std()), float(b.std())) for a, b in pairs])
    blocks = np.array([correlate(a, b) for a, b in pairs])[texture >= 0.3 * texture.max()]
    return correlate(*details), float(np.quantile(blocks, 0.25))


def fine_detail(gray: Floats) -> Floats:
    """What is between one and three pixels large."""
    from scipy.ndimage import gaussian_filter

    detail: Floats = gaussian_filter(gray, 1) - gaussian_filter(gray, 3)
    return detail


def split_blocks(pixels: Floats) -> list[Floats]:
    rows = np.array_split(pixels, 4)
    return [block for row in rows for block in np.array_split(row, 4, axis=1)]


def correlate(first: Floats, second: Floats) -> float:
    a, b = first - first.mean(), second - second.mean()
    return float((a * b).sum() / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-6))


def has_equal_tint(first: Floats, second: Floats) -> bool:
    """Whether mean colors are alike, apart from brightness."""
    means = [pixels.mean(axis=(0, 1)) for pixels in (first, second)]
    tints = [mean - mean.mean() for mean in means]
    return bool(np.abs(tints[0] - tints[1]).max() < MAX_TINT)


def shrink(image: Image.Image, side: int) -> Image.Image:
    """Resize so that the longer side has this many pixels."""
    scale = side / max(image.size)
    width, height = (max(2, round(scale * length)) for length in image.size)
    method = Image.Resampling.BOX if scale < 1 else Image.Resampling.BICUBIC
    return image.resize((width, height), method)


def to_array(image: Image.Image) -> Floats:
    return np.asarray(image, np.float32)
