"""The result of a check of a user's pictures."""

from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from fullmatch.data.quality.findings import DataFinding
from fullmatch.data.quality.photo_duplicates import OpenPicture


@dataclass(frozen=True)
class DataCheck:
    """The result of a check; `findings` are in the order to read them in."""

    name: str
    classes: dict[str, int]  # labeled pictures per class
    unlabeled: int
    test: dict[str, int]  # test pictures per class
    sizes: dict[str, tuple[int, int]]  # width and height of the smallest and the largest picture
    side: int  # the picture size that training would choose
    channels: int
    findings: tuple[DataFinding, ...] = ()
    network: str = ""  # whose features the pictures were compared by; '' for their pixels only
    open_picture: OpenPicture = field(default=Image.open, compare=False, repr=False)  # by its name

    @property
    def can_train(self) -> bool:
        """Whether training would start."""
        return not any(finding.blocks_training for finding in self.findings)

    @property
    def imbalance(self) -> float:
        counts = self.classes.values()
        return max(counts) / min(counts) if counts and min(counts) else 1.0

    def to_json(self) -> dict[str, Any]:
        """The content of check.json, whose keys stay the same across versions."""
        return {
            "name": self.name,
            "classes": self.classes,
            "unlabeled": self.unlabeled,
            "test": self.test,
            "sizes": self.sizes,
            "side": self.side,
            "channels": self.channels,
            "remarks": [
                {
                    "kind": finding.kind,
                    "words": finding.problem,
                    "then": finding.consequence,
                    "files": finding.files,
                    "blocks": finding.blocks_training,
                    "notes": finding.notes,
                    "groups": finding.groups,
                }
                for finding in self.findings
            ],
            "works": self.can_train,
            "imbalance": round(self.imbalance, 2),
            "features": self.network or None,
        }
