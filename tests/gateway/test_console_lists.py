"""Lists that are longer than a page: each leads on to its end, and shows everything once."""

from __future__ import annotations

import html.parser
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest
import pytest_asyncio

from services.gateway.console.pages import cost, deliveries, inbox, settings
from services.gateway.console.pages.board import goals, grants, preferences, row, tasks, timetable
from tests.support import approvals
from tests.support.console import VOID, Reader, Shown, pages, signed_in
from tests.support.gateway import Gate, running_gateway
from vigil.bus.kv import KeyValue
from vigil.contracts import DeadLetter, Dispatch, SlotEntry, encode
from vigil.contracts.costs import CostRow, DayOfCosts
from vigil.subjects import Scope, SessionKey, token_of
from vigil.timetable.log import SlotLog

pytestmark = pytest.mark.asyncio(loop_scope="module")
COUNT: Final = 5
KEY: Final = SessionKey("ann", "vigil", "t1")
SIZES: Final[tuple[tuple[Any, str], ...]] = (
    (timetable, "ROWS_MAX"), (timetable, "SLOTS_MAX"), (timetable, "LINKS_SHOWN_MAX"),
    (row, "SLOTS_MAX"), (grants, "SHOWN_MAX"), (tasks, "PAGE_MAX"), (tasks, "SHOWN_MAX"),
    (goals, "PAGE_MAX"), (goals, "SHOWN_MAX"), (preferences, "SHOWN_MAX"), (inbox, "SHOWN_MAX"),
    (deliveries, "LETTERS_MAX"), (deliveries, "SHOWN_MAX"), (cost, "LINES_MAX"),
    (settings, "TOKENS_MAX"),
)  # fmt: skip
LISTS: Final = (
    ("/timetable", "rows", r"Run now: (\w+)"),
    ("/timetable", "slots", r"because (\d)"),
    ("/timetable", "links", r"End it: (phone\d)"),
    ("/timetable/{row}", "slots", r"because (\d)"),
    ("/grants", "after", r"End it: (g\d+)"),
    ("/tasks?status=ready", "after", r"/tasks/(\w{32})"),
    ("/goals?status=active", "after", r"/goals/(\w{32})"),
    ("/preferences", "after", r"Forget it: (\w+)"),
    ("/inbox", "after", r"request (a\w+)"),
    ("/inbox?state=all", "after", r"request (a\w+)"),
    ("/deliveries", "letters", r"Try it again: (\S+)"),
    ("/deliveries", "after", r"Why (0{7}\d)"),
    ("/cost?days=9&by_day=1", "after", r"(\d{4}-\d\d-\d\d)"),
    ("/settings", "tokens", r"token (\w+) of"),
)
"""Each list: its page, the parameter that says where in it one is, and what tells its members."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_gateway(home) as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(gate: Gate) -> Reader:
    """Somebody who has five of each."""
    reader = await signed_in(gate, "ann", is_admin=True)
    api, now = await gate.person("ann"), datetime.now(UTC)
    rows = await _ask(api, now)
    log, whose = SlotLog(gate.admin), Scope("vigil", "ann")
    last = await log.last(whose, rows[0])
    bucket = KeyValue(await gate.stack.bus("cortex"), "BUDGETS")
    spent = CostRow(agent="vigil", cause="t1", tier="main", model="m", calls=3, micro_usd=4_200)
    for number in range(COUNT):
        at = now - timedelta(days=number)
        begun = SlotEntry(row=rows[0], due_at=at, at=now, state="running", reason="it runs")
        ended = SlotEntry(row=rows[0], due_at=at, at=now, state="ran", reason=f"because {number}")
        for entry in (begun, ended):
            last = await log.append(whose, last, entry)
        letter = DeadLetter(
            id=f"cortex-S-{number}", service="cortex", stream="SESSIONS", subject=KEY.in_user,
            seq=number + 9, cause="it could not be read", at=at, data=b"{",
        )  # fmt: skip
        await gate.admin.publish(KEY.dead("cortex"), encode(letter))
        asked = approvals.request(KEY, f"{number}{'a' * 31}", reason="nobody ordered it")
        await approvals.list_on_board(gate, asked)
        order = Dispatch(
            effect_id=f"{number:08}{'b' * 24}",
            session_key=str(KEY),
            channel="ops",
            said_seq=1,
            at=at,
        )
        await gate.admin.publish(KEY.send(order.effect_id), encode(order))
        costs = msgspec.json.encode(DayOfCosts(user="ann", rows=(spent,)))
        await bucket.put(f"{at.date()}.costs.{token_of('ann')}", costs)
    return reader


async def _ask(api: httpx2.AsyncClient, now: datetime) -> list[str]:
    """Have the gateway make what people make; return the ids of rows of the timetable."""

    async def made(path: str, **body: Any) -> Any:
        answer = await api.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    rows = []
    for number in range(COUNT):
        later = (now + timedelta(days=400)).isoformat()
        rows.append((await made("/api/cron", name=f"row{number}", prompt="x", at=later))["id"])
        allowed = [{"kind": "argv", "argv": ["df", f"/{number}"]}]
        await made("/api/grants", tool="shell", constraints=allowed)
        await made("/api/tasks", title=f"Task {number}", description="")
        await made("/api/goals", description=f"Goal {number}")
        await made("/api/preferences", category="code", key=f"key_{number}", value="so")
        await made("/api/calendar-links", name=f"phone{number}")
    return rows


def found_in(page: Shown, told: str) -> list[str]:
    """Return what a page has of a list, each once, in its order."""
    labels = (found.get(name) or "" for _, found in page.tags for name in ("aria-label", "href"))
    return list(dict.fromkeys(re.findall(told, "\n".join([*labels, page.text]))))


async def found_row(ann: Reader) -> str:
    """Return the id of the row that ran."""
    page = await ann.client.get("/console/timetable")
    (id_,) = re.findall(r'href="/console/timetable/(\w{32})" dir="auto">row0</a>', page.text)[:1]
    return str(id_)


def onward(page: Shown, name: str, place: int) -> str | None:
    """Return the link that leads further; None: there is none."""
    found = (re.search(rf"^\?(?:.*&)?{name}=(\d+)(?:#|&|$)", link) for link in page.links)
    return next((one.string for one in found if one and int(one[1]) > place), None)


@pytest.mark.parametrize(("path", "name", "told"), LISTS)
async def test_a_list_leads_on_to_its_end(
    ann: Reader, monkeypatch: Any, path: str, name: str, told: str
) -> None:
    """Two to a page: each of the five stands on one page only, and the last leads to the first."""
    for module, size in SIZES:
        monkeypatch.setattr(module, size, 2)
    if "{row}" in path:
        path = path.format(row=await found_row(ann))
    seen: list[list[str]] = []
    link, place = path.partition("?")[2], 0
    page = await ann.page(f"{path.partition('?')[0]}?{link}")
    beginning = found_in(page, told)
    while True:
        seen.append(found_in(page, told))
        further = onward(page, name, place)
        if further is None:
            break
        place = int(re.findall(rf"{name}=(\d+)", further)[-1])
        page = await ann.page(f"{path.partition('?')[0]}{further.partition('#')[0]}")
    assert len(seen) > 2
    flat = [one for some in seen for one in some]
    assert len(flat) == len(set(flat)) >= COUNT, seen
    firsts = [one for one in page.links if one.startswith("?") and f"{name}=" not in one]
    again = [await ann.page(f"{path.partition('?')[0]}{one.partition('#')[0]}") for one in firsts]
    assert beginning in [found_in(one, told) for one in again]


async def test_a_column_of_a_board_leads_to_all_of_its_status(
    ann: Reader, monkeypatch: Any
) -> None:
    for module, size in SIZES:
        monkeypatch.setattr(module, size, 2)
    for path, status in (("/tasks", "ready"), ("/goals", "active")):
        page = await ann.page(path)
        assert len(found_in(page, rf"{path}/(\w{{32}})")) == 2
        assert "2 and more" in page.text
        assert f"?status={status}" in page.links


class Repeated(html.parser.HTMLParser):
    """Finds the members of lists that have a form and no id of their own."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.nameless: list[str] = []
        self.named = 0
        self._open: list[dict[str, Any]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        id_ = dict(attrs).get("id") or ""
        if not re.fullmatch(r"\w+-\d{1,3}", id_):  # its place in the list is no name
            for one in self._open:
                one["has_id"] |= bool(id_)
        for one in self._open:
            one["has_form"] |= tag == "form"
        if tag not in VOID:
            self._open.append({"tag": tag, "has_id": bool(id_), "has_form": False})

    def handle_endtag(self, tag: str) -> None:
        one = self._open.pop()
        if tag in ("li", "tr", "article") and one["has_form"]:
            self.named += one["has_id"]
            self.nameless += [self.get_starttag_text() or tag] * (not one["has_id"])


async def test_what_is_pressed_stays_what_it_is_as_a_list_grows(ann: Reader) -> None:
    """A page that looks again by itself puts what is new into what is there: members are told apart
    by ids, else a button that has the focus would become another's."""
    named = 0
    for path in pages():
        found = Repeated((await ann.client.get(f"/console{path}")).text)
        assert found.nameless == [], path
        named += found.named
    assert named > 5 * COUNT


async def test_what_is_no_place_in_a_list_is_its_beginning(ann: Reader) -> None:
    whole = found_in(await ann.page("/grants"), r"End it: (g\d+)")
    for odd in ("x", "-1", "1.5", "9" * 40, "٣"):
        assert found_in(await ann.page("/grants", after=odd), r"End it: (g\d+)") == whole
    assert "There are no further ones." in (await ann.page("/grants", after="99")).text
