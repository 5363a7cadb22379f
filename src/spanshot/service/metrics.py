"""Metrics for Prometheus. Names of taggers, texts and keys are not part of them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from spanshot.service.batching import BatchReport

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counts requests, texts, batches and learned examples."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "spanshot_requests", "Answered requests.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "spanshot_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=registry
        )
        self.in_flight = Gauge(
            "spanshot_requests_in_flight", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self.texts = Counter("spanshot_texts", "Tagged texts.", registry=registry)
        self.characters = Counter("spanshot_characters", "Tagged characters.", registry=registry)
        self.queue = Gauge(
            "spanshot_queue_characters",
            "Characters that wait to be tagged.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.batch_requests = Histogram(
            "spanshot_batch_requests", "Requests in a batch.", buckets=_COUNTS, registry=registry
        )
        self.batch_taggers = Histogram(
            "spanshot_batch_taggers", "Taggers in a batch.", buckets=_COUNTS, registry=registry
        )
        self.batch_seconds = Histogram(
            "spanshot_batch_seconds", "Time of a batch.", buckets=_SECONDS, registry=registry
        )
        self.learn_seconds = Histogram(
            "spanshot_learn_seconds", "Time of learning and saving a tagger.", buckets=_SECONDS, registry=registry
        )
        self.cached = Gauge(
            "spanshot_taggers_in_memory", "Taggers in memory.", registry=registry, multiprocess_mode="livesum"
        )

    def batch(self, report: BatchReport) -> None:
        """Count a batch."""
        self.batch_requests.observe(report.requests)
        self.batch_taggers.observe(report.taggers)
        self.batch_seconds.observe(report.seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format; those of all workers, if there are several."""
        if self._folder is None:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
