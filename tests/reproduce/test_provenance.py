"""When two runs have the same settings, and when two versions of the code are equivalent."""

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
from fullmatch.reproduce.provenance import CodeVersion, code_hash, identity, table_of


def test_where_the_data_is_does_not_count() -> None:
    config = digits()
    moved = replace(
        config,
        data=replace(config.data, root="/elsewhere"),
        training=replace(config.training, threads=3, checkpoint_every=7, execution="eager"),
    )
    assert identity(table_of(config)) == identity(table_of(moved))


def test_settings_that_decide_a_result_count() -> None:
    config = digits()
    others = [
        replace(config, seed=1),
        replace(config, data=replace(config.data, labels=50)),
        replace(config, optimizer=replace(config.optimizer, rate=0.1)),
        replace(config, training=replace(config.training, steps=3)),
        digits(algorithm="fixmatch"),
    ]
    assert len({identity(table_of(each)) for each in (config, *others)}) == 6


def test_missing_settings_have_their_defaults() -> None:
    table = table_of(digits())
    fewer = table | {"optimizer": {}}
    assert identity(fewer) == identity(table)


def copied_source(folder: Path) -> Path:
    copy = folder / "fullmatch"
    shutil.copytree(provenance.SOURCE, copy)
    return copy


def test_training_code_counts_and_output_code_does_not(tmp_path: Path) -> None:
    copy = copied_source(tmp_path)
    before = code_hash(copy)
    with (copy / "cli" / "terminal.py").open("a") as file:
        file.write("WIDTH = 3\n")
    assert code_hash(copy) == before
    with (copy / "losses" / "full.py").open("a") as file:
        file.write("WIDTH = 3\n")
    assert code_hash(copy) != before


def test_moves_and_comments_do_not_count(tmp_path: Path) -> None:
    copy = copied_source(tmp_path)
    before = code_hash(copy)
    moved = copy / "losses" / "full.py"
    moved.write_text('"""Other words."""\n# A comment.\nimport json\n' + moved.read_text())
    moved.rename(copy / "training" / "elsewhere.py")
    assert code_hash(copy) == before


def test_every_number_of_an_expression_counts() -> None:
    hashes = {tuple(provenance.definition_hashes(f"def f(x):\n    return x * {n}")) for n in (1, 2)}
    assert len(hashes) == 2


def test_equivalent_code_counts_as_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provenance, "equivalent_code", lambda: {"a": "b", "b": "c"})
    assert provenance.same_code("a", "c")
    assert provenance.same_code("b", "c")
    assert not provenance.same_code("a", "d")
    assert not provenance.same_code(None, "c")


def test_every_equivalence_has_its_evidence() -> None:
    rows = list(csv.DictReader((provenance.SOURCE / "reproduce" / provenance.EQUIVALENT).open()))
    assert all(
        re.fullmatch("[0-9a-f]{16}", row[name]) for row in rows for name in ("before", "after")
    )
    assert all(row["evidence"] for row in rows)


def test_everything_that_experiment_imports_counts() -> None:
    names = {name.removesuffix(".py") for name in provenance.DECISIVE} | {"errors"}
    for path in (provenance.SOURCE / "experiment").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        used = set(re.findall(r"^from fullmatch(?:\.| import )(\w+)", text, re.MULTILINE))
        assert used <= names, f"{path.name} uses {used - names}"
    assert all((provenance.SOURCE / name).exists() for name in provenance.DECISIVE)


def test_unknown_commit() -> None:
    with pytest.raises(UserError, match="there is no commit 'not-there' here"):
        provenance.code_hash_of("not-there")


def test_command_quotes_the_folder_name() -> None:
    config = digits(40, "fixmatch")
    table = table_of(replace(config, data=replace(config.data, name="my own pictures")))
    assert shlex.split(provenance.command(table))[2] == "my own pictures"


def test_name_of_a_commit_becomes_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "run_git", lambda *words: b"0123abcd\n")
    assert provenance.committed_code("HEAD", dirty=True).commit == "0123abcd"
    monkeypatch.setattr(provenance, "run_git", lambda *words: None)
    assert provenance.committed_code("abc", dirty=True).commit == "abc"


def test_hash_of_a_clean_commit_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "run_git", lambda *words: b"0123abcd\n")
    monkeypatch.setattr(provenance, "code_hash_of", lambda commit: f"hash of {commit}")
    assert provenance.committed_code("HEAD") == CodeVersion("0123abcd", False, "hash of HEAD")
    assert provenance.committed_code("HEAD", dirty=True).hash is None


def test_current_code_outside_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "run_git", lambda *words: None)
    assert provenance.current_code() == CodeVersion(None, None, provenance.CODE)
