"""`fullmatch train` on photos: strategies are compared, and the best one is used."""

from pathlib import Path

import numpy as np
import pytest

from fullmatch.cli import main
from fullmatch.cli.commands.predict import predict
from fullmatch.cli.commands.resume import resume
from fullmatch.cli.commands.train import train
from fullmatch.experiment.cross_validation import MANY
from fullmatch.experiment.strategies import LABELS_ONLY
from fullmatch.inference.evaluate import evaluate_run
from fullmatch.models.pretrained import Origin, WeightsFile
from fullmatch.storage.run_folder import RunFolder
from tests.frozen_runs import MODEL, tiny_body
from tests.own_pictures import COLORS, clean_folder, outlier, save

__all__ = ["tiny_body"]
FEW_STEPS = ["training.steps=4"]
pytestmark = pytest.mark.usefixtures("tiny_body")


@pytest.fixture(autouse=True)
def weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of the tiny network are on this machine."""
    weights = WeightsFile(MODEL, Path("a.pth"), Origin.PACKAGE, "some_package")
    monkeypatch.setattr("fullmatch.models.pretrained.list_weights", lambda: [weights])


def many_labels(folder: Path, test: int = 0) -> Path:
    """So many labels that strategies are compared on a single fold, which is quick."""
    labels = -(-MANY // len(COLORS))
    return clean_folder(folder, labels=labels, unlabeled=6, test=test, size=72)


@pytest.mark.parametrize("test", [0, 3])
def test_the_table_of_strategies(
    test: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = many_labels(tmp_path / "photos", test)
    out = tmp_path / "run"
    train(str(photos), out=out, set_=FEW_STEPS)
    printed = capsys.readouterr().out
    folder = RunFolder.existing(out)
    strategies = folder.read_result().strategies
    assert len(strategies) == 3
    lines = printed.splitlines()
    header = next(at for at, line in enumerate(lines) if "held-out accuracy" in line)
    rows = [line for line in lines[header + 1 :] if "%" in line][:3]
    for strategy, row in zip(strategies, rows, strict=True):
        assert strategy.name in row
        assert ("used" in row) == strategy.chosen
    reason = next(strategy.explanation for strategy in strategies if strategy.chosen)
    assert reason in " ".join(printed.split())
    assert strategies[0].name == LABELS_ONLY
    assert "knows photos" in printed
    assert (out / "report.html").exists()
    predict(out, str(photos / "unlabeled"))
    assert "brick" in capsys.readouterr().out


def test_a_method_for_unknown_pictures_is_used_without_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = clean_folder(tmp_path / "photos", labels=4, unlabeled=6, test=2, size=72)
    save(outlier(0), photos / "test" / "other" / "0.png")
    out = tmp_path / "run"
    settings = ["data.unknown_classes=other", *FEW_STEPS]
    train(str(photos), algorithm="iomatch", out=out, set_=settings)
    printed = capsys.readouterr().out
    assert "only this algorithm recognizes unknown pictures" in printed
    assert "Unknown classes (other): 1 test image, " in printed
    result = RunFolder.existing(out).read_result()
    assert result.algorithm_name == "iomatch"
    assert result.strategies == ()
    assert result.open_set is not None
    assert evaluate_run(RunFolder.existing(out)).open_set == result.open_set


def test_resume_compares_what_was_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = many_labels(tmp_path / "photos")
    out = tmp_path / "run"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fullmatch.experiment.strategies.StrategyChooser.__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(str(photos), out=out, set_=FEW_STEPS)
    resume(out)
    strategies = RunFolder.existing(out).read_result().strategies
    assert sum(strategy.chosen for strategy in strategies) == 1


def test_photos_in_an_npz(tmp_path: Path) -> None:
    """They cannot be resized when they are loaded."""
    pixels = np.random.default_rng(0).integers(0, 256, (20, 168, 168, 3), np.uint8)
    labels = np.array([0, 0, 1] + [-1] * 17)  # only two can be held out, so there are few folds
    pixels[labels == 1] //= 3
    np.savez(tmp_path / "photos.npz", train_x=pixels, train_y=labels)
    train(str(tmp_path / "photos.npz"), out=tmp_path / "run", set_=FEW_STEPS)
    assert len(RunFolder.existing(tmp_path / "run").read_result().strategies) == 3


def test_no_strategies_for_small_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = clean_folder(tmp_path / "photos", labels=2, unlabeled=2, test=1, size=24)
    train(str(photos), steps=1, out=tmp_path / "run", set_=["model.name=wrn-10-1"])
    assert "held-out accuracy" not in capsys.readouterr().out
    assert RunFolder.existing(tmp_path / "run").read_result().strategies == ()


def test_an_interrupt_while_strategies_are_compared_shows_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    photos = clean_folder(tmp_path / "photos", labels=4, unlabeled=6, size=72)
    monkeypatch.setattr("fullmatch.experiment.strategies.StrategyChooser.__call__", interrupt)
    with pytest.raises(SystemExit) as end:
        main(["train", str(photos), "--out", str(tmp_path / "run")])
    assert end.value.code == 130
    assert f"Resume with:\n  fullmatch resume {tmp_path / 'run'}" in capsys.readouterr().out
