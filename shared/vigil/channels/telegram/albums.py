"""What somebody sends at once, as an album: the Bot API tells of each picture apart. Pure.

Only one of them has the words. How many there are isn't told, so a reader looks again until none
has come since the last look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..chats.fields import dict_in, text_in
from .happenings import TelegramPost, post_of, update_id_of


def counts_of(updates: Sequence[Any]) -> Counter[str]:
    """Return how many updates there are of each album."""
    return Counter(filter(None, map(_album, updates)))


def settled(updates: Sequence[Any], now: Mapping[str, int], before: Mapping[str, int]) -> int:
    """Return how many updates, from the first on, can be taken: up to an album that may grow.

    Args:
        now: what `counts_of` returns of these.
        before: what it returned at the look before.
    """
    growing = (
        n for n, one in enumerate(updates) if now.get(_album(one), 0) != before.get(_album(one), 0)
    )
    return next(growing, len(updates))


def posts_of(updates: Sequence[Any], bot: str) -> Iterator[TelegramPost]:
    """Yield what updates tell, an album as one post, where its first picture came."""
    albums: dict[str, list[TelegramPost]] = {}
    posts: list[list[TelegramPost]] = []
    for update in updates:
        post = post_of(update, bot)
        if post is None:
            continue
        album = _album(update)
        if album and album in albums:
            albums[album].append(post)
            continue
        posts.append([post])
        if album:
            albums[album] = posts[-1]
    yield from map(_together, posts)


def _album(update: Any) -> str:
    """Return which album an update is of; empty: it's of none."""
    message = dict_in(update, "message")
    album = text_in(message, "media_group_id")
    if not album or update_id_of(update) < 0:
        return ""
    return f"{dict_in(message, 'chat').get('id')} {dict_in(message, 'from').get('id')} {album}"


def _together(posts: Sequence[TelegramPost]) -> TelegramPost:
    first, *others = posts
    if not others:
        return first
    texts = dict.fromkeys(one.text for one in posts if one.text)
    return replace(
        first,
        text="\n\n".join(texts),
        is_named=any(one.is_named for one in posts),
        files=tuple(file for one in posts for file in one.files),
        forwarded=tuple(text for one in posts for text in one.forwarded),
    )
