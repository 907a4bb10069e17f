"""MixMatch: guesses are sharpened after averaging."""

import pytest
import torch

from fullmatch.algorithms import MixMatch
from fullmatch.algorithms.passes import interleave, run_interleaved
from fullmatch.errors import UserError
from tests.algorithms.agreement import assert_agrees, confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import mixing


@pytest.mark.parametrize("interleave", [False, True])
def test_agrees_with_the_reference(interleave: bool) -> None:
    assert_agrees(MixMatch(interleave=interleave), mixing.MixMatch)


def test_interleaving_mixes_the_first_chunk_and_is_undone_by_itself() -> None:
    chunks = [torch.arange(10 * i, 10 * i + 5) for i in range(3)]
    mixed = interleave(chunks)
    assert [chunk.tolist() for chunk in mixed] == [
        [0, 11, 12, 23, 24],
        [10, 1, 2, 13, 14],
        [20, 21, 22, 3, 4],
    ]
    assert torch.cat(interleave(mixed)).equal(torch.cat(chunks))


def test_only_the_first_of_the_interleaved_chunks_moves_the_statistics() -> None:
    torch.manual_seed(0)
    task = tiny_task()
    together, apart = confident_network(4), confident_network(4)
    apart.load_state_dict(together.state_dict())
    images = torch.randn(12, *task.image)
    logits = run_interleaved(apart, images, 4)
    assert logits.shape == (12, 4)
    together(interleave(torch.split(images, 4))[0])
    torch.testing.assert_close(apart.state_dict(), together.state_dict())


def test_chunks_must_have_equal_sizes() -> None:
    task = tiny_task()
    algorithm, student = MixMatch(interleave=True).build(task), confident_network(4)
    batch = random_batch(task, algorithm.views, labeled=4, unlabeled=3)
    with pytest.raises(UserError, match="chunks of its 4 labeled images, but it has 10"):
        algorithm(student, student, batch, torch.tensor(0.5))


def test_guess_sharpens_the_mean_and_not_each_view() -> None:
    task = tiny_task()
    algorithm, student = MixMatch().build(task), confident_network(task.num_classes)
    views = random_batch(task, algorithm.views).unlabeled
    guess = algorithm.guess(student, views)
    each = [student(view).logits.softmax(dim=1) for view in views]
    power = ((each[0] + each[1]) / 2) ** 2
    torch.testing.assert_close(guess, (power / power.sum(dim=1, keepdim=True)).detach())
    assert not guess.requires_grad


def test_interleaving_traces_as_one_graph() -> None:
    torch._dynamo.reset()
    task = tiny_task()
    algorithm, student = MixMatch(interleave=True).build(task), confident_network(4)
    batch = random_batch(task, algorithm.views, labeled=4, unlabeled=8)
    compiled = torch.compile(algorithm.forward, fullgraph=True, backend="aot_eager")
    losses = []
    for forward in (algorithm.forward, compiled):
        torch.manual_seed(0)
        losses.append(forward(student, student, batch, torch.tensor(0.5)).loss)
    torch.testing.assert_close(*losses)
