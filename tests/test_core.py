"""Specs: the base class and plain dataclasses that do without it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fullmatch.algorithms import FixMatch, SemCo
from fullmatch.core import About, Algorithm, Spec, SpecLike, Task, Views, as_spec


@dataclass(frozen=True)
class Plain:
    ratio: ClassVar[int] = 2
    width: int = 3

    def build(self, task: Task) -> Algorithm:
        return Algorithm()


@dataclass(frozen=True, slots=True)
class Described:
    ratio: ClassVar[int] = 2
    about: ClassVar[About] = About("Own", 2026, "an idea")
    recipe: ClassVar[Mapping[str, float]] = {"clip": 1.0}
    views: ClassVar[Views] = Views(unlabeled=())

    def build(self, task: Task) -> Algorithm:
        return Algorithm()


def test_a_spec_stays_what_it_is() -> None:
    spec = FixMatch(threshold=0.5)
    assert as_spec(spec) is spec


def test_a_plain_dataclass_gets_the_defaults() -> None:
    plain = Plain(width=5)
    assert isinstance(plain, SpecLike)
    assert not isinstance(plain, Spec)
    spec = as_spec(plain)
    assert (spec.about, spec.views, spec.recipe, spec.selects) == (None, None, {}, True)
    assert (spec.missing, spec.selection_threshold(), spec.thresholds) == ("", None, "fixed")
    assert spec.ratio == 2
    assert spec.width == 5  # type: ignore[attr-defined]


def test_a_plain_dataclass_keeps_its_own_attributes() -> None:
    spec = as_spec(Described())
    assert spec.about == Described.about
    assert spec.recipe == {"clip": 1.0}
    assert spec.views == Views(unlabeled=())


def test_what_a_spec_is_missing() -> None:
    assert SemCo().missing == "embeddings"
    assert SemCo(embeddings="a.npy").missing == FixMatch().missing == ""
