"""What transcription services tell an address of ours when they are done: reason to ask them at once, and nothing more."""

import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from commonplace.errors import Invalid, Unauthorized
from commonplace.ports import Wake
from commonplace.settings import Settings


class Webhooks:
    def __init__(self, wake: Wake, settings: Settings) -> None:
        self._wake = wake
        self._settings = settings

    async def receive(
        self, provider: str, secret: str, body: Callable[[], Awaitable[bytes]]
    ) -> None:
        """Whoever waits for a transcript asks for it now. What is in the message is not believed, whoever sent it."""
        known, given = self._settings.webhook_secret.encode(), secret.encode("utf-8", "replace")
        if (
            not known
            or provider != self._settings.transcriber
            or not hmac.compare_digest(known, given)
        ):
            raise Unauthorized("Only the transcription service that is set up here may send this.")
        if finished_job(await body()) is not None:  # not read before it is known who sends it
            await self._wake.signal()


def finished_job(body: bytes) -> str | None:
    """The id of the job that is done or has failed; None for news of another kind."""
    try:
        news: Any = json.loads(body)
        if "transcript_id" in news:  # AssemblyAI
            return str(news["transcript_id"]) if news["status"] in ("completed", "error") else None
        done = news["event"] in ("transcription.success", "transcription.error")  # Gladia
        return str((news.get("payload") or news)["id"]) if done else None
    except (ValueError, TypeError, KeyError):
        raise Invalid("This is not a message of a transcription service.") from None
