"""The page on algorithms: its worked example runs, and its tables agree with the specs."""

import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from fullmatch.algorithms import ALGORITHMS, full
from fullmatch.training.step import RESERVED
from tests.networks import TinyNetwork, random_batch, tiny_task

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "algorithms.md").read_text(encoding="utf-8")
render = runpy.run_path(str(DOCS / "algorithm_table.py"))["render"]
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


def methods_on_the_page() -> list[str]:
    table = PAGE.split("## What each method is made of")[1].split("###")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_the_table_says_what_the_specs_say() -> None:
    algorithms = {name: ALGORITHMS[name] for name in methods_on_the_page()}
    assert render(PAGE, algorithms) == PAGE, "run: python docs/algorithm_table.py"
    assert list(algorithms) == [name for name in ALGORITHMS if name in algorithms]


def test_a_new_method_gets_a_row(example: ModuleType) -> None:
    page = render(PAGE, {**ALGORITHMS, "classmatch": example.ClassMatch})
    row = (
        "| `classmatch` | weak, strong | - | - | - | thresholds follow each class's confidence | "
        "one mean per class | 7 | yes |\n"
    )
    assert row in page
    assert page.replace(row, "") == render(PAGE, ALGORITHMS)


def test_no_algorithm_is_compared_twice() -> None:
    table = PAGE.split("## Compared with their sources")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    compared = [name for row in rows for name in re.findall(r"`([\w-]+)`", row[0])]
    assert len(set(compared)) == len(compared)
    assert set(compared) <= {*ALGORITHMS, "full-fixmatch", "full-flexmatch"}
    assert all(cell.strip() for row in rows for cell in row)
    assert all(row[1].strip() != "-" for row in rows)  # a source, or "no public code"


def test_names_that_the_log_keeps_for_itself() -> None:
    section = " ".join(PAGE.split("### Metrics")[1].split())
    names = ", ".join(f"`{name}`" for name in RESERVED[:-1])
    assert f"reserved: {names} and `{RESERVED[-1]}`." in section


def test_only_hosts_of_the_two_losses_are_listed() -> None:
    table = PAGE.split("### What the two losses")[1].split("## ")[0]
    hosts = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (.*?) \|", table, re.M))))
    assert {"fixmatch", "softmatch"} <= hosts
    assert hosts <= {name for name, spec in ALGORITHMS.items() if hasattr(spec, "with_full")}
