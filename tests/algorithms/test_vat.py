"""VAT: its search has no side effects."""

import copy

import torch

from fullmatch.algorithms import VAT
from fullmatch.core import Batch
from fullmatch.losses import adversarial_perturbation, cross_entropy, entropy, kullback_leibler
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import consistency


def doubled(batch: Batch) -> Batch:
    images = [tuple(view.double() for view in views) for views in (batch.labeled, batch.unlabeled)]
    return batch._replace(labeled=images[0], unlabeled=images[1])


def test_agrees_with_the_reference() -> None:
    """In float64, which can represent a step of 1e-6."""
    torch.manual_seed(0)
    task, spec = tiny_task(), VAT(epsilon=1.0, iterations=2)
    algorithm = spec.build(task)
    student = confident_network(task.num_classes).double()
    reference = consistency.VAT(spec, algorithm)
    for step, progress in enumerate((0.1, 0.9)):
        batch = doubled(random_batch(task, algorithm.views))
        torch.manual_seed(step)
        slow = reference(copy.deepcopy(student), student, batch, progress)
        torch.manual_seed(step)
        fast = algorithm(student, student, batch, torch.tensor(progress))
        torch.testing.assert_close(float(fast.loss.detach()), slow, rtol=1e-5, atol=1e-6)


def test_search_leaves_no_gradient() -> None:
    """The gradient is that of the loss with a constant perturbation."""
    task, algorithm = tiny_task(), VAT().build(tiny_task())
    student = confident_network(task.num_classes)
    other = copy.deepcopy(student)
    batch = random_batch(task, algorithm.views)
    images = batch.unlabeled[0]
    torch.manual_seed(1)
    algorithm(student, student, batch, torch.tensor(1.0)).loss.backward()

    def logits(pictures: torch.Tensor) -> torch.Tensor:
        fresh = copy.deepcopy(other)
        return torch.func.functional_call(other, dict(fresh.named_buffers()), (pictures,)).logits

    clean = logits(images)
    probs = clean.detach().softmax(dim=1)
    torch.manual_seed(1)
    change = adversarial_perturbation(logits, images, probs)
    assert change.grad_fn is None
    loss = cross_entropy(other(batch.labeled[0]).logits, batch.labels)
    loss = loss + 0.3 * kullback_leibler(logits(images + change), probs) + 0.06 * entropy(clean)
    loss.backward()
    for one, two in zip(student.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-5)


def test_only_the_labeled_pass_changes_running_statistics() -> None:
    task, algorithm = tiny_task(), VAT().build(tiny_task())
    student = confident_network(task.num_classes)
    expected = copy.deepcopy(student)
    batch = random_batch(task, algorithm.views)
    expected(batch.labeled[0])
    algorithm(student, student, batch, torch.tensor(1.0))
    torch.testing.assert_close(dict(student.named_buffers()), dict(expected.named_buffers()))
