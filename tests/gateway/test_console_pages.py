"""What the console's pages show and do, over HTTP as a browser without scripts would."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx2
import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from services.gateway.console.shapes.activity import SLOW
from tests.support import approvals
from tests.support.console import HERE, Reader, Shown, pages, signed_in
from tests.support.gateway import Gate, until
from tests.support.goal_records import action_of
from tests.support.pictures import png
from tests.support.remembering import running_memories
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.contracts import (
    Cause,
    Change,
    FollowUp,
    Loop,
    OpenCall,
    Retry,
    Row,
    SpawnSession,
    SpawnSessionPayload,
    Start,
    State,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
    Waiting,
    encode,
    short_name,
)
from vigil.subjects import Scope, SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOSTILE: Final = (
    "</textarea></pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202etxt"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home, cortex={"autonomy_enabled": False}) as gate:
        yield gate


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ann(gate: Gate) -> Reader:
    return await signed_in(gate, "ann")


async def act(gate: Gate, user: str, number: str, what: str) -> None:
    """Write down that an agent did something by itself."""
    action = action_of(id=number * 32, owner=user, agent="vigil", description=what)
    board = KeptBoard(gate.admin, ACTIONS)
    await board.create(
        lambda _: action, Scope("vigil", user), Change(by="vigil"), datetime.now(UTC)
    )


async def ask(gate: Gate, user: str, number: str, **fields: Any) -> str:
    """Ask for leave, as the executor does; return the id."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    asked = approvals.request(
        SessionKey(user, "vigil", "t1"), number * 32, expires_at=soon, **fields
    )
    await approvals.ask(gate, asked)
    return asked.id


async def test_today_tells_what_waits_and_what_was_done(gate: Gate, ann: Reader) -> None:
    """And nothing of others, also to an admin: theirs is for them to decide."""
    empty = await ann.page()
    assert "(1)" not in empty.text
    assert "Nothing waits for you." in empty.text
    assert "Nothing is planned." in empty.text
    assert empty.links.count("/console/timetable") == 3  # what plans is a page, too
    await ask(gate, "ann", "a", reason="the disk is full")
    await ask(gate, "bob", "b", reason="bob wants it")
    await act(gate, "ann", "c", "watered the plants")
    await act(gate, "bob", "d", "sold the car")
    api = await gate.person("ann")
    row = {"name": "Morning news", "prompt": "Read the news", "cron": "0 9 * * *"}
    assert (await api.post("/api/cron", json=row)).status_code == 201
    tea = FollowUp(
        fire_at=datetime.now(UTC) + timedelta(hours=1), generation=1, reason="is it wet?"
    )
    home = "ann:vigil:main"
    await gate.turn(home, State(turns=1, follow_ups={"tea": tea}))
    await gate.say(home, "It rains tonight", effect_id="5" * 32, tag="Agent follow-up")
    await gate.say(home, "You are welcome", effect_id="6" * 32)
    page = await ann.page()
    shown = page.text
    assert "(1) Today" in shown
    assert "(1) Settings" in (await ann.page("/settings")).text
    for text in ("1 waits for you", "the disk is full", "watered the plants", "Morning news",
                 "It rains tonight", "is it wet?"):  # fmt: skip
        assert text in shown
    assert "You are welcome" not in shown  # it was asked for
    assert any("5" * 32 in link for link in page.links)  # one press from why
    admin = await (await signed_in(gate, "root", is_admin=True)).page()
    assert "Nothing waits for you." in admin.text
    for text in ("bob wants it", "sold the car"):
        assert text not in shown


async def test_an_admins_own_stands_first_and_what_is_others_has_their_name(gate: Gate) -> None:
    """On Today, and in every list; how bob likes it isn't how the admin does."""
    root, lists = await gate.person("rae", is_admin=True), dict[str, str]()
    made: dict[str, Any] = {
        "cron": {"name": "News of {}", "prompt": "Read", "interval_s": 3600},
        "tasks": {"title": "Wash for {}"},
        "goals": {"description": "Sleep, {}"},
        "preferences": {"category": "code", "key": "indent", "value": "as {} does"},
    }
    for user in ("bea", "rae"):
        api = root if user == "rae" else await gate.person(user)
        for kind, body in made.items():
            named = {
                name: one.format(user) if isinstance(one, str) else one
                for name, one in body.items()
            }
            assert (await api.post(f"/api/{kind}", json=named)).is_success
        await act(gate, user, user[0], f"fed the cat of {user}")
    reader = await signed_in(gate, "rae", is_admin=True)
    today = (await reader.page()).text
    own, _, others = today.partition("Of others in this home")
    assert ("cat of rae" in own, "cat of bea" in own) == (True, False)
    assert "Learnt how you like it: indent: as rae does" in own
    told = " ".join(others.partition("What comes next")[0].split())
    assert "done bea Begun: fed the cat of bea" in told
    assert "found bea Learnt how bea likes it: indent: as bea does" in told
    assert "rae" not in told
    coming = others.partition("What comes next")[2]
    assert coming.index("News of rae") < coming.index("News of bea bea")
    for path in ("/timetable", "/tasks", "/goals", "/preferences"):
        lists[path] = " ".join((await reader.page(path)).text.split())
    lists["/timetable"] = lists["/timetable"].partition(" Rows ")[2]  # the week has its own order
    for path, mine, theirs in (
        ("/timetable", "News of rae", "News of bea bea"),
        ("/tasks", "Wash for rae", "Wash for bea bea"),
        ("/goals", "Sleep, rae", "Sleep, bea bea"),
        ("/preferences", "as rae does", "indent bea as bea does"),
    ):
        assert lists[path].index(mine) < lists[path].index(theirs), path
    assert lists["/preferences"].count("So it is") == 1, "of others' it is only ended"


async def test_the_switch_is_on_every_page(gate: Gate, ann: Reader) -> None:
    """Everybody has their own; that for all is an admin's, whoever sends the form."""
    for path in pages():
        assert "Pause my agents" in (await ann.page(path)).text
    assert await ann.did("/pause", whose="mine", to="on", back="/console/browsers") == (
        "/console/browsers?undo=pause/off"
    )
    assert "End my pause" in (await ann.page()).text
    assert await ann.did("/pause", whose="mine", to="off", back="//evil.example") == "/console"
    assert "Pause my agents" in (await ann.page()).text
    assert (await ann.send("/pause", whose="all", to="on")).status_code == 403
    root = await signed_in(gate, "root", is_admin=True)
    await root.did("/pause", whose="all", to="on")

    async def notice() -> bool:
        return "paused, for all" in (await ann.page()).text

    await until(notice, "the pause is shown")
    await root.did("/pause", whose="all", to="off")


async def test_what_others_wrote_is_text(gate: Gate, ann: Reader) -> None:
    """Markup, scripts, terminal escapes, turned lines, a line of a megabyte: nothing of it acts."""
    await ask(gate, "eve", "e", reason=HOSTILE, tool="shell", input={"argv": [HOSTILE]})
    await act(gate, "eve", "f", HOSTILE)
    eve = await signed_in(gate, "eve")
    for path in pages():
        shown = await eve.page(path)
        assert shown.strange() == [], path
        assert "\x1b" not in shown.text
        assert "\u202e" not in shown.text
    assert "alert(1)" in (await eve.page()).text
    assert "⟨202E⟩" in (await eve.page()).text


async def decided(gate: Gate, user: str) -> list[dict[str, Any]]:
    """Return the verdicts that a person's session was told, oldest first."""
    key = SessionKey(user, "vigil", "t1")
    found = await gate.admin.read(key.stream, [key.in_event("control")])
    orders = [msgspec.json.decode(one.data) for one in found]
    return [one["payload"]["decision"] for one in orders]


async def test_the_inbox_decides_what_it_shows(gate: Gate) -> None:
    """Each verdict, for the arguments that were shown; of others only an admin sees anything."""
    ivy, stranger = await signed_in(gate, "ivy"), await signed_in(gate, "stan")
    given = {"command": "df -h", "note": HOSTILE}
    id_ = await ask(gate, "ivy", "1", input=given, risk="external", tool="shell")
    page = await ivy.page("/inbox")
    assert "acts upon the world outside" in page.text
    assert page.text.count("\\u202etxt") == 2  # shown, and to be edited
    body = {"id": id_, "digest": approvals.DIGEST}
    for wrong in (stranger, await signed_in(gate, "root", is_admin=True)):
        answer = await wrong.send("/inbox", **body, verdict="accept")
        assert answer.status_code == (404 if wrong is stranger else 403)
    assert (await stranger.client.get(f"/console/inbox/{id_}")).status_code == 404
    assert (await ivy.send("/inbox", id=id_, digest="0" * 64, verdict="accept")).status_code == 409
    bad = await ivy.send("/inbox", **body, verdict="edit", input="{")
    assert bad.status_code == 422
    assert "must be JSON" in bad.text
    body_of = {**body, "verdict": "accept"}
    asked = await ivy.client.post("/console/inbox", data=body_of, headers=HERE)
    assert "Run this call of shell?" in asked.text
    assert "df -h" in Shown(asked.text).text
    assert await decided(gate, "ivy") == []
    edited = '{"command": "df"}'
    there = await ivy.did("/inbox", **body, verdict="edit", input=edited)
    assert there == f"/console/inbox?decided={id_}"
    name = short_name(id_)
    assert f"Your word on {name} is stored." in (await ivy.page("/inbox", decided=id_)).text
    assert "is stored" not in (await stranger.page("/inbox", decided=id_)).text
    (verdict,) = await decided(gate, "ivy")
    assert (verdict["verdict"], verdict["input"]) == ("edit", {"command": "df"})
    assert (await ivy.send("/inbox", **body, verdict="reject")).status_code == 409


async def test_the_inbox_answers_and_allows_what_it_showed(gate: Gate) -> None:
    jo = await signed_in(gate, "jo")
    id_ = await ask(gate, "jo", "2", tool="ask_user", input={"question": "Which <b>one</b>?"})
    assert "Which <b>one</b>?" in (await jo.page(f"/inbox/{id_}")).text
    await jo.did("/inbox", id=id_, digest=approvals.DIGEST, verdict="answer", text="The blue one")
    (told,) = await decided(gate, "jo")
    assert told["text"] == "The blue one"
    kim = await signed_in(gate, "kim")
    call = await ask(gate, "kim", "3", input={"command": "df -h"}, risk="external")
    sent = {"id": call, "digest": approvals.DIGEST, "verdict": "always", "hours": "2"}
    assert (await kim.send("/inbox", **sent | {"hours": "-1"})).status_code == 422
    await kim.did("/inbox", **sent)
    api = await gate.person("kim")
    (grant,) = (await api.get("/api/grants")).json()["grants"]
    assert grant["constraints"] == [{"kind": "argv", "argv": ["df", "-h"]}]
    assert grant["made_by"] == "approval"
    assert not grant["holds_for_outside"]


async def test_requests_stand_in_the_conversation_that_asks(gate: Gate) -> None:
    """Its own and those of its workers, in the order of time, decided there; no other's."""
    ada, key = await signed_in(gate, "ada"), "ada:vigil:t1"
    soon = datetime.now(UTC) + timedelta(hours=1)
    mine = approvals.request(
        SessionKey.parse(key), "7" * 32, reason="the disk, <b>now</b>", expires_at=soon
    )
    await approvals.ask(gate, mine)
    await gate.say(key, "Anything else?", effect_id="b" * 32)
    worker = SpawnSession(
        id="c" * 32,
        ordinal=1,
        payload=SpawnSessionPayload(
            kind="worker", prompt="look", caused_by="m", root_id="m", depth=1
        ),
    )
    turn = Turn(
        id="t2", session_key=key, ordinal=2, event=None, outcome="continued", effects=(worker,),
        state=State(turns=2, approvals={mine.id: mine}), created_at=mine.asked_at,
    )  # fmt: skip
    await gate.admin.publish(SessionKey.parse(key).turn_for(""), encode(turn))
    for number, thread in (("8", f"_worker-{worker.id}"), ("9", "other")):
        asked = approvals.request(
            SessionKey("ada", "vigil", thread), number * 32, reason=f"asked by {thread[:7]}",
            expires_at=soon,
        )  # fmt: skip
        await approvals.list_on_board(gate, asked)
    page = await ada.page(f"/conversations/{key}")
    assert page.strange() == []
    shown = page.text[page.text.index("What was said") :]
    places = [shown.index(one) for one in ("<b>now</b>", "Anything else?", "asked by _worker")]
    assert places == sorted(places)
    assert "asked by other" not in shown
    form = next(
        one for one in page.forms if one.get("verdict") == "reject" and one["id"] == mine.id
    )
    del form["action"]
    assert await ada.did("/inbox", **form) == f"/console/conversations/{key}"
    elsewhere = form | {"back": "https://evil.example/", "id": "8" * 32}
    answer = await ada.send("/inbox", **elsewhere)
    assert answer.headers.get("location", "/console/inbox").startswith("/console/inbox")


async def test_several_are_decided_together(gate: Gate) -> None:
    """Those that can't be are told; the others are decided."""
    lou = await signed_in(gate, "lou")
    soon = datetime.now(UTC) + timedelta(hours=1)
    key = SessionKey("lou", "vigil", "t1")
    three = [approvals.request(key, number * 32, expires_at=soon) for number in "456"]
    state = State(turns=1, approvals={one.id: one for one in three[:2]})
    ack = await gate.turn(str(key), state)
    for one in three:
        await approvals.list_on_board(gate, one, ack.seq)
    page = await lou.page("/inbox")
    assert "Accept those chosen" in page.text
    chosen = {f"chosen-{one.id}": one.digest for one in three}
    answer = await lou.send("/inbox", **chosen, verdict="reject")
    assert answer.status_code == 409
    assert "2 of 3 were decided" in answer.text
    assert len(await decided(gate, "lou")) == 2


async def test_a_conversation_is_read_and_gone_on_with(gate: Gate) -> None:
    """What was said with its why, a word of one's own once, timers, files, every record."""
    mo, stranger = await signed_in(gate, "mo"), await signed_in(gate, "stan")
    key = "mo:vigil:plants"
    assert await mo.did("/conversations", thread="plants", agent="") == (
        f"/console/conversations/{key}"
    )
    path = f"/conversations/{key}"
    page = await mo.page(path)
    assert "Nothing was said yet." in page.text
    (say,) = [form for form in page.forms if form.get("do") == "say"]
    for _ in range(2):  # sent twice, said once
        await mo.did(path, do="say", once=say["once"], text=HOSTILE)
    user = (await gate.stored(key))[0]
    id_ = msgspec.json.decode(user.data)["id"]
    tea = FollowUp(
        fire_at=datetime.now(UTC) + timedelta(hours=1), generation=1, reason="is it wet?"
    )
    state = State(turns=1, position=user.seq, follow_ups={"tea": tea})
    turn = await gate.turn(key, state, sends={"e" * 32: id_}, ended=(id_,))
    await gate.say(key, "x" * 4_000, effect_id="e" * 32, caused_by=id_)
    await gate.receipt(key, "e" * 32, "sent")
    assert "x" * 4_000 in (await mo.page(path)).text  # what is being read is whole
    for number in range(4):
        await gate.say(key, f"and {number}", effect_id=f"{number}" * 32, caused_by=id_)
    page = await mo.page(path)
    copied = {one.get("data-of") for tag, one in page.tags if one.get("class") == "copy"}
    assert len(copied) == 5  # nothing of which a part is shown
    # Said once: the title of the page, its heading and the list beside it begin with it.
    assert page.text.count("alert(1)") == 4
    assert "is it wet?" in page.text
    assert "All 4000 characters" in page.text
    whole = next(one for one in page.links if "whole" in one)
    assert "x" * 4_000 in (await mo.page(whole.removeprefix("/console"))).text
    for deed, asked in (
        ({"do": "cancel", "timer": "tea"}, "is it wet?"),
        ({"do": "delete"}, "good"),
    ):
        question = await mo.client.post(f"/console{path}", data=deed, headers=HERE)
        assert question.status_code == 200
        assert 'id="sure"' in question.text
        assert asked in question.text
    await mo.did(path, do="cancel", timer="tea")
    await mo.did(path, do="stop")
    orders = await gate.admin.read("SESSIONS", [SessionKey.parse(key).in_event("control")])
    assert [msgspec.json.decode(one.data)["payload"]["op"] for one in orders] == [
        "cancel_timer", "stop",
    ]  # fmt: skip
    shown = await mo.page(f"{path}/timeline")
    depths = nested(shown)
    assert depths[f"{path}/records/{user.seq}"] == 1
    assert depths[f"{path}/records/{turn.seq}"] == 1  # of an event that isn't there
    assert [depths[f"{path}/records/{turn.seq + n}"] for n in (1, 2)] == [2, 2]
    record = await mo.page(f"{path}/records/{turn.seq}")
    assert '"turns": 1' in record.text
    story = await mo.page("/why", id=id_, session=key)
    assert "You wrote" in story.text
    assert key in (await mo.page("/conversations")).text
    assert key not in (await stranger.page("/conversations")).text
    nowhere = await mo.page("/conversations", words="basil & co")
    (searched,) = [one for one in nowhere.links if "/memories?" in one]
    query = dict(parse_qsl(urlsplit(searched).query))
    assert query == {"q": "basil & co"}  # what the page of memories reads
    await gate.say(key, "It is dry.", effect_id="f" * 32, caused_by="tea")
    assert "unread" in (await mo.page("/conversations")).text
    beside = await mo.page("/conversations/mo:vigil:other")
    assert ("span", "unread") in [(tag, found.get("aria-label")) for tag, found in beside.tags]
    refreshed = await mo.client.get(f"/console{path}", headers={"HX-Request": "true"})
    assert "It is dry." in refreshed.text
    assert "unread" in (await mo.page("/conversations")).text  # perhaps nobody saw it
    await mo.page(path)
    assert "unread" not in (await mo.page("/conversations")).text
    await mo.did(path, do="name", title="Plants & pots")
    assert "Plants & pots" in (await mo.page(path)).text
    led = await mo.did(path, do="archive")
    assert "Plants & pots" not in (await mo.page("/conversations")).text
    assert "Plants & pots" in (await mo.page("/conversations", archived="1")).text
    assert "Plants & pots" in (await mo.page("/conversations", words="POTS")).text
    (undo,) = [
        one
        for one in (await mo.page(led.removeprefix("/console"))).forms
        if one.get("do") == "unarchive"
    ]
    await mo.did(undo.pop("action").removeprefix("/console"), **undo)
    assert "Plants & pots" in (await mo.page("/conversations")).text
    for below in ("", "/timeline", f"/records/{turn.seq}"):
        answer = await stranger.client.get(f"/console{path}{below}")
        assert answer.status_code == 404
    refused = await stranger.send(path, do="say", once="x" * 22, text="hi")
    assert refused.status_code == 404
    assert (await stranger.client.get(f"/console/why?id={id_}")).status_code == 404
    assert (await stranger.send(path, do="delete")).status_code == 404
    assert await mo.did(path, do="delete") == "/console/conversations"
    assert key not in (await mo.page("/conversations")).text
    gone = await mo.client.get(f"/console{path}")
    assert gone.status_code == 410
    assert "being deleted" in gone.text


async def test_a_file_of_a_conversation_is_its_persons(gate: Gate) -> None:
    pat, stranger = await signed_in(gate, "pat"), await signed_in(gate, "stan")
    api = await gate.person("pat")
    sent = (await api.post("/api/attachments?name=a.png", content=png(1, 1))).json()
    body = {"text": "look", "attachments": [sent["hash"]]}
    assert (await api.post("/api/sessions/pat:vigil:t1/messages", json=body)).status_code == 202
    link = f"/console/files/{sent['hash']}"
    assert link in (await pat.page("/conversations/pat:vigil:t1")).links
    got = await pat.client.get(link)
    assert got.content == png(1, 1)
    assert got.headers["content-disposition"].startswith("attachment")
    assert (await stranger.client.get(link)).status_code == 404
    form = {"do": "say", "once": "y" * 22, "text": "and this"}
    for name, data, status in (("b.png", png(2, 1), 303), ("b.png", b"no picture\0", 422)):
        answer = await pat.client.post(
            "/console/conversations/pat:vigil:t1",
            data=form,
            files={"file": (name, data, "image/png")},
            headers=HERE,
        )
        assert answer.status_code == status, answer.text
    shown = await pat.page("/conversations/pat:vigil:t1")
    assert len([one for one in shown.links if one.startswith("/console/files/")]) == 2
    assert "and this" in shown.text


async def test_tools_and_their_results_stand_between_messages(gate: Gate) -> None:
    """Also one without a result yet, and one whose texts want to be markup."""
    key = SessionKey("pia", "vigil", "t1")
    pia = await signed_in(gate, "pia")
    await gate.say(str(key), "Let me look", effect_id="a" * 32)
    at = datetime.now(UTC)
    uses = [ToolUseBlock(id=id_, name="shell", input={"command": HOSTILE}) for id_ in "12"]
    result = ToolResultBlock(tool_use_id="1", content=HOSTILE, is_error=True)
    rows = (
        Row(role="assistant", source="agent", blocks=tuple(uses), at=at),
        Row(role="user", source="tool", blocks=(result,), at=at),
    )
    turn = Turn(
        id="t", session_key=str(key), ordinal=1, event=None, outcome="continued",
        state=State(turns=1), created_at=at, rows=rows,
    )  # fmt: skip
    await gate.admin.publish(key.turn_for(""), encode(turn))
    page = await pia.page(f"/conversations/{key}")
    assert page.strange() == []
    assert page.text.count("used") >= 2
    assert page.text.count("no result yet") == 1
    assert page.text.count("alert(1)") == 3
    assert "0 of at most 3 in a row" in page.text


async def test_slash_commands_act_and_unknown_ones_are_not_sent(gate: Gate) -> None:
    """Each leads where the page, or another, does it; what is unknown stays in the field."""
    wes, key, numbers = await signed_in(gate, "wes"), "wes:vigil:t1", itertools.count()
    path, api = f"/conversations/{key}", await gate.person("wes")

    async def order(text: str) -> httpx2.Response:
        return await wes.send(path, do="say", once=f"{next(numbers):022}", text=text)

    async def leads(text: str) -> str:
        answer = await order(text)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"].removeprefix("/console")

    unknown = await order("/remnd in an hour <b>")
    assert unknown.status_code == 200
    assert "Did you mean /remind?" in Shown(unknown.text).text
    assert "/remnd in an hour &lt;b&gt;</textarea>" in unknown.text
    assert "/why [2 | ID]" in Shown((await order("/help")).text).text
    assert "/open a12 TEXT" in Shown((await order("/open")).text).text
    assert (await order("/retry")).status_code == 422  # nothing was said yet
    assert await gate.stored(key) == []
    assert (await leads("/new")).startswith("/conversations/wes:vigil:chat-")
    assert await leads("/tasks") == "/tasks"
    assert await leads("/remind") == f"{path}#to-come"
    assert await leads("/letters") == f"{path}?letters=1#letters"
    assert await leads("/remind in an hour to call") == f"{path}#end"
    await gate.say(key, "I will", effect_id="a" * 32)
    await gate.say(key, "Gladly", effect_id="b" * 32)
    assert await leads("/why") == f"/why?id={'b' * 32}&session=wes%3Avigil%3At1"
    assert await leads("/why 2") == f"/why?id={'a' * 32}&session=wes%3Avigil%3At1"
    assert await leads("/reply 2 will you?") == f"{path}#end"
    assert await leads("/open a12 what is it?") == f"{path}#end"
    assert await leads("//stop that") == f"{path}#end"
    assert await leads("/stop") == f"{path}#end"
    said = (await api.get(f"/api/sessions/{key}")).json()["messages"]
    assert [(one["text"], one.get("reply_to")) for one in said if one["role"] == "user"] == [
        ("Remind me in an hour to call", None),
        ("will you?", "a" * 32),
        ("open a12: what is it?", None),
        ("/stop that", None),
    ]
    edited = await leads("/edit")
    assert edited.startswith(f"{path}?edit={said[-1]['seq']}#")
    assert "/delete yes" in Shown((await order("/delete")).text).text
    assert await leads("/delete yes") == "/conversations"


async def test_one_line_tells_what_it_does_now(gate: Gate) -> None:
    """That it thinks is on no record before the model answers; then tools, and another try."""
    zoe, key, at = await signed_in(gate, "zoe"), "zoe:vigil:t1", datetime.now(UTC)
    path, soon = f"/conversations/{key}", at + timedelta(minutes=2)
    api = await gate.person("zoe")
    assert "Thinking" not in (await zoe.page(path)).text
    await api.post(f"/api/sessions/{key}/messages", json={"text": "how full is it?"})
    assert "Thinking" in (await zoe.page(path)).text
    (said,) = await gate.stored(key)
    begun = Loop(
        cause=Cause(id="e", seq=said.seq, type="user_message"), fence=1, begun_at=at, is_direct=True
    )
    call = OpenCall(effect_id="f" * 32, tool_use_id="1", tool="shell", service="executor")
    use = ToolUseBlock(id="1", name="shell", input={"command": "df -h /var"})
    row = Row(role="assistant", source="agent", blocks=(use,), at=at)
    waiting = replace(begun, waiting=Waiting(calls=(call,), generation=1, due_at=soon))
    failed = replace(
        begun, retry=Retry(attempt=1, generation=2, due_at=soon, reason="it limits the rate <b>429")
    )
    for number, (loop, rows, told) in enumerate((
        (waiting, (row,), "Using shell df -h /var, until"),
        (failed, (), "The model gave no answer (it limits the rate <b>429); it is asked again"),
        (failed, (), "That passes by itself. Your message is kept."),
        (begun, (), "Thinking"),
        (None, (), "What was said"),
    )):  # fmt: skip
        turn = Turn(
            id=f"t{number}", session_key=key, ordinal=number + 1, event=None, outcome="continued",
            state=State(turns=number + 1, loop=loop), created_at=at, rows=rows,
        )  # fmt: skip
        await gate.admin.publish(SessionKey.parse(key).turn_for(""), encode(turn))
        shown = " ".join((await zoe.page(path)).text.split())
        assert told in shown
        assert ("Thinking" in shown) == (loop is begun)
    slow = Turn(
        id="s", session_key="zoe:vigil:t2", ordinal=1, event=None, outcome="continued",
        state=State(turns=1, loop=begun), created_at=at - SLOW,
    )  # fmt: skip
    await gate.admin.publish(SessionKey("zoe", "vigil", "t2").turn_for(""), encode(slow))
    cannot = "I could not answer: the model's server can't be reached"
    await gate.say("zoe:vigil:t2", cannot, effect_id="a" * 32)
    told = await zoe.page("/conversations/zoe:vigil:t2")
    assert "nothing came from the model since" in told.text
    assert "The service that thinks isn't running" in told.text  # there's only a gateway here
    assert "Is its server running" in told.text


async def test_it_thinks_also_once_another_replica_has_taken_it_over(gate: Gate) -> None:
    """Whoever takes a session over commits a turn, which is newer than what the person said, and
    asks the model after that."""
    key = "zoe:vigil:over"
    zoe, api = await signed_in(gate, "zoe"), await gate.person("zoe")
    await api.post(f"/api/sessions/{key}/messages", json={"text": "how full is it?"})
    for state, thinks in ((State(turns=1, attempt=1), True), (State(turns=2), False)):
        await gate.turn(key, state)
        assert ("Thinking" in (await zoe.page(f"/conversations/{key}")).text) is thinks
        assert (await api.get(f"/api/sessions/{key}/now")).json()["is_thinking"] is thinks


async def test_a_command_of_a_terminal_is_for_whoever_runs_vigil(gate: Gate) -> None:
    """Somebody who has a browser alone, and nothing yet, is told of none that they could type; nor
    of an entry of the settings."""
    nia, found = await signed_in(gate, "nia"), 0
    paths = ("", "/health", "/contacts", "/mail", "/notifications", "/calendars", "/models")
    for path in (*paths, "/memories", "/tasks", "/goals", "/timetable", "/deliveries"):
        page = await nia.page(path)
        text = " ".join(page.told.split())
        for told in re.finditer(r"vigil [a-z]+|\[[a-z]+\.[A-Za-z]+\]", text):
            found += 1
            before = text[: told.start()].lower()
            assert "whoever runs vigil" in re.split(r"[.?!] ", before)[-1], (path, told[0])
    assert found > len(paths)  # of what doesn't run here


async def test_a_branchs_prompt_shows_what_it_inherited(gate: Gate) -> None:
    """What its parent was shown before the call that began it; each row leads to its record."""
    parent, at = SessionKey("quy", "vigil", "t1"), datetime.now(UTC)
    quy = await signed_in(gate, "quy")

    def turn(key: SessionKey, ordinal: int, state: State, *rows: Row) -> bytes:
        return encode(Turn(
            id=f"t{ordinal}", session_key=str(key), ordinal=ordinal, event=None,
            outcome="continued", state=state, created_at=at, rows=rows,
        ))  # fmt: skip

    def row(role: Any, source: Any, *blocks: Any) -> Row:
        return Row(role=role, source=source, blocks=blocks, at=at)

    said = row("user", "person", TextBlock(text=HOSTILE))
    use = row("assistant", "agent", ToolUseBlock(id="1", name="branch", input={"prompt": "x"}))
    first = await gate.admin.publish(
        parent.turn_for(""), turn(parent, 1, State(turns=1), said, use)
    )
    await gate.admin.publish(parent.turn_for(""), turn(parent, 2, State(turns=2), use))  # later
    branch = parent.of_kind("branch", "1f")
    start = Start(prompt="x", parent=str(parent), parent_turn=first.seq)
    own = (
        row("user", "task", TextBlock(text="what if")),
        row("assistant", "agent", TextBlock(text="then")),
    )
    made = await gate.admin.publish(
        branch.turn_for(""), turn(branch, 1, State(turns=1, start=start), *own)
    )
    page = await quy.page(f"/prompts/{branch}/{made.seq}")
    assert page.strange() == []
    assert "inherited from quy:vigil:t1" in page.text
    assert f"/console/conversations/{parent}/records/{first.seq}" in page.links
    assert page.text.count("alert(1)") == 1
    for text, is_shown in (("what if", True), ("then</p>", False), ('"prompt"', False)):
        assert (text in page.text) is is_shown, text


def nested(page: Shown) -> dict[str, int]:
    """Return how deep in lists each link to a record stands."""
    return {link.removeprefix("/console"): depth for link, depth in page.depths.items()}
