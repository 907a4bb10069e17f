"""The example of an own training loop: unlabeled digits improve the accuracy."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_training_loop.py"


def test_own_training_loop_learns() -> None:
    train = runpy.run_path(str(EXAMPLE))["train"]
    assert train(steps=300) > 0.8  # 0.74 without the unlabeled pictures
