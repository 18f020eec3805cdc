"""One scale of similarity for every embedder, calibrated with known texts.

Sample passages on different subjects, each with a paraphrase and a related text, are embedded once
per process. The medians of their cosines are fixed points of the scale, with straight lines
between. Those of the default embedder are known, so that a start does not wait for them.
"""

import asyncio
from dataclasses import dataclass, field
from statistics import median
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from commonplace.core.ingest.pipeline import within_call
from commonplace.errors import EmbeddingFailed
from commonplace.ports import Embedder

# scale values of the medians of unrelated texts, related texts and paraphrases
UNRELATED, RELATED, SAME = (0.1, 0.75, 0.92)
# The same medians as cosines of the default embedder. Rounding differs a little between processors.
DEFAULT_STAMP = "local/all-MiniLM-L6-v2-int8/384"
MEDIANS, ROUNDING = (0.0582, 0.4768, 0.859), 0.01
# From here on a text has to do with a question: so many standard deviations above the mean cosine
# of unrelated texts.
RELEVANT_DEVIATIONS = 4.2
LEAST_STEP = 0.01  # between the medians
PAUSE = 30.0  # seconds without calibrating after a failure, so that each call does not wait

# (text, paraphrase, related text)
SAMPLES = (
    (
        "Connection pool exhausted\nRequests block until a timeout when every database connection "
        "of the pool is in use. "
        "Set the pool size to at least twice the number of workers.",
        "Database pool runs out of connections\nIf all connections in the pool are taken, "
        "requests wait and then time out. "
        "The pool should be at least two times as large as the worker count.",
        "Sizing database pools\nChoose the number of pooled connections from the number of "
        "workers, and alert when callers "
        "wait for a connection.",
    ),
    (
        "Error boundary\nWrap critical parts of a React page in an error boundary, so that an "
        "exception in one component "
        "does not blank the whole page.",
        "Error boundaries in React\nPut error boundaries around important sections of the page; a "
        "component that throws then "
        "leaves the rest of the page standing.",
        "React dashboard shows a white page\nWhen a chart component throws, the entire dashboard "
        "disappears for the user.",
    ),
    (
        "Rotating the signing key\nCreate the new key, publish both in the key set, switch "
        "signing to the new one, and remove "
        "the old key after the longest token lifetime has passed.",
        "How to rotate signing keys\nGenerate a key, publish it beside the old one, start signing "
        "with it, then drop the old "
        "key once all tokens that it signed have expired.",
        "Expired JWT keys break login\nTokens signed with a key that was removed from the key set "
        "are refused, and people "
        "have to sign in again.",
    ),
    (
        "Bread needs rest\nLet the dough rise slowly in the refrigerator overnight; the crust "
        "gets darker and the crumb more "
        "open.",
        "Overnight rise for bread\nA slow, cold rise of the dough during the night gives an open "
        "crumb and a dark crust.",
        "Sourdough loaf came out flat\nThe dough was baked after an hour, had hardly risen, and "
        "the crumb was dense.",
    ),
    (
        "Backups are tested every month\nA restore into an empty machine is run on the first "
        "Monday, timed, and compared with "
        "the live row counts.",
        "Monthly restore test\nOn the first Monday of the month the backup is restored on a blank "
        "server; duration and row "
        "counts are checked against production.",
        "Nightly backup job fails on a full disk\nThe dump stops half way when the volume has no "
        "space left, and nobody is "
        "told.",
    ),
    (
        "Decision: feature flags instead of long branches\nUnfinished work is merged daily behind "
        "a flag, because long-lived "
        "branches cost us two days of conflicts at each release.",
        "We merge daily behind feature flags\nBecause branches that live long caused days of "
        "merge conflicts before releases, "
        "incomplete work goes to main behind flags.",
        "Remove the checkout flag\nThe new checkout has been on for everybody since March; delete "
        "its flag and the old code.",
    ),
    (
        "Herons nest in colonies\nGrey herons build their nests high in trees near water, and "
        "return to the same colony each "
        "spring.",
        "Grey heron colonies\nEvery spring grey herons come back to the same groups of nests, "
        "which lie in tall trees close "
        "to water.",
        "Counting nests by the lake\nIn April the volunteers count occupied heron nests from the "
        "shore with telescopes.",
    ),
    (
        "Pagination by cursor\nReturn an opaque cursor with each page instead of an offset; rows "
        "that are inserted meanwhile "
        "are then neither skipped nor shown twice.",
        "Use cursors for paging\nGive clients an opaque cursor rather than an offset, so that "
        "concurrent inserts neither "
        "repeat nor hide rows between pages.",
        "List endpoint skips orders\nWhile new orders arrive, the second page of the API misses "
        "some rows and repeats others.",
    ),
    (
        "Stretching before a run\nTen minutes of easy walking and leg swings prepare the muscles "
        "better than holding static "
        "stretches.",
        "Warm up before running\nEasy walking and swinging the legs for ten minutes warms muscles "
        "more effectively than static "
        "stretching.",
        "Calf strain after sprints\nThe runner began with fast sprints on a cold morning and "
        "strained a calf muscle.",
    ),
    (
        "Cache invalidation on write\nDelete the cached profile in the same transaction hook that "
        "updates the row; readers "
        "then never see a stale name for longer than one request.",
        "Invalidate the cache when writing\nWhen the profile row is updated, its cache entry is "
        "removed by the same hook, so "
        "stale names last for one request at most.",
        "Old user names shown after renaming\nPeople who change their name still see the old one "
        "for an hour because the "
        "profile stays in Redis.",
    ),
    (
        "Quarterly tax payment\nFreelancers pay estimated income tax four times a year; a late "
        "payment is charged interest "
        "from the due day.",
        "Estimated taxes each quarter\nSelf-employed people owe income tax in advance every "
        "quarter, and interest runs from "
        "the deadline if they pay late.",
        "Reminder for the June tax deadline\nTransfer the estimated tax for the second quarter "
        "before the fifteenth.",
    ),
    (
        "Container images are built once\nThe image that passed the tests is promoted from "
        "staging to production by its "
        "digest and never rebuilt.",
        "Build once, promote by digest\nProduction runs the very image that was tested in "
        "staging; it is referred to by "
        "digest and not built again.",
        "Deploy pipeline for the API\nTests run on the image, then the release job rolls it out "
        "to the Kubernetes cluster.",
    ),
)


@dataclass(frozen=True, slots=True)
class Scale:
    cosines: tuple[float, ...]
    values: tuple[float, ...]
    relevant: float  # value on the scale

    def __call__(self, cosine: float) -> float:
        return float(np.clip(np.interp(cosine, self.cosines, self.values), 0.0, 1.0))

    def share(self, cosine: float) -> float:
        """Return where a cosine lies between unrelated texts, 0, and paraphrases, 1, without
        bends: differences of shares compare."""
        _, unrelated, _, same, _ = self.cosines
        return (cosine - unrelated) / (same - unrelated)

    def to_default(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map cosines to those that the default embedder would give; its own stay as they are, and
        those of one that cannot separate the samples."""
        own = np.allclose(self.cosines, DEFAULT.cosines, rtol=0, atol=ROUNDING)
        if own or self.cosines[2] - self.cosines[1] < 2 * LEAST_STEP:
            return cosines
        return np.interp(cosines, self.cosines, DEFAULT.cosines).astype(np.float32)


DEFAULT = Scale((-1.0, *MEDIANS, 1.0), (0.0, UNRELATED, RELATED, SAME, 1.0), 0.6457)


@dataclass(eq=False)
class SimilarityScale:
    """Calibrates one embedder's scale, on first use."""

    _embedder: Embedder
    _scale: Scale | None = field(default=None, init=False)
    _again: float = field(default=0.0, init=False)  # when to ask a failed embedder again
    _measuring: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        if self._embedder.stamp == DEFAULT_STAMP:
            self._scale = DEFAULT

    async def scale(self) -> Scale:
        """Return the embedder's scale; the default model's while the embedder does not answer."""
        if self._scale is None and monotonic() >= self._again:
            try:
                await within_call(self._calibrate())
            except EmbeddingFailed:
                self._again = monotonic() + PAUSE
        return self._scale or DEFAULT

    async def _calibrate(self) -> None:
        async with self._measuring:
            if self._scale is None:
                self._scale = await self._measure()

    async def _measure(self) -> Scale:
        found = await self._embedder.documents([[text] for triple in SAMPLES for text in triple])
        vectors = np.array([document[0] for document in found], np.float32).reshape(
            len(SAMPLES), 3, -1
        )
        texts, same, belongs = vectors[:, 0], vectors[:, 1], vectors[:, 2]
        unlike = (texts @ texts.T)[~np.eye(len(SAMPLES), dtype=bool)]
        marks = [
            float(median(unlike)),
            float(median((texts * belongs).sum(axis=1))),
            float(median((texts * same).sum(axis=1))),
        ]
        # an embedder that cannot separate the samples still gets a rising scale
        for n in range(1, 3):
            marks[n] = min(max(marks[n], marks[n - 1] + LEAST_STEP), 0.99 + 0.001 * n)
        cosines = (-1.0, *marks, 1.0)
        bound = unlike.mean() + RELEVANT_DEVIATIONS * unlike.std()
        return Scale(cosines, DEFAULT.values, float(np.interp(bound, cosines, DEFAULT.values)))
