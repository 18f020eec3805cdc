"""What transcription services tell an address of ours when they are done. Only the id is taken from it: anybody can send one."""

import json
from typing import Any

from commonplace.errors import Invalid


def finished_job(body: bytes) -> str | None:
    """The id of the job that is done or has failed; None for news of another kind. Ask the service itself for the rest."""
    try:
        news: Any = json.loads(body)
        if "transcript_id" in news:   # AssemblyAI
            return str(news["transcript_id"]) if news["status"] in ("completed", "error") else None
        done = news["event"] in ("transcription.success", "transcription.error")   # Gladia
        return str((news.get("payload") or news)["id"]) if done else None
    except (ValueError, TypeError, KeyError):
        raise Invalid("This is not a message of a transcription service.") from None
