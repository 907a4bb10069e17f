"""What counts as the same run, and as the same code."""

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.presets import digits
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


def test_code_that_trains_counts_and_code_that_shows_does_not(tmp_path: Path) -> None:
    copy = tmp_path / "fullmatch"
    shutil.copytree(provenance.SOURCE, copy)
    before = code_hash(copy)
    with (copy / "display.py").open("a") as file:
        file.write("# no matter\n")
    assert code_hash(copy) == before
    with (copy / "losses" / "full.py").open("a") as file:
        file.write("# matters\n")
    assert code_hash(copy) != before


def test_all_that_a_run_is_made_of_counts() -> None:
    names = "|".join(name.removesuffix(".py") for name in provenance.DECISIVE)
    # Words, files and settings: the last count by themselves, not by the code that reads them.
    others = "config|distributed|errors|learned|runfolder|settings|tensors"
    for module in ("assembly", "experiment"):
        text = (provenance.SOURCE / f"{module}.py").read_text(encoding="utf-8")
        for name in re.findall(r"^from fullmatch(?:\.| import )(\w+)", text, re.MULTILINE):
            assert re.fullmatch(f"{names}|{others}", name), f"{module} uses {name}"
    assert all((provenance.SOURCE / name).exists() for name in provenance.DECISIVE)


def test_unknown_commit() -> None:
    with pytest.raises(UserError, match="no commit 'not-there' here"):
        provenance.code_hash_of("not-there")


def test_a_command_can_be_pasted_whatever_the_folder_is_called() -> None:
    config = digits(40, "fixmatch")
    table = table_of(replace(config, data=replace(config.data, name="my own pictures")))
    assert shlex.split(provenance.command(table))[2] == "my own pictures"
