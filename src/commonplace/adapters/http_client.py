"""A client for JSON services over HTTP: retries, timeouts and readable errors."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import anyio
import httpx

from commonplace.errors import CommonplaceError, ConfigurationError
from commonplace.model import Json

PAUSES: Sequence[float] = (0.5, 1, 2, 4)
TIMEOUT = 30.0
# Makes an error from a sentence and the HTTP status, if there was one.
Failure = Callable[[str, int | None], CommonplaceError]


class HttpService:
    """A service over HTTP.

    `setting`: the prefix of its settings' names, for messages.
    `pauses`: the seconds between attempts, unless the response has a Retry-After header.
    """

    def __init__(
        self,
        name: str,
        url: str,
        key: str,
        *,
        headers: Mapping[str, str],
        setting: str,
        failure: Failure,
        pauses: Sequence[float] = PAUSES,
        timeout: float = TIMEOUT,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"{setting}_URL must begin with http:// or https://, not {url!r}."
            )
        self._service, self._key, self._setting, self._failure = name, key, setting, failure
        self._pauses, self._timeout = pauses, timeout
        self._client = httpx.AsyncClient(base_url=url, headers=headers if key else {})

    async def ask(
        self,
        method: str,
        path: str,
        seconds: float,
        body: Callable[[], Json] = dict,
        *,
        repeatable: bool = True,
    ) -> Json:
        """Send a request, with retries that begin within `seconds`, and return the JSON.

        `body` makes httpx's arguments for each attempt. A request that is not `repeatable` is
        retried only when the service has certainly not begun to process it.
        """
        deadline = monotonic() + seconds
        pauses = iter(self._pauses)
        while True:
            pause = next(pauses, None)
            try:
                response = await self._client.request(
                    method, path, timeout=min(self._timeout, seconds), **body()
                )
            except httpx.TransportError as error:
                untouched = isinstance(error, httpx.ConnectTimeout | httpx.ConnectError)
                failure = self.failure(
                    "did not answer in time"
                    if isinstance(error, httpx.TimeoutException)
                    else f"cannot be reached ({error or type(error).__name__})"
                )
                wait, failure.transient = pause, True
            else:
                if response.is_success:
                    return self._json(response)
                untouched = response.status_code in (429, 503, 529)
                wait, failure = _wait(response, pause), self._status_failure(response)
            if wait is None or not (repeatable or untouched) or monotonic() + wait > deadline:
                raise failure
            await anyio.sleep(wait)

    def failure(self, problem: str, status: int | None = None) -> CommonplaceError:
        return self._failure(f"The {self._service} service {problem}.", status)

    def unexpected(self) -> CommonplaceError:
        return self.failure("gave an unexpected answer")

    async def close(self) -> None:
        await self._client.aclose()

    def _json(self, response: httpx.Response) -> Json:
        try:
            answer: Any = response.json()
        except ValueError:
            raise self.failure("gave an answer that is not JSON") from None
        return answer if isinstance(answer, dict) else {}

    def _status_failure(self, response: httpx.Response) -> CommonplaceError:
        """Describe a refusal; it is transient unless the service refuses the request's content."""
        status = response.status_code
        if status in (401, 403):
            reason = f"rejected the key (HTTP {status}); check {self._setting}_KEY"
        elif status == 429:
            reason = "is over its rate limit (HTTP 429)"
        elif status >= 500:
            reason = f"is out of order (HTTP {status})"
        else:
            text = response.text.replace(self._key, "***") if self._key else response.text
            reason = f"refused the request (HTTP {status}: {text[:300]})"
        failure = self.failure(reason, status)
        failure.transient = status in (401, 403, 408, 429) or status >= 500
        return failure


def _wait(response: httpx.Response, pause: float | None) -> float | None:
    """Return the seconds until the next attempt; None if there should be none."""
    if pause is None or not (response.status_code in (408, 429) or response.status_code >= 500):
        return None
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return pause
