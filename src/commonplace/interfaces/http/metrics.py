"""Metrics of HTTP requests, by route."""

import logging
import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commonplace import logs
from commonplace.interfaces.http.gate import headers_of
from commonplace.telemetry import operation

log = logging.getLogger(__name__)

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ID = "x-request-id"
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Meters:
    """The server's own registry, so that several servers in one process do not count together."""

    def __init__(self, oauth: Mapping[tuple[str, str], int]) -> None:
        """`oauth` counts what becomes of OAuth requests, by kind and result."""
        self.registry = CollectorRegistry()
        self.registry.register(_OAuthCounts(oauth))
        self.requests = Counter(
            "commonplace_http_requests_total",
            "HTTP requests.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "commonplace_http_request_seconds",
            "Time to answer HTTP requests.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.jobs = Gauge("commonplace_jobs", "Jobs by state.", ["state"], registry=self.registry)


class _OAuthCounts(Collector):
    def __init__(self, counts: Mapping[tuple[str, str], int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[CounterMetricFamily]:
        grants = CounterMetricFamily(
            "commonplace_oauth_grants", "Decisions about OAuth clients.", labels=["result"]
        )
        tokens = CounterMetricFamily(
            "commonplace_oauth_tokens", "OAuth token requests.", labels=["grant_type", "result"]
        )
        for (kind, result), count in self._counts.items():
            if kind == "consent":
                grants.add_metric([result], count)
            else:
                tokens.add_metric([kind, result], count)
        yield grants
        yield tokens


class Metered:
    """ASGI middleware that counts and times every request by its route's template, and gives it
    an id: the client's X-Request-Id, if it is one."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 0, time.perf_counter()
        headers = headers_of(scope)
        number = logs.start_request(headers.get(ID, ""))
        parent = {"traceparent": headers.get("traceparent", "")}

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (ID.encode(), number.encode())]
            await send(message)

        with operation("http", scope["method"], {}, parent) as seen:
            try:
                await self._app(scope, receive, send_noting)
            finally:
                method = scope["method"] if scope["method"] in METHODS else "other"
                route, seconds = _route(scope), time.perf_counter() - began
                self._meters.requests.labels(method, route, str(status or "none")).inc()
                self._meters.seconds.labels(route).observe(seconds)
                log.info("%s %s %s in %.0f ms", method, route, status or "-", 1000 * seconds)
                seen |= {
                    "name": f"{method} {route}",
                    "http.request.method": method,
                    "http.route": route,
                    "http.response.status_code": status,
                    "once": {"commonplace.request_id": number},
                }
                if status >= 500:
                    seen["error.type"] = str(status)


def _route(scope: Scope) -> str:
    """Return the route's path; refused requests share one name, so labels stay bounded."""
    if "route" in scope:
        return str(scope["route"].path)
    reached = "endpoint" in scope and not scope["path_params"]  # a fixed path, such as /mcp
    return str(scope["path"]) if reached else "refused"
