"""AdaMatch: alignment, relative threshold and interpolated logits."""

from dataclasses import replace

import pytest
import torch

from fullmatch.algorithms import AdaMatch, full
from fullmatch.algorithms.adamatch import AdaMatchHeads
from fullmatch.algorithms.pseudo_labeling import Passes
from fullmatch.core import Output
from tests.algorithms.agreement import assert_agrees, confident_network
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import adamatch as reference

TASK = tiny_task(4)


@pytest.mark.parametrize("ramp", [0.0, 0.5])
def test_agrees_with_the_reference(ramp: float) -> None:
    spec = AdaMatch(threshold=0.8, momentum=0.6, ramp=ramp)
    assert_agrees(spec, reference.Reference)


def test_selects_relative_to_the_confidence_in_labeled_images() -> None:
    """A network that is unsure of everything still selects its better half."""
    torch.manual_seed(0)
    algorithm, network = AdaMatch(threshold=1.0).build(TASK), TinyNetwork(4)
    objective = algorithm(
        network, network, random_batch(TASK, algorithm.views, unlabeled=12), torch.tensor(1.0)
    )
    assert float(objective.metrics["threshold"]) < 0.5
    assert 0 < float(objective.metrics["selected"]) < 1


def test_labeled_logits_are_between_both_passes() -> None:
    torch.manual_seed(0)
    algorithm, network = AdaMatch().build(TASK), confident_network(4)
    batch = random_batch(TASK, algorithm.views)
    images = torch.cat(batch.labeled)
    with torch.no_grad():
        joint = network(torch.cat([images, *batch.unlabeled])).logits[: len(images)]
        separate = network(images).logits
        actual = algorithm.passes(network, batch).heads.labeled
    low, high = torch.minimum(joint, separate), torch.maximum(joint, separate)
    assert ((actual >= low - 1e-5) & (actual <= high + 1e-5)).all()
    share = ((actual - joint) / (separate - joint)).flatten()
    assert share.std() > 0.15  # one weight for each element, not one for all


def test_labeled_images_of_a_repeated_class_count_once() -> None:
    """A batch holds both classes equally often, since the second one is repeated."""
    task = replace(tiny_task(2), class_prior=(0.9, 0.1), batch_prior=(0.5, 0.5))
    labeler = AdaMatch().build(task).labeler
    output = Output(torch.tensor([[1.0, 1e-9], [1e-9, 1.0]]).log(), torch.zeros(2, 16))
    heads = AdaMatchHeads(output.logits, torch.tensor(0.5))
    batch = random_batch(task, AdaMatch.views, unlabeled=2)._replace(labels=torch.tensor([0, 1]))
    labeler(Passes(output, output, (output,), heads), batch, torch.tensor(0.5))
    torch.testing.assert_close(labeler.wanted.mean, torch.tensor([0.9, 0.1]))


def test_only_the_joint_pass_updates_the_running_statistics() -> None:
    torch.manual_seed(0)
    algorithm, network = AdaMatch().build(TASK), TinyNetwork(4)
    batch = random_batch(TASK, algorithm.views)
    expected = TinyNetwork(4)
    expected.load_state_dict(network.state_dict())
    expected(torch.cat([*batch.labeled, *batch.unlabeled]))
    algorithm(network, network, batch, torch.tensor(0.5))
    torch.testing.assert_close(network.norm.running_mean, expected.norm.running_mean)
    assert network.norm.num_batches_tracked == 1


def test_weight_of_the_unlabeled_loss_rises_over_the_first_half() -> None:
    algorithm = AdaMatch(coefficient=2.0).build(TASK)
    weights = [algorithm.unlabeled_weight(torch.tensor(at)) for at in (0.0, 0.25, 0.5, 0.9)]
    torch.testing.assert_close(torch.stack(weights), torch.tensor([0.0, 1.0, 2.0, 2.0]))


def test_full_losses_use_the_aligned_prediction() -> None:
    torch.manual_seed(0)
    algorithm, network = full(AdaMatch(threshold=0.5)).build(TASK), confident_network(4)
    batch = random_batch(TASK, algorithm.views, unlabeled=12)
    objective = algorithm(network, network, batch, torch.tensor(1.0))
    assert {"entropy_meaning", "adaptive_negative", "threshold"} <= objective.metrics.keys()
    assert objective.loss.isfinite()
