"""What the report says in words, for every kind of run."""

from pathlib import Path
from typing import Any

import pytest

from fullmatch.report import sentences
from fullmatch.storage.runs import Run, read_run
from tests.report.written import write_run


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def of(name: str = "run", **facts: Any) -> Run:
        return read_run(write_run(tmp_path / name, **facts))

    return of


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_headline_of_a_finished_run(run: Any) -> None:
    said = plain(sentences.headline(run()))
    assert "<strong>66.7 %</strong> of 12 test images" in said
    assert "56.7 to 76.7 %" in said


def test_headline_of_an_unfinished_run(run: Any) -> None:
    found = run(finished=False)
    found.config["training"]["steps"] = 2000
    said = plain(sentences.headline(found))
    assert "not finished: step 50 of 2,000. Test accuracy so far: 100.0 %." in said


def test_headline_names_what_was_not_measured(run: Any) -> None:
    honest = {"accuracy": 0.8, "interval": [0.7, 0.9], "not_measured": ["ship", "<b>"]}
    said = plain(sentences.headline(run(test=False, honest=honest)))
    assert "70.0 to 90.0 %). Not measured: ship, &lt;b&gt;.</p>" in said
    many = {"not_measured": [f"class {number}" for number in range(12)]}
    assert sentences.unmeasured(many).endswith("class 8, class 9 and 2 more.")


def test_headline_without_test_images(run: Any) -> None:
    assert "nobody knows how good it is" in sentences.headline(run(test=False))
    honest = {"accuracy": 0.8, "interval": [0.7, 0.9]}
    said = plain(sentences.headline(run("other", test=False, honest=honest)))
    assert "<strong>80.0 %</strong> of labeled images that were held out" in said
    assert "anew" not in said
    warm = sentences.headline(run("warm", test=False, honest=honest | {"anew": True}))
    assert "). The models asked were trained anew: the weights of the earlier run" in warm


@pytest.mark.parametrize("verdict", ["helped", "hurt", "made no clear difference"])
def test_verdict(run: Any, verdict: str) -> None:
    found = {"gain": -0.1, "interval": [-0.15, 0.02], "verdict": verdict}
    said = sentences.verdict(run(labels_only=found))
    assert said is not None and f"The unlabeled images {verdict}: -10.0 points" in said
    assert "-15.0 to +2.0" in said


def test_a_verdict_names_the_earlier_weights(run: Any) -> None:
    found = {"gain": 0.1, "interval": [0.05, 0.15], "verdict": "helped", "start": "runs/old"}
    said = str(sentences.verdict(run(labels_only=found)))
    assert said.startswith("Together with the weights of the earlier run, the unlabeled images")
    none = str(sentences.verdict(run("none", labels_only=found, unlabeled=6)))
    assert "no unlabeled images; together with the weights of the earlier run, learning" in none


def test_no_unlabeled_images_are_not_spoken_of(run: Any) -> None:
    found = run(unlabeled=6, evaluated=False)
    said = f"{sentences.verdict(found)} {sentences.next_steps(found)}"
    assert "unlabeled images" not in said and "suggest" not in said and "predict" in said


def test_no_verdict(run: Any) -> None:
    assert "not known" in str(sentences.verdict(run()))
    assert sentences.verdict(run("alone", algorithm="supervised")) is None
    assert sentences.verdict(run("early", finished=False)) is None


def test_numbers_chosen_on_the_test_are_marked(run: Any) -> None:
    said = plain(str(sentences.how_chosen(run())))
    assert "chosen on the test images: 100.0 %" in said
    own = str(sentences.how_chosen(run("own", evaluated=False)))
    assert "chosen on the test images" not in own and "end of training" in own
    assert sentences.how_chosen(run("none", test=False)) is None


def test_health_findings(run: Any) -> None:
    knob = "more labels, or a lower rate (--set optimizer.rate=0.01), or <both>"
    said = sentences.health(run(health=[{"kind": "k", "words": "none is <used>", "knob": knob}]))
    assert "<li>None is &lt;used&gt;. Try more labels, or a lower rate (" in said
    assert "(<code>--set optimizer.rate=0.01</code>), or &lt;both&gt;.</li>" in said
    assert not sentences.health(run("well"))


def test_next_steps_of_a_benchmark(run: Any) -> None:
    said = sentences.next_steps(run())
    assert "weakest classes: fox." in said
    assert "--baseline" in said and "suggest" not in said


def test_confidence_is_judged_on_many_images_only(run: Any) -> None:
    found = run()
    assert "off by" not in sentences.next_steps(found)
    found.scores["confusion"] = [[50, 0, 0], [0, 50, 0], [50, 0, 0]]
    assert "off by 20 points" in sentences.next_steps(found)
    found.scores["ece"] = 0.05
    assert "off by" not in sentences.next_steps(found)


def test_next_steps_of_own_pictures(run: Any) -> None:
    said = sentences.next_steps(run("my run", evaluated=False, test=False))
    assert "test/CLASS/" in said and "suggest" in said
    assert "my run&#x27; -n 20" in said  # quoted for the shell, then for HTML
    assert "weakest" not in said


def test_next_steps_after_an_estimate(run: Any) -> None:
    honest = {"accuracy": 0.8, "interval": [0.7, 0.9], "gain": {}}
    said = sentences.next_steps(run(evaluated=False, test=False, honest=honest))
    assert "Measure it better" in said and "Find out" not in said


def test_next_steps_of_an_unfinished_run(run: Any) -> None:
    said = sentences.next_steps(run(finished=False))
    assert "fullmatch resume" in said and "predict" not in said and "--baseline" not in said
