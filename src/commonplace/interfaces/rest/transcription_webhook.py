"""Where transcription services report that they are done."""

from starlette.requests import Request
from starlette.responses import Response

from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.rest.routes import NamedRoute


async def _receive(request: Request) -> Response:
    """Take a report. Only the service that was given the address has the secret for it."""
    secret = request.query_params.get("secret", "")  # Gladia sends no header of ours
    given = request.headers.get("x-commonplace-secret", secret)
    webhooks = request.app.state.services.transcription_webhooks
    await webhooks.receive(request.path_params["provider"], given, request.body)
    return Json({"ok": True})


ROUTES = [NamedRoute("/api/v1/webhooks/transcription/{provider}", _receive, methods=["POST"])]
