"""The files of messages: of a post fetched from where its network has them, examined, and refused
in words, with what it hands on of others as texts; of what an agent says read from where they are
kept.

Only what a person who is paired sent is fetched, and only as much of it as may be taken. What a
server doesn't hand out is asked for a few times and then refused, so that one file can't hold up
all that comes behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from ...attachments import forwarded, store
from ...attachments.examine import TEXT, examined
from ...attachments.names import file_name
from ...contracts import Attachment, Said
from ...errors import InvalidInput, VigilError
from ...subjects import SessionKey
from ..answers import NotTaken
from ..contract import ChannelContext, Ear
from .calls import CallFailed
from .post import Post, PostFile

FILES_MAX: Final = 10
"""Of a message."""
PAUSES_S: Final = (0.3, 2.0)
"""After which a file is asked for again that wasn't handed out."""
PAUSE_S_MAX: Final = 10.0
"""Also if a server asks for more."""
FILES_S: Final = 60.0
"""For all files of a message together."""

Fetch = Callable[[PostFile, int], Awaitable[bytes]]
"""Fetches a file of so many bytes at most. Raises: CallFailed; InvalidInput: it can't be had."""


class TakenFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the files of a post."""

    files: tuple[tuple[Attachment, bytes], ...] = ()
    kinds: tuple[str, ...] = ()
    """What to call those that are taken."""
    spoken: tuple[str, ...] = ()
    """What is said in voice messages."""
    refused: tuple[str, ...] = ()
    """What the others are called, and why each isn't taken; without its name, which may be by
    anybody."""


async def taken(post: Post, user: str, ear: Ear, fetch: Fetch) -> TakenFiles:
    """Fetch the files of a person's post; what it hands on comes first.

    Raises:
        CallFailed: the server doesn't know the account any more.
        Unavailable, BusError: it can't be told what there is room for.
    """
    until = asyncio.get_running_loop().time() + FILES_S
    files: dict[str, tuple[Attachment, bytes]] = {}
    kinds: list[str] = []
    spoken: list[str] = []
    refused: list[str] = []
    handed_on = forwarded.files_of(post.forwarded)
    given: list[tuple[str, str, PostFile | bytes]] = [
        *(("a forwarded text", name, data) for name, data in handed_on),
        *((one.kind, file_name(one.name), one) for one in post.files),
    ]
    for kind, name, one in given[:FILES_MAX]:
        try:
            is_spoken = isinstance(one, PostFile) and one.is_spoken
            if is_spoken and not ear.hears_speech:
                raise InvalidInput("file", "can't be understood here: please write")
            data = await _had(one, ear.file_bytes_max, fetch, until)
            if is_spoken:
                spoken.append(await ear.words_of(user, data))
                continue
            about = await asyncio.to_thread(examined, name, data)
            await ear.check_file(user, about)
        except InvalidInput as error:
            refused.append(f"{kind} {error.reason}")
            continue
        if about.hash not in files:
            files[about.hash] = about, data
            kinds.append("a text" if about.type == TEXT else kind)
    if (count := len(given) - FILES_MAX) > 0:
        refused.append(f"the other {count}, since at most {FILES_MAX} are taken at once")
    return TakenFiles(
        files=tuple(files.values()),
        kinds=tuple(kinds),
        spoken=tuple(spoken),
        refused=tuple(refused),
    )


async def _had(file: PostFile | bytes, bytes_max: int, fetch: Fetch, until: float) -> bytes:
    """Raises: InvalidInput, CallFailed."""
    if isinstance(file, PostFile):
        return await _fetched(file, bytes_max, fetch, until)
    if len(file) > bytes_max:
        raise too_large(bytes_max)
    return file


async def _fetched(file: PostFile, bytes_max: int, fetch: Fetch, until: float) -> bytes:
    """Raises: InvalidInput, CallFailed."""
    if file.size > bytes_max:
        raise too_large(bytes_max)
    try:
        async with asyncio.timeout_at(until):
            for pause_s in PAUSES_S:
                try:
                    return await fetch(file, bytes_max)
                except CallFailed as failed:
                    if failed.is_token_refused:
                        raise
                    if failed.is_final:
                        raise _not_handed_out(failed) from failed
                    await asyncio.sleep(min(max(pause_s, failed.wait_s), PAUSE_S_MAX))
            return await fetch(file, bytes_max)
    except CallFailed as failed:
        if failed.is_token_refused:
            raise
        raise _not_handed_out(failed) from failed
    except TimeoutError as error:
        raise InvalidInput("file", "took too long to come") from error


def too_large(bytes_max: int) -> InvalidInput:
    """Return what is said of a file that is too large.

    >>> too_large(3584 * 1024).reason
    'has more than 3.5 MiB'
    """
    return InvalidInput("file", f"has more than {bytes_max / 1024**2:.2g} MiB")


def _not_handed_out(failed: CallFailed) -> InvalidInput:
    return InvalidInput("file", f"couldn't be had from the network: {failed.answer.reason}")


async def with_bytes(
    context: ChannelContext, said: Said
) -> tuple[Said, list[tuple[Attachment, bytes]]]:
    """Return a message, and the files that go with it. Of one that isn't there any more its text
    says so.

    Raises:
        CallFailed: they can't be read now; nothing was sent.
    """
    if not said.attachments:
        return said, []
    files, lines = list[tuple[Attachment, bytes]](), list[str]()
    user = SessionKey.parse(said.session_key).user
    for file in said.attachments:
        try:
            data = None if context.bus is None else await store.read(context.bus, user, file)
        except VigilError as error:
            raise CallFailed(NotTaken(reason=f"its files can't be read: {error}")) from error
        if data is None:
            lines.append(f"[{file.in_words}: isn't there any more]")
        else:
            files.append((file, data))
    text = "\n".join((said.text, *lines))
    return replace(said, text=text), files


def named_in(said: Said) -> Said:
    """Return a message whose text says which files go with it, for a channel that takes none."""
    if not said.attachments:
        return said
    lines = (f"[{one.in_words}: in the conversation]" for one in said.attachments)
    return replace(said, text="\n".join((said.text, "", *lines)), attachments=())
