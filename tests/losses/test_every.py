"""Requirements for all losses."""

import inspect
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from fullmatch import losses

FUNCTIONS = [name for name in losses.__all__ if inspect.isfunction(getattr(losses, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lists_and_complex_tensors_are_rejected_by_name(name: str) -> None:
    function = getattr(losses, name)
    needed = {
        key: parameter.annotation
        for key, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
    }
    for key in (key for key, kind in needed.items() if kind is Tensor):
        if key == "skew":
            continue  # may also be a number
        arguments = {k: torch.rand(2, 3) if kind is Tensor else 2 for k, kind in needed.items()}
        with pytest.raises(TypeError, match=f"{key} must be a tensor; got list"):
            function(**(arguments | {key: [[0.2, 0.8]]}))
        with pytest.raises(TypeError, match=f"{key} must hold real numbers; got torch.complex64"):
            function(**(arguments | {key: torch.rand(2, 3, dtype=torch.complex64)}))


SEED = torch.Generator().manual_seed(0)
X, P = torch.randn(4, 5, generator=SEED), torch.rand(4, 5, generator=SEED).softmax(dim=1)
BROADCASTABLE = [
    (losses.cosine_distance, (X, X, torch.ones(4, 1)), "weight"),
    (losses.low_probability_negative, (X, P[:1]), "probs"),
    (losses.low_probability_negative, (X, P, 0.1, torch.ones(4, 1)), "weight"),
    (losses.negative_learning, (X, torch.ones(1, 5, dtype=torch.bool)), "negative"),
    (losses.self_adaptive_fairness, (X, torch.ones(4, 1), P[0], P[0]), "weight"),
    (losses.self_adaptive_fairness, (X, torch.ones(4), P[0, :1], P[0]), "mean_probs"),
]


@pytest.mark.parametrize(("function", "arguments", "name"), BROADCASTABLE)
def test_nothing_is_broadcast(
    function: Callable[..., Tensor], arguments: tuple[object, ...], name: str
) -> None:
    with pytest.raises(ValueError, match=f"{name} must have the shape"):
        function(*arguments)


WEIGHT = torch.tensor([1.0, 0.0, 0.5, 0.0])
COUNTED = WEIGHT > 0
NEGATIVE = (P.amax(dim=1, keepdim=True) > P) & COUNTED[:, None]
EVERY_CLASS_UNLIKELY = torch.where(COUNTED[:, None], P, 0.01)
EVEN = torch.full((5,), 0.2)
WEIGHTED: dict[str, Callable[[Tensor], Tensor]] = {
    "labels": lambda x: losses.cross_entropy(x, torch.arange(4), WEIGHT),
    "probabilities": lambda x: losses.cross_entropy(x, P, WEIGHT),
    "cosine, rows": lambda x: losses.cosine_distance(x, P, WEIGHT),
    "cosine, others": lambda x: losses.cosine_distance(P, x, COUNTED),
    "unlikely": lambda x: losses.low_probability_negative(x, P, 0.2, WEIGHT),
    "all unlikely": lambda x: losses.low_probability_negative(x, EVERY_CLASS_UNLIKELY, 0.2),
    "no negative": lambda x: losses.negative_learning(x, NEGATIVE),
    "fairness": lambda x: losses.self_adaptive_fairness(x, WEIGHT, EVEN, EVEN),
    "adaptive negative": lambda x: losses.adaptive_negative(x, P, 3, weight=WEIGHT),
    "entropy meaning": lambda x: losses.entropy_meaning(x, P, WEIGHT, 3),
}


def value_and_gradient(loss: Callable[[Tensor], Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:
    rows = rows.clone().requires_grad_()
    value = loss(rows)
    (gradient,) = torch.autograd.grad(value, rows)
    return value.detach(), gradient


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", WEIGHTED)
def test_rows_of_weight_zero_add_exactly_zero(name: str, bad: float) -> None:
    loss = WEIGHTED[name]
    poisoned = X.clone()
    poisoned[1], poisoned[3, 2] = bad, bad
    expected, clean = value_and_gradient(loss, X)
    value, gradient = value_and_gradient(loss, poisoned)
    # A row left out because of its classes adds a rounding error instead of exactly 0.
    tolerance = 1e-6 if name == "all unlikely" else 0
    torch.testing.assert_close(value, expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(gradient[COUNTED], clean[COUNTED], rtol=0, atol=0)
    assert gradient[COUNTED].any()
    assert not gradient[~COUNTED].any()


@pytest.mark.parametrize("name", WEIGHTED)
def test_rows_of_weight_zero_add_zero_in_compiled_code(name: str) -> None:
    poisoned = X.masked_fill(~COUNTED[:, None], math.nan)
    compiled = torch.compile(WEIGHTED[name], fullgraph=True, backend="aot_eager", dynamic=False)
    torch.testing.assert_close(
        value_and_gradient(compiled, poisoned), value_and_gradient(WEIGHTED[name], poisoned)
    )


def alpha_divergence(x: Tensor, p: Tensor, alpha: float, way: int) -> Tensor:
    first, second = (x.log_softmax(dim=1), p.log())[::way]
    return losses.alpha_divergence(first, second, alpha)


def power_mean(x: Tensor, p: Tensor, order: float) -> Tensor:
    return losses.power_mean(torch.stack([x.log_softmax(dim=1), p.log()]), order)[:, 0].sum()


# Logits and probabilities; both get one more class, with logit -inf and probability 0.
FOUR = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]])
IMPOSSIBLE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "labels": lambda x, p: losses.cross_entropy(x, p.argmax(dim=1)),
    "probabilities": losses.cross_entropy,
    "probabilities, weighted": lambda x, p: losses.cross_entropy(x, p, WEIGHT[1:3]),
    "entropy": lambda x, p: losses.entropy(x),
    "kullback_leibler": losses.kullback_leibler,
    "kullback_leibler, probs": lambda x, p: losses.kullback_leibler(p.log(), x.softmax(dim=1)),
    "unlikely": lambda x, p: losses.low_probability_negative(x, p, 0.15),
    "negative": lambda x, p: losses.negative_learning(x, (p > 0) & (p < 0.2)),
    **{
        f"alpha {alpha}, {way}": partial(alpha_divergence, alpha=alpha, way=way)
        for alpha in (-0.5, 0, 0.5, 1, 1.5)
        for way in (1, -1)
    },
    **{f"power mean {order}": partial(power_mean, order=order) for order in (-0.5, 0, 0.5, 1)},
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_class_with_logit_minus_infinity_changes_nothing(name: str) -> None:
    loss, logits = IMPOSSIBLE[name], X[:2, :4]
    gone, zero = torch.full((2, 1), -math.inf), torch.zeros(2, 1)
    expected, clean = value_and_gradient(lambda x: loss(x, FOUR), logits)
    value, gradient = value_and_gradient(
        lambda x: loss(x, torch.cat([FOUR, zero], dim=1)), torch.cat([logits, gone], dim=1)
    )
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, torch.cat([clean, zero], dim=1))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda x: losses.cross_entropy(x, torch.tensor([0])), 0),
        (lambda x: losses.cross_entropy(x, torch.tensor([[1.0, 0.0, 0.0]])), 0),
        (losses.entropy, 0),
        (lambda x: losses.negative_learning(x, torch.tensor([[False, True, True]])), 0),
        (lambda x: losses.log1m_softmax(x)[:, 1:].sum(), 0),
        # If only impossible classes remain, the loss is at its limit and has no gradient.
        (
            lambda x: losses.low_probability_negative(x, torch.tensor([[0.0, 0.5, 0.5]])),
            -math.log(1e-8),
        ),
    ],
)
def test_one_possible_class(loss: Callable[[Tensor], Tensor], expected: float) -> None:
    value, gradient = value_and_gradient(loss, torch.tensor([[3.0, -math.inf, -math.inf]]))
    assert value.item() == pytest.approx(expected)
    assert not gradient.any()


def test_infinite_losses_stay_infinite() -> None:
    only = torch.tensor([[0.0, -math.inf]])
    assert losses.cross_entropy(only, torch.tensor([1])) == math.inf
    assert losses.cross_entropy(only, torch.tensor([[0.5, 0.5]])) == math.inf
    assert losses.kullback_leibler(only, torch.tensor([[0.5, 0.5]])) == math.inf
    assert losses.log1m_softmax(only).tolist() == [[-math.inf, 0]]
    assert losses.negative_learning(only, torch.tensor([[True, False]])) == math.inf


ROW, CUBE, LONG = X[0], torch.ones(2, 3, 4), torch.ones(4, 5, dtype=torch.int64)
LOGITS = r"{} must be floating point of shape \(N, C\); got torch.{}"
WRONG_ARGUMENTS = [
    (lambda: losses.cross_entropy(X, P, [1, 1, 1, 1]), "weight must be a tensor; got list"),  # type: ignore[arg-type]
    (lambda: losses.cross_entropy(X, P, 0.5), "weight must be a tensor; got float"),  # type: ignore[arg-type]
    (lambda: losses.cosine_distance(X, X, [1] * 4), "weight must be a tensor; got list"),  # type: ignore[arg-type]
    (lambda: losses.cosine_distance(ROW, ROW), LOGITS.format("rows", "float32")),
    (lambda: losses.inner_products(X, X.T), r"\(N, d\) and \(K, d\); got \(4, 5\) and \(5, 4\)"),
    (lambda: losses.inner_products(ROW, ROW), r"\(K, d\); got \(5,\) and \(5,\)"),
    (lambda: losses.label_graph(CUBE, 0.5), LOGITS.format("probs", "float32")),
    (lambda: losses.label_graph(P, None), "cut must be a number; got NoneType"),  # type: ignore[arg-type]
    (lambda: losses.label_graph(P, EVEN[:4]), r"cut must be a number; got shape \(4,\)"),  # type: ignore[arg-type]
    (lambda: losses.sharpen(P, "0.5"), "temperature must be a number; got str"),  # type: ignore[arg-type]
    (lambda: losses.entropy(ROW), LOGITS.format("logits", "float32")),
    (lambda: losses.entropy(torch.tensor(1.0)), LOGITS.format("logits", "float32")),
    (lambda: losses.entropy(LONG), LOGITS.format("logits", "int64")),
    (lambda: losses.kullback_leibler(ROW, ROW), LOGITS.format("logits", "float32")),
    (lambda: losses.kullback_leibler(LONG, P), LOGITS.format("logits", "int64")),
    (lambda: losses.alpha_divergence(P, P, "1"), "alpha must be a number; got str"),  # type: ignore[arg-type]
    (lambda: losses.power_mean(CUBE, None), "order must be a number; got NoneType"),  # type: ignore[arg-type]
    (
        lambda: losses.skewed_jensen_shannon(EVEN, EVEN, EVEN, EVEN, [0.5]),  # type: ignore[arg-type]
        "skew must be a number; got list",
    ),
    (
        lambda: losses.skewed_jensen_shannon(EVEN, EVEN, EVEN[:1], EVEN, torch.tensor(0.5)),
        r"mean_b must have the shape \(5,\); got \(1,\)",
    ),
    (
        lambda: losses.self_adaptive_fairness(LONG, WEIGHT, EVEN, EVEN),
        LOGITS.format("strong_logits", "int64"),
    ),
    (
        lambda: losses.self_adaptive_fairness(CUBE, WEIGHT[:2], EVEN, EVEN),
        LOGITS.format("strong_logits", "float32"),
    ),
    (lambda: losses.low_probability_negative(ROW, ROW), LOGITS.format("logits", "float32")),
    (lambda: losses.low_probability_negative(LONG, P), LOGITS.format("logits", "int64")),
    (lambda: losses.low_probability_negative(X, P, None), "threshold must be a number; got None"),  # type: ignore[arg-type]
    (
        lambda: losses.low_probability_negative(X, P, 0.1, [1] * 4),  # type: ignore[arg-type]
        "weight must be a tensor; got list",
    ),
    (lambda: losses.negative_learning(ROW, ROW > 0), r"logits must be .*\(U, C\).*\(5,\)"),
    (lambda: losses.adaptive_negative(X, P, 3, ceiling="1"), "ceiling must be a number; got str"),  # type: ignore[arg-type]
    (lambda: losses.entropy_meaning(X, P, None), "selected must be a tensor; got NoneType"),  # type: ignore[arg-type]
    (
        lambda: losses.adversarial_perturbation(None, X, P),  # type: ignore[arg-type]
        "predict must be a function from images to logits; got None",
    ),
    (
        lambda: losses.adversarial_perturbation(torch.exp, LONG, P),
        r"images must be floating point of shape \(B, \.\.\.\); got torch.int64",
    ),
    (lambda: losses.adversarial_perturbation(torch.exp, X, ROW), LOGITS.format("probs", "float32")),
    (
        lambda: losses.adversarial_perturbation(torch.exp, X, P[:2]),
        "probs must have 4 rows, one per image; got 2",
    ),
    (
        lambda: losses.adversarial_perturbation(torch.exp, X, P, iterations=1.5),  # type: ignore[arg-type]
        "iterations must be an integer; got 1.5",
    ),
    (
        lambda: losses.adversarial_perturbation(torch.exp, X, P, epsilon=None),  # type: ignore[arg-type]
        "epsilon must be a number; got NoneType",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG_ARGUMENTS)
def test_errors_name_the_wrong_argument(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_a_row_of_weight_zero_may_be_unlabeled() -> None:
    logits, labels = torch.randn(3, 4), torch.tensor([1, -1, 3])
    weight = torch.tensor([1.0, 0.0, 2.0])
    expected = losses.cross_entropy(logits[::2], labels[::2], weight[::2])
    torch.testing.assert_close(3 * losses.cross_entropy(logits, labels, weight), 2 * expected)


def test_numbers_that_decide_must_not_be_tensors() -> None:
    probs, half = torch.full((2, 4), 0.25), torch.tensor(0.5)
    for call in (
        lambda: losses.sharpen(probs, half),  # type: ignore[arg-type]
        lambda: losses.alpha_divergence(probs.log(), probs.log(), half),  # type: ignore[arg-type]
        lambda: losses.adaptive_negative(probs, probs, 2, ceiling=half),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="must be a Python number; got a tensor"):
            call()


@pytest.mark.no_cover  # it would slow the compiler down
def test_numbers_may_change_between_calls_of_compiled_code() -> None:
    def every(x: Tensor, p: Tensor, number: float) -> Tensor:
        log_p = x.log_softmax(dim=1)
        return (
            losses.cross_entropy(x, losses.sharpen(p, number))
            + losses.alpha_divergence(log_p, p.log(), number)
            + losses.power_mean(torch.stack([log_p, p.log()]), number)[:, 0].sum()
            + losses.low_probability_negative(x, p, number)
            + losses.entropy_meaning(x, p, WEIGHT, 3, ceiling=number)
            + losses.label_graph(p, number).square().sum()
            + losses.skewed_jensen_shannon(x[0], p[0], x[1], p[1], number)  # type: ignore[arg-type]
            + losses.kullback_leibler(x, p)
            + losses.entropy(x)
        )

    compiled = torch.compile(every, fullgraph=True, backend="aot_eager")
    for number in (0.3, 0.5, 0.8):
        torch.testing.assert_close(
            value_and_gradient(partial(compiled, p=P, number=number), X),
            value_and_gradient(partial(every, p=P, number=number), X),
        )


def test_loss_of_no_rows_is_0() -> None:
    none = torch.zeros(0, 5)
    assert losses.cosine_distance(none, none) == 0
    assert losses.alpha_divergence(none, none, 0.5) == 0
    assert losses.low_probability_negative(none, none) == 0
