"""Requirements of seed 001, and of SPEC beyond it, that none of its scenarios shows."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.agent import DONE, ask, ask_in_steps, follow_up, tell
from tests.support.world import ANN, StoppedClock, World, running_world
from vigil.settings import config


def test_fr_040_and_041_the_switches_are_environment_variables(tmp_path: Path) -> None:
    """FR-040, FR-041: off by default, 3 and 15000 ms; all by the seed's names (S-11)."""
    default = config.load({}, home=tmp_path).config.autonomy
    assert (default.enabled, default.max_consecutive, default.cooldown_ms) == (False, 3, 15_000)
    environ = {
        "AUTONOMY_ENABLED": "true", "AUTONOMY_MAX_CONSECUTIVE": "5", "AUTONOMY_COOLDOWN_MS": "200",
        "TIMER_POLL_INTERVAL_MS": "250", "EFFECT_POLL_INTERVAL_MS": "250",
    }  # fmt: skip
    settings = config.load(environ, home=tmp_path)
    chosen = settings.config.autonomy
    assert (chosen.enabled, chosen.max_consecutive, chosen.cooldown_ms) == (True, 5, 200)
    assert [remark.split()[0] for remark in settings.remarks] == [
        "TIMER_POLL_INTERVAL_MS", "EFFECT_POLL_INTERVAL_MS",
    ]  # fmt: skip


async def test_fr_040_without_autonomy_only_reminders_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FR-040: the switch gates follow-ups and nothing else (S-11)."""
    async with running_world(tmp_path, monkeypatch, autonomy={"enabled": False}) as world:
        ann = await world.person()
        kept = follow_up("k", 30, "as you asked", keep=True)
        await ann.exchange(ask(follow_up("a", 30, "unasked"), kept))
        assert set(await ann.timers()) == {"k"}
        await world.advance(60)
        assert ann.talk.texts == [DONE, "as you asked"]


async def test_fr_009_a_chat_without_a_thread_gets_a_new_one(world: World) -> None:
    """FR-006, FR-009: userId:agentId:threadId, and a unique thread for each conversation (S-2)."""
    ann = await world.person(has_socket=False)
    body = {"message": "hi", "userId": "ann"}
    answers = [(await ann.http.post("/api/chat", json=body)).json() for _ in range(3)]
    assert [answer["response"] for answer in answers] == ["re: hi"] * 3
    threads = {answer["threadId"] for answer in answers}
    assert len(threads) == 3
    assert {answer["session_key"] for answer in answers} == {f"ann:vigil:{t}" for t in threads}


async def test_fr_016_the_counters_survive_a_restart(brisk: World) -> None:
    """FR-016, FR-034: at the cap before the restart, still at the cap after it (S-7)."""
    ann = await brisk.person()
    await ann.exchange(ask(*(follow_up(str(n), 10 * n, f"m{n}") for n in range(1, 5))))
    await brisk.advance(30)
    assert ann.followed_up == ["m1", "m2", "m3"]
    await brisk.stack.stop("cortex")
    await brisk.stack.start("cortex")
    await brisk.advance(10)
    assert ann.followed_up == ["m1", "m2", "m3"]
    assert ann.talk.notes[-1] == "blocked_cap"


async def test_a_pause_holds_everything_proactive_until_it_ends(brisk: World) -> None:
    """S-11: one switch; nothing comes while it is on, nothing is lost by it."""
    ann = await brisk.person()
    admin = await brisk.admin_client()
    await ann.exchange(ask(follow_up("a", 30, "a"), follow_up("k", 40, "k", keep=True)))
    assert (await ann.http.put("/api/pause")).status_code == 403
    assert (await admin.put("/api/pause")).status_code == 200
    await brisk.advance(3600, is_paused=True)
    assert ann.followed_up == []
    assert set(await ann.timers()) == {"a", "k"}
    seq = await ann.say("are you there?")
    await ann.talk.ended(seq)
    assert (await ann.until_frames(2))[-1] == "re: are you there?", "answers go on"
    assert (await admin.delete("/api/pause")).status_code == 200
    await brisk.advance(10)
    assert ann.followed_up == ["k"], "the person wrote during the pause: a is void"


async def test_quiet_hours_hold_follow_ups_back_until_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-7: due in the person's night, said in the morning; another person's day is unchanged."""
    clock = StoppedClock()
    begin, end = clock.now() - timedelta(hours=1), clock.now() + timedelta(hours=1)
    people = {"ann": {"quiet_hours": f"{begin:%H:%M}-{end:%H:%M}"}}
    async with running_world(tmp_path, monkeypatch, clock, people=people) as world:
        ann, ben = await world.person(), await world.person("ben:vigil:t1")
        for person in (ann, ben):
            await person.exchange(ask(follow_up("a", 30, "good morning")))
        due_at = (await ann.timers())["a"]["fire_at"]
        await world.advance(30)
        assert (ann.followed_up, ben.followed_up) == ([], ["good morning"])
        held = (await ann.timers())["a"]
        assert held["held_from"] == due_at
        assert held["fire_at"] == f"{end.replace(second=0, microsecond=0):%Y-%m-%dT%H:%M:%SZ}"
        await world.advance(3600)
        assert ann.followed_up == ["good morning"]


async def test_a_reminder_survives_messages_and_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-6, S-7: what the person asked for comes, whatever they say meanwhile, past cap and
    cooldown. With the rehearsal model, in the words of the README."""
    async with running_world(tmp_path, monkeypatch, has_agent=False) as world:
        ann = await world.person()
        await ann.exchange("remind me in 20 seconds to stretch")
        await ann.exchange("check back in 19 seconds")
        await ann.exchange("thanks")
        await ann.exchange("check back in 19 seconds")
        await world.advance(19)
        await world.advance(1)
        checking, reminder = ann.followed_up
        assert checking.startswith("Checking back")
        assert reminder == "Reminder: stretch"


async def test_a_reminder_ends_only_by_cancelling(world: World) -> None:
    """S-6: by the person over HTTP; then it never comes."""
    ann = await world.person()
    await ann.exchange(ask(*(follow_up(name, 30, name, keep=True) for name in ("one", "two/2"))))
    answer = await ann.http.delete(f"/api/sessions/{ANN}/timers/two/2")
    assert answer.status_code == 202
    await world.at_rest()
    assert set(await ann.timers()) == {"one"}
    await world.advance(30)
    assert ann.followed_up == ["one"]
    assert len(ann.fired) == 1


async def test_at_most_100_follow_ups_are_open(world: World) -> None:
    """S-8: the 101st is refused to the agent; the 100 stay."""
    ann = await world.person()
    steps = [[follow_up(f"{a}-{b}", 600, "x") for b in range(20)] for a in range(5)]
    await ann.exchange(ask_in_steps(*steps, [follow_up("one more", 600, "x"), tell("full")]))
    timers = await ann.timers()
    assert len(timers) == 100
    assert "one more" not in timers
    assert ann.talk.texts == ["full", DONE]


@pytest.mark.parametrize("policy", ["autonomous", "all"])
async def test_clear_policy_says_whether_replies_are_void_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """S-6: a reply that is decided and unsaid when the person writes again."""
    autonomy = {"clear_policy": policy}
    async with running_world(tmp_path, monkeypatch, autonomy=autonomy) as world:
        ann = await world.person()
        await world.stack.stop("delivery")
        for text in ("one", "two"):
            await ann.talk.ended(await ann.say(text))
        await world.stack.start("delivery")
        await world.at_rest()
        assert ann.talk.texts == (["re: two"] if policy == "all" else ["re: one", "re: two"])
        outcomes = [receipt.outcome for receipt in ann.talk.receipts]
        assert outcomes == (["void"] if policy == "all" else [])


async def test_a_running_turn_can_be_stopped(world: World) -> None:
    """S-11: one switch stops a running turn; the session goes on."""
    ann = await world.person()
    world.agent.held.add("think for long")
    seq = await ann.say("think for long")
    async with asyncio.timeout(5):
        await world.agent.thinking.wait()
    assert (await ann.http.post(f"/api/sessions/{ANN}/stop")).status_code == 202
    await ann.talk.ended(seq)
    assert world.agent.cancelled == 1
    await ann.exchange("next")
    assert ann.talk.texts == ["re: next"]
