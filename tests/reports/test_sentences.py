"""The sentences of a report, for every kind of run."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from fullmatch.reports import sentences
from fullmatch.reports.page import render_result
from fullmatch.storage.result import HealthFinding, OpenSetScores, Verdict
from fullmatch.storage.runs import StoredRun, read_run
from tests.written_runs import make_comparison, make_estimate, write_run


class MakeRun(Protocol):
    def __call__(self, name: str = "run", **facts: Any) -> StoredRun: ...


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(name: str = "run", **facts: Any) -> StoredRun:
        return read_run(write_run(tmp_path / name, **facts))

    return make


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_headline_of_a_finished_run(make_run: MakeRun) -> None:
    headline = plain(sentences.render_headline(make_run()))
    assert "<strong>66.7 %</strong> of 12 test pictures" in headline
    assert "56.7 to 76.7 %" in headline


def test_unknown_classes(make_run: MakeRun) -> None:
    assert sentences.describe_unknown(make_run("plain")) == ""
    scores = OpenSetScores(images=7, auroc=0.75)
    run = make_run("open", unknown_classes=("bird",), open_set=scores)
    sentence = plain(sentences.describe_unknown(run))
    assert sentence.startswith("Unknown classes (bird): 7 test pictures, ")
    assert sentence in plain(render_result(run))
    assert "12 test pictures of known classes are classified" in sentences.render_headline(run)
    unfinished = make_run("unfinished", finished=False)
    assert sentences.describe_unknown(unfinished) == ""


def test_headline_of_an_unfinished_run(make_run: MakeRun) -> None:
    run = make_run(finished=False, config={"training": {"steps": 2000}})
    headline = plain(sentences.render_headline(run))
    assert "not finished: step 50 of 2,000. Test accuracy so far: 100.0 %." in headline


def test_headline_names_classes_that_were_not_measured(make_run: MakeRun) -> None:
    estimate = make_estimate(per_class={"cat": 0.8, "ship": None, "<b>": None})
    headline = plain(sentences.render_headline(make_run(test=False, estimate=estimate)))
    assert "70.0 to 90.0 %). Not measured: ship, &lt;b&gt;.</p>" in headline


def test_headline_without_test_pictures(make_run: MakeRun) -> None:
    headline = sentences.render_headline(make_run(test=False))
    assert "The accuracy is not known: there are no test pictures." in headline
    reason = "The accuracy is not known: no class has two labels."
    missing = make_run("missing", test=False, estimate_missing=reason)
    assert reason in sentences.render_headline(missing)


def test_headline_of_an_estimate(make_run: MakeRun) -> None:
    headline = plain(sentences.render_headline(make_run(test=False, estimate=make_estimate())))
    assert "<strong>80.0 %</strong> of 6 held-out labels are predicted correctly" in headline
    assert "earlier run" not in headline
    estimate = make_estimate(without_start=True)
    warm = sentences.render_headline(make_run("warm", test=False, estimate=estimate))
    assert "). These models did not start from the earlier run&#39;s weights" in warm


@pytest.mark.parametrize("verdict", [Verdict.HELPED, Verdict.HURT, Verdict.UNCLEAR])
def test_verdict(make_run: MakeRun, verdict: Verdict) -> None:
    comparison = make_comparison(-0.1, (-0.15, 0.02), verdict)
    sentence = plain(sentences.describe_verdict(make_run(baseline=comparison)))
    assert f"The unlabeled pictures {verdict}: -10.0 points" in sentence
    assert "(95 % interval -15.0 to +2.0) compared with the same network" in sentence


def test_verdict_by_cross_validation(make_run: MakeRun) -> None:
    estimate = make_estimate(gain=make_comparison(0.2))
    sentence = sentences.describe_verdict(make_run(test=False, estimate=estimate))
    assert "The unlabeled pictures helped: +20.0 points" in sentence


def test_verdict_names_the_earlier_weights(make_run: MakeRun) -> None:
    comparison = make_comparison(start="runs/old")
    sentence = sentences.describe_verdict(make_run(baseline=comparison))
    assert sentence.startswith("Together with the weights of the earlier run, the unlabeled pict")
    no_unlabeled = make_run("none", baseline=comparison, unlabeled=6)
    sentence = sentences.describe_verdict(no_unlabeled)
    assert "no unlabeled pictures; together with the weights of the earlier run" in sentence


def test_runs_without_unlabeled_pictures_get_no_advice_about_them(make_run: MakeRun) -> None:
    run = make_run(unlabeled=6, evaluated=False)
    text = f"{sentences.describe_verdict(run)} {sentences.render_next_steps(run)}"
    assert "unlabeled pictures" not in text
    assert "suggest" not in text
    assert "predict" in text


def test_no_verdict(make_run: MakeRun) -> None:
    assert "not known" in sentences.describe_verdict(make_run())
    assert sentences.describe_verdict(make_run("labels", algorithm="supervised")) == ""
    assert sentences.describe_verdict(make_run("early", finished=False)) == ""


def test_balanced_accuracy_of_uneven_classes(make_run: MakeRun) -> None:
    assert sentences.describe_classes(make_run()) == ""
    text = plain(sentences.describe_classes(make_run("uneven", labels_by_class=(9, 2, 2))))
    assert "balanced accuracy (the mean of the classes' recalls) 66.7 %" in text
    assert text.endswith("lowest recall 0.0 %, of class fox.")
    assert sentences.describe_classes(make_run("stopped", finished=False)) == ""


def test_numbers_chosen_on_the_test_are_marked(make_run: MakeRun) -> None:
    text = plain(sentences.describe_choice(make_run()))
    assert "Best evaluation, chosen on the test pictures: 100.0 %" in text
    own = sentences.describe_choice(make_run("own", evaluated=False))
    assert "Best evaluation" not in own
    assert "end of training" in own
    assert sentences.describe_choice(make_run("none", test=False)) == ""


def test_health_findings(make_run: MakeRun) -> None:
    advice = "more labels, or a lower rate (--set optimizer.rate=0.01), or <both>"
    finding = HealthFinding(kind="k", message="none is <used>", advice=advice)
    markup = sentences.render_health(make_run(health=(finding,)))
    assert "<li>None is &lt;used&gt;. Try more labels, or a lower rate (" in markup
    assert "(<code>--set optimizer.rate=0.01</code>), or &lt;both&gt;.</li>" in markup
    assert not sentences.render_health(make_run("well"))


def test_next_steps_of_a_benchmark(make_run: MakeRun) -> None:
    steps = sentences.render_next_steps(make_run())
    assert "weakest classes: fox." in steps
    assert "--baseline" in steps
    assert "suggest" not in steps


def test_confidences_are_judged_on_many_images_only(make_run: MakeRun) -> None:
    run = make_run()
    assert "off by" not in sentences.render_next_steps(run)
    assert run.result is not None
    assert run.scores is not None
    many = replace(run.scores, confusion=((50, 0, 0), (0, 50, 0), (50, 0, 0)))
    poor = replace(run, result=replace(run.result, teacher=many))
    assert "off by 20 points" in sentences.render_next_steps(poor)
    good = replace(run, result=replace(run.result, teacher=replace(many, ece=0.05)))
    assert "off by" not in sentences.render_next_steps(good)


def test_next_steps_of_own_pictures(make_run: MakeRun) -> None:
    steps = sentences.render_next_steps(make_run("my run", evaluated=False, test=False))
    assert "test/CLASS/" in steps
    assert "suggest" in steps
    assert "Find out how good" in steps
    assert "my run&#39; -n 20" in steps  # quoted for the shell, then for HTML
    assert "weakest" not in steps


def test_next_steps_after_an_estimate(make_run: MakeRun) -> None:
    run = make_run(evaluated=False, test=False, estimate=make_estimate())
    steps = sentences.render_next_steps(run)
    assert "Measure it better" in steps
    assert "Find out" not in steps


def test_next_steps_of_an_unfinished_run(make_run: MakeRun) -> None:
    steps = sentences.render_next_steps(make_run(finished=False))
    assert "fullmatch resume" in steps
    assert "predict" not in steps
    assert "--baseline" not in steps
