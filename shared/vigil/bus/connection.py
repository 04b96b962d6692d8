"""The nats-py connection, mended where it stayed deaf, or told too early, and with fewer steps for
each message (nats-py 2.16).

* A pong whose waiter gave up ended the reading, and only two unanswered pings, 17 to 25 s later,
  made anybody connect again (measured, with a broker stopped for 13 and 5 s).
* So did whatever other fault met the reading: nobody looked at how it ended.
* A ping overtook what was sent before it and still waited, so a flush confirmed too much.
* A subscription whose drain was cut short stayed, and came back with every reconnect.
* Closed while something waited to be sent over a lost socket, it raised a RuntimeError (uvloop) and
  left the rest undone: a broker that was killed in that moment was never started again.
* It didn't tell the stream under TLS that it is: for each end of one, asyncio logged a warning.
* It waits with `asyncio.wait_for`, which before Python 3.12 loses a cancellation that comes in the
  same moment as what is waited for: a service that was told to stop then went on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
import types
from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeVar

import nats.aio.client
import nats.aio.transport
import nats.errors
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

from ..clock import until_next
from ..errors import Unavailable
from ..texts.trouble import reason_of
from .wire import Arrivals, AtOnce, Hear, publication

T = TypeVar("T")

CONGESTED_BYTES: Final = 256 * 1024
"""What a socket may have in its buffer before writers wait for it."""
HEARTBEAT_S: Final = 5.0
HEARTBEAT_ALONE_S: Final = 30.0
"""Of a broker that stands alone: they tell only of a consumer that somebody deleted."""
HEARTBEAT_MIN_S: Final = 1.0
HEARTBEATS_PER_S: Final = 500.0
"""What one connection of a cluster takes in of them, at most, as long as they are all idle."""


def heartbeat_s(open_now: int, *, is_cluster: bool) -> float:
    """Return the interval in seconds for the next consumer of a connection.

    A broker that stands alone ends the connection when it dies. A node of a cluster takes the
    consumers with it that it hosted, and only their silence tells those connected elsewhere.

    >>> [heartbeat_s(n, is_cluster=True) for n in (0, 1000, 10_000)]
    [1.0, 2.0, 5.0]
    >>> heartbeat_s(0, is_cluster=False)
    30.0
    """
    if not is_cluster:
        return HEARTBEAT_ALONE_S
    return min(max(open_now / HEARTBEATS_PER_S, HEARTBEAT_MIN_S), HEARTBEAT_S)


async def wait_for(awaited: Awaitable[T], timeout: float | None) -> T:
    """Wait as `asyncio.wait_for` does since Python 3.12: a cancellation is always heeded.

    Raises:
        TimeoutError: after `timeout` seconds.
    """
    async with asyncio.timeout(timeout):
        return await awaited


class UnderTls(asyncio.StreamReaderProtocol):
    """A stream that knows that it's under TLS, also if its server ends it at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._over_ssl = True


def heed_cancellations() -> None:
    """Have nats-py wait with :func:`wait_for`, where Python's own loses cancellations."""
    for module in (nats.aio.client, nats.aio.transport):
        _replace(module, wait_for=wait_for)


def _replace(module: types.ModuleType, **parts: Any) -> None:
    """Have a module of nats-py find these in `asyncio`, which stays as it is for all others."""
    patched = types.ModuleType("asyncio", "asyncio, with parts of ours.")
    vars(patched).update(vars(vars(module)["asyncio"]), **parts)
    vars(module)["asyncio"] = patched


_replace(nats.aio.transport, StreamReaderProtocol=UnderTls)  # it makes one for TLS alone
if sys.version_info < (3, 12):
    heed_cancellations()

UNKNOWN: Final = "it knows no such credential"


class AnothersCredential(nats.errors.Error):
    """The broker knows the credential, and not as that of who connects."""


def trouble(error: BaseException) -> str:
    """Return in words for a person why a broker couldn't be reached, or refused us.

    >>> trouble(ConnectionRefusedError(111, "refused"))
    'nothing listens there'
    >>> trouble(nats.errors.AuthorizationError())
    'it knows no such credential'
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate can't be verified ({error.verify_message}): "
            "SSL_CERT_FILE names the file of an authority of your own"
        )
    is_refusal = isinstance(error, nats.errors.Error) and "authorization" in str(error).lower()
    if is_refusal or isinstance(error, nats.errors.InvalidUserCredentialsError):
        return UNKNOWN
    if isinstance(error, AnothersCredential):
        return "the credential is that of another service"
    return reason_of(error)


class ReadingEnded(nats.errors.Error):
    """The task that reads the connection ended though nobody closed it."""

    def __str__(self) -> str:
        return "nobody read the connection any more"


class Connection(Client):
    """A connection that is read as long as it's open, or made anew."""

    def __init__(self) -> None:
        super().__init__()
        self._ps = self._arrivals = Arrivals(self)
        self.hearers: dict[int, Hear] = {}
        """What takes the messages of a subscription at once, by its number."""
        self._is_write_due = False

    def unavailable(self, error: Exception, what: str) -> Unavailable:
        """Return what to raise where connecting ended with `error`, with the reason in words.

        nats-py tries until it's cut off; then what the last try met is the reason.
        """
        tried = self.last_error
        why = trouble(tried if isinstance(error, TimeoutError) and tried else error)
        return Unavailable(f"{what}: {why}")

    async def hear(self, subject: str, hear: Hear) -> Subscription:
        """Subscribe; `hear` is called with each message when it's read, and waits for nothing."""
        number = self._sid + 1  # before anything of it may come
        self.hearers[number] = hear
        try:
            # nats-py starts no task for who waits for a future, and brings it back on a reconnect.
            return await self.subscribe(subject, future=asyncio.Future())
        except BaseException:
            self.hearers.pop(number, None)
            raise

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self.hearers.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        reply: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Publish. Raises: nats.errors.Error, what nats-py's raises for the same."""
        if self._status != Client.CONNECTED:
            self._check_takes(len(payload))
        if len(payload) > self._max_payload:
            raise nats.errors.MaxPayloadError
        command = publication(subject, payload, reply, headers)
        self.stats["out_msgs"] += 1
        self._pending.append(command)
        self._pending_data_size += len(command)
        if self._pending_data_size > self._max_pending_size > 0:
            await self._flush_pending(force_flush=True)
        if not self._is_write_due:
            await self._flush_pending()

    def _check_takes(self, size: int) -> None:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        if self.is_draining_pubs:
            raise nats.errors.ConnectionDrainingError
        if not self.is_connected and self._pending_data_size + size > self._max_pending_size:
            raise nats.errors.OutboundBufferLimitError

    async def _flush_pending(self, force_flush: bool = False) -> None:
        """Write what waits once this turn of the loop is over; a full socket is waited for."""
        if force_flush:
            await super()._flush_pending(force_flush)
        elif not self._is_write_due and not self._is_congested:
            self._is_write_due = True
            asyncio.get_running_loop().call_soon(self._write)
        elif not self._is_write_due and self._flush_queue is not None and self._flush_queue.empty():
            await super()._flush_pending()

    @property
    def _is_congested(self) -> bool:
        """Whether somebody must wait until the socket takes more."""
        transport = self._transport
        if not isinstance(transport, TcpTransport) or transport._io_writer is None:
            return True
        return transport._io_writer.transport.get_write_buffer_size() > CONGESTED_BYTES

    def _write(self) -> None:
        self._is_write_due = False
        if not self.is_connected or not self._pending or self._transport is None:
            return  # who connects again writes it
        with contextlib.suppress(RuntimeError, OSError):  # lost: the reading finds that out
            self._transport.writelines(self._pending)
            self._pending, self._pending_data_size = [], 0

    async def _process_pong(self) -> None:
        """Take the answer to the oldest ping, also if nobody waits for it any more."""
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    async def _send_ping(self, future: asyncio.Future[bool] | None = None) -> None:
        """Send a ping after all that waits to be sent."""
        if self._pending_data_size > 0 and self._transport is not None:
            waiting, self._pending, self._pending_data_size = self._pending, [], 0
            try:
                self._transport.writelines(waiting)
            except RuntimeError as error:
                raise nats.errors.ConnectionClosedError from error
        await super()._send_ping(future)

    async def _ping_interval(self) -> None:
        """Ping as nats-py does, but at the same moments as all other connections of this machine:
        at rest a process wakes once for all of them."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(until_next(self.options["ping_interval"], loop.time()))
            if not self.is_connected:
                continue
            try:
                self._pings_outstanding += 1
                if self._pings_outstanding > self.options["max_outstanding_pings"]:
                    await self._process_op_err(nats.errors.StaleConnectionError())
                    return
                await self._send_ping()
            except (asyncio.CancelledError, RuntimeError, AttributeError):
                break

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        """Close; what can't be sent any more is dropped."""
        try:
            await super()._close(status, do_cbs)
        except RuntimeError:
            self._pending, self._pending_data_size = [], 0
            self._status = Client.DISCONNECTED
            await super()._close(status, do_cbs)

    async def _read_loop(self) -> None:
        """Read until the connection is closed or lost; connect again if it ended otherwise."""
        self._hear_at_once()
        await super()._read_loop()
        # Whoever ends the reading on purpose has changed the state before.
        if self.is_connected and asyncio.current_task() is self._reading_task:
            error = ReadingEnded()
            await self._error_cb(error)
            await self._process_op_err(error)

    def _hear_at_once(self) -> None:
        """Have messages handed on when they come, and not by the task that reads all else."""
        wire = self._transport
        if isinstance(wire, TcpTransport) and wire._io_writer and wire._io_reader:
            wired: Any = wire._io_writer.transport
            before = wired.get_protocol()
            wired.set_protocol(AtOnce(self._arrivals, wire._io_reader, before))

    async def end(self, subscription: Any, timeout: float) -> None:
        """End a subscription; what is on its way still comes, for at most `timeout` seconds."""
        try:
            with contextlib.suppress(nats.errors.Error, TimeoutError):
                if not self.is_connected:
                    return  # who connects again subscribes only to what is left
                async with asyncio.timeout(timeout):
                    await subscription.drain()
        finally:
            subscription._stop_processing()
            self._remove_sub(subscription._id)
