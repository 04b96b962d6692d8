"""What a provider can cache of a conversation (LOOPS L-23), measured on the requests themselves."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.support.long_talk import CHEAP, LongTalk, long_talk, long_talk_with_openai
from tests.support.messages_replies import SITUATION, situation
from tests.support.prompt_cache import (
    LOOKBACK,
    TTL_S,
    PromptCache,
    cached_share,
    is_torn,
    signature_of,
)
from vigil.contracts import Usage

SHARE_MIN: Final = 0.85
TURNS: Final = 20


class Seconds:
    """The provider's clock."""

    def __init__(self) -> None:
        self.value = 0.0

    def __call__(self) -> float:
        return self.value


async def test_a_conversation_is_read_from_the_providers_cache(tmp_path: Path) -> None:
    """L-23: 85 % of turn 20's input; after a restart, in another replica and after compaction."""
    now = Seconds()
    async with long_talk(tmp_path, now) as long:
        calls: list[Usage] = []
        for number in range(1, TURNS + 1):
            used = await long.turn(number)
            assert len(used) == (1 if number % 2 else 2)
            calls += used
        for before, after in pairwise(calls):
            # However many blocks one step of tool calls made between the two.
            assert after.cache_read_tokens == before.cache_read_tokens + before.cache_write_tokens
        assert cached_share(used) >= SHARE_MIN
        _check_situation(long)
        _check_that_one_byte_matters(long)

        await long.stack.stop("cortex")
        await long.stack.start("cortex")
        assert cached_share(await long.turn(21)) >= SHARE_MIN
        await long.stack.stop("cortex")
        await long.stack.start("cortex:2")
        assert cached_share(await long.turn(23)) >= SHARE_MIN

        now.value += TTL_S
        assert cached_share(await long.turn(25)) == 0.0
        assert cached_share(await long.turn(27)) >= SHARE_MIN

        await _fill(long)
        _check_tiers(long)
        await long.turn(101)
        await long.stack.stop("cortex:2")
        await long.stack.start("cortex")
        assert cached_share(await long.turn(103)) >= SHARE_MIN


async def test_so_is_it_from_that_of_openais_newest_models(tmp_path: Path) -> None:
    """L-23: those cache what ends at a breakpoint, by themselves one near the end, where what
    changes with every call stands before it."""
    async with long_talk_with_openai(tmp_path, "gpt-6-luna") as long:
        for number in range(1, TURNS + 1):
            used = await long.turn(number)
        assert cached_share(used) >= SHARE_MIN
        _check_situation(long)
        bodies = [request.body for request in long.api.requests]
        read = [long.api.wire.read(body) for body in bodies]
        assert _share(read, lookback=1) >= SHARE_MIN
        changed = copy.deepcopy(read)
        block = changed[-1]["messages"][2]["content"][-1]
        block["text"] = block["text"].replace("message", "Message", 1)
        assert _share(changed, lookback=1) < SHARE_MIN
        assert len({body["prompt_cache_key"] for body in bodies}) == 1
        assert "ann" not in bodies[-1]["prompt_cache_key"]


async def _fill(long: LongTalk) -> None:
    """Talk until the oldest part was summed up."""
    number = 31
    while not any(turn.summary for turn in long.talk.turns):
        await long.turn(number, "x" * 12_000)
        number += 2
        assert number < 91


def _check_tiers(long: LongTalk) -> None:
    """L-24: each call says why it has the tier it has."""
    used = {(u.tier, u.tier_reason) for turn in long.talk.turns for u in turn.usage}
    assert used == {("main", "kind channel"), ("cheap", "phase compact")}
    models = {
        request.body["model"]: request.body["output_config"]["effort"]
        for request in long.api.requests
        if "output_config" in request.body
    }
    assert models == {CHEAP: "low"}


def _check_situation(long: LongTalk) -> None:
    """It stands once in each request, last of all."""
    for request in long.api.requests:
        body = long.api.wire.read(request.body)
        last = body["messages"][-1]["content"][-1]["text"]
        assert last.startswith(SITUATION)
        assert situation(body) == last
    assert "in 2010 Ann went to the sea" in last
    assert "- id " in last


def _check_that_one_byte_matters(long: LongTalk) -> None:
    """The measure fails if a byte of the history is another one in the last turn."""
    bodies = [request.body for request in long.api.requests]
    assert _share(bodies) >= SHARE_MIN
    changed = copy.deepcopy(bodies)
    block = changed[-1]["messages"][2]["content"][-1]
    block["text"] = block["text"].replace("message", "Message", 1)
    assert _share(changed) < SHARE_MIN


def _share(bodies: list[dict[str, Any]], lookback: int = LOOKBACK) -> float:
    """Return what a fresh cache gives of the last request."""
    cache = PromptCache(lambda: 0.0, lookback=lookback)
    return cached_share([_usage(cache.usage_of(body)) for body in bodies][-1:])


def _usage(found: dict[str, int]) -> Usage:
    return Usage(
        model="m",
        input_tokens=found["input_tokens"],
        cache_read_tokens=found["cache_read_input_tokens"],
        cache_write_tokens=found["cache_creation_input_tokens"],
    )


# ---------------------------------------------------------------- the rule itself


def _body(*texts: str, marked: tuple[int, ...] = (), size: int = 5000) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": t * size} for t in texts]
    for index in marked:
        content[index]["cache_control"] = {"type": "ephemeral"}
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def test_thinking_is_torn_by_a_change_of_what_was_before_it() -> None:
    body = _body("a")
    thought = {"type": "thinking", "thinking": "", "signature": signature_of(body)}
    body["messages"].append({"role": "assistant", "content": [thought]})
    assert not is_torn(body)
    body["messages"][0]["content"].append({"type": "text", "text": "now"})
    assert is_torn(body)


def test_the_rule_of_the_provider() -> None:
    now = Seconds()
    cache = PromptCache(now)
    first = cache.usage_of(_body("a", "b", marked=(0,)))
    assert first["cache_read_input_tokens"] == 0
    assert first["cache_creation_input_tokens"] > 1200
    again = cache.usage_of(_body("a", "c", "d", marked=(1,)))
    assert again["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert cache.usage_of(_body("A", "b", marked=(1,)))["cache_read_input_tokens"] == 0
    assert cache.usage_of(_body("a", "b"))["cache_read_input_tokens"] == 0
    now.value = TTL_S
    assert cache.usage_of(_body("a", marked=(0,)))["cache_read_input_tokens"] == 0


def test_too_little_is_not_kept_and_too_far_back_is_not_found() -> None:
    cache = PromptCache(Seconds())
    assert cache.usage_of(_body("a", marked=(0,), size=9))["cache_creation_input_tokens"] == 0
    cache.usage_of(_body("a", marked=(0,)))
    for blocks, is_found in ((LOOKBACK, True), (LOOKBACK + 1, False)):
        fresh = PromptCache(Seconds())
        fresh.usage_of(_body("a", marked=(0,)))
        found = fresh.usage_of(_body("a", *["b"] * (blocks - 1), marked=(blocks - 1,)))
        assert (found["cache_read_input_tokens"] > 0) is is_found
