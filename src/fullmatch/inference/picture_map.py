"""A map of a run's pictures: two dimensions in which pictures with similar features are close.

t-SNE lays out up to 2,000 landmark pictures. Every other picture is placed between the landmarks
that are most similar to it, so that 20,000 pictures take little longer than 2,000.
"""

import numpy as np
from numpy.typing import NDArray

from fullmatch.inference.run_findings import store_findings
from fullmatch.storage.features import Part, PictureFeatures
from fullmatch.storage.findings import RunFindings
from fullmatch.storage.picture_map import PictureMap, check_map, evenly_spaced_rows, write_map
from fullmatch.storage.run_folder import RunFolder

LANDMARKS = 2000
LABELED_SHARE = 0.75  # of the landmarks at most, so that there is room for others
DIMENSIONS = 50  # that t-SNE starts from: it is as good as with all, and quicker
ITERATIONS = 500  # of t-SNE: more take longer and hardly change the map
PERPLEXITY = 30.0  # the default of scikit-learn
FEWEST = 8  # with fewer pictures, t-SNE has no neighborhoods to preserve
NEIGHBORS = 5  # landmarks that decide where another picture is placed
NEARBY = 6.0  # of these, only those within this many usual distances on the map count fully
JITTER = 0.5  # of the usual distance between landmarks, so that pictures do not hide each other
MOST_CROWDED = 3.0  # times that, where many pictures share a landmark
APART = 2e-3  # how far pictures in exactly the same place are moved

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


def build_map(
    features: PictureFeatures,
    probabilities: NDArray[np.floating],
    outlier: NDArray[np.bool_],
    suspect: NDArray[np.bool_],
    seed: int,
) -> PictureMap:
    """The map of all pictures, given their class probabilities (N, C) and what is odd about them.

    The same input and seed give the same map on one machine.
    """
    picture_map = PictureMap(
        points=lay_out(features, seed),
        predicted=probabilities.argmax(axis=1).astype(np.int64),
        confidence=probabilities.max(axis=1).clip(0, 1).astype(np.float32),
        outlier=outlier.astype(bool),
        suspect=suspect.astype(bool),
        parts=features.parts,
        labels=features.labels,
        names=features.names,
        classes=features.classes,
    )
    check_map(picture_map)
    return picture_map


def map_run(folder: RunFolder, seed: int = 0) -> bool:
    """Write the map of a finished run; False where it has no features, or has a map already."""
    features = folder.read_features()
    if features is None or features.probabilities is None or folder.map.exists():
        return False
    findings = store_findings(folder) or RunFindings()
    outlier, suspect = np.zeros((2, len(features)), bool)
    outlier[[picture.row for picture in findings.outliers]] = True
    suspect[[picture.row for picture in findings.suspect_labels]] = True
    write_map(folder.map, build_map(features, features.probabilities, outlier, suspect, seed))
    return True


def lay_out(features: PictureFeatures, seed: int, most_landmarks: int = LANDMARKS) -> Floats:
    """(N, 2) points between -1 and 1."""
    import sklearn.manifold  # noqa: F401  # now, since limits hold only for what is loaded already
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if not len(features):
        return np.zeros((0, 2), np.float32)
    landmarks = choose_landmarks(features.parts, most_landmarks)
    # With several threads, sums are rounded differently each time, and t-SNE amplifies that.
    with threadpool_limits(1):
        reduced = reduce_dimensions(features.features, landmarks, seed)
        points = np.empty((len(features), 2), np.float32)
        points[landmarks] = embed(reduced[landmarks], seed)
        others = np.setdiff1d(np.arange(len(features)), landmarks)
        points[others] = place(reduced[others], reduced[landmarks], points[landmarks], seed)
    return separate(fit_into_square(points), seed)


def choose_landmarks(parts: NDArray[np.uint8], most: int = LANDMARKS) -> Rows:
    """Sorted rows of landmarks: labeled pictures first, then evenly spaced others."""
    others = np.flatnonzero(parts != Part.LABELED)
    labeled = np.flatnonzero(parts == Part.LABELED)
    labeled = evenly_spaced_rows(labeled, max(int(LABELED_SHARE * most), most - len(others)))
    return np.union1d(labeled, evenly_spaced_rows(others, most - len(labeled)))


def reduce_dimensions(features: Floats, landmarks: Rows, seed: int) -> Floats:
    """(N, at most 50): the principal components of the landmarks."""
    from sklearn.decomposition import PCA

    most = min(DIMENSIONS, len(landmarks), features.shape[1])
    with np.errstate(invalid="ignore"):  # pictures that are all the same have no variance
        pca = PCA(most, random_state=seed).fit(features[landmarks])
    return np.asarray(pca.transform(features), np.float32)


def embed(landmarks: Floats, seed: int) -> Floats:
    """(L, 2): t-SNE that starts from the first two principal components."""
    from sklearn.manifold import TSNE

    start = np.zeros((len(landmarks), 2), np.float32)
    start[:, : landmarks.shape[1]] = landmarks[:, :2]
    scale = float(start[:, 0].std())
    if len(landmarks) < FEWEST or scale < 1e-6:  # too few pictures, or all the same
        return start + draw_noise(start.shape, 1e-3, seed)
    # As init="pca" scales it; the noise separates exact duplicates.
    start = start / scale * 1e-4 + draw_noise(start.shape, 1e-7, seed)
    perplexity = min(PERPLEXITY, (len(landmarks) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init=start, max_iter=ITERATIONS, random_state=seed)
    return np.asarray(tsne.fit_transform(landmarks), np.float32)


def place(others: Floats, landmarks: Floats, points: Floats, seed: int) -> Floats:
    """(M, 2): each picture at the similarity-weighted mean of its nearest landmarks.

    Landmarks far from the most similar one on the map hardly count: between two clusters, the mean
    of both would look like a cluster of its own.
    """
    from sklearn.neighbors import NearestNeighbors

    if not len(others):
        return np.empty((0, 2), np.float32)
    count = min(NEIGHBORS, len(landmarks))
    distances, nearest = NearestNeighbors(n_neighbors=count).fit(landmarks).kneighbors(others)
    farther = distances**2 - distances[:, :1] ** 2
    weights = np.exp(-farther / max(float(np.median(farther[:, -1])), 1e-12))
    spacing = float(np.median(NearestNeighbors(n_neighbors=1).fit(points).kneighbors()[0]))
    apart = ((points[nearest] - points[nearest[:, :1]]) ** 2).sum(axis=-1)
    weights *= np.exp(-apart / max(NEARBY * spacing, 1e-6) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    means = np.einsum("mk,mkd->md", weights, points[nearest])
    crowding = min(max(1.0, np.sqrt(len(others) / len(landmarks))), MOST_CROWDED)
    noise = draw_noise(means.shape, JITTER * crowding * spacing, seed)
    return np.asarray(means + noise, np.float32)


def separate(points: Floats, seed: int) -> Floats:
    """Move pictures that are exactly where another one is: t-SNE pulls duplicates together."""
    first = np.unique(points, axis=0, return_index=True)[1]
    hidden = np.setdiff1d(np.arange(len(points)), first)
    moved = points.copy()
    inward = np.where(points[hidden] > 0, -1, 1).astype(np.float32)
    moved[hidden] += inward * np.abs(draw_noise(inward.shape, APART, seed))
    return moved


def draw_noise(shape: tuple[int, ...], scale: float, seed: int) -> Floats:
    noise = np.random.default_rng(seed).normal(scale=scale, size=shape)
    return noise.astype(np.float32)


def fit_into_square(points: Floats) -> Floats:
    """Centered, and scaled by the same factor in both directions."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = max(float((high - low).max()) / 2, 1e-12)
    centered = (points - (low + high) / 2) / half
    return np.asarray(centered.clip(-1, 1), np.float32)
