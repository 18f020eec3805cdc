"""Where services report that they are done."""

from fastapi import Request

from commonplace.interfaces.rest.routes import OK, Ok, api_router

router = api_router("webhooks")


# Not in the schema: only the service that was given the address, and the secret with it, has any
# use for it.
@router.post("/webhooks/transcription/{provider}", include_in_schema=False)
async def transcription(provider: str, request: Request, secret: str = "") -> Ok:
    given = request.headers.get("x-commonplace-secret", secret)  # Gladia sends no header of ours
    await request.app.state.services.webhooks.receive(provider, given, request.body)
    return OK
