"""Makes vigil.json, the Grafana dashboard, in the classic schema (Grafana 10 to 13 read it).

    python deploy/grafana/dashboard.py > deploy/grafana/vigil.json

A test compares the file with what this makes, and every query with the metrics that exist.
"""

from __future__ import annotations

import json
from typing import Any, Final

WIDTH: Final = 24
COLUMNS: Final = 3
HEIGHT: Final = 8
RANGE: Final = "$__rate_interval"
PICKED: Final = 'instance=~"$instance"'
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}

Query = tuple[str, str]
"""An expression, and the legend."""
Panel = tuple[str, str, list[Query]]
"""Title, unit, queries."""


def rate(metric: str, by: str = "") -> Query:
    """Return events a second, by a label."""
    expr = f"rate({metric}{{{PICKED}}}[{RANGE}])"
    return (f"sum by ({by}) ({expr})", f"{{{{{by}}}}}") if by else (f"sum({expr})", "all")


def increase(metric: str, by: str) -> Query:
    """Return how many there were in the last hour: for what should not happen at all."""
    return f"sum by ({by}) (increase({metric}{{{PICKED}}}[1h]))", f"{{{{{by}}}}}"


def value(metric: str, by: str) -> Query:
    return f"sum by ({by}) ({metric}{{{PICKED}}})", f"{{{{{by}}}}}"


def quantile(metric: str, percent: int, by: str = "") -> Query:
    """Return a quantile of a histogram, in seconds."""
    labels = f"le, {by}" if by else "le"
    inner = f"sum by ({labels}) (rate({metric}_bucket{{{PICKED}}}[{RANGE}]))"
    legend = f"p{percent} {{{{{by}}}}}" if by else f"p{percent}"
    return f"histogram_quantile({percent / 100:g}, {inner})", legend


def both(metric: str) -> list[Query]:
    return [quantile(metric, 50), quantile(metric, 99)]


ROWS: Final[dict[str, list[Panel]]] = {
    "Overview": [
        ("Replicas that are ready", "short", [value("vigil_ready", "service")]),
        ("Messages said", "ops", [rate("vigil_sends_total", "outcome")]),
        ("Turn stored to message said", "s", both("vigil_delivery_lag_seconds")),
        ("Dead letters, in an hour", "short", [increase("vigil_dead_letters_total", "service")]),
        ("Turns", "ops", [rate("vigil_turns_total", "outcome")]),
        ("Versions", "short", [value("vigil_ready", "version")]),
    ],
    "Gateway": [
        ("Requests", "reqps", [rate("vigil_http_request_seconds_count", "status")]),
        ("Time to the answer", "s", [quantile("vigil_http_request_seconds", 99, "route")]),
        ("Open connections", "short", [
            ("sum(vigil_connections_open{" + PICKED + "})", "sockets and chats"),
            ("sum(vigil_sse_readers{" + PICKED + "})", "signals"),
        ]),
        ("Events stored", "ops", [rate("vigil_events_accepted_total", "type")]),
        ("Events refused", "ops", [rate("vigil_events_refused_total", "reason")]),
        ("Events of other systems", "ops", [rate("vigil_outside_events_total", "via")]),
    ],
    "Cortex": [
        ("Event read to turn committed", "s", both("vigil_turn_seconds")),
        ("Model calls", "ops", [rate("vigil_model_call_seconds_count", "outcome")]),
        ("Time of a model call", "s", [quantile("vigil_model_call_seconds", 95, "model")]),
        ("Tokens", "ops", [rate("vigil_model_tokens_total", "direction")]),
        ("The day's tokens", "short",
         [("max by (state) (vigil_budget_tokens{" + PICKED + "})", "{{state}}")]),
        ("Sessions", "short", [
            ("sum(vigil_sessions_open{" + PICKED + "})", "open"),
            ("sum(vigil_sessions_waiting{" + PICKED + "})", "wait behind others of their person"),
        ]),
        ("Conflicts and takeovers, in an hour", "short", [
            (f"sum(increase(vigil_commit_conflicts_total{{{PICKED}}}[1h]))", "conflicts"),
            (f"sum(increase(vigil_takeovers_total{{{PICKED}}}[1h]))", "takeovers"),
        ]),
        ("Memory asked before an answer", "s",
         [quantile("vigil_recall_seconds", 99, "outcome")]),
        ("Sessions that began cold, in an hour", "short",
         [increase("vigil_sessions_cold_total", "lacked")]),
        ("Signals", "ops", [rate("vigil_signals_total", "kind")]),
        ("Record stored to signal stored", "s", both("vigil_signal_lag_seconds")),
    ],
    "Scheduler": [
        ("Lateness of timers", "s", both("vigil_timer_lateness_seconds")),
        ("Timers fired", "ops", [rate("vigil_timer_lateness_seconds_count", "kind")]),
        ("Pending timers; schedulers that fire", "short", [
            ("sum(vigil_timers_open{" + PICKED + "})", "timers"),
            ("sum(vigil_scheduler_active{" + PICKED + "})", "active"),
        ]),
    ],
    "Delivery": [
        ("Claims that lost", "ops", [rate("vigil_claims_lost_total")]),
        ("Attempts at channels", "ops", [rate("vigil_channel_seconds_count", "outcome")]),
        ("Time of an attempt", "s", [quantile("vigil_channel_seconds", 95, "channel")]),
        ("Messages on channels that are closed", "ops",
         [rate("vigil_channel_receipts_total", "outcome")]),
    ],
    "Memory": [
        ("Memories saved", "ops", [rate("vigil_memories_saved_total", "via")]),
        ("Recalls", "ops", [rate("vigil_memory_recall_seconds_count", "state")]),
        ("Time of a recall", "s", [quantile("vigil_memory_recall_seconds", 99, "mode")]),
        ("Record stored to SQLite", "s", both("vigil_memory_lag_seconds")),
        ("Records behind, in the vectors", "short",
         [value("vigil_memory_vectors_behind", "instance")]),
        ("Calls of memory tools", "ops", [rate("vigil_memory_calls_total", "outcome")]),
    ],
    "Executor": [
        ("Calls of tools", "ops", [rate("vigil_executor_calls_total", "outcome")]),
        ("Time of a tool", "s", [quantile("vigil_executor_call_seconds", 95, "tool")]),
        ("Running tools; waiting calls", "short", [
            ("sum(vigil_executor_calls_running{" + PICKED + "})", "at work"),
            ("sum(vigil_executor_calls_waiting{" + PICKED + "})", "waiting"),
        ]),
    ],
    "Bus": [
        ("Reconnects, in an hour", "short", [increase("vigil_bus_reconnects_total", "service")]),
        ("Requests without an answer, in an hour", "short",
         [increase("vigil_bus_unknown_outcomes_total", "service")]),
        ("Permission violations, in an hour", "short",
         [increase("vigil_bus_violations_total", "service")]),
    ],
}  # fmt: skip


def make() -> dict[str, Any]:
    """Return the dashboard."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        place = {"h": 1, "w": WIDTH, "x": 0, "y": top}
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False,
                       "gridPos": place, "panels": []})  # fmt: skip
        for number, panel in enumerate(row):
            line, column = divmod(number, COLUMNS)
            panels.append(_panel(len(panels) + 1, panel, column, top + 1 + line * HEIGHT))
        top += 1 + -(-len(row) // COLUMNS) * HEIGHT
    return {
        "uid": "vigil",
        "title": "Vigil",
        "tags": ["vigil"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def _panel(number: int, panel: Panel, column: int, top: int) -> dict[str, Any]:
    title, unit, queries = panel
    width = WIDTH // COLUMNS
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT, "w": width, "x": column * width, "y": top},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expr,
             "legendFormat": legend}
            for index, (expr, legend) in enumerate(queries)
        ],
    }  # fmt: skip


def _variables() -> list[dict[str, Any]]:
    query = "label_values(vigil_ready, instance)"
    return [
        {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"},
        {
            "name": "instance",
            "label": "Replica",
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": "instance"},
            "definition": query,
            "refresh": 2,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        },
    ]


if __name__ == "__main__":
    print(json.dumps(make(), indent=1))  # noqa: T201 - the file
