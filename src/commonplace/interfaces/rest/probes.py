"""Probes for operators: health, readiness, metrics. Without a token they state no counts."""

from fastapi import APIRouter, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from typing_extensions import TypedDict

from commonplace.core.services import Services
from commonplace.interfaces.http.metrics import Meters
from commonplace.interfaces.rest.routes import Problem
from commonplace.model import JobState
from commonplace.model.jobs import EMBED

router = APIRouter(tags=["probes"])

WAITING = (
    "Semantic search is incomplete: items are waiting for their vectors. "
    "Until then they are found by keyword only."
)


class Health(TypedDict):
    status: str


class Readiness(Health):
    embedder: str
    degraded: str | None


@router.get("/healthz", summary="Check that the process is up")
async def healthz() -> Health:
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="Check that the server can handle requests",
    responses={503: {"model": Problem, "description": "`storage_failed`"}},
)
async def readyz(request: Request) -> Readiness:
    """`embedder` is `loading`, `loaded` or `failed` (search then uses keywords only). `degraded` is
    null, or says that items wait for vectors; search and `/metrics` tell token holders how many."""
    services: Services = request.app.state.services
    await services.store.ping()
    waiting, _ = await services.store.jobs.count_open(EMBED)
    return {
        "status": "ready",
        "embedder": request.app.state.embedder,
        "degraded": WAITING if waiting else None,
    }


@router.get(
    "/metrics",
    summary="Export metrics for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {}}},
        401: {"model": Problem, "description": "`unauthorized`"},
    },
)
async def metrics(request: Request) -> Response:
    """Requires a whole-library token, unless `COMMONPLACE_METRICS_OPEN` is set."""
    meters: Meters = request.app.state.meters
    counts = await request.app.state.services.store.jobs.counts()
    for state in JobState:
        meters.jobs.labels(state).set(counts.get(state, 0))
    return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)
