"""The page on algorithms: its worked example runs, and its tables name every algorithm."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from fullmatch.algorithms import ALGORITHMS, full
from fullmatch.core import Spec
from fullmatch.training.step import RESERVED
from tests.networks import TinyNetwork, random_batch, tiny_task

PAGE = (Path(__file__).parents[2] / "docs" / "algorithms.md").read_text(encoding="utf-8")
TASK = tiny_task(4)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    module = ModuleType("classmatch")
    monkeypatch.setitem(sys.modules, "classmatch", module)
    exec(compile(source, "docs/algorithms.md", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("whole", [False, True])
def test_worked_example_trains(example: ModuleType, whole: bool) -> None:
    torch.manual_seed(0)
    spec = example.ClassMatch(threshold=0.9)
    algorithm = (full(spec) if whole else spec).build(TASK)
    network = TinyNetwork(4)
    optimizer = torch.optim.SGD([*network.parameters(), *algorithm.parameters()], lr=0.01)
    for step in range(2):
        batch = random_batch(TASK, algorithm.views)
        objective = algorithm(network, network, batch, torch.tensor(step / 2))
        assert ("entropy_meaning" in objective.metrics) is whole
        objective.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert objective.loss.isfinite()
    assert algorithm.labeler.weighting.average.max() > 0.25


def test_worked_example_follows_each_class(example: ModuleType) -> None:
    weighting = example.FollowingThreshold(0.9, TASK, momentum=0.75)
    probs = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.5, 0.5, 0.0, 0.0], [0.1, 0.1, 0.1, 0.7]])
    assert weighting(probs, torch.arange(3)).tolist() == [1, 1, 1]
    expected = [0.75 * 0.25 + 0.25 * 0.6, 0.25, 0.25, 0.75 * 0.25 + 0.25 * 0.7]
    torch.testing.assert_close(weighting.average, torch.tensor(expected))
    faint = torch.tensor([[0.32, 0.3, 0.3, 0.08]])
    assert weighting(faint, torch.arange(1)).tolist() == [0]


def test_diff_counts_the_lines_of_the_example() -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert f"@@ -0,0 +1,{len(source.splitlines())} @@" in PAGE


def test_table_says_of_every_algorithm_what_its_spec_says() -> None:
    table = PAGE.split("## What each method is made of")[1].split("###")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    found = {row[0].strip("`"): row for row in rows if row and row[0].startswith("`")}
    assert list(found) == list(ALGORITHMS)
    for name, spec in ALGORITHMS.items():
        assert int(found[name][7]) == spec.ratio, name
        assert found[name][8] == ("yes" if hasattr(spec, "with_full") else "no"), name
        views = spec().views if issubclass(spec, Spec) else None
        assert views is not None, name
        assert ("strong" in found[name][1]) is ("strong" in views.unlabeled), name


def test_every_algorithm_is_compared_with_its_source() -> None:
    table = PAGE.split("## Compared with their sources")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    compared = [name for row in rows for name in re.findall(r"`([\w-]+)`", row[0])]
    assert len(set(compared)) == len(compared)
    assert set(compared) == {*ALGORITHMS, "full-fixmatch", "full-flexmatch"}
    assert all(cell.strip() for row in rows for cell in row)


def test_names_that_the_log_keeps_for_itself() -> None:
    section = " ".join(PAGE.split("### Metrics")[1].split())
    names = ", ".join(f"`{name}`" for name in RESERVED[:-1])
    assert f"reserved: {names} and `{RESERVED[-1]}`." in section


def test_every_host_of_the_two_losses_is_listed() -> None:
    table = PAGE.split("### What the two losses")[1].split("## ")[0]
    hosts = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (.*?) \|", table, re.M))))
    assert hosts == {name for name, spec in ALGORITHMS.items() if hasattr(spec, "with_full")}
