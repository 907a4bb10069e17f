"""Signs of trouble in a run, each with advice; silent while all is well."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from fullmatch.config import SettingsTable, to_table
from fullmatch.core import FallingLimit, SpecLike, Thresholds, as_spec
from fullmatch.data.quality.outliers import MANY as MANY_OUTLIERS
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import HealthFinding

WARM_UP = 0.3  # share of the steps before which a run is not judged
WINDOW = 5  # records that are averaged, so that one odd batch is not reported
UNUSED = 0.01  # share of unlabeled pictures in use below which they have no effect
ENOUGH = 0.2  # share in use from which on the classes of the pseudo-labels are judged
GAP = 0.3  # share in use minus accuracy

Records = Sequence[LogRecord]


@dataclass(frozen=True)
class TunableSettings:
    """The settings that advice is about; None if the algorithm does not have the setting."""

    rate: float = 0.03
    clip: float = 0.0  # largest norm of the gradient; 0: no limit
    threshold: float | None = 0.95  # confidence that a prediction needs to be used
    coefficient: float | None = 1.0  # weight of the unlabeled loss
    thresholds: Thresholds = "fixed"
    selects: bool = True  # False: this run uses no unlabeled picture, by intent
    open_set: bool = False  # True: made for unlabeled pictures that belong to no class

    @classmethod
    def of(cls, spec: SpecLike, rate: float, clip: float) -> Self:
        fields: SettingsTable = to_table(spec)
        options = as_spec(spec)
        adaptive = options.thresholds == "adaptive"  # then the setting is only a bound
        return cls(
            rate,
            clip,
            None if adaptive else fields.get("threshold"),
            fields.get("coefficient"),
            options.thresholds,
            selects=options.selects,
            open_set=options.open_set,
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
        """0.98 for 0.95; nothing if a higher threshold would leave out every picture."""
        if self.threshold is None or self.threshold >= 0.99:
            return []
        higher = 1 - 0.4 * (1 - self.threshold)
        return [f"a higher threshold (--set algorithm.threshold={higher:.3g})"]

    def smaller_weight(self) -> list[str]:
        if not self.coefficient:
            return []
        return [f"a smaller weight (--set algorithm.coefficient={self.coefficient / 2:.3g})"]


FIXMATCH = TunableSettings()


@dataclass(frozen=True)
class RunContext:
    """What the checks need to know about a run, besides its log."""

    num_classes: int
    steps: int  # of the whole run
    largest_prior: float | None = None  # share of the largest class; None: all classes are equal
    outlier_share: float = 0.0  # of the unlabeled pictures
    has_unlabeled: bool = True  # False: labeled pictures are used as unlabeled ones
    settings: TunableSettings = FIXMATCH
    limit: FallingLimit | None = None  # on the loss of selected images


def assess(
    records: Records, context: RunContext, accuracy: float | None = None
) -> list[HealthFinding]:
    """Findings about the log of a run so far; `accuracy` is that on held-out pictures."""
    settings = context.settings
    findings = [
        check_loss(records, settings),
        check_outliers(context.outlier_share, settings),
        check_limit(records, context.limit),
    ]
    if context.has_unlabeled and is_warmed_up(records, context.steps):
        prior = context.largest_prior
        findings += [
            check_usage(records, settings),
            check_collapse(records, 1 / context.num_classes if prior is None else prior, settings),
            check_confidence(records, accuracy, settings),
        ]
    return [finding for finding in findings if finding is not None]


def is_warmed_up(records: Records, steps: int) -> bool:
    return len(records) >= WINDOW and records[-1].step >= WARM_UP * steps


def check_loss(records: Records, settings: TunableSettings) -> HealthFinding | None:
    if not records or math.isfinite(records[-1].metrics.get("loss", 0.0)):
        return None
    return HealthFinding(
        kind="NaN loss",
        message=f"the loss became NaN at step {records[-1].step}: "
        "the learning rate may be too high",
        advice=f"a lower learning rate, such as {settings.lower_rate()}, "
        f"or {settings.lower_clip()}",
    )


def check_outliers(share: float, settings: TunableSettings = FIXMATCH) -> HealthFinding | None:
    if share < MANY_OUTLIERS or settings.open_set:
        return None
    return HealthFinding(
        kind="outliers",
        message=f"{100 * share:.0f} % of the unlabeled pictures look unlike the labeled ones: "
        "what is learned from them may be wrong",
        advice="a method that expects pictures of no class (--algorithm iomatch), removing such "
        "pictures (fullmatch check lists them), or labeling some of them",
    )


def check_limit(records: Records, limit: FallingLimit | None) -> HealthFinding | None:
    """Look at the first record after the warm-up: a limit at its floor cannot fall."""
    if limit is None or len(records) < 2:
        return None
    interval = records[1].step - records[0].step
    for before, record in pairwise(records):
        is_first = before.step - interval < limit.start <= before.step
        if is_first and record.metrics.get("rho", math.inf) <= limit.floor * 1.0001:
            early = "the limit from the start of the warm-up (--set algorithm.measured=start)"
            return HealthFinding(
                kind="limit at its floor",
                message=f"the limit on the loss of selected pictures starts at its floor of "
                f"{limit.floor:g}, so it never falls",
                advice=join_options(
                    *([] if limit.early else [early]),
                    f"a lower floor (--set algorithm.rho_min={limit.floor / 5:.2g})",
                    "--algorithm fixmatch, which selects the same pictures",
                ),
            )
    return None


def check_usage(records: Records, settings: TunableSettings) -> HealthFinding | None:
    used = recent_mean(records, "selected")
    if used is None or used >= UNUSED or not settings.selects:
        return None
    adaptive = ["adaptive thresholds (--algorithm full-freematch)"]
    return HealthFinding(
        kind="nothing selected",
        message=f"only {100 * used:.1f} % of the unlabeled pictures are used: "
        "the model is not confident about them",
        advice=join_options(
            *settings.lower_threshold(),
            *([] if settings.thresholds == "adaptive" else adaptive),
            "more steps",
            "more labels",
        ),
    )


def check_collapse(
    records: Records, prior: float, settings: TunableSettings
) -> HealthFinding | None:
    used = recent_mean(records, "selected")
    share = recent_mean(records, "largest_class_share")
    # Two thirds of the way from the usual share to everything.
    if used is None or share is None or used < ENOUGH or share < prior + (1 - prior) * 2 / 3:
        return None
    per_class = ["per-class thresholds (--algorithm fullflex)"]
    return HealthFinding(
        kind="one class takes all",
        message=f"{100 * share:.0f} % of the pseudo-labels in use are of one class: "
        "the model ignores the others",
        advice=join_options(
            *(per_class if settings.thresholds == "fixed" else []),
            f"a lower learning rate ({settings.lower_rate()})",
            "more labels of the other classes",
        ),
    )


def check_confidence(
    records: Records, accuracy: float | None, settings: TunableSettings = FIXMATCH
) -> HealthFinding | None:
    """Compare the share in use with the accuracy on held-out pictures or a benchmark's test."""
    measured = [each.evaluation["teacher"]["top1"] for each in records if each.evaluation]
    correct = accuracy if accuracy is not None else measured[-1] if measured else None
    used = recent_mean(records, "selected")
    if used is None or correct is None or used - correct < GAP:
        return None
    return HealthFinding(
        kind="over-confidence",
        message=f"{100 * used:.0f} % of the unlabeled pictures are used, but only "
        f"{100 * correct:.0f} % of held-out ones are classified correctly: "
        "the model learns from its own mistakes",
        advice=join_options(
            *settings.higher_threshold(), *settings.smaller_weight(), "more labels"
        ),
    )


def join_options(*options: str) -> str:
    """'a', 'a or b', 'a, b, or c'."""
    if len(options) < 3:
        return " or ".join(options)
    return f"{', '.join(options[:-1])}, or {options[-1]}"


def recent_mean(records: Records, metric: str) -> float | None:
    """Mean over the latest records that have the metric."""
    values = [each.metrics[metric] for each in records[-WINDOW:] if metric in each.metrics]
    return sum(values) / len(values) if values else None


class HealthMonitor:
    """Reports each kind of finding once while a run is training."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.records: list[LogRecord] = []
        self.reported: set[str] = set()  # kinds

    def check(self, record: LogRecord) -> list[HealthFinding]:
        """Findings that this record adds to those reported before."""
        self.records = [*self.records[-WINDOW:], record]
        findings = assess(self.records, self.context)
        new = [finding for finding in findings if finding.kind not in self.reported]
        self.mark_reported(new)
        return new

    def mark_reported(self, findings: Iterable[HealthFinding]) -> None:
        self.reported |= {finding.kind for finding in findings}
