"""A kind of the board of one file: over HTTP, in its document, in the client, at a terminal."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.gateway import app
from tests.support.board_kinds import ends, is_read_by_programs_and_people, keeps_the_contract
from tests.support.gateway import running_gateway
from vigil.board import kinds, outside


def forget_all() -> None:
    """Have everybody look again at what kinds there are."""
    for cached in (outside.served_kinds, app.served, app.described, app.document):
        cached.cache_clear()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The toy lies in the folder of the kinds."""
    place = str(Path(__file__).parent / "board_kinds")
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, place])
    forget_all()
    yield importlib.import_module("vigil.board.kinds.dislike")
    forget_all()


async def test_one_file_is_a_kind_everywhere(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-15, P-2"""
    async with running_gateway(tmp_path) as gate:
        ann = await gate.person("ann")
        made = await ann.post("/api/dislikes", json={"thing": "calls before nine"})
        assert (made.status_code, made.json()["thing"]) == (201, "calls before nine")
        await keeps_the_contract(gate, toy.KIND, made.json(), {"category": "schedule"})
        await is_read_by_programs_and_people(gate, toy.KIND, made.json()["id"], monkeypatch)
        await ends(gate, toy.KIND, made.json()["id"])

        document = (await ann.get("/openapi.json")).json()
        assert sorted(document["paths"]["/api/dislikes/{id}"]) == ["delete", "get", "patch"]
        assert document["paths"]["/api/dislikes"]["post"]["operationId"] == "make_dislike"
        assert document["components"]["schemas"]["DislikeDetail"]["required"]
