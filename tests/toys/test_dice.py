"""A route of one file, and a page of the console that is a view of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

from services.gateway import app
from services.gateway.console import appearance, site
from services.gateway.console.visit import ConsolePage
from tests.support.console import signed_in
from tests.support.gateway import assert_problem, running_gateway
from tests.toys.pages import dice as page
from tests.toys.routes import dice as route

CACHED = (app.served, app.described, app.document)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The route and the page stand in the tables, the template in the folder of all."""
    there = app.endpoints()
    monkeypatch.setattr(app, "endpoints", lambda: (*there, *route.ENDPOINTS))
    monkeypatch.setattr(site, "PAGES", (*site.PAGES, ConsolePage("/dice", "Dice", page)))
    folders = [Path(appearance.__file__).parent / "templates", Path(page.__file__).parent]
    monkeypatch.setattr(
        appearance._environment("/console"), "loader", jinja2.FileSystemLoader(folders)
    )
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()


async def test_one_file_is_a_route_and_one_a_page(toys: None, tmp_path: Path) -> None:
    """P-2, P-5"""
    async with running_gateway(tmp_path) as gate:
        ann = await gate.person("ann")
        assert (await ann.get("/api/dice", params={"sides": 8})).json() == {
            "owner": "ann",
            "sides": 8,
        }
        assert_problem(await ann.get("/api/dice", params={"sides": "x"}), 422, "sides")
        assert_problem(await ann.post("/api/dice", json={"sides": 21}), 422, "sides")
        assert_problem(await (await gate.http()).get("/api/dice"), 401)
        document = (await ann.get("/openapi.json")).json()
        assert document["paths"]["/api/dice"]["post"]["operationId"] == "take_dice"
        (sides,) = document["paths"]["/api/dice"]["get"]["parameters"]
        assert (sides["name"], sides["description"]) == ("sides", "How many it has")

        reader = await signed_in(gate, "ann")
        shown = await reader.page("/dice")
        assert "A die of ann with 6 sides." in shown.text
        assert "/console/dice" in shown.links, "the navigation leads there"
        taken = await reader.send("/dice", sides="12")
        assert "Taken: 12 sides." in taken.text
