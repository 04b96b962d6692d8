"""What a message is as events of a room: the same bytes in each try. Pure."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...contracts import Attachment, Said
from ...subjects import token_of
from ...words import markdown
from ..chats.parts import parts_of
from .happenings import ASKS, EFFECT, PART

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

PART_BYTES_MAX: Final = 12_000
"""Of a part's text: with its HTML, and what else an event has, it stays below the limit."""
EVENT_BYTES_MAX: Final = 60_000
"""Of a part with its HTML; servers take 65,536 with what they add."""


class RoomEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event to send."""

    transaction: str
    """By which the server knows it when it's sent once more."""
    content: dict[str, Any]

    @property
    def body(self) -> str:
        return json.dumps(self.content, ensure_ascii=False, separators=(",", ":"))


def composed(said: Said, console_url: str, *, reply_to: str = "", to: str = "") -> list[RoomEvent]:
    """Return a message as it is sent, in order.

    Args:
        reply_to: the event that it answers, in a room of several; empty: none.
        to: whom it speaks to there.
    """
    parts = parts_of(said, console_url, PART_BYTES_MAX, lambda one: len(one.encode()))
    return [
        _event(
            said.id,
            part,
            number,
            reply_to=reply_to if number == 1 else "",
            to=to,
            asks=parts.asks if number == len(parts.texts) else "",
        )
        for number, part in enumerate(parts.texts, 1)
    ]


def file_event(effect: str, file: Attachment, place: str, number: int) -> RoomEvent:
    """Return a file of a message as it is sent, behind its texts.

    Args:
        place: where the server has it, as mxc://SERVER/NAME.
        number: of the part.
    """
    is_image = file.type.startswith("image/")
    info: dict[str, Any] = {"mimetype": file.type, "size": file.size}
    if is_image and file.width and file.height:
        info |= {"w": file.width, "h": file.height}
    content = {
        "msgtype": "m.image" if is_image else "m.file",
        "body": file.name,
        "filename": file.name,
        "url": place,
        "info": info,
        "m.mentions": {},
        EFFECT: effect,
        PART: number,
    }
    transaction = token_of("matrix", effect, "message", str(number))
    return RoomEvent(transaction=transaction, content=content)


def notice(text: str, about: str) -> RoomEvent:
    """Return what the account says by itself: programs don't answer it.

    Args:
        about: what it's said once for.
    """
    content = {"msgtype": "m.notice", "body": text, "m.mentions": {}}
    return RoomEvent(transaction=token_of("matrix notice", about), content=content)


def _event(effect: str, text: str, number: int, *, reply_to: str, to: str, asks: str) -> RoomEvent:
    content: dict[str, Any] = {
        "msgtype": "m.text",
        "body": text,
        # Whatever a text has in it, it calls nobody that isn't named here.
        "m.mentions": {"user_ids": [to]} if to else {},
        EFFECT: effect,
        PART: number,
    }
    if asks:
        content[ASKS] = asks
    if reply_to:
        content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
    page = html_of(text)
    if page:
        formatted = content | {"format": "org.matrix.custom.html", "formatted_body": page}
        if len(json.dumps(formatted, ensure_ascii=False).encode()) <= EVENT_BYTES_MAX:
            content = formatted
    transaction = token_of("matrix", effect, "message", str(number))
    return RoomEvent(transaction=transaction, content=content)


def html_of(text: str) -> str:
    """Return a text in Markdown as HTML that rooms show; empty: it's nothing but text.

    HTML in it is text, and pictures are links: to load one tells its server that it's read.

    >>> html_of("**now** <b>"), html_of("just text")
    ('<p><strong>now</strong> &lt;b&gt;</p>', '')
    """
    tokens = markdown.structure_of(text, _parser)
    if tokens is None or markdown.is_plain(tokens):
        return ""
    parser = _parser(may_have_tables=False, may_have_formulas=False)
    return str(parser.renderer.render(tokens, parser.options, {})).strip()


@cache
def _parser(**may_have: bool) -> MarkdownIt:
    made = markdown.made_parser(**may_have)
    made.options["breaks"] = True
    made.disable("image")
    return made
