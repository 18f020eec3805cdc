"""Traces and metrics for a collector, and a log that programs read: names and durations, nothing that people wrote."""

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from commonplace import telemetry
from tests.interfaces.command import Commands
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector(ThreadingHTTPServer):
    """Takes what is sent over OTLP/HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.bodies: list[tuple[str, bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for path, body in self.bodies
            if path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        return {
            metric.name: metric
            for path, body in self.bodies
            if path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


class _Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            raise AssertionError("not asked for")
        self.server.bodies.append((self.path, body))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


async def test_requests_calls_transactions_and_jobs_are_traced_without_content(
    data_dir: Path,
    either_engine: dict[str, str],
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(telemetry.ENDPOINT, collector.url)
    async with open_house(data_dir, **either_engine) as house:
        with telemetry.exporting("1.2.3"):
            await use(house)
    spans = collector.spans
    by_name = {span.name: span for span in spans}
    search = by_name["POST /api/v1/search"]
    assert search.trace_id.hex() == TRACE and search.parent_span_id.hex() == SPAN
    assert attributes(search) == {
        "http.request.method": "POST",
        "http.route": "/api/v1/search",
        "http.response.status_code": 200,
        "commonplace.request_id": "my-request.1",
    }
    of_trace = {span.name: span for span in spans if span.trace_id.hex() == TRACE}
    assert of_trace["Search.search"].parent_span_id == search.span_id
    assert of_trace["sections.search"].parent_span_id == of_trace["Search.search"].span_id
    assert attributes(of_trace["sections.search"])["db.operation.name"] == "sections.search"
    assert {"POST /mcp", "job embed", "GET /api/v1/items/{item_id}"} <= by_name.keys()
    missed = next(span for span in spans if attributes(span).get("error.type") == "NotFound")
    assert missed.status.code == 2 and not missed.status.message
    assert not any(span.events for span in spans)
    assert {
        "http.server.request.duration",
        "db.client.operation.duration",
        "commonplace.call.duration",
        "commonplace.job.duration",
    } <= collector.metrics.keys()
    sent = b"".join(body for _, body in collector.bodies)
    for secret in ("zebra", "okapi", house.tokens["owner"], house.owner.library_id, "sk_", MISSING):
        assert secret.encode() not in sent, secret
    assert b"commonplace" in sent and b"1.2.3" in sent


MISSING = "00000000-0000-7000-8000-000000000000"


async def use(house: House) -> None:
    async with house.client("owner") as owner:
        body = {"kind": "text", "title": "A zebra", "text": "The zebra grazes by the river."}
        assert (await owner.post("/api/v1/ingest", json=body)).is_success
        await house.app.store.jobs.enqueue_embedding("another/1")
        while await house.app.worker.run_once():
            pass
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Request-Id": "my-request.1"}
        found = await owner.post("/api/v1/search", json={"query": "zebra"}, headers=headers)
        assert found.headers["x-request-id"] == "my-request.1"
        assert (await owner.get(f"/api/v1/items/{MISSING}")).status_code == 404
        await call_tool(owner, "search", {"query": "okapi"})


async def test_every_answer_has_an_id(house: House) -> None:
    async with house.client() as nobody:
        ids = set()
        for given in ("", "no spaces", "x" * 129, "line\u00ff"):
            answer = await nobody.get(
                "/api/v1/items", headers={b"X-Request-Id": given.encode("latin-1")}
            )
            assert answer.status_code == 401
            ids.add(answer.headers["x-request-id"])
        assert len(ids) == 4 and all(len(each) == 32 for each in ids)


@pytest.mark.parametrize("wrong", ["grpc", "nobody"])
async def test_what_is_meant_for_others_is_no_reason_to_fail(
    wrong: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(telemetry.ENDPOINT, "http://127.0.0.1:9")
    if wrong == "grpc":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    else:
        monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with telemetry.exporting("1"), telemetry.operation("db", "x", {}):
        assert "No traces and metrics are sent" in caplog.text


def test_the_log_is_json_with_the_id_of_the_request(data_dir: Path, collector: Collector) -> None:
    cli = Commands(data_dir, log_level="info", log_format="json")
    process = cli.start("serve", "--port", "0", "--json", extra={telemetry.ENDPOINT: collector.url})
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"]
    answer = httpx.get(f"{address}/api/v1/items?secret=zebra", headers={"X-Request-Id": "abc-1"})
    assert answer.status_code == 401
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    [own] = [line for line in lines if line.get("request_id") == "abc-1"]
    assert own["message"].startswith("GET refused 401 in ") and own["level"] == "info"
    assert "zebra" not in log
    assert any(span.name == "GET refused" for span in collector.spans)
    assert "text or json" in Commands(data_dir, log_format="xml").fails("list")
