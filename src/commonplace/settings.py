"""Every setting, declared once: name, type, default, help. `make docs` writes the reference."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_network
from math import inf
from pathlib import Path
from typing import Any, get_type_hints

from commonplace.errors import ConfigurationError

PREFIX = "COMMONPLACE_"
_ORIGIN = re.compile(r"https?://[^\s/?#@]+/?")
_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def setting(default: Any, help: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"help": help, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    data_dir: Path = field(
        default_factory=lambda: Path.home() / ".local" / "share" / "commonplace",
        metadata={"help": "Folder for the database, models and uploaded files.", "secret": False},
    )
    host: str = setting("127.0.0.1", "Address that `serve` listens on.")
    port: int = setting(8642, "Port that `serve` listens on.")
    public_url: str = setting("", "URL that clients use, if it is not http://host:port.")
    url: str = setting(
        "",
        "URL of the server for `connect` and the hooks of coding agents. Empty: the server that "
        "runs on the data folder.",
    )
    hooks: bool = setting(
        True, "off: the hooks of coding agents do nothing. `connect --hooks` installs them."
    )
    allowed_hosts: str = setting(
        "",
        "Additional host names that requests may use, separated by commas. Loopback names and the "
        "host of public_url are always allowed.",
    )
    trusted_proxies: str = setting(
        "",
        "Addresses or networks of proxies, separated by commas. X-Forwarded-For and "
        "X-Forwarded-Proto are only accepted from these.",
    )
    auth_proxy_header: str = setting(
        "",
        "Header in which a trusted proxy names, by email, the person that it has signed in, such "
        "as Remote-Email. Requests with it from other addresses are refused. Only for the web app.",
    )
    max_connections: int = setting(
        1000,
        "Maximum number of open HTTP connections, at most 200 of them from one address (trusted "
        "proxies are exempt). 0 disables both limits.",
    )
    metrics_open: bool = setting(
        False, "Serve /metrics without a token, for scrapers inside a cluster."
    )
    database_url: str = setting(
        "", "postgresql://... to use Postgres. Empty: SQLite in the data folder.", secret=True
    )
    database_read_url: str = setting(
        "", "postgresql://... of a read replica of database_url, which searches use.", secret=True
    )
    database_schema: str = setting("commonplace", "Postgres schema for the tables.")
    redis_url: str = setting(
        "", "redis://... to share rate limits between servers and wake workers.", secret=True
    )

    embedder: str = setting(
        "local", "Embedding model: local, static, onnx, voyage, openai or fastembed."
    )
    embedder_model: str = setting("", "Model name, if the embedder has several; a folder for onnx.")
    embedder_url: str = setting(
        "", "Base URL of the embedding service, such as an OpenAI-compatible server."
    )
    embedder_key: str = setting("", "API key of the embedding service.", secret=True)
    embedder_dimensions: int = setting(0, "Vector length to request. 0: the model's default.")
    threads: int = setting(
        0, "Threads of the local models. 0: one per core, at most four for speech."
    )

    semantic_weight: float = setting(
        0.7, "Weight of the semantic score in hybrid search, 0 to 1. Keywords have the rest."
    )

    fetch_allow_hosts: str = setting(
        "",
        "Hosts in private networks that may be fetched (host or host:port, separated by commas).",
    )
    archive: str = setting(
        "html",
        "html: keep pages as they were fetched, compressed, to show them and to read them anew "
        "(`commonplace reextract`). off: only their text is stored.",
    )
    keep_images: int = setting(
        0, "Megabytes of images to keep of each saved page, and show in it. 0: none."
    )
    fetch_max_mb: int = setting(64, "Maximum size of a fetched page or document, in MB.")
    media_max_mb: int = setting(2048, "Maximum size of a fetched recording, in MB.")

    transcriber: str = setting(
        "local", "Service that transcribes speech: local, assemblyai or gladia."
    )
    transcriber_model: str = setting(
        "",
        "Model of the transcriber. For local: a folder with a Whisper model in CTranslate2 format, "
        "or its name in models/ in the data folder.",
    )
    transcriber_language: str = setting(
        "",
        "Language of the recordings, such as de. Empty: the transcriber finds it out. The local "
        "default model knows English only.",
    )
    transcriber_url: str = setting(
        "", "Base URL of the transcription service, if not the default one."
    )
    transcriber_key: str = setting("", "API key of the transcription service.", secret=True)

    tier: str = setting("self-hosted", "Name of the plan shown in quota errors.")
    transcription_minutes: int = setting(
        0, "Minutes of speech that a person can transcribe per month. 0: unlimited."
    )

    model: str = setting(
        "none",
        "Language model for summaries (auto_transform), reflect and conflicts: none, anthropic, or "
        "openai for any server with OpenAI's API, such as Ollama, LM Studio or vLLM.",
    )
    model_url: str = setting(
        "",
        "Base URL of the model's service, such as http://127.0.0.1:11434/v1, if not the default.",
    )
    model_name: str = setting(
        "", "Name of the model. openai needs one; anthropic has the default claude-haiku-5-5."
    )
    model_key: str = setting("", "API key of the model's service.", secret=True)

    blobs_url: str = setting(
        "",
        "s3://bucket/folder (also gs://, az://) to store uploaded files in an object store. Empty: "
        "the data folder. Credentials come from the usual variables (AWS_ACCESS_KEY_ID ...).",
    )
    upload_max_mb: int = setting(2000, "Maximum size of an uploaded file, in MB.")
    keep_originals: bool = setting(
        True, "Keep uploaded files as long as their items. off: only their text is stored."
    )

    quota_items: int = setting(0, "Items that a library may hold, its trash included. 0: any.")
    quota_sections: int = setting(
        0, "Sections (passages) that a library may hold, its trash included. 0: any."
    )
    quota_mb: int = setting(
        0,
        "Megabytes of text and uploaded files that a library may hold, its trash included. 0: any.",
    )
    trash_days: int = setting(
        30, "Days that deleted items stay in the trash. 0: they are deleted at once."
    )
    workers: int = setting(1, "Job workers inside `serve`. 0 leaves jobs to `commonplace worker`.")
    rate_requests_per_minute: int = setting(100, "HTTP requests per minute and key. 0: unlimited.")
    rate_reads_per_hour: int = setting(
        1000, "Read tools and GET requests per hour and token. 0: unlimited."
    )
    rate_writes_per_hour: int = setting(60, "Writes per hour and token. 0: unlimited.")
    rate_graph_writes_per_hour: int = setting(
        600,
        "Graph writes per hour and token: add, remember, manage, PATCH of items. 0: unlimited; "
        "also unlimited when rate_writes_per_hour is 0.",
    )
    rate_deletes_per_hour: int = setting(
        30, "Deletes per hour and token, and separately uploads. 0: unlimited."
    )
    jwt_secret: str = setting(
        "",
        "HS256 secret of at least 32 bytes; enables JWTs with `sub`, `org` and `exp`. Empty: only "
        "tokens are accepted.",
        secret=True,
    )
    oauth_client_documents: bool = setting(
        True,
        "Accept OAuth clients whose id is the URL of a document about them, which the server "
        "fetches. off: clients register instead, for servers that cannot reach the internet.",
    )
    oauth_access_minutes: float = setting(
        60.0, "Minutes until an OAuth access token expires and the client refreshes it."
    )
    mcp_errors: str = setting(
        "jsonrpc",
        "How MCP reports errors of tools: jsonrpc, or result (tool results with isError) for agent "
        "frameworks that hide JSON-RPC errors.",
    )
    log_format: str = setting(
        "text", "Format of the log: text, or json with a line for each entry and the request's id."
    )
    log_level: str = setting("warning", "Log level: debug, info, warning or error.")

    @property
    def issuer(self) -> str:
        """The URL of this server to OAuth clients."""
        return self.public_url.rstrip("/") or f"http://127.0.0.1:{self.port}"

    @property
    def proxies(self) -> list[str]:
        return [each.strip() for each in self.trusted_proxies.split(",") if each.strip()]

    @property
    def webhook_secret(self) -> str:
        """Return the secret that authenticates webhooks of the transcription service, or ""."""
        key = self.transcriber_key.encode()
        return (
            hmac.new(key, b"webhook", hashlib.sha256).hexdigest() if key and self.public_url else ""
        )

    @classmethod
    def from_env(cls, env: Mapping[str, str], **overrides: Any) -> "Settings":
        """Read COMMONPLACE_* and reject unknown names and values of the wrong type."""
        types = {PREFIX + name.upper(): (name, kind) for name, kind in get_type_hints(cls).items()}
        values = {
            name: _parse(variable, kind, env[variable])
            for variable, (name, kind) in types.items()
            if env.get(variable)
        }
        values |= {k: v for k, v in overrides.items() if v is not None}
        known = types.keys() | {PREFIX + "TOKEN"}
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
            "PUBLIC_URL must be http:// or https:// and a host, without a path": not self.public_url
            or _ORIGIN.fullmatch(self.public_url) is not None,
            "URL must begin with http:// or https://": _begins(self.url, "http://", "https://"),
            "DATABASE_READ_URL must begin with postgresql://, and needs DATABASE_URL": _begins(
                self.database_read_url, "postgresql://", "postgres://"
            )
            and bool(self.database_url or not self.database_read_url),
            "REDIS_URL must begin with redis://, rediss:// or unix://": _begins(
                self.redis_url, "redis://", "rediss://", "unix://"
            ),
            "TRUSTED_PROXIES must be addresses or networks, such as 127.0.0.1 or 10.0.0.0/8": all(
                map(_is_network, self.proxies)
            ),
            "JWT_SECRET must have 32 bytes or more": not self.jwt_secret
            or len(self.jwt_secret.encode()) >= 32,
            "SEMANTIC_WEIGHT must be at most 1": self.semantic_weight <= 1,
            "AUTH_PROXY_HEADER must be the name of a header, such as Remote-Email": all(
                part.isalnum() and part.isascii()
                for part in self.auth_proxy_header.split("-")
                if self.auth_proxy_header
            ),
            "AUTH_PROXY_HEADER also needs COMMONPLACE_TRUSTED_PROXIES": bool(
                self.proxies or not self.auth_proxy_header
            ),
            "TRASH_DAYS must be at most 36500": self.trash_days <= 36_500,
            "OAUTH_ACCESS_MINUTES must be more than 0": self.oauth_access_minutes > 0,
            "ARCHIVE must be html or off": self.archive in ("html", "off"),
            "MCP_ERRORS must be jsonrpc or result": self.mcp_errors in ("jsonrpc", "result"),
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
        if raw.lower() not in _BOOLEANS:
            raise ConfigurationError(f"{name} must be true or false, not {raw!r}.")
        return _BOOLEANS[raw.lower()]
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
