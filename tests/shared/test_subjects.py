"""The codec of subjects (SPEC S-2, RELIABILITY S4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.errors import InvalidInput
from vigil.subjects import SessionKey, token_of

part = st.text("abcXYZ019_-", min_size=1, max_size=64)
keys = st.builds(SessionKey, part, part, part)


@given(keys)
def test_a_key_survives_every_subject(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key
    subjects = [
        key.in_user, key.turn_for("sx"), key.in_event("timer"), key.out_said("e" * 32),
        key.receipt("e" * 32), key.timer("any id", 3), key.due("any id", 3), key.dead("cortex"),
    ]  # fmt: skip
    for subject in subjects:
        assert SessionKey.of_subject(subject) == key
        assert not set(subject) & set("*> \t\r\n\0")


@given(keys, keys)
def test_different_keys_share_no_subject(one: SessionKey, other: SessionKey) -> None:
    assert (one.root == other.root) == (one == other)
    assert (one.kv_key == other.kv_key) == (one == other)


@given(st.text(max_size=80))
def test_whatever_is_accepted_is_harmless(text: str) -> None:
    try:
        key = SessionKey.parse(text)
    except InvalidInput:
        return
    assert str(key) == text
    assert key.root.count(".") == 3
    assert key.root.isascii()


@pytest.mark.parametrize(
    "bad",
    [
        "", ".", "*", ">", " ", "\t", "a b", "a\r\nb", "a\0b", "$JS", "..", "a.b", "a" * 65,
        "a" * 5000, "😀", "a\u202eb", "раypal", "a:b", "ａ", "a\n", 7, None, ["a"], b"a",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_bad_parts_are_refused_with_field_and_reason(bad: object, place: int) -> None:
    parts: list[object] = ["u", "a", "t"]
    parts[place] = bad
    with pytest.raises(InvalidInput) as caught:
        SessionKey.of(*parts)
    assert caught.value.field == ("userId", "agentId", "threadId")[place]


@pytest.mark.parametrize("bad", ["", "a", "a:b", "a:b:c:d", ":b:c", "a::c", "a:b:", "u:a:t:"])
def test_a_key_has_three_parts(bad: str) -> None:
    with pytest.raises(InvalidInput):
        SessionKey.parse(bad)


def test_threads_of_the_cortex_live_in_a_tree_of_their_own() -> None:
    key = SessionKey("ann", "vigil", "_autonomy")
    assert key.is_system
    assert key.stream == "SYSTEM"
    assert key.turn == "system.vigil.ann._autonomy.turn"


@given(st.lists(st.text(), min_size=1, max_size=3), st.lists(st.text(), min_size=1, max_size=3))
def test_tokens_are_injective_and_plain(one: list[str], other: list[str]) -> None:
    assert (token_of(*one) == token_of(*other)) == (one == other)
    assert set(token_of(*one)) <= set("0123456789abcdef")
