"""NP-Match against lists and loops: the same draws, the same memories."""

import pytest
import torch

from fullmatch.algorithms import NPMatch, full
from tests.algorithms.agreement import confident_network
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import npmatch as reference

TASK = tiny_task(4, num_unlabeled=16)
HALF = torch.tensor(0.5)


def test_agrees_with_the_reference() -> None:
    torch.manual_seed(0)
    spec = NPMatch(threshold=0.265, samples=3, uncertainty=1.15, memory=20, divergence=1.0)
    algorithm, network = spec.build(TASK), confident_network(4)
    with torch.no_grad():  # spread the predictions, so that some images are selected and some not
        algorithm.process.get_parameter("classifier.0.weight").mul_(6)
    slow = reference.Reference(spec, algorithm.process, TASK.num_unlabeled, 4)
    shares = []
    for step in range(7):
        batch = random_batch(TASK, algorithm.views, unlabeled=8)
        expected = slow.loss(network, batch, step)
        torch.manual_seed(step)
        actual = algorithm(network, network, batch, HALF)
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-3), step
        shares.append(float(actual.metrics["selected"]))
    assert any(0 < share < 1 for share in shares)
    for bank, rows in (
        (algorithm.process.latent_bank, slow.latent),
        (algorithm.process.deterministic_bank, slow.path),
    ):
        assert bank.is_full()
        found_rows = bank.rows.roll(-(int(bank.written) % 20), 0).numpy()
        for row, expected_row in zip(found_rows, rows, strict=True):
            assert row == pytest.approx(expected_row, abs=1e-4)


def test_deterministic_memory_stores_each_labeled_row_once() -> None:
    torch.manual_seed(0)
    algorithm = NPMatch(uncertainty=-1.0).build(TASK)
    for _ in range(3):
        batch = random_batch(TASK, algorithm.views, labeled=4)
        algorithm(confident_network(4), confident_network(4), batch, HALF)
    assert int(algorithm.process.deterministic_bank.written) == 1 + 3 * 4
    assert int(algorithm.process.latent_bank.written) == 1 + 3 * 4


def test_nothing_selected_is_finite_and_only_labels_are_learned() -> None:
    torch.manual_seed(0)
    algorithm, network = NPMatch(uncertainty=-1.0).build(TASK), confident_network(4)
    objective = algorithm(network, network, random_batch(TASK, algorithm.views), HALF)
    objective.loss.backward()
    assert float(objective.metrics["consistency"].detach()) == 0
    assert float(objective.metrics["process_divergence"].detach()) == 0
    gradients = [p.grad for p in algorithm.parameters() if p.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_consistency_is_averaged_over_selected_images_only() -> None:
    torch.manual_seed(0)
    algorithm, network = NPMatch(uncertainty=9.0, threshold=0.0).build(TASK), confident_network(4)
    batch = random_batch(TASK, algorithm.views)
    passes = algorithm.passes(network, batch)
    pseudo = algorithm.labeler(passes, batch, HALF)
    whole = algorithm.consistency(passes, pseudo)
    rows = torch.zeros_like(pseudo.weight)
    rows[2] = 1
    one = algorithm.consistency(passes, pseudo._replace(weight=rows))
    samples = passes.heads[1][:, 2].log_softmax(dim=1)[:, pseudo.label[2]]
    torch.testing.assert_close(one, -samples.mean())
    assert whole > 0


def test_prediction_uses_the_head_and_is_repeatable() -> None:
    torch.manual_seed(0)
    algorithm, network = NPMatch().build(TASK), TinyNetwork(4).eval()
    images = torch.randn(5, *TASK.image)
    first = algorithm.predict(network, images)
    torch.testing.assert_close(first.sum(dim=1), torch.ones(5))
    with torch.no_grad():
        network.head.weight.add_(10.0)
    assert torch.equal(algorithm.predict(network, images), first)
    with torch.no_grad():
        bias = algorithm.process.get_parameter("classifier.0.bias")
        bias.copy_(torch.tensor([9.0, 0.0, 0.0, 0.0]))
    assert (algorithm.predict(network, images).argmax(dim=1) == 0).all()


def test_prediction_is_by_the_mean_of_the_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample is very sure of class 1, two are a little for class 0: the logits decide."""
    algorithm = NPMatch(samples=3).build(TASK)
    samples = torch.tensor([[[0.0, 9.0, 0.0, 0.0]], [[2.0, 0, 0, 0]], [[2.0, 0, 0, 0]]])
    assert samples.softmax(dim=2).mean(dim=0).argmax() == 0
    monkeypatch.setattr(algorithm.process, "recall", lambda features, draws: samples)
    actual = algorithm.predict(TinyNetwork(4).eval(), torch.randn(1, *TASK.image))
    torch.testing.assert_close(actual, samples.mean(dim=0).softmax(dim=1))
    assert actual.argmax() == 1


def test_strong_logits_are_the_mean_prediction_and_ranks_the_aligned_one() -> None:
    torch.manual_seed(0)
    algorithm, network = full(NPMatch()).build(TASK), confident_network(4)
    passes = algorithm.passes(network, random_batch(TASK, algorithm.views))
    mean = passes.heads[1].softmax(dim=2).mean(dim=0)
    torch.testing.assert_close(passes.strong[0].logits.softmax(dim=1), mean)
    pseudo = algorithm.labeler(passes, random_batch(TASK, algorithm.views), HALF)
    assert pseudo.probs is passes.heads[2]
    torch.testing.assert_close(pseudo.probs.mean(dim=0), torch.full((4,), 0.25), atol=0.05, rtol=0)


def test_backbone_and_head_are_clipped_separately() -> None:
    assert NPMatch().build(TASK).clips_separately
    assert full(NPMatch()).build(TASK).clips_separately


def test_recipe_and_width() -> None:
    assert NPMatch.recipe == {"clip": 3.0, "cosine": 63 / 128}
    assert NPMatch().build(TASK).process.draws.shape == (10, TASK.features // 4)
