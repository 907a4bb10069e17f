"""USB's settings: a pretrained transformer, fine-tuned with AdamW for 204,800 small steps.

From the configs of FixMatch in its repository, microsoft/Semi-supervised-learning, in
config/usb_cv; its other methods share these settings.
"""

from dataclasses import dataclass
from pathlib import Path

from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
)
from fullmatch.data import DATASETS, find_benchmark
from fullmatch.errors import UserError
from fullmatch.plugins import is_reference

STEPS, WARMUP, BATCH = 204_800, 5_120, 8
EVALUATE_EVERY, LOG_EVERY = 2_048, 256
EVALUATE_SHARE = 0.2  # steps are so small that many test images would take most of the time


@dataclass(frozen=True)
class UsbSettings:
    """What differs between USB's data sets."""

    labels: tuple[int, ...]  # the first is the default
    model: str
    side: int  # of the pictures
    rate: float
    layer_decay: float


USB = {
    "cifar100": UsbSettings((200, 400), "timm:vit_small_patch2_32", 32, 5e-4, 0.5),
    "stl10": UsbSettings((40, 100), "timm:vit_base_patch16_96", 96, 1e-4, 0.65),
    "eurosat": UsbSettings((20, 40), "timm:vit_small_patch2_32", 32, 5e-5, 1.0),
    "tissuemnist": UsbSettings((80, 400), "timm:vit_tiny_patch2_32", 32, 5e-5, 0.95),
    "semi_aves": UsbSettings((3959,), "timm:vit_small_patch16_224", 224, 1e-3, 0.65),
}


def usb(data: str, labels: int | None = None, algorithm: str = "fullmatch") -> ExperimentConfig:
    """USB's settings for a data set that is named like one of its own."""
    settings = find_settings(data)
    if labels is None and find_benchmark(data) is not None:
        labels = settings.labels[0]
    fixed = data in DATASETS or data.endswith(".npz") or is_reference(data)
    return ExperimentConfig(
        data=DataConfig(name=data, labels=labels, size=None if fixed else settings.side),
        algorithm=spec_of(algorithm),
        model=ModelConfig(name=settings.model, pretrained=True),
        optimizer=OptimizerConfig(
            name="adamw",
            rate=settings.rate,
            weight_decay=5e-4,
            warmup=WARMUP,
            layer_decay=settings.layer_decay,
        ),
        training=TrainingConfig(
            steps=STEPS,
            batch=BATCH,
            ratio=1,
            ema=0.0,  # no averaged model
            evaluate_every=EVALUATE_EVERY,
            evaluate_share=EVALUATE_SHARE,
            log_every=LOG_EVERY,
            checkpoint_every=EVALUATE_EVERY,
        ),
    )


def find_settings(data: str) -> UsbSettings:
    """By the name of a benchmark, a function, or a folder or file, such as photos/EuroSAT_RGB."""
    title = Path(data.rpartition(":")[2]).name.lower().replace("-", "_")
    for name, settings in USB.items():
        if title == name or (data not in DATASETS and name in title):
            return settings
    raise UserError(
        f"--budget usb has no settings for {data!r}: it has some for {', '.join(USB)}; name a "
        "folder, file or function like one of them"
    )
