"""Webhooks of transcription services: a reason to poll them at once, and nothing more."""

import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from commonplace.errors import Invalid, Unauthorized
from commonplace.ports import Wake
from commonplace.settings import Settings


@dataclass(eq=False)
class Webhooks:
    _wake: Wake
    _settings: Settings

    async def receive(
        self, provider: str, secret: str, body: Callable[[], Awaitable[bytes]]
    ) -> None:
        """Wake the jobs that wait for transcripts. The message's content is not trusted."""
        known, given = self._settings.webhook_secret.encode(), secret.encode("utf-8", "replace")
        if (
            not known
            or provider != self._settings.transcriber
            or not hmac.compare_digest(known, given)
        ):
            raise Unauthorized("Only the configured transcription service may call this.")
        # the body is read only after the sender is checked
        if finished_job(await body()) is not None:
            await self._wake.signal()


def finished_job(body: bytes) -> str | None:
    """Return the id of a finished or failed job; None for other messages."""
    try:
        news: Any = json.loads(body)
        if "transcript_id" in news:  # AssemblyAI
            return str(news["transcript_id"]) if news["status"] in ("completed", "error") else None
        done = news["event"] in ("transcription.success", "transcription.error")  # Gladia
        return str((news.get("payload") or news)["id"]) if done else None
    except (ValueError, TypeError, KeyError):
        raise Invalid("This is not a message of a known transcription service.") from None
