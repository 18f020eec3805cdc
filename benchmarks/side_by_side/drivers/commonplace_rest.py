from drivers import commonplace_mcp


class Driver(commonplace_mcp.Driver):
    """The same server by its other door."""

    over = "REST"

    def _keep(self, token: str, note: dict) -> dict:
        return self._rest("POST", "/api/v1/ingest", note, token)

    def _find(self, token: str, question: dict) -> dict:
        found = self._rest("POST", "/api/v1/search", question, token)
        hits = [{"title": hit["disk_title"]} for hit in found["results"]]
        return {"hits": hits, "degraded": found["degraded"]}

    def _read(self, item: str) -> dict:
        return self._rest("GET", f"/api/v1/items/{item}")
