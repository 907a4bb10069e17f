"""What is going wrong in a run, in words, and which knob to turn; silent while all is well."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from fullmatch.core import Thresholds

WARM_UP = 0.3  # share of the steps after which a run should have found its feet
WINDOW = 5  # records that are averaged, so that one odd batch is no finding
UNUSED = 0.01  # share of unlabeled pictures in use below which they might as well not be there
ENOUGH = 0.2  # share in use from which its classes can be judged: the largest of three is large
GAP = 0.3  # confidence beyond accuracy
FOREIGN = 0.2  # share of unlabeled pictures unlike the labeled ones

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Finding:
    kind: str
    words: str  # what was seen, and what it means
    knob: str  # what to try

    def sentence(self) -> str:
        return f"{self.words}. Try {self.knob}."


@dataclass(frozen=True)
class Knobs:
    """What can be turned in a run, and how it stands now; None where there is nothing to turn."""

    rate: float = 0.03
    clip: float = 0.0  # largest norm of the gradient; 0: no limit
    threshold: float | None = 0.95  # that a prediction must reach to be used
    coefficient: float | None = 1.0  # weight of the unlabeled loss
    thresholds: Thresholds = "fixed"
    selects: bool = True  # False: this run uses no unlabeled picture, and is meant to

    @classmethod
    def of(cls, spec: object, rate: float, clip: float) -> Self:
        """Read off the fields of a spec; `thresholds` and `selects` are there where they differ."""
        fields = dataclasses.fields(spec) if dataclasses.is_dataclass(spec) else ()
        found = {field.name: getattr(spec, field.name) for field in fields}
        thresholds = getattr(spec, "thresholds", "fixed")
        return cls(
            rate,
            clip,
            # Where thresholds are found, a setting only bounds them.
            found.get("threshold") if thresholds != "adaptive" else None,
            found.get("coefficient"),
            thresholds,
            selects=getattr(spec, "selects", True),
        )

    def lower_rate(self) -> str:
        return f"--set optimizer.rate={self.rate / 3:.2g}"

    def lower_clip(self) -> str:
        return f"--set optimizer.clip={self.clip / 10 if 0 < self.clip <= 1 else 1:.4g}"

    def lower_threshold(self) -> list[str]:
        """0.8 for 0.95."""
        if not self.threshold:
            return []
        return [f"a lower threshold (--set algorithm.threshold={0.84 * self.threshold:.2g})"]

    def higher_threshold(self) -> list[str]:
        """0.98 for 0.95; nothing from where a higher one would leave out everything."""
        if self.threshold is None or self.threshold >= 0.99:
            return []
        higher = 1 - 0.4 * (1 - self.threshold)
        return [f"a higher threshold (--set algorithm.threshold={higher:.3g})"]

    def smaller_weight(self) -> list[str]:
        if not self.coefficient:
            return []
        return [f"a smaller weight (--set algorithm.coefficient={self.coefficient / 2:.3g})"]


USUAL = Knobs()  # FixMatch's, where nobody says which


def assess(
    records: Records,
    num_classes: int,
    *,
    steps: int,
    largest_prior: float | None = None,
    accuracy: float | None = None,
    foreign: float = 0.0,
    unlabeled: bool = True,
    knobs: Knobs = USUAL,
) -> list[Finding]:
    """Findings on the lines of a run's log so far.

    `steps` are those of the whole run, `largest_prior` is the share of the largest class among
    the labels (even classes without it), `accuracy` was measured on held-out pictures, `foreign`
    is the share of unlabeled pictures that a check found unlike the labeled ones. Where there are
    none (`unlabeled`), labeled ones stand in for them, and nothing can be wrong with their use.
    What to try is said of the run's own `knobs`.
    """
    findings = [not_a_number(records, knobs), strange(foreign)]
    if unlabeled and records and records[-1]["step"] >= WARM_UP * steps and len(records) >= WINDOW:
        prior = 1 / num_classes if largest_prior is None else largest_prior
        findings += [
            nothing_used(records, knobs),
            collapsed(records, prior, knobs),
            overconfident(records, accuracy, knobs),
        ]
    return [finding for finding in findings if finding is not None]


def not_a_number(records: Records, knobs: Knobs) -> Finding | None:
    if not records or math.isfinite(records[-1].get("loss", 0.0)):
        return None
    return Finding(
        "not a number",
        f"the loss is no longer a number at step {records[-1]['step']}: a step was too long",
        f"a lower rate, such as {knobs.lower_rate()}, or {knobs.lower_clip()}",
    )


def strange(foreign: float) -> Finding | None:
    if foreign < FOREIGN:
        return None
    return Finding(
        "foreign pictures",
        f"{100 * foreign:.0f} % of the unlabeled pictures look unlike the labeled ones: what is "
        "learned from them may be wrong",
        "taking out what belongs to no class (fullmatch check lists it), or labeling some of it",
    )


def nothing_used(records: Records, knobs: Knobs) -> Finding | None:
    used = recent(records, "selected")
    if used is None or used >= UNUSED or not knobs.selects:
        return None
    adaptive = (
        []
        if knobs.thresholds == "adaptive"
        else ["thresholds that adapt (--algorithm full-freematch)"]
    )
    return Finding(
        "nothing selected",
        f"only {100 * used:.1f} % of the unlabeled pictures are in use: the model is sure of none",
        either(*knobs.lower_threshold(), *adaptive, "more steps", "more labels"),
    )


def collapsed(records: Records, prior: float, knobs: Knobs) -> Finding | None:
    used, share = recent(records, "selected"), recent(records, "largest_class_share")
    # Two thirds of the way from what is usual to everything.
    if used is None or share is None or used < ENOUGH or share < prior + (1 - prior) * 2 / 3:
        return None
    by_class = ["thresholds by class (--algorithm fullflex)"] if knobs.thresholds == "fixed" else []
    return Finding(
        "one class takes all",
        f"{100 * share:.0f} % of the pseudo-labels in use are of one class: it swallows the others",
        either(
            *by_class, f"a lower rate ({knobs.lower_rate()})", "more labels of the other classes"
        ),
    )


def overconfident(records: Records, accuracy: float | None, knobs: Knobs = USUAL) -> Finding | None:
    """Sure of much more than it gets right: on held-out pictures, or on a benchmark's test."""
    measured = [r["evaluation"]["teacher"]["top1"] for r in records if r.get("evaluation")]
    right = accuracy if accuracy is not None else measured[-1] if measured else None
    used = recent(records, "selected")
    if used is None or right is None or used - right < GAP:
        return None
    return Finding(
        "over-confidence",
        f"{100 * used:.0f} % of the unlabeled pictures are in use, but only {100 * right:.0f} % of "
        "held-out ones are right: it learns from its own mistakes",
        either(*knobs.higher_threshold(), *knobs.smaller_weight(), "more labels"),
    )


def either(*options: str) -> str:
    """'a', 'a or b', 'a, b, or c'."""
    if len(options) < 3:
        return " or ".join(options)
    return f"{', '.join(options[:-1])}, or {options[-1]}"


def recent(records: Records, metric: str) -> float | None:
    """Mean over the latest records that have it."""
    values = [float(record[metric]) for record in records[-WINDOW:] if metric in record]
    return sum(values) / len(values) if values else None


class Watch:
    """Tells each kind of finding once while a run goes on, and what stands at its end."""

    def __init__(
        self,
        num_classes: int,
        *,
        steps: int,
        largest_prior: float | None = None,
        foreign: float = 0.0,
        unlabeled: bool = True,
        knobs: Knobs = USUAL,
    ) -> None:
        self.num_classes, self.steps = num_classes, steps
        self.largest_prior, self.foreign = largest_prior, foreign
        self.unlabeled, self.knobs = unlabeled, knobs
        self.records: list[Mapping[str, Any]] = []
        self.told: dict[str, Finding] = {}

    def news(self, record: Mapping[str, Any]) -> list[Finding]:
        """What this line of the log adds to what was told."""
        self.records = [*self.records[-WINDOW:], record]
        return self.untold(self.standing(self.records))

    def untold(self, findings: Sequence[Finding]) -> list[Finding]:
        new = [finding for finding in findings if finding.kind not in self.told]
        self.told |= {finding.kind: finding for finding in new}
        return new

    def standing(self, records: Records, accuracy: float | None = None) -> list[Finding]:
        """What holds at the end of these lines of the log, told or not."""
        return assess(
            records,
            self.num_classes,
            steps=self.steps,
            largest_prior=self.largest_prior,
            accuracy=accuracy,
            foreign=self.foreign,
            unlabeled=self.unlabeled,
            knobs=self.knobs,
        )
