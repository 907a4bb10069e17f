"""What is shared: enough to predict, and nothing about the user's machine or pictures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import fullmatch
from fullmatch.errors import UserError
from fullmatch.hub.shared_model import clean_config, clean_result, refuse_code, write_shared
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder
from tests.served import copy_run
from tests.trained_runs import train_pets
from tests.written_runs import make_comparison, make_estimate


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shared")
    notes = ("/home/me/pets/labeled/cat/secret.jpg cannot be read",)
    run = copy_run(train_pets(), place / "run", notes=notes)
    (place / "copy").mkdir()
    write_shared(TrainedRun(run), place / "copy", "me/pets")
    return place / "copy"


def test_nothing_private(shared: Path) -> None:
    assert {path.name for path in shared.iterdir()} == {
        "README.md",
        "config.toml",
        "fullmatch.json",
        "model.safetensors",
        "result.json",
    }
    content = b"".join(path.read_bytes() for path in shared.iterdir())
    for private in (b"secret", b"/home", b"bild", str(train_pets().parent).encode(), b"/tmp"):
        assert private not in content


def test_a_copy_is_a_run_without_its_pictures(shared: Path) -> None:
    model, original = fullmatch.load(shared), fullmatch.load(train_pets())
    picture = next((train_pets().parent / "pets" / "test").rglob("*.png"))
    assert model.predict_proba(picture).tolist() == original.predict_proba(picture).tolist()
    assert model.classes == ("cat", "dög 2")
    with pytest.raises(UserError, match="not shared with it; name pictures or data of your own"):
        model.evaluate()
    evaluation = model.evaluate(train_pets().parent / "pets")
    assert evaluation.images == 6


def test_card_and_facts(shared: Path) -> None:
    text = (shared / "README.md").read_text(encoding="utf-8")
    head, card = text.removeprefix("---\n").split("---\n", 1)
    metadata = {
        name: json.loads(value)
        for name, value in (line.split(": ", 1) for line in head.splitlines())
    }
    assert metadata["library_name"] == "fullmatch"
    assert metadata["pipeline_tag"] == "image-classification"
    (index,) = metadata["model-index"]
    assert index["results"][0]["metrics"][0]["name"] == "test accuracy"
    assert card.lstrip().startswith("# Classifier for pets")
    assert "fullmatch predict hf:me/pets PICTURES" in card
    facts = json.loads((shared / "fullmatch.json").read_text(encoding="utf-8"))
    assert facts["classes"] == ["cat", "dög 2"]
    assert facts["picture"] == [3, 32, 32]
    assert len(facts["preprocessing"]["mean"]) == 3


def test_settings_and_results_without_paths() -> None:
    config = clean_config(
        {
            "data": {"name": "/home/me/pets", "root": "/data", "split": "/s.json", "size": 32},
            "model": {"name": "wrn-10-1", "start": "/runs/old", "weights": "/w.pt"},
            "algorithm": {"name": "semco", "embeddings": "/home/me/names.npy"},
            "seed": 1,
        }
    )
    assert config == {
        "data": {"name": "pets", "size": 32},
        "model": {"name": "wrn-10-1"},
        "algorithm": {"name": "semco", "embeddings": "names.npy"},
        "seed": 1,
    }
    result = replace(
        RunFolder(train_pets()).read_result(),
        baseline=make_comparison(start="/home/me/runs/old"),
        estimate=make_estimate(gain=make_comparison(start="/home/me/runs/old")),
    )
    clean = clean_result(result, benchmark=False)
    assert clean.baseline is not None
    assert clean.estimate is not None
    assert (clean.baseline.start, clean.estimate.gain.start) == ("old", "old")
    assert clean.notes == ()


@pytest.mark.parametrize("section", ["model", "algorithm", "optimizer", "data"])
def test_own_code_is_not_shared(section: str) -> None:
    with pytest.raises(UserError, match="the run needs the code mine:thing, and no"):
        refuse_code({section: {"name": "mine:thing"}}, "the run", "no")
    with pytest.raises(UserError, match="mine:view"):
        refuse_code({"augment": {"strong": {"name": "mine:view"}}}, "the run", "no")
    refuse_code({section: {"name": "timm:vit_tiny_patch16_224"}}, "the run", "no")
