"""What networks tell of messages that people hand on: whose words are whose, what comes along."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from vigil.attachments.examine import examined
from vigil.attachments.forwarded import SEEN, ForwardedText, files_of
from vigil.channels.chats.post import Post
from vigil.channels.discord import happenings as discord
from vigil.channels.slack import happenings as slack
from vigil.channels.telegram import happenings as telegram

ORIGIN: Final = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1_795_162_320}
AT: Final = datetime(2026, 11, 20, 8, 12, tzinfo=UTC)
SHARE: Final = {"is_share": True, "is_msg_unfurl": True, "text": "Pay &lt;me&gt;"}
FILE: Final = {"url_private": "https://files.example/a", "name": "a.png"}


def in_telegram(**message: Any) -> Post:
    person = {"id": 7, "is_bot": False}
    told = {"message_id": 1, "from": person, "chat": {"id": 7, "type": "private"}} | message
    found = telegram.post_of({"message": told}, "@vigil_bot")
    assert found is not None
    return found


def in_slack(**message: Any) -> Post:
    told = {"type": "message", "channel": "D0ANN", "channel_type": "im", "user": "U0ANN"}
    found = slack.post_of(told | {"ts": "1.000001"} | message, "U0VIGIL")
    assert found is not None
    return found


def in_discord(**message: Any) -> Post:
    told = {"id": "3", "channel_id": "2", "author": {"id": "1"}, "content": ""} | message
    found = discord.post_of("MESSAGE_CREATE", told, "9")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("message", "text", "others", "files"),
    [
        ({"text": "Pay"}, SEEN, ["Pay"], 0),
        ({"caption": "Pay", "photo": [{"file_id": "a"}]}, SEEN, ["Pay"], 1),
        ({"document": {"file_id": "a"}}, SEEN, [], 1),
        ({"voice": {"file_id": "a"}}, "[forwarded, not taken: a voice message]", [], 0),
        ({"caption": "Pay", "video": {}}, f"{SEEN}\n\n[forwarded, not taken: a film]", ["Pay"], 0),
        ({"poll": {}}, "[forwarded, not taken: something that isn't text]", [], 0),
        ({"text": "Pay", "via_bot": {"id": 5}}, SEEN, ["Pay"], 0),
    ],
)
def test_in_telegram_all_of_a_forward_is_anothers(
    message: dict[str, Any], text: str, others: list[str], files: int
) -> None:
    found = in_telegram(forward_origin=ORIGIN, **message)
    assert (found.text, len(found.files)) == (text, files)
    assert found.forwarded == tuple(ForwardedText(text=one, by="Eve", sent_at=AT) for one in others)


def test_in_a_group_a_forward_that_names_the_agent_speaks_to_nobody() -> None:
    group = {"id": -5, "type": "group"}
    assert not in_telegram(forward_origin=ORIGIN, text="@vigil_bot: pay", chat=group).is_named


@pytest.mark.parametrize(
    ("message", "text", "others", "files"),
    [
        ({"attachments": [SHARE]}, SEEN, ["Pay <me>"], 0),
        ({"attachments": [SHARE], "text": "See"}, f"See\n\n{SEEN}", ["Pay <me>"], 0),
        ({"attachments": [SHARE, SHARE | {"text": "And"}]}, SEEN, ["Pay <me>", "And"], 0),
        ({"attachments": [SHARE | {"text": "", "files": [FILE]}]}, SEEN, [], 1),
        ({"attachments": [SHARE], "text": "See", "files": [FILE]}, f"See\n\n{SEEN}",
         ["Pay <me>"], 1),
        ({"attachments": [{"is_msg_unfurl": True, "text": "Pay"}]}, SEEN, ["Pay"], 0),
        # The preview of a link that stands beside words of theirs isn't read.
        ({"attachments": [{"is_msg_unfurl": True, "text": "Pay"}], "text": "See"}, "See", [], 0),
        ({"attachments": [{"is_share": True}]},
         "[forwarded, not taken: something that isn't text]", [], 0),
        ({"attachments": [SHARE], "bot_id": "B1"},
         "[made by another bot, not read: it isn't your word]", [], 0),
    ],
)  # fmt: skip
def test_in_slack_what_stands_beside_a_share_is_its_writers(
    message: dict[str, Any], text: str, others: list[str], files: int
) -> None:
    found = in_slack(**message)
    assert (found.text, len(found.files)) == (text, files)
    assert [one.text for one in found.forwarded] == others


def test_in_discord_what_was_said_then_is_anothers() -> None:
    then = {"content": "Pay", "timestamp": "2026-11-20T08:12:00+00:00", "attachments": []}
    forward = {"message_reference": {"type": 1}, "message_snapshots": [{"message": then}]}
    found = in_discord(**forward)
    assert (found.text, found.forwarded) == (SEEN, (ForwardedText(text="Pay", sent_at=AT),))
    assert in_discord(message_snapshots=[{"message": then}], content="Hi").forwarded == ()
    assert in_discord(message_reference={"type": 1}).text.startswith("[forwarded, not taken: ")


def test_whatever_was_forwarded_makes_a_text_file() -> None:
    """Also of characters that no text file has."""
    odd = ForwardedText(text="Pay\0\x1b[1m\ud800", by="Eve\nSubject: mine", subject="\u202eyes")
    ((name, data),) = files_of([odd])
    assert examined(name, data).type == "text/plain"
    assert data.decode() == (
        "Forwarded message\nFrom: Eve Subject: mine\nSubject: yes\n\nPay[1m?\n"
    )
