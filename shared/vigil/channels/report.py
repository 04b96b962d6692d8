"""What a channel's own server tells of a message later: asked of delivery, which settles by it.

It comes when it comes, also of a message whose outcome nobody knew: then it's known.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SUBJECT: Final = "rpc.channel.report"
ANSWER_TIMEOUT_S: Final = 10.0


class ChannelReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message."""

    channel: str
    session_key: str
    effect_id: str
    is_delivered: bool
    """False: it can't be, for good."""
    reason: str = ""
    """In the server's words."""


class ReportTaken(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a report: `known`: it changes nothing, `unknown`: it's of no message of ours."""

    outcome: Literal["settled", "known", "unknown", "later"]
    letter_id: str = ""
    """The dead letter that this makes pointless."""


decode: Final = msgspec.json.Decoder(ChannelReport).decode
decode_answer: Final = msgspec.json.Decoder(ReportTaken).decode
