"""What a page names that has only an id: in words that a stranger understands, with a way to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support import approvals
from tests.support.console import signed_in
from tests.support.gateway import Gate, until
from tests.support.remembering import running_memories, save
from vigil.contracts import DeadLetter, Memory, MemorySaved, Note, State, encode
from vigil.subjects import SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")
KEY: Final = SessionKey("ida", "vigil", "trip")
GONE: Final = "e" * 32


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: Any) -> AsyncIterator[Gate]:
    home: Path = tmp_path_factory.mktemp("home")
    async with running_memories(home) as gate:
        yield gate


async def test_what_a_memory_was_made_of_is_told_and_led_to(gate: Gate) -> None:
    """Another memory, what was said, and what isn't kept any more; and where it was said."""
    ida, api, now = await signed_in(gate, "ida"), await gate.person("ida"), datetime.now(UTC)
    said = await api.post(f"/api/sessions/{KEY}/messages", json={"text": "I go to **Graz**"})
    (message,) = (await api.get(f"/api/sessions/{KEY}")).json()["messages"]
    other = await save(api, "Ida likes *trains*", source="notes")
    made = Memory(
        id="d" * 32, content="Ida takes the train", created_at=now, source="chat:trip",
        thread=KEY.thread, provenance=(message["id"], other, GONE),
    )  # fmt: skip
    by = f"session:{KEY}"
    record = MemorySaved(memory=made, id="f" * 32, agent="vigil", owner="ida", at=now, by=by)
    await gate.admin.publish("memory.vigil.ida.save", encode(record))

    async def is_there() -> bool:
        return (await api.get(f"/api/memories/{made.id}")).status_code == 200

    await until(is_there, "it is remembered")
    page = await ida.page(f"/memories/{made.id}")
    text = " ".join(page.told.split())
    assert "Said in I go to Graz" in text
    for told in ("You wrote: “I go to Graz”", "Ida likes trains", "isn't kept any more"):
        assert told in text.partition("Made of")[2]
    place = f"/console/conversations/{KEY}?after={said.json()['seq'] - 1}#m-{said.json()['seq']}"
    assert {place, f"/console/memories/{other}?agentId=vigil"} <= set(page.links)
    assert not [one for one in (GONE, other, message["id"]) if one in page.text]


async def test_sessions_go_by_what_they_are_called(gate: Gate) -> None:
    """In the inbox, in what was given up, and on their own pages; a run by what it is."""
    ian, api = await signed_in(gate, "ian"), await gate.person("ian")
    key, run = "ian:vigil:plan", f"ian:vigil:_cron-{'c' * 32}"
    await api.post(f"/api/sessions/{key}/messages", json={"text": "Plan *my* week"})
    for number, session in enumerate((key, run)):
        parsed = SessionKey.parse(session)
        asked = approvals.request(parsed, f"{number}{'a' * 31}", reason="nobody ordered it")
        await approvals.list_on_board(gate, asked)
        letter = DeadLetter(
            id=f"delivery-S-{number}", service="delivery", stream="SESSIONS",
            subject=parsed.in_user, seq=number + 9, cause="400 No", at=datetime.now(UTC), data=b"{",
        )  # fmt: skip
        await gate.admin.publish(parsed.dead("delivery"), encode(letter))
    for path in ("/inbox", "/deliveries"):
        page = await ian.page(path)
        text = " ".join(page.text.split())
        assert "in Plan my week" in text, path
        assert "in a run of the timetable" in text, path
        assert {f"/console/conversations/{one}" for one in (key, run)} <= set(page.links)
        assert key not in text, path
    assert "A message was not sent" in (await ian.page("/deliveries")).text
    assert "Timeline of Plan my week" in (await ian.page(f"/conversations/{key}/timeline")).text
    await api.post("/api/sessions/ian:vigil:main/messages", json={"text": "Which tea?"})
    home = await ian.client.get("/console/conversations/ian:vigil:main")
    assert 'id="heading" dir="auto">Home<' in home.text  # as in the list beside it
    other = (await ian.page(f"/conversations/ian:vigil:_cron-{'c' * 32}")).text
    assert "A run of the timetable" in other


async def test_a_timeline_tells_kinds_of_records_in_words(gate: Gate) -> None:
    """And no id, which is of no use there."""
    ivy, api, key = await signed_in(gate, "ivy"), await gate.person("ivy"), "ivy:vigil:t1"
    await api.post(f"/api/sessions/{key}/messages", json={"text": "hi"})
    note = Note(code="recalled", text=f"1 memory ({GONE})")
    await gate.turn(key, State(turns=1), sends={"b" * 32: "e"}, notes=(note,))
    await gate.say(key, "Hello", effect_id="b" * 32)
    page = await ivy.page(f"/conversations/{key}/timeline")
    for told in ("a person said", "the agent decided", "the agent said", "recalled: 1 memory"):
        assert told in page.text
    for internal in ("in.said.user", "out.said", GONE):
        assert internal not in page.text


async def test_a_grant_says_what_it_allows(gate: Gate) -> None:
    """Each kind of condition in a sentence; its exact form is a fold away."""
    ike, api = await signed_in(gate, "ike"), await gate.person("ike")
    url = {"kind": "url", "host": "a.example", "port": 8443, "path": "/x"}
    folder = {"kind": "folder", "folder": "notes"}
    given: tuple[tuple[str, list[dict[str, Any]]], ...] = (
        ("shell", [{"kind": "argv", "argv": ["cat", "a"], "more": "operands"}]),
        ("http_get", [url]),
        ("read_file", [folder]),
        ("x__send", [{"kind": "equal", "field": "to", "value": "ben@b.example"},
                     {"kind": "empty", "field": "cc"}]),
        ("x__pay", [{"kind": "exact", "input": {"amount": 5}}]),
    )  # fmt: skip
    for tool, constraints in given:
        answer = await api.post("/api/grants", json={"tool": tool, "constraints": constraints})
        assert answer.status_code == 201, answer.text
    text = " ".join((await ike.page("/grants")).text.split())
    for told in (
        "the command is cat a , and what follows it, but no options",
        "url is https://a.example:8443/x , or below it", "path is in notes , or below it",
        'to is exactly "ben@b.example"', "cc is not given, or empty",
        'its arguments are exactly {"amount":5}', '"kind": "argv"', "not used yet",
    ):  # fmt: skip
        assert told.replace(" ,", ",") in text.replace(" ,", ","), told
