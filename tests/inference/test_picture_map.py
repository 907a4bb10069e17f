"""The layout of the map: neighbors stay neighbors, the same every time, for any number."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from fullmatch.inference import picture_map
from fullmatch.inference.picture_map import build_map, choose_landmarks, lay_out, place, separate
from fullmatch.storage.features import Part, PictureFeatures
from fullmatch.storage.picture_map import PictureMap
from tests.picture_maps import make_features, make_probabilities


def build(features: PictureFeatures, seed: int = 0) -> PictureMap:
    odd = np.arange(len(features)) % 7 == 0
    return build_map(features, make_probabilities(features), odd, ~odd, seed)


def digit_features() -> PictureFeatures:
    """Digits by their pixels, 40 of them labeled."""
    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels - 8) / np.linalg.norm(pixels - 8, axis=1, keepdims=True)
    parts = np.where(np.arange(len(labels)) < 40, Part.LABELED, Part.UNLABELED).astype(np.uint8)
    names = tuple(f"image {number}" for number in range(len(labels)))
    classes = tuple("0123456789")
    return PictureFeatures(pixels.astype(np.float32), parts, labels, names, classes, "pixels")


def same_class_share(points: np.ndarray, labels: np.ndarray) -> float:
    """How often the five nearest points on the map have the same class."""
    _, nearest = NearestNeighbors(n_neighbors=5).fit(points).kneighbors()
    return float((labels[nearest] == labels[:, None]).mean())


def test_what_the_map_says_about_pictures() -> None:
    features = make_features()
    probabilities = make_probabilities(features)
    odd = np.arange(60) % 7 == 0
    result = build_map(features, probabilities, odd, ~odd, seed=0)
    assert result.predicted.tolist() == probabilities.argmax(axis=1).tolist()
    assert result.confidence == pytest.approx(probabilities.max(axis=1))
    assert (result.outlier == odd).all()
    assert (result.suspect == ~odd).all()
    assert result.names == features.names
    assert result.classes == features.classes
    assert (result.labels == features.labels).all()
    assert (result.parts == features.parts).all()
    assert result.points.shape == (60, 2)
    assert result.points.dtype == np.float32
    # It fills the square in one direction, and is centered in both.
    assert np.abs(result.points).max() == pytest.approx(1)
    assert result.points.min(axis=0) == pytest.approx(-result.points.max(axis=0), abs=1e-5)


def test_wrong_lengths_are_noticed() -> None:
    features, odd = make_features(), np.zeros(60, bool)
    probabilities = make_probabilities(features)
    with pytest.raises(ValueError, match="predicted and names have different lengths"):
        build_map(features, probabilities[1:], odd, odd, seed=0)
    with pytest.raises(ValueError, match="suspect and names have different lengths"):
        build_map(features, probabilities, odd, odd[1:], seed=0)
    with pytest.raises(ValueError, match="predictions are not classes"):
        build_map(features, np.tile([0.1, 0.1, 0.1, 0.7], (60, 1)), odd, odd, seed=0)


def test_repeats_for_a_seed() -> None:
    features = make_features(300)
    first, again, other = (build(features, seed).points for seed in (3, 3, 4))
    assert (first == again).all()
    assert not (first == other).all()


def test_repeats_in_another_process_with_more_threads() -> None:
    code = (
        "from threadpoolctl import threadpool_info\n"
        "from fullmatch.inference import picture_map\n"
        "from tests.picture_maps import make_features\n"
        "def embed(landmarks, seed, embed=picture_map.embed):\n"
        "    print(*{library['num_threads'] for library in threadpool_info()})\n"
        "    return embed(landmarks, seed)\n"
        "picture_map.embed = embed\n"
        "print(picture_map.lay_out(make_features(300), 0).tobytes().hex())"
    )
    command = [sys.executable, "-c", code]
    root = str(picture_map.__file__).split("/src/")[0]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}  # others may choose the library's code
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=root, env=environment
    )
    assert done.returncode == 0, done.stderr
    points = lay_out(make_features(300), 0).tobytes().hex()
    assert done.stdout.splitlines() == ["1", points]


def test_neighbors_stay_neighbors() -> None:
    features = digit_features()
    points = lay_out(features, seed=0)  # all are landmarks
    assert trustworthiness(features.features, points) > 0.985
    assert same_class_share(points, features.labels) > 0.97
    points = lay_out(features, seed=0, most_landmarks=500)  # most are placed between landmarks
    assert trustworthiness(features.features, points) > 0.975
    assert same_class_share(points, features.labels) > 0.94


def test_labeled_pictures_are_landmarks() -> None:
    parts = np.full(9000, Part.UNLABELED, np.uint8)
    parts[1000:1700] = Part.LABELED
    parts[8000:] = Part.TEST
    landmarks = choose_landmarks(parts)
    assert len(landmarks) == len(set(landmarks.tolist())) == picture_map.LANDMARKS
    assert set(range(1000, 1700)) <= set(landmarks.tolist())
    assert (np.diff(landmarks) > 0).all()
    assert np.diff(landmarks).max() < 10
    assert (landmarks >= 8000).sum() > 100


def test_many_labeled_pictures_leave_room_for_others() -> None:
    parts = np.full(9000, Part.LABELED, np.uint8)
    parts[6000:] = Part.UNLABELED
    landmarks = choose_landmarks(parts)
    assert len(landmarks) == picture_map.LANDMARKS
    assert (landmarks >= 6000).sum() == picture_map.LANDMARKS / 4
    assert (choose_landmarks(parts, 100) >= 6000).sum() == 25
    assert choose_landmarks(parts[:100]).tolist() == list(range(100))
    assert len(choose_landmarks(parts[:5000])) == picture_map.LANDMARKS  # all are labeled


def test_placed_near_the_most_similar_landmarks() -> None:
    landmarks = np.array([[0, 0], [0, 1], [5, 5], [5, 6], [9, 9]], np.float32)
    points = np.array([[0, 0], [1, 0], [50, 50], [51, 50], [90, 0]], np.float32)
    same = place(landmarks, landmarks, points, seed=0)
    assert np.abs(same - points).max() < 3  # its own place, give or take the jitter
    between = place(np.array([[2.4, 2.4]], np.float32), landmarks, points, seed=0)
    assert np.linalg.norm(between - points, axis=1).min() < 3  # not between two clusters


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 30])
def test_few_pictures(count: int) -> None:
    points = build(make_features(count)).points
    assert points.shape == (count, 2)
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == count


def test_duplicates_have_places_of_their_own() -> None:
    features = make_features(50)
    same = np.tile(features.features[:1], (50, 1))
    points = build(replace(features, features=same)).points
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == 50
    points = lay_out(replace(features, features=same), seed=0, most_landmarks=20)
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == 50
    pairs = np.repeat(make_features(100).features, 2, axis=0)
    points = build(replace(make_features(200), features=pairs)).points
    assert len(np.unique(points, axis=0)) == 200


def test_points_in_one_place_are_separated() -> None:
    points = np.array([[0, 0], [1, -1], [0, 0], [1, -1], [0.5, 1]], np.float32)
    moved = separate(points, seed=0)
    assert len(np.unique(moved, axis=0)) == 5
    assert (moved[[0, 1, 4]] == points[[0, 1, 4]]).all()
    assert 0 < np.abs(moved - points).max() < 0.02
    assert np.abs(moved).max() <= 1


def test_one_feature_per_picture() -> None:
    features = replace(make_features(40), features=np.ones((40, 1), np.float32))
    assert np.isfinite(build(features).points).all()


def test_time_grows_slowly() -> None:
    """Twenty times the pictures take less than four times as long: t-SNE sees landmarks only."""

    def seconds(count: int) -> float:
        features = make_features(count, dimensions=64)
        parts = np.full(count, Part.UNLABELED, np.uint8)
        start = time.process_time()
        lay_out(replace(features, parts=parts), seed=0, most_landmarks=500)
        return time.process_time() - start

    seconds(100)  # imports
    assert seconds(10_000) < 4 * seconds(500)
