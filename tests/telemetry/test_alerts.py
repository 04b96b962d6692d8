"""The rules for Prometheus use only metrics that are exported, and each is told in the docs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from tests.telemetry.test_dashboard import ALWAYS, metric_of
from vigil.topology import SERVICES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_PICKED = re.compile(r"(\w+)\s*(=~|=)\s*\"([^\"]*)\"")
_USE = re.compile(r"\b(vigil_[a-z_]+)(?:\{([^}]*)\})?")
yaml: Any = importlib.import_module("yaml")


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
    assert set(group) == {"name", "rules"}
    return list(group["rules"])


RULES = rules()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_a_rule_uses_what_exists(rule: dict[str, Any]) -> None:
    """X-7: metrics, their labels, the values of those; and a person is told what it means."""
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Vigil[A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert set(rule["annotations"]) == {"summary", "description"}
    uses = _USE.findall(rule["expr"])
    assert uses
    for name, picked in uses:
        metric = metric_of(name)
        is_counted = metric.kind == "counter" or name != metric.name
        assert is_counted == ("rate(" in rule["expr"] or "increase(" in rule["expr"]) or (
            metric.kind == "gauge"
        )
        for label, _, values in _PICKED.findall(picked):
            assert label in {*metric.labels, *ALWAYS}
            known = SERVICES if label == "service" else re.findall(r"\w+", metric.help)
            assert set(values.split("|")) <= set(known), f"{name} has no such {label}"
    by = {label for group in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in group.split()}
    shown = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert shown <= by | {"service"}


def test_every_service_is_missed() -> None:
    """X-7: what is gone altogether tells nothing, not even that it isn't ready."""
    expr = next(rule["expr"] for rule in RULES if rule["alert"] == "VigilServiceDown")
    assert re.findall(r'absent\(vigil_ready\{service="(\w+)"\}\)', expr) == list(SERVICES)


def test_every_rule_is_in_the_docs_and_loaded() -> None:
    text = (ROOT / "docs" / "telemetry.md").read_text("utf-8")
    listed = re.findall(r"^\| `(Vigil\w+)` \| (page|ticket) \|", text, re.M)
    assert listed == [(rule["alert"], rule["labels"]["severity"]) for rule in RULES]
    for name in ("prometheus.yml", "prometheus-gateway.yml"):
        assert yaml.safe_load((DEPLOY / name).read_text("utf-8"))["rule_files"] == ["alerts.yml"]
    assert "./deploy/alerts.yml:/etc/prometheus/alerts.yml:ro" in (
        ROOT / "docker-compose.yml"
    ).read_text("utf-8")
