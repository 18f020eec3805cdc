"""The scale of similarity, for any embedder."""

from pathlib import Path

import pytest

from commonplace.adapters.embed import make_embedder
from commonplace.core.search.similarity import (
    DEFAULT,
    RELATED,
    ROUNDING,
    SAME,
    SAMPLES,
    UNRELATED,
    SimilarityScale,
)
from commonplace.settings import Settings


@pytest.mark.anyio
async def test_the_scale_means_the_same_for_its_samples(data_dir: Path) -> None:
    embedder = make_embedder(Settings(data_dir=data_dir, embedder="static"))
    scale = await SimilarityScale(embedder).scale()
    assert list(scale.cosines) == sorted(scale.cosines) and scale.values == (
        0.0,
        UNRELATED,
        RELATED,
        SAME,
        1.0,
    )
    vectors = [
        document[0]
        for document in await embedder.documents([[text] for triple in SAMPLES for text in triple])
    ]
    related = sorted(scale(float(vectors[n] @ vectors[n + 2])) for n in range(0, len(vectors), 3))
    assert related[len(related) // 2 - 1] <= RELATED <= related[len(related) // 2]
    assert scale(-1.0) == 0 and scale(1.0) == 1 and 0 < scale(0.0) < RELATED


@pytest.mark.anyio
async def test_the_known_scale_of_the_default_embedder_is_what_is_measured(
    data_dir: Path,
) -> None:
    embedder = make_embedder(Settings(data_dir=data_dir))
    scale = SimilarityScale(embedder)
    assert await scale.scale() is DEFAULT
    measured = await scale._measure()
    await embedder.close()
    assert measured.cosines == pytest.approx(DEFAULT.cosines, abs=ROUNDING)
    assert measured.relevant == pytest.approx(DEFAULT.relevant, abs=ROUNDING)
