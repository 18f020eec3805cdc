"""The log: lines for people, or JSON with the id of the request."""

import json
import logging
import re
import secrets
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

from commonplace.errors import ConfigurationError

LEVELS = ("debug", "info", "warning", "error")
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

request_id: ContextVar[str] = ContextVar("request_id", default="")


def start_request(given: str) -> str:
    """Return the id of a request: that of its header if it is one, else a new one."""
    chosen = given if _ID.fullmatch(given) else secrets.token_hex(16)
    request_id.set(chosen)
    return chosen


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get() or None,
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        return json.dumps(
            {name: value for name, value in line.items() if value is not None}, ensure_ascii=False
        )


def configure(level: str, form: str) -> None:
    """Log to standard error."""
    if level.lower() not in LEVELS:
        raise ConfigurationError(
            f"COMMONPLACE_LOG_LEVEL must be debug, info, warning or error, not {level!r}."
        )
    if form not in ("text", "json"):
        raise ConfigurationError(f"COMMONPLACE_LOG_FORMAT must be text or json, not {form!r}.")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Json()
        if form == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler])
