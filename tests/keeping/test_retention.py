"""How long streams keep what they hold, and sessions whose state became too old for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.delivery import conversation
from tests.support.stack import Stack, running_broker
from tests.support.timers import until
from tests.support.world import World, running_world
from vigil.broker.provision import provision
from vigil.bus.bus import Bus
from vigil.contracts import Turn
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.sections import Retention
from vigil.topology import DAY_S, SECOND_NS

DAY_NS = DAY_S * SECOND_NS
AT_ONCE: dict[str, Any] = {"sessions": {"idle_release_s": 0.3}}


async def ages(bus: Bus) -> dict[str, float]:
    """Return the age of each stream in days."""
    names = ("SESSIONS", "SYSTEM", "BOARD", "TIMERS", "DEAD", "EVENTS", "SIGNALS")
    infos = {name: await bus.api(f"STREAM.INFO.{name}", {}) for name in names}
    return {name: info["config"]["max_age"] / DAY_NS for name, info in infos.items()}


async def test_settings_become_ages_and_may_be_changed(bare: Stack) -> None:
    """X-8: applied to what is there, up and down, twice without a change; TIMERS never ages."""
    admin = await bare.bus("admin")
    default = {
        "SESSIONS": 0, "SYSTEM": 30, "BOARD": 0, "TIMERS": 0, "DEAD": 90, "EVENTS": 7, "SIGNALS": 7,
    }  # fmt: skip
    assert await ages(admin) == default
    changed = Retention(
        sessions_days=30, system_days=3, board_days=4, dead_days=10, events_days=1, signals_days=2
    )
    for _ in range(2):
        await provision(admin, changed)
        assert await ages(admin) == {
            "SESSIONS": 30, "SYSTEM": 3, "BOARD": 4, "TIMERS": 0, "DEAD": 10, "EVENTS": 1,
            "SIGNALS": 2,
        }  # fmt: skip
    await provision(admin, Retention())
    assert await ages(admin) == default


async def test_a_broker_that_restarts_keeps_the_ages(tmp_path: Path) -> None:
    """X-8: the watch provisions with the settings, too."""
    retention = Retention(sessions_days=3)
    async with running_broker(tmp_path, retention=retention) as broker:
        broker.watch()
        admin = await broker.admin()
        broker.kill()
        old = broker.pid

        async def is_back() -> bool:
            return broker.pid != old and (await ages(admin))["SESSIONS"] == 3

        await until(is_back, timeout_s=20)
        await admin.close()


# ---------------------------------------------------------------- what became too old


async def too_old(world: World, before: int) -> None:
    """Remove every record of SESSIONS before a sequence, as its age would."""
    await world.admin.api("STREAM.PURGE.SESSIONS", {"seq": before})


async def last_seq(world: World) -> int:
    info = await world.admin.api("STREAM.INFO.SESSIONS", {})
    return int(info["state"]["last_seq"])


async def test_a_session_whose_state_is_gone_starts_anew_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8: a reminder of before finds no state: noted, not said; then it's a new conversation."""
    async with running_world(tmp_path, monkeypatch, None, False, **AT_ONCE) as world:
        person = await world.person()
        await person.exchange("remind me in 60 seconds to drink water")
        await person.until_released()
        await too_old(world, await last_seq(world) + 1)
        said = len(person.talk.said)
        await world.advance(120)
        turn = person.talk.turns[-1]
        assert [note.code for note in turn.notes] == ["state_expired"]
        assert turn.ordinal == 1
        assert await person.timers() == {}
        await person.exchange("hello")
        assert len(person.talk.said) == said + 1
        assert [line["role"] for line in await person.transcript()] == ["user", "assistant"]


async def test_events_newer_than_a_lost_state_are_answered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-8, S-4: the cortex was away while the state became too old; what waits is not lost."""
    async with running_world(tmp_path, monkeypatch, None, False, **AT_ONCE) as world:
        person = await world.person()
        await person.exchange("check back in 3600 seconds")
        await person.until_released()
        await world.stack.stop("cortex")
        first = await person.say("one")
        await person.say("two")
        await too_old(world, first)
        await world.stack.start("cortex")
        await world.at_rest()
        await world.at_rest()
        texts = [line["text"] for line in await person.transcript() if line["role"] == "user"]
        assert texts == ["one", "two"]
        state = person.talk.turns[-1].state
        assert state.turns == len(person.talk.turns) - before_loss(person.talk.turns)
        assert state.follow_ups == {}
        answers = [line for line in await person.transcript() if line["role"] == "assistant"]
        assert len(answers) == 2


def before_loss(turns: list[Turn]) -> int:
    """Count the turns that were committed before the ordinals began anew."""
    starts = [n for n, turn in enumerate(turns) if turn.ordinal == 1]
    return starts[-1]


async def test_a_send_whose_fence_is_too_old_is_said(bare: Stack) -> None:
    """X-8, S-10: nothing of the transcript is left to expect, and the message still goes out."""
    admin = await bare.bus("admin")
    talk = conversation(admin)
    fence = await talk.user()
    send = talk.send(is_autonomous=True)
    await talk.turn(send)
    await admin.api("STREAM.MSG.DELETE.SESSIONS", {"seq": fence})
    await bare.start("delivery")
    await talk.settled(send)
    assert await talk.said_ids() == [send.id]


async def test_a_send_after_an_older_rest_of_the_transcript_is_said(bare: Stack) -> None:
    """X-8: the fence is gone, an older message is still there."""
    admin = await bare.bus("admin")
    talk = conversation(admin)
    await talk.user("first")
    fence = await talk.user("second")
    send = talk.send()
    await talk.turn(send)
    await admin.api("STREAM.MSG.DELETE.SESSIONS", {"seq": fence})
    await bare.start("delivery")
    await talk.settled(send)
    assert await talk.said_ids() == [send.id]


def test_a_request_may_not_outlive_who_asks(tmp_path: Path) -> None:
    """X-2, X-6: a worker that waits for a verdict would be forgotten before it comes."""
    (tmp_path / "vigil.toml").write_text(
        "[retention]\nsystem_days = 1\n[approvals]\nexpires_s = 86400\n", "utf-8"
    )
    with pytest.raises(ConfigError, match=r"approvals\.expires_s must be less"):
        config.load({}, home=tmp_path)
    assert config.load({"VIGIL_APPROVALS__EXPIRES_S": "86399"}, home=tmp_path)
