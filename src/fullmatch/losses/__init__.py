"""Losses as plain functions of tensors; they need only torch, nothing else of this package."""

from .adversarial import adversarial_perturbation
from .consistency import cross_entropy, entropy, sharpen, squared_distance
from .contrastive import cosine_distance, inner_products, label_graph
from .divergence import (
    alpha_divergence,
    kullback_leibler,
    power_mean,
    skewed_jensen_shannon,
)
from .fairness import self_adaptive_fairness
from .full import adaptive_k, adaptive_negative, entropy_meaning, log1m_softmax, negative_labels
from .fullmatch_loss import CEILING, FullMatchLoss, FullMatchTerms
from .negative import low_probability_negative, negative_learning

__all__ = [
    "CEILING",
    "FullMatchLoss",
    "FullMatchTerms",
    "adaptive_k",
    "adaptive_negative",
    "adversarial_perturbation",
    "alpha_divergence",
    "cosine_distance",
    "cross_entropy",
    "entropy",
    "entropy_meaning",
    "inner_products",
    "kullback_leibler",
    "label_graph",
    "log1m_softmax",
    "low_probability_negative",
    "negative_labels",
    "negative_learning",
    "power_mean",
    "self_adaptive_fairness",
    "sharpen",
    "skewed_jensen_shannon",
    "squared_distance",
]
