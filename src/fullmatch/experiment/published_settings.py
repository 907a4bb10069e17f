"""Settings that methods were published with for single data sets and label counts.

What a method uses everywhere is in its spec, and what all methods share on a data set is in
`presets`; the rest is here, each value with its source.
"""

from dataclasses import replace
from typing import Literal, NamedTuple

from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig

Section = Literal["algorithm", "optimizer", "training"]
SVHN = ("svhn", "svhn-noextra")
DOUBLEMATCH = "walline/doublematch, README"
NP_MATCH = "Jianf-Wang/NP-Match, npmatch_imagenet_100000.yaml"
NP_MATCH_CODE = "Jianf-Wang/NP-Match, npmatch.py"
USB = "USB, config/classic_cv/comatch"
FREEMATCH = "TorchSSL b45c3b3, freematch_utils.py"
UPS = "nayeemrizve/ups, README"
PAPER = "FullMatch's paper, note in Table 1"
IOMATCH = "nukezil/IOMatch, config/openset_cv/iomatch"


class PublishedSetting(NamedTuple):
    """One value of one method."""

    algorithm: str
    data: tuple[str, ...]
    labels: int | None  # None: any number
    section: Section
    field: str
    value: float | bool
    source: str

    @property
    def name(self) -> str:
        """The setting as `--set` takes it."""
        return f"{self.section}.{self.field}"

    def applies_to(self, config: ExperimentConfig) -> bool:
        same_labels = self.labels in (None, config.data.labels)
        same_data = config.data.name in self.data
        return same_labels and same_data and self.algorithm == name_of(config.algorithm)

    def apply(self, config: ExperimentConfig) -> ExperimentConfig:
        part = getattr(config, self.section)
        return replace(config, **{self.section: replace(part, **{self.field: self.value})})


def _feature_weights(data: tuple[str, ...], **weights: float) -> tuple[PublishedSetting, ...]:
    """DoubleMatch's weight w_s by number of labels, such as `at_40=0.5`."""
    return tuple(
        PublishedSetting(
            "doublematch",
            data,
            int(labels.removeprefix("at_")),
            "algorithm",
            "features",
            weight,
            DOUBLEMATCH,
        )
        for labels, weight in weights.items()
    )


def _np_match(
    section: Section, field: str, value: float, source: str = NP_MATCH
) -> PublishedSetting:
    return PublishedSetting("npmatch", ("imagenet",), None, section, field, value, source)


PUBLISHED: tuple[PublishedSetting, ...] = (
    *_feature_weights(("cifar10",), at_40=0.5, at_250=1.0, at_4000=5.0),
    *_feature_weights(("cifar100",), at_400=2.0, at_2500=5.0, at_10000=10.0),
    *_feature_weights(SVHN, at_40=0.001, at_250=0.05, at_1000=0.05),
    *_feature_weights(("stl10",), at_1000=1.0),
    PublishedSetting(
        "doublematch", ("cifar100",), None, "optimizer", "cosine", 5 / 16, DOUBLEMATCH
    ),
    _np_match("algorithm", "threshold", 0.7),
    _np_match("algorithm", "uncertainty", 1.2),
    _np_match("algorithm", "latent", 0.125, NP_MATCH_CODE),
    _np_match("training", "batch", 256),
    _np_match("training", "ratio", 1),
    _np_match("optimizer", "rate", 0.05),
    _np_match("optimizer", "weight_decay", 1e-4),
    PublishedSetting("alphamatch", ("cifar100",), None, "algorithm", "align", True, PAPER),
    PublishedSetting("freematch", SVHN, None, "algorithm", "floor", 0.9, FREEMATCH),
    PublishedSetting("freematch", SVHN, None, "algorithm", "threshold", 0.95, FREEMATCH),
    PublishedSetting("comatch", ("stl10",), None, "algorithm", "contrast", 5.0, USB),
    PublishedSetting("iomatch", ("cifar10",), None, "algorithm", "align", False, IOMATCH),
    PublishedSetting("ups_offline", ("cifar10",), None, "algorithm", "balanced_rounds", 6, UPS),
    PublishedSetting("ups_offline", ("cifar100",), None, "algorithm", "balanced_rounds", 0, UPS),
)


def with_published(config: ExperimentConfig) -> ExperimentConfig:
    """The config with what its method was published with for this data and number of labels."""
    for setting in PUBLISHED:
        if setting.applies_to(config):
            config = setting.apply(config)
    return config
