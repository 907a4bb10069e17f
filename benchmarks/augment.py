"""Milliseconds for the weak and strong views of a batch: eager, compiled, CUDA graph, PIL."""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor

from fullmatch.augment.randaugment import OPERATIONS
from fullmatch.augment.views import Augmenter
from fullmatch.core import Appearance

CIFAR = Appearance(mean=(0.491, 0.482, 0.447), std=(0.247, 0.244, 0.262))
DIGITS = Appearance(mean=(0.305,), std=(0.376,), flip=False, padding=1)
CASES: dict[str, tuple[Appearance, tuple[int, int, int], int, int]] = {
    "3x32x32": (CIFAR, (3, 32, 32), 512, 448),
    "1x8x8": (DIGITS, (1, 8, 8), 320, 280),
}
REPLAYS = 10  # of a CUDA graph per call, so that the launch time does not matter
Call = Callable[[], object]
Augment = Callable[[Tensor, str], Tensor]


def milliseconds(call: Call, device: torch.device, repeats: int) -> float:
    """Median of the repeats, after two warm-up calls."""
    times = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[2:])


def capture_graph(call: Call) -> Call:
    """The same kernels, replayed several times per call."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPLAYS):
            call()
    return graph.replay


def pil_shift(picture: Image.Image, appearance: Appearance) -> Image.Image:
    if appearance.flip and random.random() < 0.5:
        picture = ImageOps.mirror(picture)
    side, padding = picture.width, appearance.padding
    padded = ImageOps.expand(picture, padding)
    left, top = random.randint(0, 2 * padding), random.randint(0, 2 * padding)
    return padded.crop((left, top, left + side, top + side))


def pil_operation(picture: Image.Image) -> Image.Image:
    name = random.choice(list(OPERATIONS))
    v = random.uniform(*OPERATIONS[name])
    width, height = picture.size
    matrices = {
        "shear_x": (1, v, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, v, 1, 0),
        "translate_x": (1, 0, v * width, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, v * height),
    }
    if name in matrices:
        return picture.transform(picture.size, Image.Transform.AFFINE, matrices[name])
    if name == "rotate":
        return picture.rotate(v)
    if name in ("brightness", "color", "contrast", "sharpness"):
        enhanced: Image.Image = getattr(ImageEnhance, name.title())(picture).enhance(v)
        return enhanced
    if name in ("posterize", "solarize"):
        result: Image.Image = getattr(ImageOps, name)(picture, int(v))
        return result
    return picture if name == "identity" else getattr(ImageOps, name)(picture)


def augment_with_pil(images: Tensor, appearance: Appearance, strong: bool) -> None:
    """The work of a data loader's worker, without reading, collating and normalizing."""
    for image in images:
        array = image.permute(1, 2, 0).numpy()
        picture = Image.fromarray(array if len(image) == 3 else array[..., 0])
        if strong:
            for _ in range(3):
                picture = pil_operation(picture)
            side = random.uniform(0, 0.5) * picture.width
            x, y = random.uniform(0, picture.width - side), random.uniform(0, picture.height - side)
            color = (125, 123, 114)[: len(image)]
            ImageDraw.Draw(picture).rectangle((x, y, x + side, y + side), color)
        pil_shift(picture, appearance)


def draw_batches(case: str, device: torch.device) -> dict[str, Tensor]:
    """Random images for each view."""
    _, shape, weak, strong = CASES[case]
    return {
        "weak": torch.randint(256, (weak, *shape), dtype=torch.uint8, device=device),
        "strong": torch.randint(256, (strong, *shape), dtype=torch.uint8, device=device),
    }


def augment_both(augment: Augment, batches: dict[str, Tensor]) -> tuple[Tensor, ...]:
    return tuple(augment(images, view) for view, images in batches.items())


def make_calls(augment: Augment, batches: dict[str, Tensor]) -> dict[str, Call]:
    """One call per view, and one for both."""
    calls: dict[str, Call] = {
        view: partial(augment, images, view) for view, images in batches.items()
    }
    return calls | {"both": partial(augment_both, augment, batches)}


def measure(case: str, device: torch.device, repeats: int) -> None:
    """Print one line per mode."""
    appearance = CASES[case][0]
    augmenter, batches = Augmenter(appearance).to(device), draw_batches(case, device)

    def print_times(mode: str, times: dict[str, float]) -> None:
        cells = "".join(f"{times[view]:>11.3f}" for view in ("weak", "strong", "both"))
        print(f"{case:<9}{device.type:<6}{mode:<10}{cells}", flush=True)

    def time_calls(calls: dict[str, Call]) -> dict[str, float]:
        return {view: milliseconds(call, device, repeats) for view, call in calls.items()}

    eager = time_calls(make_calls(augmenter, batches))
    print_times("eager", eager)
    if device.type == "cuda":
        compiled = make_calls(torch.compile(augmenter, fullgraph=True), batches)
        # Both views in one graph, as in a training step.
        compiled["both"] = torch.compile(lambda: augment_both(augmenter, batches), fullgraph=True)
        print_times("compiled", time_calls(compiled))
        replayed = time_calls({view: capture_graph(call) for view, call in compiled.items()})
        print_times("graph", {view: time / REPLAYS for view, time in replayed.items()})
    else:
        pil = time_calls(
            {
                view: partial(augment_with_pil, images, appearance, view == "strong")
                for view, images in batches.items()
            }
        )
        pil["both"] = pil["weak"] + pil["strong"]
        print_times("PIL", pil)
        print_times("PIL/ours", {view: pil[view] / eager[view] for view in pil})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    print(f"{'images':<9}{'on':<6}{'mode':<10}{'weak ms':>11}{'strong ms':>11}{'both ms':>11}")
    for device in devices:
        for case in CASES:
            measure(case, torch.device(device), arguments.repeats)


if __name__ == "__main__":
    main()
