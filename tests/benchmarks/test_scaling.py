"""The model of a step's time has the limits that it must have."""

import pytest
from benchmarks.scaling import LINKS, Network, Step, all_reduce, main, step_seconds

STEP = Step(compute=1.0, parameters=1e6, batch=64)


def test_limits() -> None:
    link = LINKS["ethernet"]
    assert step_seconds(STEP, 1, link) == STEP.compute
    assert all_reduce(1e6, 1, link) == 0
    perfect = Network(bandwidth=float("inf"), latency=0.0)
    assert step_seconds(STEP, 8, perfect) == STEP.compute / 8
    # 2 (N - 1) / N of the bytes go through a link without latency.
    assert all_reduce(1e6, 4, Network(1e6, 0.0)) == pytest.approx(1.5)
    assert step_seconds(STEP, 64, link) > step_seconds(STEP, 64, LINKS["nvlink"])


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--processes", "1", "3", "8"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| 1", "| 8"]  # 3 divides no batch
    assert lines[-1].endswith("1.9 GiB for FlexMatch's labels, 22 GiB for the order of an epoch")
