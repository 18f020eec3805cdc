from drivers import commonplace_mcp


class Driver(commonplace_mcp.Driver):
    """The same server by its other door."""

    over = "REST"

    def _keep(self, token: str, note: dict) -> dict:
        return self._rest("POST", "/api/v1/ingest", note, token)

    def _find(self, token: str, question: dict) -> dict:
        return self._rest("POST", "/api/v1/search", question, token)

    def _read(self, item: str) -> dict:
        return self._rest("GET", f"/api/v1/items/{item}")
