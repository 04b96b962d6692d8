"""A message that only tries a channel: asked of delivery on the bus, and told how it went.

Nothing of it is in a transcript, and it is tried once. Delivery alone can send.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SUBJECT: Final = "rpc.channel.try"
ANSWER_TIMEOUT_S: Final = 30.0
TEXT: Final = "This is a test of the channel {channel}, asked for by {by}. Nothing is to be done."


class ChannelTrial(msgspec.Struct, frozen=True, kw_only=True):
    """Send a test to a channel, as a message of that session."""

    channel: str
    session_key: str
    by: str
    """The user who wants it."""


class ChannelTried(msgspec.Struct, frozen=True, kw_only=True):
    """How it went: `taken`: the receiver has it, `unclear`: it may have it."""

    outcome: Literal["taken", "not_taken", "unclear", "unknown_channel"]
    reason: str = ""


decode: Final = msgspec.json.Decoder(ChannelTrial).decode
decode_answer: Final = msgspec.json.Decoder(ChannelTried).decode
