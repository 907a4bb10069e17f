"""FullMatch's losses in your own training loop: handwritten digits, four labels per class."""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from fullmatch.losses import FullMatchLoss


def weak(images: Tensor) -> Tensor:
    """The batch, shifted by at most one pixel."""
    return images.roll(torch.randint(-1, 2, (2,)).tolist(), dims=(2, 3))


def strong(images: Tensor) -> Tensor:
    """Shifted, with some pixels erased, and noise over all of them."""
    mask = torch.rand_like(images) > 0.2
    return weak(images) * mask + 0.2 * torch.randn_like(images)


def train(steps: int = 300, labels_per_class: int = 4) -> float:
    """Train, and return the accuracy on held-out pictures."""
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    classes = torch.tensor(digits.target)
    train_images, test_images = images[:1400], images[1400:]
    labeled = torch.cat([(classes[:1400] == c).nonzero()[:labels_per_class, 0] for c in range(10)])

    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    full = FullMatchLoss(num_classes=10)

    for step in range(steps):
        unlabeled = train_images[torch.randint(len(train_images), (140,))]
        views = torch.cat([weak(train_images[labeled]), weak(unlabeled), strong(unlabeled)])
        # One pass for all three, so that batch norm layers see them together.
        labeled_logits, weak_logits, strong_logits = model(views).split([len(labeled), 140, 140])
        loss = full(labeled_logits, classes[labeled], weak_logits, strong_logits)
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.total:.3f}, k {loss.metrics['k']}, ", end="")
            print(f"pseudo-labels for {loss.metrics['selected']:.0%} of the images")

    with torch.no_grad():
        right = model(test_images).argmax(1) == classes[1400:]
    return float(right.float().mean())


if __name__ == "__main__":
    print(f"accuracy with 40 labels: {train():.1%}")
