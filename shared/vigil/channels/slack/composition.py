"""What a message is for Slack: parts, in the marks that Slack knows (mrkdwn). Pure.

In them `&`, `<` and `>` are written out, so that nothing that is said calls a whole channel or
looks like a link that it isn't.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...contracts import Said
from ...words import markdown
from ..chats.buttons import buttons
from ..chats.lists import OpenLists
from ..chats.parts import parts_of

if TYPE_CHECKING:
    from markdown_it.token import Token

SECTION_MAX: Final = 3_000
"""Characters of a section of a message with buttons. Of a message without, Slack wants at most
4,000."""
ROOM: Final = 2_800
"""Of a part as it's written out; its marks come to it."""
EFFECT: Final = "vigil_effect"
_TAGS: Final = {"strong": "*", "em": "_", "s": "~"}
_WEB: Final = re.compile(r"https?://[^\s\"<>|]+")
_QUOTE: Final = re.compile(r"^", re.MULTILINE)


class SlackPart(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send."""

    text: str
    """In Slack's marks."""
    number: int = 1


def composed(said: Said, console_url: str) -> tuple[list[SlackPart], str]:
    """Return a message in parts, in order, and the request that is decided on below them."""
    parts = parts_of(said, console_url, ROOM, lambda text: len(escaped(text)))
    found = [SlackPart(text=mrkdwn_of(one), number=at) for at, one in enumerate(parts.texts, 1)]
    return found, parts.asks


def escaped(text: str) -> str:
    """Return a text in which nothing is an order to Slack.

    >>> escaped("<!channel> & co")
    '&lt;!channel&gt; &amp; co'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def call_of(
    part: SlackPart, *, channel: str, thread: str, effect: str, asks: str
) -> dict[str, Any]:
    """Return the body of `chat.postMessage`."""
    body: dict[str, Any] = {
        "channel": channel,
        "text": part.text,
        "unfurl_links": False,
        "unfurl_media": False,
        "metadata": {
            "event_type": EFFECT,
            "event_payload": {"effect": effect, "part": part.number},
        },
    }
    if thread:
        body["thread_ts"] = thread
    if asks:
        body["blocks"] = [
            {"type": "section", "text": {"type": "mrkdwn", "text": part.text}},
            {"type": "actions", "elements": [_button(*one) for one in buttons(asks)]},
        ]
    return body


def _button(label: str, data: str) -> dict[str, Any]:
    verdict = data.partition(":")[0]
    style = "primary" if verdict == "accept" else "danger"
    shown = {"type": "plain_text", "text": label}
    return {"type": "button", "action_id": verdict, "text": shown, "value": data, "style": style}


def without_buttons(message: Mapping[str, Any], note: str) -> list[dict[str, Any]]:
    """Return the blocks of a message in which something was pressed, with a note instead."""
    blocks = message.get("blocks")
    kept = [
        one
        for one in (blocks if isinstance(blocks, list) else ())
        if isinstance(one, dict) and one.get("type") == "section"
    ]
    return [*kept, {"type": "context", "elements": [{"type": "plain_text", "text": note}]}]


def mrkdwn_of(text: str) -> str:
    """Return a text in Markdown with Slack's marks, at most `SECTION_MAX` long.

    >>> mrkdwn_of("**now** <b>\\n\\n- a\\n- [b](https://b.example)")
    '*now* &lt;b&gt;\\n\\n• a\\n• <https://b.example|b>'
    """
    tokens = markdown.structure_of(text, markdown.parser)
    if tokens is None or markdown.is_plain(tokens):
        return escaped(text)
    found = re.sub(r"\n{3,}", "\n\n", _blocks(tokens)).strip()
    return found if 0 < len(found) <= SECTION_MAX else escaped(text)


_MARKS: Final = {"hr": "———\n\n", "heading_open": "*", "heading_close": "*\n\n"}


def _blocks(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    lists = OpenLists()
    quotes: list[int] = []
    """Where in `out` the quotations begin that are open."""
    for token in tokens:
        match token.type:
            case "inline":
                out.append(_inline(token.children or ()))
            case "fence" | "code_block":
                out.append(f"```\n{escaped(token.content.rstrip())}\n```\n\n")
            case "blockquote_open":
                quotes.append(len(out))
            case "blockquote_close":
                at = quotes.pop()
                inner = "".join(out[at:]).strip("\n")
                # Slack knows one level, of whole lines.
                begins_line = "".join(out[:at])[-1:] in ("", "\n")
                is_marked = bool(inner) and begins_line and not quotes
                out[at:] = [_QUOTE.sub("> ", inner) if is_marked else inner, "\n\n"]
            case other:
                mark = lists.mark_of(token)
                out.append(_MARKS.get(other, "") if mark is None else mark)
    return "".join(out)


def _inline(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    open_links: list[bool] = []
    for token in tokens:
        match token.type:
            case "text" | "image":
                out.append(escaped(token.content))
            case "softbreak" | "hardbreak":
                out.append("\n")
            case "code_inline":
                out.append(f"`{escaped(token.content)}`")
            case "link_open":
                target = str(token.attrGet("href") or "")
                open_links.append(_WEB.fullmatch(target) is not None)
                if open_links[-1]:
                    out.append(f"<{target.replace('&', '&amp;')}|")
            case "link_close":
                out.append(">" if open_links.pop() else "")
            case _:
                name = token.type.removesuffix("_open").removesuffix("_close")
                out.append(_TAGS.get(name, ""))
    return "".join(out)
