"""The cost of the losses compared with a training step, for 10, 100 and 1000 classes.

    python benchmarks/losses.py

Prints a table. Steps with and without FullMatch's two losses alternate in one run, and medians are
compared, so that other load on the machine affects both equally.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fullmatch.losses import FullMatchLoss, adaptive_k, adaptive_negative, cross_entropy
from fullmatch.losses import entropy_meaning as meaning

LABELED, UNLABELED = 64, 448


def tiny_network(num_classes: int) -> nn.Module:
    """A network of suitable size for 8 x 8 digits."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.LeakyReLU(0.1),
        nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.BatchNorm2d(64), nn.LeakyReLU(0.1),
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.LeakyReLU(0.1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, num_classes),
    )  # fmt: skip


class WideNetwork(nn.Module):
    """wrn-28-2 that returns only logits."""

    def __init__(self, num_classes: int) -> None:
        from fullmatch.models import build_network

        super().__init__()
        self.network = build_network("wrn-28-2", num_classes=num_classes, image=(3, 32, 32))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(images).logits
        return logits


def fixmatch(labeled: Tensor, labels: Tensor, weak: Tensor, strong: Tensor) -> Tensor:
    confidence, label = weak.detach().float().softmax(dim=1).max(dim=1)
    return cross_entropy(labeled, labels) + cross_entropy(strong, label, confidence >= 0.95)


def medians(calls: dict[str, Callable[[], object]], device: str, repeats: int) -> dict[str, float]:
    """Median milliseconds of each call; the calls alternate."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 3):
        # The order alternates, since the later call finds a warm cache.
        for name in sorted(calls, reverse=repeat % 2 == 1):
            synchronize(device)
            start = time.perf_counter()
            calls[name]()
            synchronize(device)
            if repeat >= 3:
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def measure(num_classes: int, device: str, repeats: int) -> dict[str, float]:
    torch.manual_seed(0)
    model = (WideNetwork if device == "cuda" else tiny_network)(num_classes).to(device)
    shape = (3, 32, 32) if device == "cuda" else (1, 8, 8)
    images = torch.randn(LABELED + 2 * UNLABELED, *shape, device=device)
    labels = torch.randint(num_classes, (LABELED,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    full = FullMatchLoss(num_classes, threshold=0.0)  # selects every image: the most work

    def step(loss: Callable[..., Tensor]) -> None:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(images)
        labeled, weak, strong = logits.split([LABELED, UNLABELED, UNLABELED])
        loss(labeled, labels, weak, strong).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    weak = 3 * torch.randn(UNLABELED, num_classes, device=device)
    strong = (weak + torch.randn_like(weak)).requires_grad_()
    label, chosen = weak.argmax(dim=1), torch.ones(UNLABELED, device=device)
    k = adaptive_k(strong, weak)
    steps: dict[str, Callable[[], object]] = {
        "step": lambda: step(fixmatch),
        "full step": lambda: step(lambda *logits: full(*logits).total),
    }
    return medians(steps, device, repeats) | medians(
        {
            "consistency": lambda: cross_entropy(strong, label, chosen).backward(),
            "adaptive k": lambda: adaptive_k(strong, weak),
            "negative": lambda: adaptive_negative(strong, weak, k, ceiling=0.9025).backward(),
            "meaning": lambda: meaning(strong, weak, chosen, k, ceiling=0.9025).backward(),
        },
        device,
        repeats,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 100, 1000])
    options = parser.parse_args()
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    parts = ["consistency", "adaptive k", "negative", "meaning"]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; milliseconds")
    print(f"{'':>16}{'FixMatch':>10}{'FullMatch':>10}{'extra':>9}", *(f"{p:>12}" for p in parts))
    for device in devices:
        for num_classes in options.classes:
            times = measure(num_classes, device, options.repeats)
            fix, full = times["step"], times["full step"]
            print(
                f"{device:>5} C = {num_classes:<6}{fix:>10.2f}{full:>10.2f} {full / fix - 1:>8.1%}",
                *(f"{times[p]:>6.2f} {times[p] / fix:>5.1%}" for p in parts),
            )


if __name__ == "__main__":
    main()
