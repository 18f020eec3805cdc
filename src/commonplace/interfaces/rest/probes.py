"""For operators: is it up, is it ready, how much does it do. Nothing of any library is told without a token, no counts either."""

import time

from fastapi import APIRouter, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import TypedDict

from commonplace.core.ingest.embedding import EMBED
from commonplace.interfaces.http.gate import Services
from commonplace.interfaces.rest.routes import Problem
from commonplace.model import JobState

router = APIRouter(tags=["probes"])

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
WAITING = "Meaning search is incomplete: items are waiting for their vectors; until then they are found by words only."
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Meters:
    """The server's own registry, so that several servers in one process do not count together."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
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


class Metered:
    """ASGI middleware that counts and times every request by its route's template."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = "none", time.perf_counter()

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            route = _route(scope)
            self._meters.requests.labels(method, route, status).inc()
            self._meters.seconds.labels(route).observe(time.perf_counter() - began)


def _route(scope: Scope) -> str:
    """Refused requests have no route: one name for all, or anybody could make up new ones without end."""
    if "route" in scope:
        return str(scope["route"].path)
    reached = "endpoint" in scope and not scope["path_params"]  # a fixed path, such as /mcp
    return str(scope["path"]) if reached else "refused"


class Health(TypedDict):
    status: str


class Readiness(Health):
    embedder: str
    degraded: str | None


@router.get("/healthz", summary="Is the process up?")
async def healthz() -> Health:
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="Can it serve?",
    responses={503: {"model": Problem, "description": "`storage_failed`"}},
)
async def readyz(request: Request) -> Readiness:
    """`embedder`: loading, loaded, or failed (then searches go by words alone). `degraded`: null, or a sentence that says that
    items wait for their vectors. How many, and why, is told to those who have a token, by search and `/metrics`."""
    services: Services = request.app.state.services
    await services.store.ping()
    waiting, _ = await services.store.jobs.waiting(EMBED)
    return {
        "status": "ready",
        "embedder": request.app.state.embedder,
        "degraded": WAITING if waiting else None,
    }


@router.get(
    "/metrics",
    summary="Counts and times for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}},
        401: {"model": Problem, "description": "`unauthorized`"},
    },
)
async def metrics(request: Request) -> Response:
    """Takes a token for the whole library, unless `COMMONPLACE_METRICS_OPEN` is set."""
    meters: Meters = request.app.state.meters
    counts = await request.app.state.services.store.jobs.counts()
    for state in JobState:
        meters.jobs.labels(state).set(counts.get(state, 0))
    return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)
