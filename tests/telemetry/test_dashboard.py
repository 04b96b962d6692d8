"""The Grafana dashboard uses only metrics that exist, with labels that they have."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vigil.observe.metrics import METRICS, Metric

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "grafana"
ALWAYS = {"service", "instance"}
_USE = re.compile(r"\b(vigil_[a-z_]+)(?:\{([^}]*)\})?")
_BY = re.compile(r"\bby \(([^)]*)\)")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboard", FOLDER / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def committed() -> Any:
    return json.loads((FOLDER / "vigil.json").read_text("utf-8"))


def panels() -> Iterator[Any]:
    return (panel for panel in committed()["panels"] if panel["type"] != "row")


def queries() -> list[str]:
    dashboard = committed()
    found = [target["expr"] for panel in panels() for target in panel["targets"]]
    found += [one["definition"] for one in dashboard["templating"]["list"] if "definition" in one]
    return found


def metric_of(name: str) -> Metric:
    """Return the metric behind a series: a histogram has three kinds of them."""
    by_name = {metric.name: metric for metric in METRICS}
    if name in by_name:
        assert by_name[name].kind != "histogram", f"{name} has _bucket, _sum and _count only"
        return by_name[name]
    base = re.sub(r"_(bucket|sum|count)$", "", name)
    assert base in by_name, f"{name} does not exist"
    assert by_name[base].kind == "histogram"
    return by_name[base]


def test_the_file_is_what_the_script_makes() -> None:
    """Run it again: python deploy/grafana/dashboard.py > deploy/grafana/vigil.json"""
    assert committed() == load().make()


@pytest.mark.parametrize("query", queries())
def test_every_query_uses_what_exists(query: str) -> None:
    """X-7: metrics, and the labels that they are picked and grouped by."""
    uses = _USE.findall(query)
    assert uses
    for name, picked in uses:
        metric = metric_of(name)
        has = {*metric.labels, *ALWAYS} | ({"le"} if name.endswith("_bucket") else set())
        wanted = {part.strip() for group in _BY.findall(query) for part in group.split(",")}
        wanted |= set(re.findall(r"(\w+)\s*=~?", picked))
        assert wanted <= has, f"{name} has no label {wanted - has}"
        is_counted = metric.kind == "counter" or name != metric.name
        assert is_counted == ("rate(" in query or "increase(" in query)


def test_every_legend_names_a_label_of_its_query() -> None:
    for panel in panels():
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert re.search(rf"by \([^)]*\b{label}\b", target["expr"]), panel["title"]


def test_every_metric_is_on_the_dashboard() -> None:
    """What nobody looks at need not be counted."""
    shown = {metric_of(name).name for query in queries() for name, _ in _USE.findall(query)}
    assert shown == {metric.name for metric in METRICS}


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in committed()["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert place["x"] + place["w"] <= 24
    ids = [panel["id"] for panel in committed()["panels"]]
    assert len(ids) == len(set(ids))
