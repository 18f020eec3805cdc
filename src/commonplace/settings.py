"""Every setting, declared once: name, type, default, help. docs/reference/settings.md is made from this."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import ip_network
from math import inf
from pathlib import Path
from typing import Any, get_type_hints

from commonplace.errors import ConfigurationError

PREFIX = "COMMONPLACE_"


def setting(default: Any, help: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"help": help, "secret": secret})


def _default_data_dir() -> Path:
    return Path.home() / ".local" / "share" / "commonplace"


@dataclass(frozen=True, slots=True)
class Settings:
    data_dir: Path = field(
        default_factory=_default_data_dir,
        metadata={"help": "Folder of the database, the built model and uploads.", "secret": False},
    )
    host: str = setting("127.0.0.1", "Address that `serve` listens on.")
    port: int = setting(8642, "Port that `serve` listens on.")
    public_url: str = setting(
        "", "Address that clients reach the server by, when it is not http://host:port."
    )
    allowed_hosts: str = setting(
        "",
        "Further Host names that requests may name, by commas (loopback and public_url are allowed already).",
    )
    trusted_proxies: str = setting(
        "",
        "Addresses or networks of proxies, by commas, whose X-Forwarded-For and X-Forwarded-Proto are believed; "
        "empty: nobody's.",
    )
    max_connections: int = setting(
        1000,
        "Open HTTP connections, 200 of them from one address (trusted proxies aside); 0: no limit.",
    )
    metrics_open: bool = setting(
        False, "Whether /metrics answers without a token, for scrapers inside a cluster."
    )
    database_url: str = setting(
        "",
        "postgresql://... to keep everything in Postgres; empty: SQLite in the data folder.",
        secret=True,
    )
    database_schema: str = setting("commonplace", "Postgres schema that holds the tables.")
    checkpoint_sections: int = setting(
        10_000,
        "Sections from which on what is searched of a library is also kept in a file of the data folder, so that "
        "the first search after a start need not read it all; 0: never.",
    )
    redis_url: str = setting(
        "", "redis://... to share limits between servers and wake their workers.", secret=True
    )

    embedder: str = setting("local", "local, static, voyage, openai or fastembed.")
    embedder_model: str = setting("", "Model name, where the embedder has several.")
    embedder_url: str = setting(
        "", "Base URL of the embedding service (OpenAI-compatible servers, proxies)."
    )
    embedder_key: str = setting("", "API key of the embedding service.", secret=True)
    embedder_dimensions: int = setting(0, "Vector length to ask for; 0: the model's own.")
    embedder_threads: int = setting(
        0, "Threads that the local embedder computes with; 0: one per core."
    )

    semantic_weight: float = setting(0.7, "Weight of the semantic score in hybrid search.")
    keyword_weight: float = setting(0.3, "Weight of the keyword score in hybrid search.")

    fetch_allow_hosts: str = setting(
        "",
        "Hosts (host or host:port, by commas) that may be fetched from although they lie in a private network.",
    )
    fetch_max_mb: int = setting(64, "Largest page or document that is fetched, in MB.")
    media_max_mb: int = setting(2048, "Largest recording that is fetched, in MB.")
    fetch_timeout: float = setting(
        20.0, "Seconds that a web server may take until its answer begins."
    )

    transcriber: str = setting("local", "local, assemblyai or gladia: what writes down speech.")
    transcriber_model: str = setting(
        "",
        "Model of the transcriber; for local the folder of a Whisper model in CTranslate2's format, "
        "or its name in models/ of the data folder.",
    )
    transcriber_url: str = setting(
        "", "Base URL of the transcription service, when it is not the service's own."
    )
    transcriber_key: str = setting("", "API key of the transcription service.", secret=True)
    transcriber_threads: int = setting(
        0, "Threads that the local transcriber computes with; 0: one per core, four at most."
    )

    tier: str = setting(
        "self-hosted",
        "Name of the tier that people of this server have, as told when a quota is used up.",
    )
    transcription_minutes: int = setting(
        0, "Minutes of speech that a person may have written down in a month; 0: no cap."
    )

    transformer: str = setting(
        "local", "local or anthropic: what makes summaries, key points and tags for auto_transform."
    )
    anthropic_model: str = setting("claude-haiku-5-5", "Model that the anthropic transformer asks.")
    anthropic_url: str = setting(
        "https://api.anthropic.com", "Base URL of the Messages API (proxies, gateways)."
    )
    anthropic_key: str = setting("", "API key of the Messages API.", secret=True)

    feed_minutes: int = setting(60, "Minutes between two visits to a feed that is subscribed to.")
    blobs_url: str = setting(
        "",
        "s3://bucket/folder (also gs://, az://) to keep uploaded files in an object store; empty: in the data folder. "
        "Credentials come by the store's usual variables (AWS_ACCESS_KEY_ID ...).",
    )
    upload_max_mb: int = setting(2000, "Largest file that can be uploaded, in MB.")
    keep_originals: bool = setting(
        False, "Whether files stay after they were read; otherwise only their text is kept."
    )

    workers: int = setting(1, "Job workers inside `serve`; 0 leaves jobs to `commonplace worker`.")
    rate_requests_per_minute: int = setting(100, "HTTP requests a minute per key; 0: no limit.")
    rate_reads_per_hour: int = setting(1000, "Read tools and GETs an hour per token; 0: no limit.")
    rate_writes_per_hour: int = setting(60, "Writes an hour per token; 0: no limit.")
    rate_deletes_per_hour: int = setting(
        30, "Deletes, and as many uploads, an hour per token; 0: no limit."
    )
    jwt_secret: str = setting(
        "",
        "HS256 secret (32 bytes or more) that makes JWTs with `sub`, `org` and `exp` valid; empty: only tokens are accepted.",
        secret=True,
    )
    log_level: str = setting("warning", "debug, info, warning or error.")

    @property
    def proxies(self) -> list[str]:
        return [each.strip() for each in self.trusted_proxies.split(",") if each.strip()]

    @property
    def webhook_secret(self) -> str:
        """What a transcription service proves itself by when it reports; "" when none is set up that could."""
        key = self.transcriber_key.encode()
        return (
            hmac.new(key, b"webhook", hashlib.sha256).hexdigest() if key and self.public_url else ""
        )

    @classmethod
    def from_env(cls, env: Mapping[str, str], **overrides: Any) -> "Settings":
        """Read COMMONPLACE_*; an unknown name or a value of the wrong type stops the start with a sentence."""
        types = get_type_hints(cls)
        values: dict[str, Any] = {}
        for f in fields(cls):
            raw = env.get(PREFIX + f.name.upper())
            if raw is not None and raw != "":
                values[f.name] = _parse(PREFIX + f.name.upper(), types[f.name], raw)
        values |= {k: v for k, v in overrides.items() if v is not None}
        known = {PREFIX + f.name.upper() for f in fields(cls)} | {PREFIX + "TOKEN"}
        unknown = sorted(k for k in env if k.startswith(PREFIX) and k not in known)
        if unknown:
            alike = get_close_matches(unknown[0], known, 1)
            hint = (
                f"did you mean {alike[0]}?"
                if alike
                else "docs/reference/settings.md lists the known ones."
            )
            raise ConfigurationError(f"Unknown setting {unknown[0]}; {hint}")
        settings = cls(**values)
        settings._require_sense()
        return settings

    def _require_sense(self) -> None:
        rules = {
            "PORT must be at most 65535": self.port <= 65535,
            "PUBLIC_URL must begin with http:// or https://": _begins(
                self.public_url, "http://", "https://"
            ),
            "REDIS_URL must begin with redis://, rediss:// or unix://": _begins(
                self.redis_url, "redis://", "rediss://", "unix://"
            ),
            "TRUSTED_PROXIES must be addresses or networks, such as 127.0.0.1 or 10.0.0.0/8": all(
                map(_is_network, self.proxies)
            ),
            "JWT_SECRET must have 32 bytes or more": not self.jwt_secret
            or len(self.jwt_secret.encode()) >= 32,
            "SEMANTIC_WEIGHT and COMMONPLACE_KEYWORD_WEIGHT must not both be 0": self.semantic_weight
            + self.keyword_weight
            > 0,
        }
        for rule, holds in rules.items():
            if not holds:
                raise ConfigurationError(f"{PREFIX}{rule}.")


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _begins(url: str, *schemes: str) -> bool:
    return not url or url.startswith(schemes)


def _parse(name: str, kind: type, raw: str) -> Any:
    if kind is bool:
        return _parse_bool(name, raw)
    if kind not in (int, float):
        return Path(raw).expanduser() if kind is Path else raw
    try:
        value = kind(raw)
    except ValueError:
        value = None
    if value is None or not 0 <= value < inf:
        wanted = "a whole number" if kind is int else "a number"
        raise ConfigurationError(f"{name} must be {wanted} of 0 or more, not {raw!r}.")
    return value


def _parse_bool(name: str, raw: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if raw.lower() not in known:
        raise ConfigurationError(f"{name} must be true or false, not {raw!r}.")
    return known[raw.lower()]
