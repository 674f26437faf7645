"""Every metric that Saldo keeps, by name; the table in docs/operations.md is checked against this module."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

_FAST_SECONDS: Final = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
)

POSTINGS: Final = Counter(
    "saldo_postings_total",
    "Posting requests by type (`partner` for those that aren't built in) and outcome.",
    ("type", "outcome"),
)
POSTINGS_TURNED_AWAY: Final = Counter(
    "saldo_postings_turned_away_total",
    "Posting requests that got no place in time, by reason.",
    ("reason",),
)
POSTING_BATCH_SIZE: Final = Histogram(
    "saldo_posting_batch_requests",
    "Requests in one database transaction.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
POSTING_QUEUE_DEPTH: Final = Gauge(
    "saldo_posting_queue_requests", "Posting requests that wait for a batch."
)
POSTING_QUEUE_WAIT: Final = Histogram(
    "saldo_posting_queue_wait_seconds",
    "How long the first request of a batch had waited.",
    buckets=_FAST_SECONDS,
)
POSTING_DATABASE_TIME: Final = Histogram(
    "saldo_posting_database_seconds",
    "From taking a connection to the end of COMMIT.",
    buckets=_FAST_SECONDS,
)
POSTING_RETRIES: Final = Counter(
    "saldo_posting_retries_total", "Batches that were tried again, by reason.", ("reason",)
)
POSTING_BATCHES_SPLIT: Final = Counter(
    "saldo_posting_batches_split_total",
    "Batches that the database refused as a whole, posted group by group.",
)
CONSTRAINT_INCIDENTS: Final = Counter(
    "saldo_constraint_incidents_total",
    "Postings that failed although they should have been booked or refused, by constraint; each is a fault of Saldo's.",
    ("constraint",),
)
HOLDS_EXPIRED: Final = Counter("saldo_holds_expired_total", "Holds that expired.")
SWEEPS: Final = Counter("saldo_sweeps_total", "Striped accounts that were swept by themselves.")
SNAPSHOTS: Final = Counter(
    "saldo_snapshots_total", "Snapshots of derived accounts that were taken."
)
HOUSEKEEPING_FAILURES: Final = Counter(
    "saldo_housekeeping_failures_total", "Runs of a housekeeping job that failed, by job.", ("job",)
)
HOUSEKEEPING_LAST_SUCCESS: Final = Gauge(
    "saldo_housekeeping_last_success_timestamp_seconds",
    "When a housekeeping job last succeeded, in seconds since 1970, by job.",
    ("job",),
)
RELAY_POSITION: Final = Gauge(
    "saldo_relay_position", "Position of the last event this process has delivered."
)
RELAY_DELIVERED: Final = Counter(
    "saldo_relay_events_total", "Events that this process's relay has given a position."
)
OUTBOX_PENDING: Final = Gauge(
    "saldo_outbox_pending", "Committed events that wait for their position."
)
OUTBOX_LAG: Final = Gauge(
    "saldo_outbox_lag_seconds", "Age of the oldest event that waits for its position."
)
HUB_POSITION: Final = Gauge(
    "saldo_hub_position", "Position of the last event this process's hub has seen."
)
HUB_CATCH_UPS: Final = Counter(
    "saldo_hub_catch_ups_total", "Times the hub read the event log because a wake-up was missing."
)
BROADCAST_RECONNECTS: Final = Counter(
    "saldo_broadcast_reconnects_total", "Times the broadcast connection was made anew."
)
SUBSCRIBERS: Final = Gauge("saldo_subscribers", "Open subscriptions of this process.", ("field",))
REQUESTS: Final = Histogram(
    "saldo_graphql_request_seconds",
    "GraphQL operations over HTTP, by type and outcome.",
    ("type", "outcome"),
    buckets=_FAST_SECONDS,
)
