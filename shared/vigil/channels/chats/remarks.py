"""What stands in a message for what isn't its author's own word, or isn't taken. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...attachments.forwarded import SEEN

MADE: Final = "[made by another bot, not read: it isn't your word]"
SPOKEN: Final = "[spoken, as it was understood]"
OTHER: Final = "[something that isn't text]"


def with_taken(text: str, kinds: Sequence[str], refused: Sequence[str]) -> str:
    """Return a text with remarks on the files that came with it: what they are if it says nothing
    itself, and what wasn't taken.

    >>> with_taken("", ["an image"], []), with_taken("Look", ["an image"], ["a file is empty"])
    ('[attached: an image]', 'Look\\n\\n[attached, not taken: a file is empty]')
    """
    remarks = [] if text else [f"[attached: {one}]" for one in kinds]
    remarks += [f"[attached, not taken: {one}]" for one in refused]
    return "\n\n".join([*([text] if text else []), *(["\n".join(remarks)] if remarks else [])])


def with_spoken(text: str, spoken: Sequence[str]) -> str:
    """Return a text with what its author said in place of writing. The remark keeps it from
    deciding anything, as a verdict in writing would: it may have been misunderstood.

    >>> with_spoken("", ["Call Ben at nine"])
    '[spoken, as it was understood] Call Ben at nine'
    """
    return "\n\n".join([*([text] if text else []), *(f"{SPOKEN} {one}" for one in spoken)])


def forwarded(own: str, kind: str, *, is_attached: bool) -> str:
    """Return the text of a message that hands on another one.

    Args:
        own: what its author wrote beside that.
        kind: of what isn't taken of it; empty: nothing.
        is_attached: whether any of it is.

    >>> forwarded("", "", is_attached=True), forwarded("Hm", "a sound", is_attached=False)
    ('[forwarded: see what is attached]', 'Hm\\n\\n[forwarded, not taken: a sound]')
    """
    left_out = kind or ("" if is_attached else "something that isn't text")
    remarks = [SEEN] if is_attached else []
    remarks += [f"[forwarded, not taken: {left_out}]"] if left_out else []
    return "\n\n".join([*([own] if own else []), *remarks])


def with_attached(text: str, kind: str) -> str:
    """Return a text with the remark that something was attached, of what kind: it isn't taken.

    Its name isn't told: whoever made the file chose it.

    >>> with_attached("", "a file"), with_attached("a", "")
    ('[attached, not taken: a file]', 'a')
    """
    if not kind:
        return text
    remark = f"[attached, not taken: {kind}]"
    return f"{text}\n\n{remark}" if text else remark
