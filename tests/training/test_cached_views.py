"""Views that were computed before: every name draws from its own columns."""

import torch
from torch import Tensor

from fullmatch.core import Views
from fullmatch.data.feed import RawBatch
from fullmatch.training.cached_views import CachedViews

COLUMNS: dict[str, tuple[int, ...]] = {"plain": (0,), "weak": (0, 1, 2), "strong": (1, 3)}


def stored(count: int, first: int = 0) -> Tensor:
    """(B, 4, 1, 2): every embedding says its picture and its view."""
    number = torch.arange(first, first + count)[:, None].expand(-1, 4)
    view = torch.arange(4).expand(count, -1)
    return torch.stack([number, view], dim=2)[:, :, None].half()


def batch(labeled: int = 200, unlabeled: int = 300) -> RawBatch:
    return RawBatch(
        labeled=stored(labeled),
        labels=torch.arange(labeled) % 3,
        labeled_index=torch.arange(labeled),
        unlabeled=stored(unlabeled, 1000),
        unlabeled_index=torch.arange(unlabeled),
        hidden_labels=torch.full((unlabeled,), -1),
    )


def test_each_name_draws_from_its_columns() -> None:
    torch.manual_seed(0)
    raw = batch()
    drawn = CachedViews(Views(unlabeled=("weak", "strong", "plain")), COLUMNS)(raw)
    (labeled,) = drawn.labeled
    assert labeled.shape == (200, 2, 1, 1)
    assert labeled.dtype == torch.float32
    assert torch.equal(labeled[:, 0, 0, 0], torch.arange(200).float())
    for view, name in zip(drawn.unlabeled, ("weak", "strong", "plain"), strict=True):
        assert torch.equal(view[:, 0, 0, 0], torch.arange(1000, 1300).float())
        columns, counts = view[:, 1, 0, 0].int().unique(return_counts=True)
        assert tuple(columns.tolist()) == COLUMNS[name]
        assert counts.min() > 0.7 * counts.float().mean()
    assert torch.equal(drawn.labels, raw.labels)
    assert torch.equal(drawn.labeled_index, raw.labeled_index)
    assert torch.equal(drawn.unlabeled_index, raw.unlabeled_index)
    assert torch.equal(drawn.hidden_labels, raw.hidden_labels)


def test_no_unlabeled_views() -> None:
    assert CachedViews(Views(unlabeled=()), COLUMNS)(batch()).unlabeled == ()


def test_the_same_chances_give_the_same_views() -> None:
    views, raw = CachedViews(Views(unlabeled=("weak", "weak")), COLUMNS), batch()
    chances = views.draw(raw)
    assert [len(chance) for chance in chances] == [200, 300, 300]
    first, second = views(raw, chances), views(raw, chances)
    for one, other in zip(
        (*first.labeled, *first.unlabeled), (*second.labeled, *second.unlabeled), strict=True
    ):
        assert torch.equal(one, other)
    assert not torch.equal(*first.unlabeled)  # two weak views of a picture are drawn apart


def test_the_largest_chance_stays_within_the_columns() -> None:
    largest = torch.full((3,), 1 - 2**-24)
    for count in range(1, 12):
        views = CachedViews(Views(), {"weak": tuple(range(count))})
        rows = torch.arange(count).expand(3, -1)[:, :, None, None].float()
        assert torch.equal(views.view(rows, "weak", largest), torch.full((3, 1, 1, 1), count - 1.0))
