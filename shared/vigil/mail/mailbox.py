"""One connection to a mailbox by IMAP, which only ever looks.

The mailbox is opened read-only and parts are fetched by PEEK: nothing is marked, moved or deleted.
The library waits in calls, so each connection has a thread of its own; whoever gives up waiting
cuts the line, which ends the call. A connection that failed in any way is not used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import imaplib
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any, Final, TypeVar

import msgspec
from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import LoginError

from ..errors import VigilError
from ..texts.trouble import reason_of
from .heads import plain

T = TypeVar("T")
CONNECT_S: Final = 20.0
READ_S: Final = 60.0
CALL_S: Final = 120.0
"""For a whole call: a server may say for ever that it's about to answer."""
IDLE_S: Final = 240.0
"""Then it's looked whether the line still stands: some networks forget one that is quiet."""
DEAD_WITHIN: Final = 0.9
"""Back sooner than this part of the time and with nothing: the line is cut (the library doesn't
say)."""
FAILURES: Final = (
    imaplib.IMAP4.error,
    OSError,
    ValueError,
    EOFError,
    AttributeError,
    KeyError,
    IndexError,
    AssertionError,
    UnicodeError,
)
"""What the library raises for what a server says or doesn't."""


_OF_THE_MOMENT: Final = re.compile(r"\[(UNAVAILABLE|LIMIT|INUSE|SERVERBUG)\b", re.IGNORECASE)
"""Why a server lets nobody in just now (RFC 5530): whose password it is doesn't matter."""


class MailboxLost(VigilError):
    """The connection can't be used any more."""


class LoginRefused(VigilError):
    """The server refuses user name and password, or the token."""


class Opened(msgspec.Struct, frozen=True):
    """A mailbox as it was found."""

    validity: int
    uid_next: int


class MailSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A mail in the mailbox, without its body."""

    uid: int
    size: int
    came_at: datetime
    """By the server's clock; aware UTC."""
    head: bytes


class Mailbox:
    """A connection; its methods raise MailboxLost."""

    def __init__(self) -> None:
        self._client: IMAPClient | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mailbox")
        self.has_idle = False

    async def open(
        self,
        host: str,
        port: int,
        *,
        security: str,
        trust: ssl.SSLContext | None,
        user: str,
        secret: str,
        is_token: bool,
        folder: str,
    ) -> Opened:
        """Connect, log in and open a folder read-only. Raises: LoginRefused, MailboxLost."""

        def connect() -> None:
            self._client = IMAPClient(
                host,
                port,
                ssl=security == "tls",
                ssl_context=trust,
                timeout=SocketTimeout(CONNECT_S, READ_S),
            )
            self._client.normalise_times = False
            if security == "starttls":
                self._client.starttls(trust)

        def log_in(client: IMAPClient) -> None:
            if is_token:
                client.oauth2_login(user, secret)
            else:
                client.login(user, secret)

        def note_idle(client: IMAPClient) -> None:
            self.has_idle = client.has_capability("IDLE")

        await self._run(connect)
        try:
            await self._do(log_in)
        except MailboxLost as error:
            if _is_refusal(error.__cause__):
                raise LoginRefused(str(error)) from error
            raise
        await self._do(note_idle)
        return await self.open_folder(folder)

    async def newer(self, uid: int) -> list[int]:
        """Return the UIDs above one, in order; whoever waits next misses none.

        A mail that comes while the server searches isn't among what it found; but it's told beside
        that, once, and not again to who waits then.
        """

        def search(client: IMAPClient) -> list[int]:
            while True:
                _heard_of_mail(client)  # before: this search sees it
                # "n:*" always has the last mail in it, whatever its UID.
                found = client.search(["UID", f"{uid + 1}:*"])
                newer = sorted(one for one in map(int, found) if one > uid)
                if newer or not _heard_of_mail(client):
                    return newer

        return await self._do(search)

    async def since(self, day: date) -> list[int]:
        """Return the UIDs of mails that came on a day of the server's zone or later, in order."""
        found = await self._do(lambda client: client.search(["SINCE", day]))
        return sorted(map(int, found))

    async def heads(self, uids: Sequence[int]) -> list[MailSeen]:
        """Return what is known of mails, in order; those that are gone are left out."""
        wanted = ["RFC822.SIZE", "INTERNALDATE", "BODY.PEEK[HEADER]"]
        found = await self._do(lambda client: client.fetch(list(uids), wanted))
        return [
            _seen(uid, found[uid])
            for uid in sorted(found)
            if uid in set(uids) and found[uid].get(b"BODY[HEADER]") is not None
        ]

    async def find(self, criteria: Sequence[str | date]) -> list[int]:
        """Return the UIDs of mails that fit, as IMAP has it (RFC 9051, 6.4.4), in order."""
        is_plain = all(str(one).isascii() for one in criteria)
        charset = None if is_plain else "UTF-8"
        found = await self._do(lambda client: client.search(list(criteria), charset))
        return sorted(map(int, found))

    async def unseen_of(self, uids: Sequence[int]) -> set[int]:
        """Return which of these nobody has read."""
        found = await self._do(lambda client: client.get_flags(list(uids)))
        return {int(uid) for uid, flags in found.items() if b"\\Seen" not in flags}

    async def folders(self) -> list[str]:
        """Return the names of all folders that can be opened."""
        found = await self._do(lambda client: client.list_folders())
        return [str(name) for flags, _, name in found if b"\\Noselect" not in flags]

    async def special_folder(self, flag: bytes) -> str:
        """Return the folder that the server says is for that (RFC 6154); empty: none."""
        return await self._do(lambda client: str(client.find_special_folder(flag) or ""))

    async def open_folder(self, folder: str) -> Opened:
        """Open another folder, read-only, too."""

        def select(client: IMAPClient) -> Opened:
            found = client.select_folder(folder, readonly=True)
            return Opened(int(found[b"UIDVALIDITY"]), int(found[b"UIDNEXT"]))

        return await self._do(select)

    async def has_message(self, message_id: str) -> bool:
        """Whether a mail with that id is in the folder: servers find parts of ids, too."""

        def search(client: IMAPClient) -> bool:
            near = client.search(["HEADER", "Message-ID", message_id.strip("<>")])
            wanted = b"BODY[HEADER.FIELDS (MESSAGE-ID)]"
            heads = client.fetch(near, [b"BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"]) if near else {}
            return any(
                message_id.encode() in one.get(wanted, b"").split() for one in heads.values()
            )

        return await self._do(search)

    async def put(self, folder: str, data: bytes, flags: Sequence[bytes]) -> None:
        """Put a mail into a folder. If the line is lost meanwhile, it may be there or not."""

        def append(client: IMAPClient) -> None:
            client.append(folder, data, list(flags))

        await self._do(append)

    async def make_folder(self, folder: str) -> None:
        """Make a folder that isn't there."""

        def make(client: IMAPClient) -> None:
            client.create_folder(folder)

        await self._do(make)

    async def unread(self) -> int:
        """Return how many mails nobody has read."""
        return len(await self._do(lambda client: client.search(["UNSEEN"])))

    async def whole(self, uid: int, bytes_max: int) -> bytes | None:
        """Return a mail, or as much of it; None: somebody removed it."""

        def fetch(client: IMAPClient) -> bytes | None:
            found = client.fetch([uid], [f"BODY.PEEK[]<0.{bytes_max}>"]).get(uid)
            data = None if found is None else found.get(b"BODY[]<0>")
            return data if isinstance(data, bytes) else None

        return await self._do(fetch)

    async def wait(self, within_s: float) -> None:
        """Wait until the server tells that something changed, or time is over."""

        def idle(client: IMAPClient) -> None:
            begun = loop.time()
            client.idle()
            told = _has_read_more(client) or client.idle_check(timeout=within_s)
            if not told and loop.time() - begun < within_s * DEAD_WITHIN:
                raise OSError("the connection was cut")
            client.idle_done()

        loop = asyncio.get_running_loop()
        await self._do(idle, within_s)

    async def close(self) -> None:
        """Cut the line, which ends what still waits."""
        self._cut()
        self._thread.shutdown(wait=False)

    def _cut(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(*FAILURES):
                client.socket().shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(*FAILURES):
                client.shutdown()

    async def _do(self, work: Callable[[IMAPClient], T], more_s: float = 0.0) -> T:
        client = self._client
        if client is None:
            raise MailboxLost("not connected")
        return await self._run(lambda: work(client), more_s)

    async def _run(self, work: Callable[[], T], more_s: float = 0.0) -> T:
        """Call the library, for `CALL_S` and `more_s` seconds at most."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CALL_S + more_s):
                return await loop.run_in_executor(self._thread, work)
        except FAILURES as error:
            self._cut()
            raise MailboxLost(plain(reason_of(error))[:300]) from error
        except asyncio.CancelledError:
            self._cut()
            raise


def _is_refusal(error: BaseException | None) -> bool:
    """Whether a server said no to who wants in. The library calls it a refusal, too, where the line
    was cut while it logged in: what was raised then stands behind."""
    if not isinstance(error, LoginError) or _OF_THE_MOMENT.search(str(error)):
        return False
    return not isinstance(error.__context__, imaplib.IMAP4.abort)


def _heard_of_mail(client: IMAPClient) -> bool:
    """Whether the server told of mail beside its answers since this was asked last. The library
    keeps that, and tells nobody."""
    _, told = client._imap.response("EXISTS")
    return any(told)


def _has_read_more(client: IMAPClient) -> bool:
    """Whether a line lies there that came together with the last one. The library waits for the
    socket, from which that was read already: it would be seen when the next one comes."""
    sock = client.socket()
    lines: list[bytes] | None = getattr(client._imap, "_readbuf", None)
    if lines is not None:  # since Python 3.14; a record of TLS may hold more than was taken from it
        return any(lines) or (isinstance(sock, ssl.SSLSocket) and sock.pending() > 0)
    file: Any = getattr(client._imap, "file", None)
    if not hasattr(file, "peek"):
        return False
    before = sock.gettimeout()
    sock.settimeout(0)
    try:
        return bool(file.peek(1))
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    finally:
        sock.settimeout(before)


def _seen(uid: int, found: dict[bytes, Any]) -> MailSeen:
    came = found.get(b"INTERNALDATE")
    at = came if isinstance(came, datetime) and came.tzinfo else datetime.fromtimestamp(0, UTC)
    return MailSeen(
        uid=uid,
        size=int(found.get(b"RFC822.SIZE", 0)),
        came_at=at.astimezone(UTC),
        head=found[b"BODY[HEADER]"],
    )
