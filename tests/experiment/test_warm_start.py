"""A new run starts from the weights of an earlier one, class by class, or from a file."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch.config import ExperimentConfig
from fullmatch.core import Network
from fullmatch.data import SemiDataset
from fullmatch.errors import UserError
from fullmatch.experiment.baseline import prepare_baseline
from fullmatch.experiment.cross_validation import CrossValidation
from fullmatch.experiment.inputs import choose_split
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.warm_start import copy_weights_of_run
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.models import build_network
from tests.served import pets_run
from tests.small_runs import begin, config, digits, finish, read_outputs, resume_run, stop_after

IMAGE = (3, 32, 32)


def test_the_same_classes_give_the_same_network() -> None:
    old = TrainedRun(pets_run()).classifier
    fresh = build_network("wrn-10-1", 2, IMAGE)
    assert copy_weights_of_run(pets_run(), fresh, old.classes) == f"starts from {pets_run()}"
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(tensor, old.network.state_dict()[name]), name


def test_classes_keep_their_rows_and_new_ones_start_fresh() -> None:
    old = TrainedRun(pets_run()).classifier
    first, second = old.classes
    fresh = build_network("wrn-10-1", 3, IMAGE)
    before = fresh.state_dict()["head.weight"].clone()
    note = copy_weights_of_run(pets_run(), fresh, (second, "owl", first))
    assert note.endswith("; new classes: owl")
    pictures = torch.rand(4, *IMAGE)
    with torch.no_grad():
        ours = fresh.eval()(pictures).logits
        theirs = old.network(pictures).logits
    assert torch.allclose(ours[:, [2, 0]], theirs, atol=1e-5)
    assert torch.equal(fresh.state_dict()["head.weight"][1], before[1])


def test_labels_of_classes_that_are_unknown_now_are_named() -> None:
    first, second = TrainedRun(pets_run()).classifier.classes
    fresh = build_network("wrn-10-1", 2, IMAGE)
    note = copy_weights_of_run(pets_run(), fresh, (second, "owl"), unknown=(first, "fox"))
    assert f"; it had labels of {first}, unknown here, so the scores" in note


@pytest.mark.parametrize(
    ("model", "channels", "classes", "message"),
    [
        ("wrn-10-2", 3, ("cat | tiger", "x"), "another network than this run"),
        ("wrn-16-1", 3, ("cat | tiger", "x"), "another network than this run"),
        ("wrn-10-1", 1, ("cat | tiger", "x"), "another number of channels"),
        ("wrn-10-1", 3, ("x", "y"), "has none of these classes"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(
    model: str, channels: int, classes: tuple[str, ...], message: str
) -> None:
    fresh = build_network(model, len(classes), (channels, 32, 32))
    before = {name: tensor.clone() for name, tensor in fresh.state_dict().items()}
    with pytest.raises(UserError, match=message):
        copy_weights_of_run(pets_run(), fresh, classes)
    assert all(torch.equal(before[name], t) for name, t in fresh.state_dict().items())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    torch.manual_seed(5)
    path = tmp_path / "weights.pth"
    torch.save({"model": build_network("wrn-10-1", 7, (1, 8, 8)).state_dict()}, path)
    return path


def weighted(file: Path, *settings: str) -> ExperimentConfig:
    return config("fullmatch", f"model.weights={file}", *settings, model="wrn-10-1")


def starts_from(run: Run, file: Path) -> bool:
    stem = torch.load(file, weights_only=True)["model"]["stem.weight"]
    networks = (run.state.student, run.state.teacher)
    return all(torch.equal(each.state_dict()["stem.weight"].cpu(), stem) for each in networks)


def test_a_run_and_its_baseline_start_from_the_file(file: Path, tmp_path: Path) -> None:
    run = begin(weighted(file), tmp_path / "run")
    assert starts_from(run, file)
    assert run.config.model.weights == str(file)
    assert any("not used from the file: head.weight, head.bias" in note for note in run.notes)
    finish(run)
    baseline = prepare_baseline(run.folder, digits())
    assert baseline is not None
    assert starts_from(baseline, file)


def test_cross_validation_starts_from_the_file_too(file: Path, tmp_path: Path) -> None:
    chosen, source = weighted(file), replace(digits(), benchmark=False, test=None)
    dataset = SemiDataset.from_source(source, choose_split(chosen, source))
    assert CrossValidation(chosen, dataset, tmp_path).config.model.weights == str(file)


def test_resume_does_not_need_the_file(file: Path, tmp_path: Path) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(begin(weighted(file), straight))
    stop_after(begin(weighted(file), broken), 2)
    file.unlink()
    finish(resume_run(broken))
    assert read_outputs(broken) == read_outputs(straight)


def test_backbones_with_weights_keep_their_normalization(tmp_path: Path) -> None:
    path = tmp_path / "own.pth"
    torch.save(build_network("timm:test_resnet", 10, (1, 8, 8)).state_dict(), path)
    named = "model.name=timm:test_resnet"
    kept = begin(weighted(path, named), tmp_path / "kept").classifier("teacher")
    assert kept.augment.appearance.mean == (0.5,)
    assert kept.augment.appearance.std == (0.5,)
    plain = begin(config("fullmatch", named), tmp_path / "plain").classifier("teacher")
    assert plain.augment.appearance == digits().appearance


def test_a_network_starts_from_one_place(file: Path) -> None:
    for other in ("model.pretrained=true", "model.start=elsewhere"):
        with pytest.raises(UserError, match=r"model\.weights and model\.\w+ are both set"):
            weighted(file, other)


def test_the_form_of_the_blocks_is_saved_with_the_model(tmp_path: Path) -> None:
    """The tensors are those of a plain network, but the outputs differ."""
    run = finish(begin(config("fullmatch", "model.torchssl_blocks=true"), tmp_path / "run"))
    classifier = TrainedRun(tmp_path / "run").classifier
    test = digits().test
    assert test is not None
    with torch.no_grad():
        ours = classifier(test.read(torch.arange(len(test))))
        torch.testing.assert_close(ours, run.predict("teacher", test), rtol=1e-4, atol=1e-5)
        plain = build_network("wrn-10-1", 10, (1, 8, 8)).eval()
        assert copy_weights(classifier.network, plain) == []
        pictures = torch.rand(4, 1, 8, 8)
        assert not torch.allclose(plain(pictures).logits, classifier.network(pictures).logits)
    with pytest.raises(UserError, match=r"model\.torchssl_blocks=true"):
        copy_weights_of_run(tmp_path / "run", plain, classifier.classes)
    assert resolve(data="digits", start=tmp_path / "run").model.torchssl_blocks
    with pytest.raises(UserError, match=r"needs model\.torchssl_blocks = false"):
        config("fullmatch", "model.torchssl_blocks=true", "model.body=frozen")


def copy_weights(source: Network, target: Network) -> list[str]:
    """Names of the tensors that could not be copied."""
    missing, unexpected = target.load_state_dict(source.state_dict())
    return [*missing, *unexpected]
