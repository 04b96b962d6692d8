"""Requests that /openapi.json calls valid are not refused for their form (SPEC P-5, issue 32).

They are made of the document's schemas, each field alone and some together, always the same ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx2
import pytest

from services.gateway.documents import examples_http
from tests.support.examples import repeats
from tests.support.from_schema import Schemas, drawn
from tests.support.gateway import running_gateway
from vigil.settings.live import followed

EXAMPLES: Final = repeats(2, fast=1)
"""The first is the simplest."""
NOT_MADE: Final = (
    *("post_hook", "post_channel", "post_mcp", "upload_attachment", "needs_upgrade"),
    "choose_model",
)
"""Signed, of another protocol, no JSON, no request; or it would ask a model of a provider's."""
UNTOLD: Final = re.compile(
    r"there (is|are)\b|is no message|you have no such|used before|already|in the future|is over"
    r"|must be after"
    r"|of the same person|another (agent|memory)|is before|from soonest_s to latest_s"
    r"|runs are to choose|stands alone|no grant covers|host name|must be written as"
    r"|one for each argument|'argv' is for|is granted only with|can't be run|goes with times"
    r"|has \d+ already|with q$|needs agent|text in UTF-8|can't be given together|many paused"
    r"|empty where a conversation|is for a row that|must be a conversation of|goal needs one"
    r"|no program's name|must name a program|printable ASCII|must begin with /|empty segment"
    r"|can't go from|what is to be done|^change_row: cron or interval_s"
    r"|^change_row: (soonest|latest)_s must be from"
    r"|either command or url|belongs to a URL|set url$|must begin with http"
    r"|standing goal has none|nothing of it changes|chosen by its runs|is of no run"
)
"""Reasons that no schema can tell: what there is, the time, one field against another."""


class Asker:
    """Makes requests of a document, and tells which are refused."""

    def __init__(self, document: dict[str, Any], there: dict[str, str]) -> None:
        self._document = document
        self._schemas = Schemas(document)
        self._there = there
        self._drawn: dict[tuple[str, int], list[Any]] = {}

    def requests(self) -> Iterator[tuple[str, str, str, str, str | None]]:
        """Yield operation, method, path with query, media type and body."""
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items():
                name = operation["operationId"]
                if name in NOT_MADE or "text/event-stream" in json.dumps(operation["responses"]):
                    continue
                for where, media_type, body in self._of(path, operation):
                    yield name, method.upper(), where, media_type, body

    def _of(self, path: str, operation: dict[str, Any]) -> Iterator[tuple[str, str, str | None]]:
        named = [one for one in operation.get("parameters", ()) if one["in"] != "header"]
        needed = {
            one["name"]: self._values(one["schema"], 1)[0] for one in named if one["required"]
        }
        if (id_ := self._there.get(path)) is not None:
            needed["id"] = id_
        bodies = list(self._bodies(operation)) or [("", None)]
        for media_type, body in bodies:
            yield _filled(path, named, needed), media_type, body
        for one in named:
            if one["in"] == "path" and one["name"] == "id" and path in self._there:
                continue
            for value in self._values(one["schema"], 2 * EXAMPLES):
                yield _filled(path, named, needed | {one["name"]: value}), *bodies[0]

    def _values(self, schema: dict[str, Any], count: int) -> list[Any]:
        known = json.dumps(schema), count
        if known not in self._drawn:
            self._drawn[known] = drawn(self._schemas.values(schema), count)
        return self._drawn[known]

    def _bodies(self, operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for media_type, one in operation.get("requestBody", {}).get("content", {}).items():
            if "json" not in media_type:
                continue
            *alone, together = self._schemas.bodies(one["schema"])
            for values, count in (*((one, EXAMPLES) for one in alone), (together, 2)):
                yield from ((media_type, json.dumps(body)) for body in drawn(values, count))


def _filled(path: str, named: list[dict[str, Any]], values: dict[str, Any]) -> str:
    query = []
    for one in named:
        value = values.get(one["name"])
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(str(value), safe=""))
        elif value is not None:
            given = value if isinstance(value, list) else [value]
            query += [
                (one["name"], json.dumps(x) if isinstance(x, bool) else str(x)) for x in given
            ]
    return path + (f"?{urlencode(query)}" if query else "")


async def made(ann: httpx2.AsyncClient) -> dict[str, str]:
    """Make one of each thing that can be changed; return their ids by the path of the change."""
    found = {}
    for path, name in (
        ("/api/goals", "GoalBody"),
        ("/api/tasks", "TaskBody"),
        ("/api/cron", "RowBody"),
        ("/api/preferences", "PreferenceBody"),
    ):
        (body, *_) = examples_http.BODIES[name].values()
        answer = await ann.post(path, json=body)
        assert answer.status_code == 201, answer.text
        found[f"{path}/{{id}}"] = answer.json()["id"]
    found["/api/goals/{id}/parts"] = found["/api/goals/{id}"]
    return found


APART: Final = frozenset({"choose_model", "complete", "respond"})
"""One asks a provider on the net, the other tells errors as OpenAI does."""


@pytest.mark.repeated
async def test_what_the_document_allows_is_not_refused_for_its_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What some write into vigil.toml isn't to be taken in, with all that this file lacks here.
    monkeypatch.setattr(followed, "POLL_S", 3600.0)
    async with running_gateway(tmp_path, chat_wait_s=0.01) as gate:
        ann = await gate.person("ann", is_admin=True)
        document = (await ann.get("/openapi.json")).json()
        of_operation = {
            operation["operationId"]: operation["responses"]
            for methods in document["paths"].values()
            for operation in methods.values()
        }
        refused, statuses = [], set()
        for name, method, where, media_type, body in Asker(document, await made(ann)).requests():
            if name in APART:
                continue
            headers = {"content-type": media_type} if media_type else {}
            answer = await ann.request(method, where, content=body, headers=headers)
            statuses.add(answer.status_code)
            told = answer.text if answer.status_code in (400, 413, 415, 422, 500) else ""
            if told and not UNTOLD.search(f"{name}: {answer.json()['detail']}"):
                refused.append((name, where, body, told))
            if str(answer.status_code) not in of_operation[name]:
                refused.append((name, where, body, f"undocumented: {answer.status_code}"))
    assert refused == []
    assert {200, 201, 202, 404, 422} <= statuses
