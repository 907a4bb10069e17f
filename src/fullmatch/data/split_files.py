"""Split files: those that a run wrote, and positions that the user chose, as JSON or NPZ."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fullmatch.data.dataset import Source
from fullmatch.data.splits import Split
from fullmatch.errors import UserError, did_you_mean
from fullmatch.files.reading import parse_json, read_bounded, require_regular

KEYS = ("labeled", "unlabeled")
Positions = dict[str, NDArray[np.int64]]  # by key, ascending


def read_positions(path: Path) -> Positions | None:
    """The positions in a file of the user; None for a split that a run wrote."""
    try:
        is_npz = path.suffix.lower() == ".npz"
        content = _read_npz(path) if is_npz else parse_json(read_bounded(path))
    except OSError as error:
        raise UserError(f"cannot read the split {path}: {error.strerror}; check its path") from None
    except Exception:  # a damaged .npz makes NumPy raise anything
        raise UserError(
            f'{path} is not a split file; write JSON such as {{"labeled": [0, 7], "unlabeled": '
            "[1, 2]}, or an .npz with these arrays"
        ) from None
    if isinstance(content, dict) and "sha256" in content:
        return None
    if not isinstance(content, dict) or "labeled" not in content:
        raise UserError(f"{path} is not a split file: it has no list 'labeled'; add the positions")
    for key in content:
        if key not in KEYS:
            raise UserError(
                f"{path} has {key!r}, expected {' and '.join(KEYS)}{did_you_mean(key, KEYS)}"
            )
    return {key: _check_positions(path, key, values) for key, values in content.items()}


def use_positions(path: Path, positions: Positions, source: Source, seed: int) -> Split:
    """The split that these positions are, in the training images of a source."""
    for key, values in positions.items():
        if len(values) and values[-1] >= len(source.labels):
            raise UserError(
                f"{path}: {key} has the position {values[-1]}, but {source.name} has "
                f"{len(source.labels)} training images, counted from 0; correct the file"
            )
    targets = source.labels[torch.from_numpy(positions["labeled"])]
    if (targets < 0).any():
        at = positions["labeled"][int((targets < 0).nonzero()[0])]
        raise UserError(f"{path}: the image {at} of {source.name} has no label; leave it out")
    counts = torch.bincount(targets, minlength=source.num_classes)
    if not counts.all():
        name = source.classes[int(counts.argmin())]
        raise UserError(f"{path} has no label of the class {name!r}; add one")
    unlabeled = positions.get("unlabeled")
    return Split(
        dataset=source.name,
        labels=len(targets),
        seed=seed,
        images=len(source.labels),
        labeled=tuple(positions["labeled"].tolist()),
        targets=tuple(targets.tolist()),
        unknown_classes=source.unknown_classes,
        unlabeled=None if unlabeled is None else tuple(unlabeled.tolist()),
    )


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    require_regular(path)
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def _check_positions(path: Path, key: str, values: Any) -> NDArray[np.int64]:
    try:
        positions = np.asarray(values)
    except ValueError:  # lists of different lengths
        positions = np.empty((0, 0))
    if positions.ndim != 1 or not len(positions) or positions.dtype.kind not in "iu":
        raise UserError(f"{path}: expected {key} to be a list of positions, such as [0, 7, 12]")
    unique, counts = np.unique(positions.astype(np.int64), return_counts=True)
    if unique[0] < 0 or counts.max() > 1:
        wrong, problem = (
            (unique[0], "is negative") if unique[0] < 0 else (unique[counts.argmax()], "is twice")
        )
        raise UserError(f"{path}: {key} has {wrong}, which {problem}; correct the file")
    return unique
