"""One way to ask a service over HTTP: retries, time-outs, and reasons that a person understands."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import anyio
import httpx

from commonplace.errors import CommonplaceError, ConfigurationError
from commonplace.model import Json

PAUSES: Sequence[float] = (0.5, 1, 2, 4)
TIMEOUT = 30.0
Failure = Callable[
    [str, int | None], CommonplaceError
]  # of a sentence, and the HTTP status where there was one


class Service:
    """`setting` begins the names of its settings; `pauses` are the seconds between attempts, unless it says Retry-After."""

    def __init__(
        self,
        name: str,
        url: str,
        key: str,
        *,
        headers: Mapping[str, str],
        setting: str,
        failure: Failure,
        pauses: Sequence[float],
        timeout: float,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"{setting}_URL must begin with http:// or https://, not {url!r}."
            )
        self._name, self._key, self._setting, self._failure = name, key, setting, failure
        self._pauses, self._timeout = pauses, timeout
        self._client = httpx.AsyncClient(base_url=url, headers=headers if key else {})

    async def ask(
        self,
        method: str,
        path: str,
        patience: float,
        body: Callable[[], Json] = dict,
        *,
        repeatable: bool = True,
    ) -> Json:
        """The answer's JSON. An attempt that could not begin within the patience is not made.

        `body` makes httpx's arguments anew for each attempt. What is not `repeatable` is asked again only when the
        service has surely not begun with it.
        """
        deadline = monotonic() + patience
        pauses = iter(self._pauses)
        while True:
            pause = next(pauses, None)
            try:
                response = await self._client.request(
                    method, path, timeout=min(self._timeout, patience), **body()
                )
            except httpx.TimeoutException as error:
                untouched = isinstance(error, httpx.ConnectTimeout)
                wait, failure = pause, _mark_transient(self.failed("did not answer in time"))
            except httpx.TransportError as error:
                untouched = isinstance(error, httpx.ConnectError)
                wait, failure = (
                    pause,
                    _mark_transient(
                        self.failed(f"cannot be reached ({error or type(error).__name__})")
                    ),
                )
            else:
                if response.is_success:
                    return self._json(response)
                untouched = response.status_code in (429, 503, 529)
                wait, failure = (
                    _wait(response, pause),
                    _mark_transient(self._refused(response), response.status_code),
                )
            if wait is None or not (repeatable or untouched) or monotonic() + wait > deadline:
                raise failure
            await anyio.sleep(wait)

    def failed(self, what: str, status: int | None = None) -> CommonplaceError:
        return self._failure(f"The {self._name} service {what}.", status)

    def puzzled(self) -> CommonplaceError:
        return self.failed("gave an answer that is not understood")

    async def close(self) -> None:
        await self._client.aclose()

    def _json(self, response: httpx.Response) -> Json:
        try:
            answer: Any = response.json()
        except ValueError:
            raise self.failed("gave an answer that is not JSON") from None
        return answer if isinstance(answer, dict) else {}

    def _refused(self, response: httpx.Response) -> CommonplaceError:
        status = response.status_code
        if status in (401, 403):
            return self.failed(
                f"refused the key (HTTP {status}); check {self._setting}_KEY", status
            )
        if status == 429:
            return self.failed("is over its rate limit (HTTP 429)", status)
        if status >= 500:
            return self.failed(f"is out of order (HTTP {status})", status)
        said = response.text.replace(self._key, "***") if self._key else response.text
        return self.failed(f"refused the request (HTTP {status}: {said[:300]})", status)


def _mark_transient(error: CommonplaceError, status: int = 503) -> CommonplaceError:
    """Mark the failure of a service that is down, over its limit or without its key, not that of one that refuses a text."""
    error.transient = status in (401, 403, 408, 429) or status >= 500
    return error


def _wait(response: httpx.Response, pause: float | None) -> float | None:
    """Seconds until another attempt makes sense; None: never."""
    if pause is None or not (response.status_code in (408, 429) or response.status_code >= 500):
        return None
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return pause
