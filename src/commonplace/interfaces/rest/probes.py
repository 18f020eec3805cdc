"""Probes for operators: health, readiness, metrics. Without a token they state no counts."""

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from commonplace.core.services import Services
from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.http.metrics import Meters
from commonplace.interfaces.rest.routes import NamedRoute
from commonplace.model import EMBED, JobState

WAITING = (
    "Semantic search is incomplete: items are waiting for their vectors. "
    "Until then they are found by keyword only."
)


async def healthz(request: Request) -> Response:
    """Check that the process is up."""
    return Json({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Check that the server can handle requests. `embedder` is `loading`, `loaded` or `failed`
    (search then uses keywords only). `degraded` is null, or says that items wait for vectors."""
    services: Services = request.app.state.services
    await services.store.ping()
    waiting = await services.store.jobs.has_open(EMBED)
    return Json(
        {
            "status": "ready",
            "embedder": request.app.state.embedder,
            "degraded": WAITING if waiting else None,
        }
    )


async def metrics(request: Request) -> Response:
    """Export metrics for Prometheus. Requires a whole-library token, unless
    `COMMONPLACE_METRICS_OPEN` is set."""
    meters: Meters = request.app.state.meters
    counts = await request.app.state.services.store.jobs.counts()
    for state in JobState:
        meters.jobs.labels(state).set(counts.get(state, 0))
    return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)


ROUTES = [
    NamedRoute("/healthz", healthz, methods=["GET"]),
    NamedRoute("/readyz", readyz, methods=["GET"]),
    NamedRoute("/metrics", metrics, methods=["GET"]),
]
