"""What is going wrong in a run, in words, and which knob to turn; silent while all is well."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def assess(
    records: Records,
    num_classes: int,
    *,
    steps: int,
    largest_prior: float | None = None,
    accuracy: float | None = None,
    foreign: float = 0.0,
    unlabeled: bool = True,
) -> list[Finding]:
    """Findings on the lines of a run's log so far.

    `steps` are those of the whole run, `largest_prior` is the share of the largest class among
    the labels (even classes without it), `accuracy` was measured on held-out pictures, `foreign`
    is the share of unlabeled pictures that a check found unlike the labeled ones. Where there are
    none (`unlabeled`), labeled ones stand in for them, and nothing can be wrong with their use.
    """
    findings = [not_a_number(records), strange(foreign)]
    if unlabeled and records and records[-1]["step"] >= WARM_UP * steps and len(records) >= WINDOW:
        prior = 1 / num_classes if largest_prior is None else largest_prior
        findings += [
            nothing_used(records),
            collapsed(records, prior),
            overconfident(records, accuracy),
        ]
    return [finding for finding in findings if finding is not None]


def not_a_number(records: Records) -> Finding | None:
    if not records or math.isfinite(records[-1].get("loss", 0.0)):
        return None
    return Finding(
        "not a number",
        f"the loss is no longer a number at step {records[-1]['step']}: a step was too long",
        "a lower rate, such as --set optimizer.rate=0.01, or --set optimizer.clip=1",
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


def nothing_used(records: Records) -> Finding | None:
    used = recent(records, "selected")
    if used is None or used >= UNUSED:
        return None
    return Finding(
        "nothing selected",
        f"only {100 * used:.1f} % of the unlabeled pictures are in use: the model is sure of none",
        "a lower threshold (--set algorithm.threshold=0.8), one that adapts "
        "(--algorithm full-freematch), more steps, or more labels",
    )


def collapsed(records: Records, prior: float) -> Finding | None:
    used, share = recent(records, "selected"), recent(records, "largest_class_share")
    # Two thirds of the way from what is usual to everything.
    if used is None or share is None or used < ENOUGH or share < prior + (1 - prior) * 2 / 3:
        return None
    return Finding(
        "one class takes all",
        f"{100 * share:.0f} % of the pseudo-labels in use are of one class: it swallows the others",
        "thresholds by class (--algorithm fullflex), a lower rate "
        "(--set optimizer.rate=0.01), or more labels of the other classes",
    )


def overconfident(records: Records, accuracy: float | None) -> Finding | None:
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
        "a higher threshold (--set algorithm.threshold=0.98), a smaller weight "
        "(--set algorithm.coefficient=0.5), or more labels",
    )


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
    ) -> None:
        self.num_classes, self.steps = num_classes, steps
        self.largest_prior, self.foreign, self.unlabeled = largest_prior, foreign, unlabeled
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
        )
