"""A call that a standing grant let through: looked at again, counted, and no more than it says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.executor.grants import GrantChecks
from services.executor.own_tools.http_get import Fetcher, HttpGet
from tests.support.boxes import ANY_KIND, kind_of
from tests.support.executing import call, has_begun, noted, open_gate, session_of, tool_of
from tests.support.grants import give, grant_of, revoke
from tests.support.hands import Hands, call_of, choice_of
from tests.support.memories import Session
from tests.support.stack import Stack
from vigil.board.grants import standing
from vigil.board.kept import KeptBoard, Revision
from vigil.board.kinds.grant import GRANTS, USES
from vigil.contracts import Address, Argv, BoardEntry, CallTool, Change, Equal, Grant, encode
from vigil.errors import InvalidInput
from vigil.net.ssrf import Rules
from vigil.subjects import Scope, SessionKey

OTHER = SessionKey("ann", "vigil", "t2")


def by(given: Revision[Grant], one: CallTool, **changes: Any) -> CallTool:
    """The call as the core lets it through by a grant."""
    payload = msgspec.structs.replace(
        one.payload, grant_id=given.entity.id, grant_revision=given.number, **changes
    )
    return msgspec.structs.replace(one, payload=payload)


def count_grant(**changes: Any) -> Grant:
    return grant_of("count", Equal(field="text", value="a"), **changes)


async def told(session: Session, one: CallTool) -> str:
    await session.turn(one)
    return (await session.result(one)).payload.content


async def test_a_use_is_counted_with_the_call(stack: Stack) -> None:
    bus, session = await stack.bus("admin"), await session_of(stack)
    given = await give(bus, count_grant())
    one = by(given, call("count", text="a"))
    assert await told(session, one) == "count a"
    await session.turn(one)  # a repeat
    await session.all_acked()
    (found,) = await standing(bus, Scope("*", "ann"))
    assert found.uses == 1
    assert found.last_used_at is not None


async def test_a_use_is_counted_once_however_many_come_between(stack: Stack) -> None:
    """L-8: as long as its session waits for it, a call may come again; then it's forgotten."""
    bus, session = await stack.bus("admin"), await session_of(stack)
    given, other = await give(bus, count_grant()), await session_of(stack, OTHER)
    one = by(given, call("count", text="a", gate="gate"))
    await session.turn(one)
    await has_begun(stack, one)
    for turn in range(2):
        calls = [by(given, call("count", n, key=OTHER, text="a", turn=turn)) for n in range(20)]
        await other.turn(*calls)
        for each in calls:
            await other.result(each)
    desk = GrantChecks(stack.contexts["executor"])
    assert isinstance(await desk.use(session.key, one, tool_of("count")), Grant)
    (found,) = await standing(bus, Scope("*", "ann"))
    assert found.uses == 41
    (named,) = await KeptBoard(bus, USES).all(Scope("*", "ann"))
    assert len(named.entity.calls) == 32 + 1, "the oldest is still awaited, others are not"
    open_gate(stack)
    await session.result(one)


async def test_of_two_sessions_that_race_for_the_last_use_one_runs(stack: Stack) -> None:
    """L-8: whatever both have read, no more runs than the person allowed."""
    bus = await stack.bus("admin")
    given = await give(bus, count_grant(uses_max=3))
    first, second = await session_of(stack), await session_of(stack, OTHER)
    calls = [by(given, call("count", n, text="a")) for n in range(4)]
    others = [by(given, call("count", n, key=OTHER, text="a")) for n in range(4)]
    await asyncio.gather(first.turn(*calls), second.turn(*others))
    results = [await first.result(one) for one in calls]
    results += [await second.result(one) for one in others]
    ran = [one for one in results if not one.payload.is_error]
    assert len(ran) == 3
    assert sum(noted(stack.settings.home).values()) == 3
    assert all("it is used up" in one.payload.content for one in results if one not in ran)
    assert (await standing(bus, Scope("*", "ann")))[0].uses == 3


async def test_what_is_revoked_doesnt_run(stack: Stack) -> None:
    bus, session = await stack.bus("admin"), await session_of(stack)
    given = await give(bus, count_grant())
    ended = await revoke(bus, given)
    for n, revision in enumerate((given, ended)):
        assert "not run" in await told(session, by(revision, call("count", n, text="a")))
    assert not noted(stack.settings.home)


@pytest.mark.parametrize(
    ("text", "changes"), [("b", {}), ("a", {"is_tainted": True})], ids=["other bytes", "outside"]
)
async def test_the_bytes_that_are_run_are_looked_at_again(
    stack: Stack, text: str, changes: dict[str, Any]
) -> None:
    """X-3: a turn that says that a grant covers what it doesn't runs nothing."""
    bus, session = await stack.bus("admin"), await session_of(stack)
    given = await give(bus, count_grant())
    assert "not run" in await told(session, by(given, call("count", text=text), **changes))
    assert not noted(stack.settings.home)


@pytest.mark.parametrize("scope", ["row", "goal"])
async def test_one_for_a_row_or_a_goal_is_none_elsewhere(stack: Stack, scope: str) -> None:
    bus, session = await stack.bus("admin"), await session_of(stack)
    given = await give(bus, count_grant(**{scope: "c" * 32}))
    for n, (of, told_) in enumerate([("", "not run"), ("d" * 32, "not run"), ("c" * 32, "count")]):
        one = by(given, call("count", n, text="a"), **{f"grant_{scope}": of})
        assert told_ in await told(session, one)


async def test_anothers_grant_is_none(stack: Stack) -> None:
    bus = await stack.bus("admin")
    given = await give(bus, count_grant(owner="bob"))
    session = await session_of(stack)
    assert "not run" in await told(session, by(given, call("count", text="a")))


async def test_two_hundred_are_the_most_that_one_has(stack: Stack) -> None:
    """L-16: also if they are made at the same moment."""
    bus = await stack.bus("admin")
    board = KeptBoard(bus, GRANTS)
    many = [count_grant(id=f"{n:032x}", name=f"g{n}") for n in range(199)]
    for one in many:
        await bus.publish(f"board.vigil.ann.grant.{one.id}", _entry(one), expect=0)
    results = await asyncio.gather(
        *(give(bus, count_grant(id=f"{n:032x}")) for n in (300, 301, 302)), return_exceptions=True
    )
    assert sum(isinstance(one, Revision) for one in results) == 1
    assert sum("200 already" in str(one) for one in results) == 2
    assert len(await board.all(Scope("*", "ann"))) == 200


def _entry(grant: Grant) -> bytes:
    entry = BoardEntry(entity=grant, turn_seq=0, at=grant.made_at, change=Change(by="ann"))
    return encode(entry)


# ---------------------------------------------------------------- no more than it says


@pytest.fixture(params=ANY_KIND)
async def hands(request: pytest.FixtureRequest, tmp_path: Path) -> Hands:
    kind = await kind_of(request.param)
    return Hands(tmp_path, choice_of(kind), shell_timeout_s=10.0)


async def shell(hands: Hands, line: str, *rules: Argv) -> str:
    made = call_of("shell", hands.settings.config, {"command": line})
    grant = grant_of("shell", *rules) if rules else None
    return (await hands.source.run(msgspec.structs.replace(made, grant=grant))).content


async def test_a_granted_command_is_run_without_a_shell(hands: Hands) -> None:
    """What a shell would read otherwise has no chance to be read."""
    echo = Argv(argv=("echo",), more="operands")
    assert "[a b]" in await shell(hands, "printf [%s] 'a b'")
    assert (await shell(hands, "echo 'a  b' c", echo)).strip() == "a  b c"
    with pytest.raises(InvalidInput, match="no grant covers"):
        await shell(hands, "echo a; echo b", echo)


async def test_a_granted_url_leads_nowhere_else(tmp_path: Path) -> None:
    """A page of the granted host can't send a call on to another."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1]
        asked.append(path)
        to = {"/v1/out": "/elsewhere", "/v1/in": "/v1/here"}.get(path)
        head = f"HTTP/1.1 302 Found\r\nlocation: {to}" if to else "HTTP/1.1 200 OK"
        writer.write(f"{head}\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok".encode())
        writer.close()

    asked: list[str] = []
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    hands = Hands(tmp_path)
    rules = Rules(ports=(port,), allow_private=True)
    fetcher = Fetcher(rules, bytes_max=1000, timeout_s=20)
    rule = Address(scheme="http", host="127.0.0.1", port=port, path="/v1")
    results = []
    for path in ("in", "out"):
        made = call_of(
            "http_get", hands.settings.config, {"url": f"http://127.0.0.1:{port}/v1/{path}"}
        )
        granted = msgspec.structs.replace(made, grant=grant_of("http_get", rule))
        results.append(await fetcher.run(msgspec.convert(made.input, HttpGet), granted))
    await fetcher.close()
    server.close()
    assert "ok" in results[0].content
    assert "standing grant" in results[1].content
    assert asked == ["/v1/in", "/v1/here", "/v1/out"]
