"""The process of the vector engine: ``python -m services.memory.vectors.engine FOLDER``.

It reads requests from stdin and writes answers to stdout, one at a time, and ends when stdin does:
its parent is gone then. Apart from the service because the engine holds the interpreter lock for as
long as a call takes, and because a broken file may kill the process that maps it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from .engine_calls import (
    LENGTH_BYTES,
    LOCKED,
    Change,
    CopyMore,
    Count,
    Done,
    Failed,
    Flush,
    ForgetPoints,
    Open,
    Query,
    Reply,
    Request,
    ScrubMore,
    Search,
    TakeOver,
    Upsert,
    frame,
)
from .shard import Shard

LOCK_S_MAX: Final = 10.0
LOCK_PAUSE_S: Final = 0.02


class VectorEngine:
    """Carries out requests on the shard of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shard: Shard | None = None

    def answer(self, request: Request) -> Reply:
        try:
            return Done(msgspec.Raw(msgspec.msgpack.encode(self._carry_out(request))))
        except BaseException as error:
            # A panic of the engine is no Exception; the parent shall hear of it all the same.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return Failed(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        if self._shard is not None:
            self._shard.close()
            self._shard = None

    def _carry_out(self, request: Request) -> Any:
        if isinstance(request, Open):
            self.close()
            self._shard, is_new = Shard.open(
                self._folder, request.embedder, request.dimension, is_anew=request.is_anew
            )
            return is_new
        if self._shard is None:
            raise RuntimeError("nothing is open")
        return _on(self._shard, request)


def _on(shard: Shard, request: Change | Query) -> Any:
    match request:
        case Search(vector, limit, conditions):
            return shard.search(vector, limit, conditions)
        case Count(conditions):
            return shard.count(conditions)
        case CopyMore():
            return shard.copy_more()
        case ScrubMore():
            return shard.scrub_more()
        case Upsert(rows):
            shard.upsert(rows)
        case Flush():
            shard.flush()
        case ForgetPoints(conditions):
            shard.forget(conditions)
        case TakeOver():
            shard.take_over()
    return None


def serve(folder: Path, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer until there are no more requests."""
    decode = msgspec.msgpack.Decoder(Request).decode
    engine = VectorEngine(folder)
    while (body := _read(requests)) is not None:
        replies.write(frame(engine.answer(decode(body))))
        replies.flush()
    # Not flushed: only what the parent asked to flush counts, and it may be gone.
    engine.close()


def _read(requests: BinaryIO) -> bytes | None:
    """Return the next frame; None: the parent is gone, maybe in the middle of one."""
    head = requests.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "big")
    body = requests.read(length)
    return body if len(body) == length else None


def _lock(path: Path) -> None:
    """Wait until nobody else uses the folder, then keep others from it until this process ends.

    The engine of a parent that was killed may have a call to end; two must never share files.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up_at = time.monotonic() + LOCK_S_MAX
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_at:
                sys.exit(LOCKED)
            time.sleep(LOCK_PAUSE_S)


def main() -> None:
    # The parent decides when this ends: a Ctrl-C of the terminal goes to both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _lock(folder / "lock")
    with contextlib.suppress(BrokenPipeError):
        serve(folder, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
