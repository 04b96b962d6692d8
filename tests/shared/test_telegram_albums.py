"""Albums of Telegram, whose pictures come one by one, whenever they do: each is one message."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import anything_of, up_to
from vigil.channels.telegram.albums import counts_of, posts_of, settled
from vigil.channels.telegram.happenings import TelegramPost, update_id_of

BOT: Final = "@vigil_bot"
ANN: Final = {"id": 7, "is_bot": False}
NAMES: Final = st.sampled_from(
    ["update_id", "message", "from", "id", "is_bot", "chat", "message_id", "media_group_id", "g"]
)


def update(number: int, album: str = "", text: str = "", **more: Any) -> dict[str, Any]:
    """A message, with a picture if it's of an album."""
    chat = {"id": 7, "type": "private"}
    message: dict[str, Any] = {"message_id": number, "from": ANN, "chat": chat} | more
    if album:
        picture = {"file_id": f"f{number}"}
        message |= {"media_group_id": album, "photo": [picture], "caption": text}
    else:
        message["text"] = text
    return {"update_id": number, "message": message}


def places(post: TelegramPost) -> list[str]:
    return [one.place for one in post.files]


def test_an_album_is_one_message_with_the_words_of_any_of_its_pictures() -> None:
    found = list(
        posts_of(
            [
                update(1, "g"),
                update(2, text="Hello"),
                update(3, "g", "Which is best?"),
                update(4, "h", "Mine"),
                update(5, "g"),
                {"update_id": 6, "edited_message": update(1, "g", "Which?")["message"]},
            ],
            BOT,
        )
    )
    assert [(one.id, one.text, places(one)) for one in found] == [
        ("7 1", "Which is best?", ["f1", "f3", "f5"]),
        ("7 2", "Hello", []),
        ("7 4", "Mine", ["f4"]),
        ("7 1 edited", "Which?", ["f1"]),
    ]


def test_two_people_s_pictures_are_never_one_message() -> None:
    other = {"id": 8, "is_bot": False}
    found = posts_of([update(1, "g"), update(2, "g", **{"from": other})], BOT)
    assert [(one.author, places(one)) for one in found] == [("7", ["f1"]), ("8", ["f2"])]


@up_to(300)
@given(updates=st.lists(anything_of(NAMES), max_size=4))
def test_whatever_the_api_tells_is_gathered_or_left_out(updates: list[Any]) -> None:
    now = counts_of(updates)
    assert 0 <= settled(updates, now, {}) <= len(updates)
    assert settled(updates, now, now) == len(updates)
    assert len(list(posts_of(updates, BOT))) <= len(updates)


@st.composite
def days(draw: st.DrawFn) -> list[tuple[str, int]]:
    """Which album each update is of ('': none), and how many looks after the one before it came."""
    albums = draw(st.lists(st.sampled_from(["", "", "g", "h", "i"]), min_size=1, max_size=12))
    return [(album, draw(st.integers(0, 1))) for album in albums]


@up_to(300)
@given(day=days(), ends=st.sets(st.integers(0, 30), max_size=3))
def test_an_album_whose_pictures_come_between_looks_is_whole_and_all_is_taken_once(
    day: list[tuple[str, int]], ends: set[int]
) -> None:
    """A reader that is begun anew, at whichever look, goes on where it stored that it was. One
    album is one message, if no look between its pictures found none."""
    due, look = [], 0
    for number, (album, later) in enumerate(day, 1):
        look += later
        due.append((look, update(number, album, f"words {number}")))
    mark, taken = 0, []
    counts: Counter[str] = Counter()
    for now in range(len(day) + 40):
        if now in ends:
            counts = Counter()
        there = [one for at, one in due if at <= now and update_id_of(one) >= mark]
        before, counts = counts, counts_of(there)
        whole = settled(there, counts, before)
        taken += posts_of(there[:whole], BOT)
        if whole:
            mark = update_id_of(there[whole - 1]) + 1
    files = [place for post in taken for place in places(post)]
    assert sorted(files) == sorted(f"f{n}" for n, (album, _) in enumerate(day, 1) if album)
    words = [one for post in taken for one in post.text.split("\n\n")]
    assert sorted(words) == sorted(f"words {number}" for number in range(1, len(day) + 1))
    albums = {album for album, _ in day if album}
    looks = [at for (at, _), (album, _) in zip(due, day, strict=True) if album]
    has_pause = any(later - earlier > 1 for earlier, later in pairwise(looks))
    if len(albums) <= 1 and not has_pause:
        assert len([post for post in taken if post.files]) == len(albums)


def test_what_is_handed_on_of_an_album_is_nobody_s_word() -> None:
    """Its captions are another's, whichever picture has one."""
    origin = {"forward_origin": {"type": "user", "date": 1, "sender_user": {"first_name": "Mal"}}}
    there = [update(1, "g", **origin), update(2, "g", "accept it", **origin)]
    (found,) = posts_of(there, BOT)
    assert "accept" not in found.text
    assert [one.text for one in found.forwarded] == ["accept it"]
    assert places(found) == ["f1", "f2"]
