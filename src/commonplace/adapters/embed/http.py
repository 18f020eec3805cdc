"""One way to ask an embedding service over HTTP: retries, time-outs, and reasons that a person understands."""

from collections.abc import Sequence
from time import monotonic

import anyio
import httpx
import numpy as np

from commonplace.errors import ConfigurationError, EmbeddingFailed
from commonplace.model import Json
from commonplace.ports import Vectors

BULK, SEARCH = 60.0, 5.0            # seconds of patience: a job can wait, somebody who searches cannot
PAUSES: Sequence[float] = (0.5, 1, 2, 4)
TIMEOUT = 30.0


class Service:
    """`pauses` are the seconds between attempts; a Retry-After header overrules them."""

    def __init__(self, name: str, url: str, key: str, *, pauses: Sequence[float], timeout: float) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"COMMONPLACE_EMBEDDER_URL must begin with http:// or https://, not {url!r}.")
        self._name, self._key, self._pauses, self._timeout = name, key, pauses, timeout
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.AsyncClient(base_url=url, headers=headers)

    async def post(self, path: str, body: Json, patience: float) -> Json:
        """The answer's JSON. An attempt that could not begin within the patience is not made."""
        deadline = monotonic() + patience
        pauses = iter(self._pauses)
        while True:
            pause = next(pauses, None)
            try:
                response = await self._client.post(path, json=body, timeout=min(self._timeout, patience))
            except httpx.TimeoutException:
                wait, failure = pause, self._failed("did not answer in time")
            except httpx.TransportError as error:
                wait, failure = pause, self._failed(f"cannot be reached ({error or type(error).__name__})")
            else:
                if response.is_success:
                    return self._json(response)
                wait, failure = _wait(response, pause), self._refused(response)
            if wait is None or monotonic() + wait > deadline:
                raise failure
            await anyio.sleep(wait)

    def entries(self, answer: Json, count: int) -> list[Json]:
        """What is under `data`, in the order of its `index`: one entry for each thing asked."""
        try:
            ordered: list[Json] = sorted(answer["data"], key=lambda entry: int(entry["index"]))
            places = [int(entry["index"]) for entry in ordered]
        except (KeyError, TypeError, ValueError):
            raise self._failed("gave an answer that is not understood") from None
        if places != list(range(count)):
            raise self._failed(f"gave {len(places)} answers to {count} questions")
        return ordered

    def vectors(self, answer: Json, count: int, dimensions: int) -> Vectors:
        try:
            vectors: Vectors = np.array([entry["embedding"] for entry in self.entries(answer, count)], np.float32)
        except (KeyError, TypeError, ValueError):
            raise self._failed("gave an answer that is not understood") from None
        if vectors.shape != (count, dimensions):
            raise self._failed(f"gave vectors of {vectors.shape[-1]} numbers, not {dimensions}; "
                               "check COMMONPLACE_EMBEDDER_MODEL and COMMONPLACE_EMBEDDER_DIMENSIONS")
        if not np.isfinite(vectors).all():
            raise self._failed("gave numbers that are not finite")
        return vectors

    async def close(self) -> None:
        await self._client.aclose()

    def _json(self, response: httpx.Response) -> Json:
        try:
            answer = response.json()
        except ValueError:
            raise self._failed("gave an answer that is not JSON") from None
        return answer if isinstance(answer, dict) else {}

    def _refused(self, response: httpx.Response) -> EmbeddingFailed:
        status = response.status_code
        if status in (401, 403):
            return self._failed(f"refused the key (HTTP {status}); check COMMONPLACE_EMBEDDER_KEY")
        if status == 429:
            return self._failed("is over its rate limit (HTTP 429)")
        if status >= 500:
            return self._failed(f"is out of order (HTTP {status})")
        said = response.text.replace(self._key, "***") if self._key else response.text
        return self._failed(f"refused the request (HTTP {status}: {said[:300]})")

    def _failed(self, what: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"The {self._name} embedding service {what}.")


def _wait(response: httpx.Response, pause: float | None) -> float | None:
    """Seconds until another attempt makes sense; None: never."""
    if pause is None or not (response.status_code in (408, 429) or response.status_code >= 500):
        return None
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return pause
