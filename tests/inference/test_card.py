"""A model card says what was measured and how, and never more than that."""

import json
from pathlib import Path

import pytest

from fullmatch.experiment.classifier import Classifier
from fullmatch.inference.card import card, plain
from fullmatch.inference.trained_run import TrainedRun
from tests.served import copied, digits_run, pets_run

HEADINGS = [
    "# A classifier of digits",
    "## Data",
    "## How good it is",
    "## Class by class",
    "## Calibration",
    "## Limits",
    "## How to use it",
]


@pytest.fixture(scope="module")
def digits_card() -> str:
    return card(TrainedRun(digits_run()))


def test_says_everything_in_order(digits_card: str) -> None:
    assert [line for line in digits_card.splitlines() if line.startswith("#")][:7] == HEADINGS
    assert "8 x 8 pixels, grey" in digits_card
    assert "Method: fullmatch, 40 steps, seed 0" in digits_card
    assert "40 labeled pictures, and 1,297 without their labels" in digits_card


def test_no_unlabeled_pictures_are_not_counted(tmp_path: Path) -> None:
    text = card(TrainedRun(copied(digits_run(), tmp_path / "run", unlabeled=40)))
    assert "40 labeled pictures, and no others." in text


def test_accuracy_is_the_results_with_its_interval(digits_card: str) -> None:
    scores = json.loads((digits_run() / "result.json").read_text())["teacher"]
    low, high = scores["interval"]
    assert f"**{100 * scores['last']:.1f} % accuracy** on 500 test pictures" in digits_card
    assert f"(95 % interval {100 * low:.1f} to {100 * high:.1f})" in digits_card


def test_class_table_counts_like_the_confusion_matrix(digits_card: str) -> None:
    scores = json.loads((digits_run() / "result.json").read_text())["teacher"]
    rows = [line for line in digits_card.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 10
    for code, row in enumerate(rows):
        name, count, accuracy, taken = (cell.strip() for cell in row.strip("|").split("|"))
        confusion = scores["confusion"][code]
        assert (name, int(count)) == (str(code), sum(confusion))
        assert accuracy == f"{100 * confusion[code] / sum(confusion):.1f} %"
        others = [n for other, n in enumerate(confusion) if other != code]
        assert taken == "-" if not any(others) else taken.endswith(f"({max(others)})")


def test_numbers_chosen_on_the_test_are_marked(tmp_path: Path) -> None:
    teacher = json.loads((digits_run() / "result.json").read_text())["teacher"]
    teacher |= {"median_last_20": 0.8, "best_chosen_on_test": 0.91}
    text = card(TrainedRun(copied(digits_run(), tmp_path / "run", teacher=teacher)))
    assert "91.0 %, which is chosen on the test pictures and so flatters" in text


def test_comparison_and_calibration_where_there_are_any(tmp_path: Path, digits_card: str) -> None:
    assert "Its confidences are not calibrated" in digits_card and "points over" not in digits_card
    run = copied(
        digits_run(),
        tmp_path / "run",
        temperature=1.5,
        calibration={"images": 60, "ece_before": 0.2, "ece_after": 0.05, "note": "calibrated"},
        labels_only={"gain": 0.071, "interval": [0.02, 0.12], "verdict": "helped", "images": 500},
    )
    text = card(TrainedRun(run))
    assert "Temperature 1.5: calibrated." in text and "from 20.0 % to 5.0 %" in text
    assert "helped: +7.1 points over" in text and "(95 % interval +2.0 to +12.0)" in text


def test_without_test_pictures_no_accuracy_is_claimed() -> None:
    text = card(TrainedRun(pets_run()))
    assert "Nobody knows: there were no test pictures" in text
    assert "accuracy**" not in text and "weakest" not in text
    assert r"cat \| tiger, dög 2" in text


def test_without_test_pictures_held_out_labels_speak(tmp_path: Path) -> None:
    honest = {
        "accuracy": 0.75,
        "sentence": "Estimated accuracy 75.0 %.",
        "per_class": {"cat | tiger": 0.5, "dög 2": None},
    }
    text = card(TrainedRun(copied(pets_run(), tmp_path / "run", honest=honest)))
    assert "Estimated accuracy 75.0 %." in text and "Nobody knows" not in text
    assert r"| cat \| tiger | 50.0 % |" in text and "| dög 2 | not measured |" in text


def test_code_of_the_card_loads_the_model(digits_card: str) -> None:
    code = digits_card.split("```python\n")[1].split("```")[0]
    space: dict[str, object] = {}
    exec(code, space)
    assert isinstance(space["classifier"], Classifier)


def test_names_are_not_markup() -> None:
    assert plain("a|b *c*\n<d> `e`") == r"a\|b \*c\* \<d\> \`e\`"
