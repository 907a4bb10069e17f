"""A difference is called clear only when it is."""

import math

import pytest
import torch
from scipy.stats import binomtest

from fullmatch.evaluation.paired import paired, sign_test, spoken
from fullmatch.evaluation.summary import Z


@pytest.mark.parametrize("better,worse", [(0, 0), (4, 0), (9, 2), (7, 7), (1, 30), (9000, 9100)])
def test_sign_test_is_the_binomial_one(better: int, worse: int) -> None:
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert math.isclose(sign_test(better, worse), expected)


def shares(right: int, wrong: int) -> torch.Tensor:
    return torch.tensor([1.0] * right + [0.0] * wrong)


def test_verdicts() -> None:
    assert paired(shares(50, 10), shares(30, 30))["verdict"] == "helped"
    assert paired(shares(30, 30), shares(50, 10))["verdict"] == "hurt"
    assert paired(shares(31, 29), shares(30, 30))["verdict"] == "made no clear difference"
    same = paired(shares(9, 0), shares(9, 0))
    assert same["verdict"] == "made no clear difference"
    assert same["interval"][0] < -0.2 and same["interval"][1] > 0.2


def test_five_pictures_are_no_proof() -> None:
    found = paired(shares(35, 25), shares(30, 30))
    assert found["interval"][0] > 0  # what the interval alone would have said
    assert found["verdict"] == "made no clear difference"


def test_no_false_alarm_from_chance() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(400, 2, 40, generator=generator) < 0.7
    verdicts = [paired(a.double(), b.double())["verdict"] for a, b in draws]
    assert sum(v != "made no clear difference" for v in verdicts) <= 0.05 * len(verdicts)


def test_words() -> None:
    gain = paired(shares(50, 10), shares(30, 30))
    found = {
        "accuracy": 50 / 60,
        "interval": [0.72, 0.91],
        "labels": 60,
        "held_out": 60,
        "parts": 5,
        "repeats": 2,
        "labels_only": {"accuracy": 0.5},
        "gain": gain,
    }
    said = spoken(found)
    assert "83.3 % (95 % interval 72 to 91; 60 labels, 5 parts in turn, twice)" in said
    assert "labels alone 50.0 %. The unlabeled pictures helped: +33.3 points" in said
    assert said.endswith(").") and spoken(found | {"anew": False}) == said
    assert spoken(found | {"anew": True}).startswith(f"{said} The models asked were trained anew")
    some = spoken(found | {"held_out": 58, "not_measured": ["ship", "dög 2"]})
    assert "; 58 of 60 labels, 5 parts in turn" in some
    assert some.endswith("). Not measured: ship, dög 2.")
    fifth = spoken(found | {"held_out": 12, "parts": 1, "repeats": 1})
    assert "; 60 labels, a part of 12 held out)" in fifth
    none = spoken(found | {"unlabeled": 60})
    assert "There are no unlabeled pictures; learning from the labeled ones as if they were" in none


def test_the_interval_is_walds_with_one_difference_more() -> None:
    """The mean of the differences -1, 0, 1 and its standard error, as if there were one more."""
    ours = torch.tensor([1.0] * 40 + [0.0] * 15 + [1.0] * 445).double()
    theirs = torch.tensor([0.0] * 40 + [1.0] * 15 + [1.0] * 445).double()
    found = paired(ours, theirs)
    values = (ours - theirs).numpy()
    half = Z * math.sqrt(values.var() * 500 + 1) / 500
    assert found["gain"] == pytest.approx(values.mean())
    assert found["interval"] == pytest.approx([values.mean() - half, values.mean() + half])
    assert found["images"] == 500
    never = paired(ours, ours)["interval"]
    assert never[0] < 0 < never[1]  # never having differed is no proof that they are alike
