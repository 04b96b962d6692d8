"""The nats-py connection, mended where it stayed deaf, or told too early (nats-py 2.16).

* A pong whose waiter gave up ended the reading, and only two unanswered pings, 17 to 25 s later,
  made anybody connect again (measured, with a broker stopped for 13 and 5 s).
* So did whatever other fault met the reading: nobody looked at how it ended.
* A ping overtook what was sent before it and still waited, so a flush confirmed too much.
* A subscription whose drain was cut short stayed, and came back with every reconnect.
* Closed while something waited to be sent over a lost socket, it raised a RuntimeError (uvloop) and
  left the rest undone: a broker that was killed in that moment was never started again.
* It waits with `asyncio.wait_for`, which before Python 3.12 loses a cancellation that comes in the
  same moment as what is waited for: a service that was told to stop then went on.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import types
from collections.abc import Awaitable
from typing import Any, TypeVar

import nats.aio.client
import nats.aio.transport
import nats.errors
from nats.aio.client import Client

T = TypeVar("T")


async def wait_for(awaited: Awaitable[T], timeout: float | None) -> T:
    """Wait as `asyncio.wait_for` does since Python 3.12: a cancellation is always heeded.

    Raises:
        TimeoutError: after `timeout` seconds.
    """
    async with asyncio.timeout(timeout):
        return await awaited


def heed_cancellations() -> None:
    """Have nats-py wait with :func:`wait_for`, where Python's own loses cancellations."""
    patched = types.ModuleType("asyncio", "asyncio, with a `wait_for` that loses nothing.")
    vars(patched).update(vars(asyncio), wait_for=wait_for)
    for module in (nats.aio.client, nats.aio.transport):
        vars(module)["asyncio"] = patched


if sys.version_info < (3, 12):
    heed_cancellations()


class ReadingEnded(nats.errors.Error):
    """The task that reads the connection ended though nobody closed it."""

    def __str__(self) -> str:
        return "nobody read the connection any more"


class Connection(Client):
    """A connection that is read as long as it's open, or made anew."""

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
        await super()._read_loop()
        # Whoever ends the reading on purpose has changed the state before.
        if self.is_connected and asyncio.current_task() is self._reading_task:
            error = ReadingEnded()
            await self._error_cb(error)
            await self._process_op_err(error)

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
