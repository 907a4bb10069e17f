"""What counts as the same run, and as the same code."""

import csv
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment.presets import digits
from fullmatch.reproduce import provenance
from fullmatch.reproduce.provenance import code_hash, identity, table_of


def test_where_the_data_lies_is_no_part_of_a_run() -> None:
    config = digits()
    moved = replace(
        config,
        data=replace(config.data, root="/elsewhere"),
        training=replace(config.training, threads=3, checkpoint_every=7, execution="eager"),
    )
    assert identity(table_of(config)) == identity(table_of(moved))


def test_every_setting_that_counts_counts() -> None:
    config = digits()
    others = [
        replace(config, seed=1),
        replace(config, data=replace(config.data, labels=50)),
        replace(config, optimizer=replace(config.optimizer, rate=0.1)),
        replace(config, training=replace(config.training, steps=3)),
        digits(algorithm="fixmatch"),
    ]
    assert len({identity(table_of(each)) for each in (config, *others)}) == 6


def test_a_setting_left_out_has_its_default() -> None:
    table = table_of(digits())
    fewer = table | {"optimizer": {}}
    assert identity(fewer) == identity(table)


def copied_source(folder: Path) -> Path:
    copy = folder / "fullmatch"
    shutil.copytree(provenance.SOURCE, copy)
    return copy


def test_code_that_trains_counts_and_code_that_shows_does_not(tmp_path: Path) -> None:
    copy = copied_source(tmp_path)
    before = code_hash(copy)
    with (copy / "cli" / "terminal.py").open("a") as file:
        file.write("WIDTH = 3\n")
    assert code_hash(copy) == before
    with (copy / "losses" / "full.py").open("a") as file:
        file.write("WIDTH = 3\n")
    assert code_hash(copy) != before


def test_moving_code_and_its_comments_do_not_count(tmp_path: Path) -> None:
    copy = copied_source(tmp_path)
    before = code_hash(copy)
    moved = copy / "losses" / "full.py"
    moved.write_text('"""Other words."""\n# A comment.\nimport json\n' + moved.read_text())
    moved.rename(copy / "training" / "elsewhere.py")
    assert code_hash(copy) == before


def test_every_number_of_an_expression_counts() -> None:
    hashes = {tuple(provenance.definition_hashes(f"def f(x):\n    return x * {n}")) for n in (1, 2)}
    assert len(hashes) == 2


def test_code_shown_to_give_the_same_numbers_counts_as_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provenance, "equivalent_code", lambda: {"a": "b", "b": "c"})
    assert provenance.same_code("a", "c") and provenance.same_code("b", "c")
    assert not provenance.same_code("a", "d") and not provenance.same_code(None, "c")


def test_every_equivalence_has_its_evidence() -> None:
    rows = list(csv.DictReader((provenance.SOURCE / "reproduce" / provenance.EQUIVALENT).open()))
    assert all(
        re.fullmatch("[0-9a-f]{16}", row[name]) for row in rows for name in ("before", "after")
    )
    assert all(row["evidence"] for row in rows)


def test_all_that_a_run_is_made_of_counts() -> None:
    names = {name.removesuffix(".py") for name in provenance.DECISIVE} | {"errors"}
    for path in (provenance.SOURCE / "experiment").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        used = set(re.findall(r"^from fullmatch(?:\.| import )(\w+)", text, re.MULTILINE))
        assert used <= names, f"{path.name} uses {used - names}"
    assert all((provenance.SOURCE / name).exists() for name in provenance.DECISIVE)


def test_unknown_commit() -> None:
    with pytest.raises(UserError, match="no commit 'not-there' here"):
        provenance.code_hash_of("not-there")


def test_a_command_can_be_pasted_whatever_the_folder_is_called() -> None:
    config = digits(40, "fixmatch")
    table = table_of(replace(config, data=replace(config.data, name="my own pictures")))
    assert shlex.split(provenance.command(table))[2] == "my own pictures"
