"""Features that the user has computed: they take the place of those of a frozen body."""

import torch
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data import Source
from fullmatch.data.stores.features import FeatureStore
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.experiment.feature_pass import FITTED, FrozenFeatures
from fullmatch.experiment.frozen_model import FrozenModel
from fullmatch.models.frozen import Embedding
from fullmatch.models.landmarks import LANDMARKS, LandmarkBody

GIVEN = "features"  # the name of the model in settings and files
STRENGTH = 100.0  # similarities to landmarks need less regularization than a pretrained network
CHUNK = 1000  # rows at a time
APPEARANCE = Appearance(mean=(0.0,), std=(1.0,), padding=0)  # features are not normalized by it


def feature_source(store: FeatureStore, labels: Tensor, classes: tuple[str, ...]) -> Source:
    """Rows of features as the data of a run; a label of -1 is unknown."""
    return Source(name=GIVEN, images=store, labels=labels, classes=classes, appearance=APPEARANCE)


def fit_given_model(store: FeatureStore) -> FrozenModel:
    """A body that takes rows of features instead of images."""
    body = LandmarkBody.fit(store.rows, evenly_spaced(len(store), LANDMARKS))
    return FrozenModel(
        body=body,
        appearance=APPEARANCE,
        widths=(len(body.landmarks),),
        identity=GIVEN,
        note="",
        strength=STRENGTH,
    )


def embed_given(
    model: FrozenModel, store: FeatureStore, test: FeatureStore | None = None
) -> FrozenFeatures:
    """Embeddings of all rows; there is one view, which is weak and strong at once."""
    sample = store.rows[evenly_spaced(len(store), FITTED)]
    embedding = Embedding.fit(model.body(sample), model.widths)

    def embed(rows: Tensor) -> Tensor:
        return torch.cat([embedding(model.body(part)) for part in torch.split(rows, CHUNK)])

    return FrozenFeatures(
        model=model,
        embedding=embedding,
        training=embed(store.rows)[:, None],
        test=None if test is None else embed(test.rows),
        weak=(0,),
        strong=(0,),
    )
