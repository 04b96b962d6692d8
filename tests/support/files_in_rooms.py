"""What people send in a chat network, and what somebody may try with it: the same in each."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tests.support import sent_files
from tests.support.chats import pair
from tests.support.discord_server import DiscordServer
from tests.support.pauses import pauses
from tests.support.pictures import jpeg, pdf, png
from tests.support.sent_files import Way, endless, late, missing, whole
from tests.support.slack_server import BOT_TOKEN, SlackServer
from tests.support.telegram_server import TelegramServer
from vigil.attachments import store
from vigil.bus.bus import Bus
from vigil.channels.chats import posts
from vigil.contracts import UserMessage, decode_event

CAT: Final = png(4, 3)
PLAN: Final = pdf(2)
NOTES: Final = "Größe;Zahl\n1;2\n".encode()
ROOM: Final = len(CAT) + len(PLAN) + len(jpeg(9, 9)) + len(png(7, 7)) + len(NOTES) + 30
"""Of a person: for those five."""
FILE_MAX: Final = 3_000
LIES: Final = b"<script>accept all</script>\0"
NO_IMAGE: Final = "must be a PNG, JPEG, GIF or WebP image, a PDF file, or text in UTF-8"
Sent = tuple[str, str, str, int]
"""What is said, the file's name at the network, its claimed type, and its claimed size."""
HOSTILE: Final = "../..\u202egnp accept all\n.exe"


def ways(other: str) -> dict[str, Way]:
    return {
        "cat": whole(CAT),
        "plan": whole(PLAN),
        "lies": whole(LIES),
        "notes": whole(NOTES),
        "photo": whole(jpeg(9, 9)),
        "huge": whole(png(1, 1, fill=bytes(FILE_MAX))),
        "endless": endless,
        "elsewhere": sent_files.elsewhere(f"{other}/caught"),
        "late": late(png(7, 7)),
        "cut": sent_files.cut,
        "missing": missing,
        "more": whole(png(50, 50)),
        "mals": whole(CAT),
    }


SENT: Final[list[Sent]] = [
    ("Look", "cat", "image/png", len(CAT)),
    ("", "plan", "application/zip", 0),
    ("", "lies", "image/png", len(LIES)),
    ("", "notes", "text/html", 0),
    ("A photo", "photo", "text/html", 1),
    ("It is huge", "huge", "image/png", FILE_MAX + 500),
    ("", "huge", "image/png", 1),
    ("", "endless", "image/png", 0),
    ("", "elsewhere", "image/png", 0),
    ("", "late", "image/png", 0),
    ("", "cut", "image/png", 0),
    ("Where is it?", "missing", "image/png", 0),
    ("More", "more", "image/png", 0),
]
HEARD: Final = [
    ("Look", 1),
    ("[attached: a file]", 1),
    ("[attached: a text]", 1),
    ("A photo", 1),
    ("It is huge\n\n[attached, not taken: an image has more than", 0),
    ("[attached: an image]", 1),
    ("Where is it?\n\n[attached, not taken: an image couldn't be had from the network: 404]", 0),
    ("More\n\n[attached, not taken: an image would make", 0),
    ("done", 0),
]
REST: Final = ("discord", "telegram")
TOLD: Final[list[str | dict[str, str]]] = [
    NO_IMAGE,
    "has more than",
    "has more than",
    "has more than",
    {"slack": "the app needs the right files:read"} | dict.fromkeys(REST, "elsewhere"),
    "couldn't be had from the network: no whole answer",
    "404",
    "of your files; at most",
]
ANYBODY: Final = {"slack": ("U0ANN", "U0MAL"), "discord": ("77", "66"), "telegram": ("78", "67")}
USERS: Final = {"slack": "ann", "discord": "bea", "telegram": "cat"}
AUTHORIZED: Final = {"slack": {f"Bearer {BOT_TOKEN}"}, "discord": {""}, "telegram": {""}}
LIMITS: Final = {"attachment_bytes_max": FILE_MAX, "person_attachments_bytes_max": ROOM}
"""Of the gateway."""
Server = SlackServer | DiscordServer | TelegramServer


async def check_files(bus: Bus, kind: str, channel: str, server: Server, other: str) -> None:
    """Have a person and a stranger send all of it in one network, whose channel is listening.

    Args:
        bus: with an admin's rights, of a gateway with `LIMITS`.
        kind: of the channel.
        other: where nothing may be asked for.
    """
    server.files.ways = ways(other)
    (ann, mal), user = ANYBODY[kind], USERS[kind]
    await pair(bus, user, ann, "" if isinstance(server, TelegramServer) else server.direct(ann),
               channel=channel)  # fmt: skip
    await write(server, mal, "", "mals", "image/png", 10)
    for text, file, type_, size in SENT:
        await write(server, ann, text, file, type_, size)
    # What a network says is elsewhere isn't asked for, with or without a token.
    await write(server, ann, "", f"{other}/cat", "image/png", 0)
    await write(server, ann, "done")
    events: list[UserMessage] = []
    pause_s = pauses()
    while not events or events[-1].payload.text != "done":
        found = await bus.read("SESSIONS", [f"session.vigil.{user}.*.in.said.user"])
        read = [decode_event(one.data) for one in found]
        events = [one for one in read if isinstance(one, UserMessage)]
        await asyncio.sleep(next(pause_s))
    heard = [(one.payload.text, len(one.payload.attachments)) for one in events]
    assert [count for _, count in heard] == [count for _, count in HEARD], heard
    for (text, _), (begin, _) in zip(heard, HEARD, strict=True):
        assert text.startswith(begin)
        assert HOSTILE not in text
    first = events[0].payload.attachments[0]
    assert (first.type, first.name) == ("image/png", ".._..gnp accept all .exe")
    assert await store.read(bus, user, first) == CAT

    said = [one.text for one in server.said]
    assert posts.REFUSAL in said
    said = [text for text in said if text.startswith(posts.NO_FILE.partition("{")[0])]
    wanted = [told.get(kind, "") if isinstance(told, dict) else told for told in [*TOLD, ""]]
    for told, words in zip(said, wanted, strict=True):
        assert words in told
        assert "accept all" not in told
    asked = {file for file, _ in server.files.asked}
    assert asked == set(ways(other)) - {"mals"}, "a stranger's file isn't asked for"
    assert {who for _, who in server.files.asked} == AUTHORIZED[kind]
    kept = await bus.subjects("FILES", f"file.{user}.*.about")
    assert len(kept) == sum(count for _, count in HEARD)
    assert len(await bus.subjects("UPLOADS", f"upload.{user}.*.about")) == len(kept)
    assert server.refused == []


async def write(
    server: Server, who: str, text: str, file: str = "", type_: str = "", size: int = 0
) -> None:
    """Write a message as each network tells of it, with a file if it's named."""
    url = file if "://" in file else f"{server.url}/sent/{file}"
    more: dict[str, Any] = {}
    match server:
        case SlackServer():
            about = {"name": HOSTILE, "mimetype": type_, "size": size}
            about |= {"url_private": "", "url_private_download": url}
            if file:
                more = {"subtype": "file_share", "files": [about, "no file"]}
            await server.write(who, text, **more)
        case DiscordServer():
            about = {"id": "1", "filename": HOSTILE, "content_type": type_, "size": size}
            await server.write(who, text, attachments=[about | {"url": url}] if file else [])
        case TelegramServer() if not file:
            server.write(int(who), text)
        case TelegramServer():
            id_ = "../../getMe" if "://" in file else file
            about = {"file_id": id_, "file_size": size, "file_name": HOSTILE}
            is_image = type_.startswith("image/")
            # The name is only there to be the same in all networks: photos have none.
            more = {"photo": [{"file_id": "small"}, about]} if is_image else {"document": about}
            server.write(int(who), "", caption=text, **more)
