"""FixMatch by hand, and FullMatch with zero weights through the trainer."""

import math
from pathlib import Path

import pytest

from fullmatch.algorithms import FixMatch
from tests.algorithms.fixed_views import batch, echo_task, objective
from tests.small_runs import begin, config, finish, tensor_bytes


def test_by_hand() -> None:
    """Images below the threshold count in the average and add 0 to the sum."""
    weak = [[0.96, 0.03, 0.01], [0.94, 0.05, 0.01], [0.02, 0.03, 0.95]]
    strong = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]
    loss, metrics = objective(FixMatch().build(echo_task(3)), batch(weak, strong))
    consistency = -(math.log(0.5) + math.log(0.4)) / 3
    assert metrics["consistency"].item() == pytest.approx(consistency, abs=1e-6)
    assert loss.item() == pytest.approx(consistency - math.log(0.8), abs=1e-6)
    assert metrics["selected"].item() == pytest.approx(2 / 3)


def test_threshold_and_coefficient() -> None:
    weak, strong = [[0.7, 0.2, 0.1]], [[0.5, 0.3, 0.2]]
    for threshold, coefficient, expected in ((0.6, 2.0, -2 * math.log(0.5)), (0.8, 2.0, 0.0)):
        built = FixMatch(threshold=threshold, coefficient=coefficient).build(echo_task(3))
        loss = objective(built, batch(weak, strong)).loss
        assert loss.item() == pytest.approx(expected - math.log(0.8), abs=1e-6)


@pytest.mark.parametrize("host", ["fixmatch", "flexmatch"])
def test_full_with_zero_weights_equals_its_host(host: str, tmp_path: Path) -> None:
    """Bit for bit, random numbers included."""
    easy = "algorithm.threshold=0.3"  # selects something from the start
    plain = finish(begin(config(host, easy), tmp_path / "plain"))
    nothing = ("algorithm.full.alpha=0", "algorithm.full.beta=0")
    added = finish(begin(config(f"full-{host}", easy, *nothing), tmp_path / "full"))
    other = finish(begin(config(f"full-{host}", easy), tmp_path / "other"))

    def end(run: object) -> dict[str, bytes]:
        state = tensor_bytes(run.state.state_dict())  # type: ignore[attr-defined]
        del state["totals"]  # there are more metrics
        return state

    assert end(added) == end(plain)
    assert end(other) != end(plain)
