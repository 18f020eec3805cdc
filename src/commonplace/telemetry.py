"""Traces and metrics over OTLP, if the standard OTEL_ variables name where to send them.

Only names, kinds, statuses and durations: no texts, addresses, ids of items or messages of errors.
"""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from commonplace.errors import ConfigurationError, extra

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_OFF = nullcontext(dict[str, Any]())

log = logging.getLogger(__name__)


def operation(
    kind: str, name: str, attributes: Mapping[str, Any], parent: Mapping[str, str] | None = None
) -> AbstractContextManager[dict[str, Any]]:
    """Record what runs inside as a span and in the metric of its kind. Yield its attributes, to
    which the caller may add; `name` among them replaces the name. `parent`: HTTP headers, which
    may name the span of the caller."""
    return _exporter.operation(kind, name, dict(attributes), parent) if _exporter else _OFF


class _Exporter:
    def __init__(self, version: str) -> None:
        if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf") != "http/protobuf":
            raise ConfigurationError("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf.")
        with extra("otel", ENDPOINT):
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._kinds = {"http": SpanKind.SERVER, "db": SpanKind.CLIENT, "job": SpanKind.CONSUMER}
        self._internal, self._error = SpanKind.INTERNAL, StatusCode.ERROR
        self._extract = TraceContextTextMapPropagator().extract
        about = {"service.version": version}
        if not os.environ.get("OTEL_SERVICE_NAME"):
            about["service.name"] = "commonplace"
        resource = Resource.create(about)
        # Not the process's own providers: libraries would send their spans too, with whatever
        # they put in them.
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        if _is_wanted("TRACES"):
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._metrics = MeterProvider(
            metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())]
            if _is_wanted("METRICS")
            else (),
            resource=resource,
            shutdown_on_exit=False,
        )
        self._tracer = self._traces.get_tracer("commonplace", version)
        meter = self._metrics.get_meter("commonplace", version)
        self._durations = {
            kind: meter.create_histogram(name, "s", f"Duration of {what}.")
            for kind, name, what in (
                ("http", "http.server.request.duration", "HTTP requests"),
                ("db", "db.client.operation.duration", "transactions"),
                ("job", "commonplace.job.duration", "jobs that are run together"),
                ("call", "commonplace.call.duration", "calls of services"),
            )
        }

    @contextmanager
    def operation(
        self, kind: str, name: str, attributes: dict[str, Any], parent: Mapping[str, str] | None
    ) -> Iterator[dict[str, Any]]:
        began = time.perf_counter()
        with self._tracer.start_as_current_span(
            name,
            self._extract(parent) if parent else None,
            self._kinds.get(kind, self._internal),
            record_exception=False,  # messages quote what people write
            set_status_on_exception=False,
        ) as span:
            try:
                yield attributes
            except BaseException as error:
                attributes["error.type"] = type(error).__name__
                raise
            finally:
                span.update_name(attributes.pop("name", name))
                once = attributes.pop("once", {})
                self._durations[kind].record(time.perf_counter() - began, attributes)
                span.set_attributes(attributes | once)
                if "error.type" in attributes:
                    span.set_status(self._error)

    def stop(self) -> None:
        """Send what is left."""
        self._traces.shutdown()
        self._metrics.shutdown()


_exporter: _Exporter | None = None


@contextmanager
def exporting(version: str) -> Iterator[None]:
    """Send traces and metrics of this process while it serves. The variables may be meant for
    another program: what is missing is only logged."""
    global _exporter
    names = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
    wanted = any(map(os.environ.get, names))
    if not wanted or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        yield
        return
    try:
        exporter = _Exporter(version)
    except ConfigurationError as error:
        log.warning("No traces and metrics are sent. %s", error.message)
        yield
        return
    _exporter = exporter
    try:
        yield
    finally:
        _exporter = None
        exporter.stop()


def _is_wanted(what: str) -> bool:
    return os.environ.get(f"OTEL_{what}_EXPORTER", "otlp") == "otlp"
