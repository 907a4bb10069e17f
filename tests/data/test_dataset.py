"""Labeled and unlabeled positions, and the measured appearance of images."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.data import SemiDataset, draw_split, from_arrays, load
from fullmatch.data.dataset import clean_class_name, measure_appearance, sort_classes
from fullmatch.data.splits import draw_unlabeled
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError
from fullmatch.labeling.label_table import parse_class_name
from tests.data.conftest import Draw

COMPOSED, DECOMPOSED = "caf\u00e9 noir", "cafe\u0301  noir "


def pixels(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), np.uint8)


def test_all_images_are_unlabeled_and_known_labels_are_used() -> None:
    data = SemiDataset.from_source(from_arrays(pixels(6), [0, -1, 1, -1, 1, 1]))
    assert data.labeled.tolist() == [0, 2, 4, 5]
    assert data.unlabeled.tolist() == list(range(6))
    assert data.class_prior == data.batch_prior == (0.25, 0.75)
    assert data.num_classes == 2


def test_split_hides_labels() -> None:
    source = from_arrays(pixels(20), np.arange(20) % 2, name="toy")
    data = SemiDataset.from_source(source, draw_split(source.labels, 4, 0, 2, "toy"))
    assert len(data.labeled) == 4
    assert len(data.unlabeled) == 20
    assert data.class_prior == (0.5, 0.5)
    assert data.labels.equal(source.labels)  # kept for metrics
    with pytest.raises(UserError, match="does not match"):
        SemiDataset.from_source(source, draw_split(source.labels[:-2], 4, 0, 2, "toy"))


def test_split_chooses_unlabeled_images() -> None:
    source = from_arrays(pixels(20), np.arange(20) % 2, name="toy")
    split = draw_split(source.labels, 4, 0, 2, "toy")
    data = SemiDataset.from_source(source, draw_unlabeled(split, source.labels, 2, 6, None))
    assert len(data.unlabeled) == 6
    assert not torch.isin(data.unlabeled, data.labeled).any()
    assert data.image_count == 10
    assert SemiDataset.from_source(source, split).image_count == 20


def test_appearance_is_measured_from_the_pixels() -> None:
    images = pixels(50)
    appearance = measure_appearance(TensorStore(torch.from_numpy(images).permute(0, 3, 1, 2)))
    np.testing.assert_allclose(appearance.mean, (images / 255).mean((0, 1, 2)))
    np.testing.assert_allclose(appearance.std, (images / 255).std((0, 1, 2)))
    assert appearance.flip
    assert appearance.padding == 1


def test_blank_images_have_a_positive_std() -> None:
    appearance = measure_appearance(TensorStore(torch.full((3, 1, 32, 32), 7, dtype=torch.uint8)))
    assert appearance.std == (1 / 255,)
    assert appearance.padding == 4


def test_classes_are_in_natural_order() -> None:
    names = ["class 10", "class 2", "Äpfel", "10", "9", "b", "A", "a"]
    assert sort_classes(names) == ("9", "10", "A", "a", "b", "class 2", "class 10", "Äpfel")


def test_class_names_are_cleaned() -> None:
    assert clean_class_name(f"\t{DECOMPOSED}") == COMPOSED
    assert clean_class_name("\u00a0 ") == ""


def test_a_class_has_one_name_wherever_it_comes_from(tmp_path: Path, draw_picture: Draw) -> None:
    for name in (DECOMPOSED, "tea"):
        draw_picture(tmp_path / "labeled" / name / "a.png")
    table = tmp_path / "list.csv"
    rows = [f"labeled/{name}/a.png,{name}" for name in (DECOMPOSED, "tea")]
    table.write_text("\n".join(["path,label", *rows]), encoding="utf-8")
    arrays = from_arrays(np.zeros((2, 8, 8)), [DECOMPOSED, "tea"])
    named = from_arrays(np.zeros((2, 8, 8)), [0, 1], classes=(DECOMPOSED, "tea"))
    sources = [load(str(tmp_path)), load(str(table)), arrays, named]
    assert {source.classes for source in sources} == {(COMPOSED, "tea")}
    assert parse_class_name(DECOMPOSED) == COMPOSED
