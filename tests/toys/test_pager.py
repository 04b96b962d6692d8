"""A channel of another distribution, both ways through all services: one file and one section."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.agent import ask, follow_up
from tests.support.gateway import Gate, assert_problem
from tests.support.stack import running_stack, settings_of
from tests.support.world import Person, World, running_world
from tests.toys.pager import Pager
from vigil.channels import kinds
from vigil.contracts import External, UserMessage, decode_event
from vigil.doctor import channels as doctor
from vigil.errors import ConfigError
from vigil.settings import config

KEY = "k" * 20
SECTION: dict[str, Any] = {"kind": "pager", "port": 9, "key": KEY, "numbers": {"ann": "555-1"}}


class Station:
    """Takes pages; `answers` are used up one by one, then each is `ok`. Empty: it hangs up."""

    def __init__(self) -> None:
        self.pages: list[dict[str, Any]] = []
        self.answers: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.pages.append(json.loads(await reader.readline()))
        writer.write((self.answers.pop(0) if self.answers else "ok\n").encode())
        await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def running_station() -> AsyncIterator[tuple[Station, int]]:
    station = Station()
    server = await asyncio.start_server(station.serve, "127.0.0.1", 0)
    async with server:
        yield station, server.sockets[0].getsockname()[1]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Install a distribution with these entry points, as pip would."""
    info = folder / "vigil_toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vigil-toys\nVersion: 1.0\n")
    rows = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{kinds.GROUP}]\n{rows}")
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy is installed."""
    install(tmp_path / "site", monkeypatch, pager="tests.toys.pager:Pager")


async def type_in(client: httpx2.AsyncClient, key: str = KEY, **typed: str) -> httpx2.Response:
    body = {"id": "p1", "what": "message", "from": "555-1", "text": "hi"} | typed
    return await client.post("/channels/beeper", json=body, headers={"x-station-key": key})


@contextlib.asynccontextmanager
async def running(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, prefers: str = "beeper", **changes: Any
) -> AsyncIterator[tuple[World, Person, Station]]:
    """All services with a pager for ann, who sits at the thread that it speaks in."""
    async with running_station() as (station, port):
        sections = {
            "channels": {"beeper": SECTION | {"port": port} | changes},
            "person": {"channel": prefers},
        }
        async with running_world(home, monkeypatch, **sections) as world:
            yield world, await world.person("ann:vigil:main"), station


async def test_what_ann_types_is_answered_and_the_follow_up_rings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pager: None
) -> None:
    """D-1, L-14: both ways; refused for a moment, then delivered once, and recorded."""
    async with running(tmp_path, monkeypatch, prefers="", backoff_base_s=0.01) as (
        world,
        ann,
        station,
    ):
        client = await world.gate.http()
        text = ask(follow_up("tea", 30, "tea is ready"))
        accepted = await type_in(client, text=text)
        assert accepted.status_code == 202, accepted.text
        await ann.talk.ended(accepted.json()["seq"])
        await world.at_rest()
        assert (await type_in(client, text=text)).json() == accepted.json()
        (said,) = [m for m in ann.talk.log if m.subject == ann.talk.key.in_user]
        event = decode_event(said.data)
        assert isinstance(event, UserMessage)
        assert (event.payload.text, event.payload.channel) == (text, "beeper")

        station.answers = ["busy 0\n"]
        await world.advance(30)
        (follow,) = [one for one in ann.talk.said if one.text == "tea is ready"]
        attempts = ann.talk.key.attempt(follow.id)
        await ann.talk.until(lambda: sum(m.subject == attempts for m in ann.talk.log) == 2)
        await world.advance(60)
        await ann.talk.until(lambda: any(r.effect_id == follow.id for r in ann.talk.receipts))
        (receipt,) = [one for one in ann.talk.receipts if one.effect_id == follow.id]
        assert (receipt.outcome, receipt.reason) == ("delivered", "the station has it")
        page = ("555-1", "tea is ready", follow.id)
        assert [(p["to"], p["text"], p["id"]) for p in station.pages] == [page, page]


async def test_a_page_that_may_have_rung_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pager: None
) -> None:
    """D-2: a channel is not idempotent unless it says so."""
    async with running(tmp_path, monkeypatch) as (world, ann, station):
        station.answers = [""]
        await ann.exchange(ask(follow_up("tea", 30, "tea is ready")))
        await world.advance(30)
        await ann.talk.until(lambda: ann.talk.receipts)
        assert ann.talk.receipts[-1].outcome == "ambiguous"
        assert len(station.pages) == 1


async def test_a_member_is_heard_in_the_teams_session_and_nobody_else(
    tmp_path: Path, pager: None
) -> None:
    """L-17: the channel's agent is a team's; the event of another is refused, too."""
    numbers = {"ann": "555-1", "bob": "555-2"}
    sections: dict[str, Any] = {
        "channels": {"beeper": SECTION | {"numbers": numbers}},
        "agents": {"vigil": {"kind": "team", "members": ["ann"]}},
    }
    async with running_stack(tmp_path, services=("gateway",), **sections) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        client = await gate.http()
        assert (await type_in(client)).status_code == 202
        for what in ("message", "alarm"):
            body = {"id": f"p-{what}", "what": what, "from": "555-2"}
            assert_problem(await type_in(client, **body), 403)
        found = await gate.admin.read("SESSIONS", ["session.>"])
        (event,) = [decode_event(one.data) for one in found]
        assert isinstance(event, UserMessage)
        assert (event.session_key, event.payload.by) == ("team:vigil:main", "ann")
        await gate.close()


async def test_only_the_station_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pager: None
) -> None:
    """X-4: no token, so the receiver proves; X-3: an event is untrusted."""
    channels = {
        "beeper": SECTION,
        "mute": {"url": "https://a.example/", "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
    }
    async with running_stack(tmp_path, services=("gateway",), channels=channels) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        client = await gate.http()
        assert_problem(await type_in(client, key="another"), 401)
        assert_problem(await client.post("/channels/mute", json={}), 404)
        assert_problem(await client.post("/channels/none", json={}), 404)
        unknown = await type_in(client, **{"from": "555-9"})
        assert unknown.json()["detail"] == "from is nobody's number"
        assert (await type_in(client, what="battery")).status_code == 204
        assert_problem(await type_in(client, id="x" * 201), 422)
        assert await gate.stored("ann:vigil:main") == []

        assert (await type_in(client, what="alarm", text="smoke")).status_code == 202
        (message,) = await gate.stored("ann:vigil:main")
        event = decode_event(message.data)
        assert isinstance(event, External)
        assert (event.payload.source, event.payload.kind) == ("channel:beeper", "alarm")
        assert (event.payload.content, event.payload.is_trusted) == ("smoke", False)
        guesses = [(await type_in(client, key="another")).status_code for _ in range(40)]
        assert (guesses[0], guesses[-1]) == (401, 429)
        await gate.close()


async def test_a_service_refuses_a_channel_that_cannot_hear(tmp_path: Path, pager: None) -> None:
    """X-6: field and reason."""
    channels = {"beeper": SECTION | {"key": ""}}
    with pytest.raises(ConfigError, match=r"channels\.beeper\.key: is missing"):
        async with running_stack(tmp_path, services=("gateway",), channels=channels):
            pass


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ({"kind": "pagr"}, "kind: no kind of channel is named 'pagr'; did you mean pager?"),
        ({"kind": 7}, "kind: no kind of channel is named '7'; there is: "),
        (SECTION | {"port": "x"}, "Expected `int`, got `str` - at `$.port`"),
        (SECTION | {"url": "x"}, "Object contains unknown field `url`"),
        ({"kind": "gone"}, "kind: 'gone' of tests.toys.gone:Gone can't be loaded: "),
        ({"kind": "other"}, "kind: 'other' of tests.toys.pager:Pager has another tag: 'pager'"),
        ({"kind": "foreign"}, "kind: 'foreign' of json:dumps is no vigil.channels."),
        ("x", "must be a section"),
    ],
)
def test_a_kind_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: Any, complaint: str
) -> None:
    """X-6: with the field, and the kinds that there are."""
    install(
        tmp_path, monkeypatch, pager="tests.toys.pager:Pager", gone="tests.toys.gone:Gone",
        other="tests.toys.pager:Pager", foreign="json:dumps",
    )  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        config.read({"channels": {"beeper": section}})
    assert str(refused.value).startswith(f"[channels.beeper]: {complaint}")
    assert KEY not in str(refused.value)
    if section == {"kind": 7}:
        assert str(refused.value).endswith("other, pager, push, slack, telegram, webhook")


def test_a_kind_is_a_section_like_another(tmp_path: Path, pager: None) -> None:
    settings = settings_of(tmp_path, channels={"beeper": SECTION})
    assert isinstance(settings.config.channels["beeper"], Pager)
    assert KEY not in repr(settings.config)
    assert doctor.checks(settings)["channel beeper"](settings) is None
