"""What a history that keeps each situation would cost (ADR 27): requests made over as
`bench.situations` does it, and their price by the provider's rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.situations import CALL_S, READ, WRITTEN, kept, new_lines, price, same, whole, without
from tests.support.prompt_cache import TTL_S, is_torn, signature_of

LONG = "a word " * 1500


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _talk(*situations: str) -> list[dict[str, Any]]:
    """Return the requests of a conversation, one for each situation."""
    messages: list[dict[str, Any]] = []
    bodies = []
    for number, situation in enumerate(situations):
        messages.append({"role": "user", "content": [_text(f"message {number}")]})
        last = {"role": "user", "content": [_text(f"message {number}"), _text(situation)]}
        bodies.append({"model": "m", "system": [_text(LONG)], "messages": [*messages[:-1], last]})
        messages.append({"role": "assistant", "content": [_text(f"answer {number}")]})
    return bodies


TALK = _talk("[Situation]\nnow: 1\n- sea", "[Situation]\nnow: 2\n- sea", "[Situation]\nnow: 3")


def _said(body: dict[str, Any]) -> list[str]:
    return [block["text"] for message in body["messages"] for block in message["content"]]


def test_what_is_kept_stays_where_it_was_shown() -> None:
    first, second, third = kept(TALK, whole)
    assert _said(first) == ["message 0", "[Situation]\nnow: 1\n- sea"]
    assert _said(second)[:2] == _said(first)
    assert _said(third)[: len(_said(second))] == _said(second)
    assert _said(third)[-2:] == ["message 2", "[Situation]\nnow: 3"]


def test_thinking_would_stay_bound_to_what_it_came_after() -> None:
    """What a dropped situation costs beside money: the newest models refuse their own thinking."""

    def bound(bodies: list[dict[str, Any]]) -> bool:
        before, after = bodies[0], bodies[1]
        thought = {"type": "thinking", "thinking": "", "signature": signature_of(before)}
        after["messages"][1]["content"].insert(0, thought)
        return not is_torn(after)

    assert bound(kept(TALK, whole))
    assert not bound([_plain(body) for body in TALK])


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"messages": [one | {"content": [*one["content"]]} for one in body["messages"]]}


def test_of_news_each_line_stands_once() -> None:
    *_, last = kept(TALK, new_lines)
    assert _said(last).count("[Situation]\nnow: 2") == 1
    assert "".join(_said(last)).count("- sea") == 1


def test_the_least_has_no_situation() -> None:
    assert not any("[Situation]" in "".join(_said(body)) for body in without(TALK))
    assert "[Situation]" in "".join(_said(TALK[-1]))


@pytest.mark.parametrize(("pace_s", "is_kept"), [(CALL_S, True), (TTL_S + 1, False)])
def test_a_price_knows_what_a_provider_still_has(pace_s: float, is_kept: bool) -> None:
    bodies = kept(TALK[:1], whole) * 2
    tokens, _ = price(bodies[:1], [0], pace_s)
    size = tokens / WRITTEN
    cost, share = price(bodies, [0, 1], pace_s)
    assert cost == pytest.approx(size * (WRITTEN + (READ if is_kept else WRITTEN)))
    assert share == (1.0 if is_kept else 0.0)


def test_what_is_the_same_is_told_by_bytes() -> None:
    """Of the second request all up to the first message; a kept situation makes that one more."""
    dropped, grown = TALK[:2], kept(TALK[:2], whole)
    size = len(json.dumps(_text(LONG))) + len(json.dumps(_text("message 0")))
    rest = [_text("answer 0"), _text("message 1"), _text("[Situation]\nnow: 2\n- sea")]
    more = sum(len(json.dumps(one)) for one in rest)
    assert same(*dropped) == pytest.approx(size / (size + more))
    assert same(*grown) > same(*dropped)
