"""Which sounds are somebody's own voice, in the place of writing, as each network tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from vigil.channels.chats.post import PostFile
from vigil.channels.discord import happenings as discord
from vigil.channels.matrix import happenings as matrix
from vigil.channels.slack import happenings as slack
from vigil.channels.telegram import happenings as telegram

Changes = dict[str, Any]
CLIP: Final[Changes] = {
    "url_private_download": "https://files.example/v1", "subtype": "slack_audio",
    "mimetype": "audio/mp4", "name": "audio_message.m4a", "size": 900, "user": "U7ANN",
}  # fmt: skip


def in_telegram(**changes: Any) -> Sequence[PostFile]:
    voice = {"file_id": "v1", "duration": 3, "mime_type": "audio/ogg", "file_size": 900}
    chat = {"id": 7, "type": "private"}
    message = {"message_id": 5, "from": {"id": 7, "is_bot": False}, "chat": chat, "voice": voice}
    found = telegram.post_of({"message": message | changes}, "@vigil_bot")
    assert found is not None
    return found.files


def in_discord(**changes: Any) -> Sequence[PostFile]:
    sound = {"url": "https://cdn.example/v1", "content_type": "audio/ogg", "size": 900,
             "filename": "voice-message.ogg", "duration_secs": 3.0, "waveform": ""}  # fmt: skip
    data = {"id": "11", "channel_id": "12", "author": {"id": "13"}, "type": 0, "content": "",
            "flags": 1 << 13, "attachments": [sound]}  # fmt: skip
    found = discord.post_of("MESSAGE_CREATE", data | changes, "14")
    assert found is not None
    return found.files


def in_slack(**changes: Any) -> Sequence[PostFile]:
    event = {"type": "message", "subtype": "file_share", "user": "U7ANN", "channel": "D1",
             "channel_type": "im", "ts": "1764500000.000100", "text": "",
             "files": [CLIP | changes.pop("file", {})]}  # fmt: skip
    found = slack.post_of(event | changes, "U0BOT")
    assert found is not None
    return found.files


def in_matrix(**changes: Any) -> Sequence[PostFile]:
    content = {"msgtype": "m.audio", "body": "Voice message.ogg", "url": "mxc://example.org/v1",
               "info": {"size": 900, "duration": 3000}, "org.matrix.msc3245.voice": {}}  # fmt: skip
    event = {"type": "m.room.message", "event_id": "$1", "sender": "@ann:example.org",
             "origin_server_ts": 1, "content": content | changes}  # fmt: skip
    found = matrix.message_of(event)
    assert found is not None
    return found.files


NETWORKS: Final[dict[str, Callable[..., Sequence[PostFile]]]] = {
    "telegram": in_telegram, "discord": in_discord, "slack": in_slack, "matrix": in_matrix,
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_what_was_recorded_in_the_app_is_spoken(name: str) -> None:
    (found,) = NETWORKS[name]()
    assert (found.kind, found.is_spoken, found.size) == ("a voice message", True, 900)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("telegram", {"voice": {}, "audio": {"file_id": "a1", "title": "A song"}}),
        ("telegram", {"forward_origin": {"type": "user"}}),
        ("telegram", {"via_bot": {"id": 5, "is_bot": True}}),
        ("discord", {"flags": 0}),
        ("discord", {"flags": "8192"}),
        ("discord", {"message_reference": {"type": 1}}),
        ("slack", {"file": {"subtype": ""}}),
        ("slack", {"file": {"user": "U9MAL"}}),
        ("slack", {"files": [], "attachments": [{"is_share": True, "files": [CLIP]}]}),
        ("matrix", {"org.matrix.msc3245.voice": {}, "msgtype": "m.file"}),
        ("matrix", {"url": "", "file": {"url": "mxc://example.org/v1"}}),
    ],
)
def test_a_sound_of_another_is_nobody_s_word(name: str, changes: Changes) -> None:
    """A song, or what somebody else said and was handed on; a recording that can't be read."""
    assert [one.is_spoken for one in NETWORKS[name](**changes)] in ([], [False])
