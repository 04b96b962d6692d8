"""Replay: a log folded again (issue 15)."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from services.cortex.replay.counterfactual import supposed
from services.cortex.replay.difference import Difference, first
from services.cortex.replay.log import replay, sessions
from services.cortex.session.headers import headers_of
from tests.support.agent import ask, follow_up
from tests.support.cli import Cli, running_vigil
from tests.support.world import World, running_world
from vigil.contracts import Turn, decode_turn, encode
from vigil.subjects import SessionKey

THREE = [("a", 30), ("b", 60), ("c", 90)]


async def story(world: World) -> SessionKey:
    ann = await world.person()
    await ann.exchange(ask(*(follow_up(name, s, name) for name, s in THREE)))
    await world.advance(100)
    assert len(ann.followed_up) == 3
    await ann.exchange("thanks")
    return ann.talk.key


async def test_a_log_folds_again_and_other_settings_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed decision is told by its record and field; what would have been blocked, too."""
    settings = {"cooldown_ms": 0, "max_consecutive": 3}
    async with running_world(tmp_path, monkeypatch, autonomy=settings) as world:
        key = await story(world)
        bus, used = await world.stack.bus("admin"), world.stack.settings.config
        assert key in await sessions(bus)
        same = await replay(bus, key, used)
        assert (same.difference, same.skipped) == (None, {})
        assert same.turns >= 5
        strict = msgspec.structs.replace(
            used, autonomy=msgspec.structs.replace(used.autonomy, max_consecutive=1)
        )
        other = await replay(bus, key, strict)
        assert other.difference is not None
        assert other.difference.field == "outcome"
        assert (other.difference.expected, other.difference.got) == ('"answered"', '"blocked"')
        found = await supposed(bus, key, strict)
        assert (found.was.blocked, found.would_be.blocked) == (0, 2)
        assert found.was.said - found.would_be.said == 2
        assert [line.was for line in found.changes] == ["said: b", "said: c"]
        assert all("the cap is 1" in line.would_be for line in found.changes)


async def test_what_an_older_version_made_is_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-14: a turn of version 1 stays on the log, and the next one is folded from it."""
    sessions = {"idle_release_s": 0.3}
    async with running_world(tmp_path, monkeypatch, sessions=sessions) as world:
        ann = await world.person()
        await ann.exchange("hello")
        await ann.until_released()
        bus, used, key = await world.stack.bus("admin"), world.stack.settings.config, ann.talk.key
        last = await bus.get_last(key.stream, key.turns)
        assert last is not None
        raw = json.loads(last.data)
        ordinal = raw["ordinal"] + 1
        raw |= {"id": "old", "v": 1, "ordinal": ordinal, "rows": [], "effects": []}
        raw["state"]["turns"] = ordinal
        del raw["made"]
        data = json.dumps(raw).encode()
        await bus.publish(key.turn_for(""), data, headers_of(decode_turn(data), ""))
        await ann.exchange("again")
        found = await replay(bus, key, used)
        assert found.difference is None
        assert list(found.skipped.values()) == [1]
        assert found.turns >= 2


def test_the_first_field_that_differs_is_named() -> None:
    one = decode_turn(encode(_turn()))
    other = msgspec.structs.replace(one, ended=("e2",))
    assert first(one, one) is None
    assert first(one, other) == Difference(field="ended[0]", expected='"e1"', got='"e2"')


def _turn() -> Turn:
    from tests.shared.test_contracts import MADE

    return msgspec.structs.replace(MADE, ended=("e1",))


def test_the_command_line(tmp_path: Path) -> None:
    """Exit code 0 and what was folded; mistakes are named."""
    with running_vigil(tmp_path, VIGIL_MODEL__MAIN="rehearsal") as cli:
        key = "me:vigil:main"
        cli("send", "--thread", "main", "hello")
        (found,) = cli.json("replay", key)
        assert found["session"] == key
        assert (found["difference"], found["skipped"]) == (None, {})
        assert found["turns"] >= 1
        assert [one["session"] for one in cli.json("replay", "--last", "7d")] == [key]
        (other,) = cli.json("replay", key, "--with", "autonomy.max_consecutive=1")
        assert other["was"] == other["would_be"]
        assert cli.json("replay", key, "--with", "agent.max_consecutive=1") == [other]
        _refused(cli, "no SECTION.SETTING=VALUE", key, "--with", "nonsense")
        _refused(cli, "autonomy.levity", key, "--with", "autonomy.levity=1")
        _refused(cli, "max_consecutive", key, "--with", "autonomy.max_consecutive=many")
        _refused(cli, "nats.sync", key, "--with", "nats.sync=always")
        _refused(cli, "has no turns", "me:vigil:nobody")
        _refused(cli, "--last", key, "--last", "7d")


def _refused(cli: Cli, reason: str, *words: str) -> None:
    refused = cli("replay", *words, code=None)
    assert refused.returncode != 0
    assert reason in refused.stderr
