"""A model card reports what was measured and how, and claims nothing else."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullmatch import Classifier
from fullmatch.inference.card import escape_markdown, render_card
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.result import Calibration, FinalScores
from fullmatch.storage.run_folder import RunFolder
from tests.served import digits_run, pets_run
from tests.written_runs import make_comparison, make_estimate

HEADINGS = [
    "# Classifier for digits",
    "## Data",
    "## Accuracy",
    "## Recall by class",
    "## Calibration",
    "## Limitations",
    "## Usage",
]


@pytest.fixture(scope="module")
def digits_card() -> str:
    return render_card(TrainedRun(digits_run()))


def copy_with(run: Path, to: Path, **fields: Any) -> TrainedRun:
    """A copy of a run with other fields in its result."""
    folder = RunFolder(shutil.copytree(run, to))
    folder.write_result(replace(folder.read_result(), **fields))
    return TrainedRun(to)


def digits_scores() -> FinalScores:
    scores = RunFolder(digits_run()).read_result().teacher
    assert scores is not None
    return scores


def test_sections_in_order(digits_card: str) -> None:
    assert [line for line in digits_card.splitlines() if line.startswith("#")][:7] == HEADINGS
    assert "8 x 8 pixels, grayscale." in digits_card
    assert "Method: fullmatch, 40 steps, seed 0" in digits_card
    assert "digits: 40 labeled and 1,257 unlabeled pictures." in digits_card


def test_layout_is_plain_markdown(digits_card: str) -> None:
    assert "\n\n\n" not in digits_card
    assert digits_card.endswith("```\n")
    lines = digits_card.splitlines()
    for at, line in enumerate(lines[1:], start=1):
        if line.startswith("## "):
            assert not lines[at - 1], line
            assert not lines[at + 1], line
    assert "{" not in digits_card.replace("\\{", "")
    assert "None" not in digits_card


def test_without_unlabeled_pictures(tmp_path: Path) -> None:
    text = render_card(copy_with(digits_run(), tmp_path / "run", unlabeled=40))
    assert "digits: 40 labeled pictures and no unlabeled ones." in text
    unknown = render_card(copy_with(digits_run(), tmp_path / "old", unlabeled=None))
    assert "digits: 40 labeled pictures.\n" in unknown


def test_accuracy_with_its_interval(digits_card: str) -> None:
    scores = digits_scores()
    low, high = scores.interval
    assert f"**{100 * scores.top1:.1f} % accuracy** on 500 test pictures" in digits_card
    assert f"(95 % interval {100 * low:.1f} to {100 * high:.1f})" in digits_card


def test_class_table_agrees_with_the_confusion_matrix(digits_card: str) -> None:
    scores = digits_scores()
    rows = [line for line in digits_card.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 10
    for code, row in enumerate(rows):
        name, count, accuracy, confused_with = (cell.strip() for cell in row.strip("|").split("|"))
        confusion = scores.confusion[code]
        assert (name, int(count)) == (str(code), sum(confusion))
        assert accuracy == f"{100 * confusion[code] / sum(confusion):.1f} %"
        mistakes = [number for other, number in enumerate(confusion) if other != code]
        expected = f"({max(mistakes)})" if any(mistakes) else "-"
        assert confused_with.endswith(expected)


def test_numbers_chosen_on_the_test_are_marked(tmp_path: Path, digits_card: str) -> None:
    # A benchmark, so its test pictures were looked at during training.
    assert "Best evaluation" in digits_card
    scores = replace(digits_scores(), median_last_20=0.8, best_chosen_on_test=0.91)
    text = render_card(copy_with(digits_run(), tmp_path / "run", teacher=scores))
    assert "Median of the last 20 evaluations: 80.0 %." in text
    assert "91.0 %, which is chosen on the test pictures and therefore too optimistic" in text
    own = replace(scores, median_last_20=None, best_chosen_on_test=None)
    text = render_card(copy_with(digits_run(), tmp_path / "own", teacher=own))
    assert "Best evaluation" not in text


def test_comparison_and_calibration(tmp_path: Path, digits_card: str) -> None:
    assert "Its confidences are not calibrated" in digits_card
    assert "compared with" not in digits_card
    calibration = Calibration(
        temperature=1.5, images=60, ece_before=0.2, ece_after=0.05, note="calibrated on 60 labels"
    )
    baseline = make_comparison(0.071, (0.02, 0.12))
    run = copy_with(digits_run(), tmp_path / "run", calibration=calibration, baseline=baseline)
    text = render_card(run)
    assert "Temperature 1.5: calibrated on 60 labels." in text
    assert "from 20.0 % to 5.0 %" in text
    assert "helped: +7.1 points (95 % interval +2.0 to +12.0) compared with the same" in text


def test_balanced_accuracy_of_uneven_classes(tmp_path: Path, digits_card: str) -> None:
    assert "balanced accuracy" not in digits_card
    counts = (9, *[1] * 9)
    text = render_card(copy_with(digits_run(), tmp_path / "run", labels_by_class=counts))
    assert "balanced accuracy (the mean of the classes' recalls)" in text


def test_no_accuracy_is_claimed_without_test_pictures() -> None:
    text = render_card(TrainedRun(pets_run()))
    assert "Not known: there were no test pictures" in text
    assert "Not measured." in text
    assert "accuracy**" not in text
    assert "weakest" not in text
    assert r"cat \| tiger, dög 2" in text


def test_estimate_without_test_pictures(tmp_path: Path) -> None:
    estimate = make_estimate(accuracy=0.75, per_class={"cat | tiger": 0.5, "dög 2": None})
    text = render_card(copy_with(pets_run(), tmp_path / "run", estimate=estimate))
    assert "Estimated accuracy 75.0 % (95 % interval 70 to 90;" in text
    assert "Not known" not in text
    assert "Not measured: dög 2." in text
    assert r"| cat \| tiger | 50.0 % |" in text
    assert "| dög 2 | not measured |" in text


def test_code_of_the_card_loads_the_model(digits_card: str) -> None:
    code = digits_card.split("```python\n")[1].split("```")[0]
    assert "from fullmatch import Classifier" in code
    namespace: dict[str, object] = {}
    exec(code, namespace)
    assert isinstance(namespace["classifier"], Classifier)


def test_text_from_users_is_escaped(tmp_path: Path) -> None:
    run = copy_with(pets_run(), tmp_path / "it's *mine*", data="<b>", notes=("# not a heading",))
    text = render_card(run)
    assert text.startswith("# Classifier for \\<b\\>\n")
    assert "- \\# not a heading\n" in text
    # Commands are typed as they are, so they are quoted for the shell only.
    assert f"""fullmatch predict '{tmp_path}/it'"'"'s *mine*' PICTURES""" in text


def test_escape_markdown() -> None:
    assert escape_markdown("a|b *c*\n<d> `e`") == r"a\|b \*c\* \<d\> \`e\`"
