"""Files of a conversation for one model call: read from the store when it is asked, by their hash.

The history holds what they are. What the model doesn't take, a request has no room for, or is not
there any more is named by words; the same history makes the same request, as long as it is there.

A file may be none that a provider reads, whatever its head says. It would refuse the whole request,
and so every one that follows. So a request that is refused is made again without the files that the
model was never seen to take.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import msgspec

from vigil.attachments import store
from vigil.bus.bus import Bus, BusError
from vigil.contracts import Attachment, AttachmentBlock, Block, Row, TextBlock
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import SessionKey

from ..core.draft.sight import CROWDED, GONE, REFUSED, Sight, crowded_out, files_of, named
from ..model import ModelAnswer, ModelError, ModelRequest
from .catalogue import ModelChoice

REFUSALS: Final = ("400", "413", "422")
"""Kinds of errors: of a request that nobody would take."""
KNOWN_MAX: Final = 10_000
"""Files of which a replica knows whether a model takes them."""


class ShownFiles:
    """Asks models with the files of conversations."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._is_taken: dict[tuple[str, str], bool] = {}
        """By model and hash."""

    async def ask(
        self,
        request: ModelRequest,
        chosen: ModelChoice,
        answer: Callable[[ModelRequest], Awaitable[ModelAnswer]],
    ) -> ModelAnswer:
        """Ask by `answer` with the files that the rows of a request show.

        Raises:
            ModelError: no answer, or the files can't be read now.
        """
        if not request.counted.files:
            return await answer(request)
        shown = await with_files(self._bus, request, chosen.sight)
        taken = [hash_ for hash_ in shown.files if self._is_taken.get((chosen.name, hash_))]
        refused = [
            hash_ for hash_ in shown.files if self._is_taken.get((chosen.name, hash_)) is False
        ]
        tries = [_without(shown, refused)]
        if doubtful := [hash_ for hash_ in tries[0].files if hash_ not in taken]:
            newest = [hash_ for hash_ in _newest(tries[0].rows) if hash_ in doubtful]
            if newest and len(newest) < len(doubtful):
                tries.append(_without(shown, [*refused, *newest]))
            tries.append(_without(shown, [*refused, *doubtful]))
        for n, tried in enumerate(tries, 1):
            try:
                answered = await answer(tried)
            except ModelError as error:
                if error.kind not in REFUSALS or n == len(tries):
                    raise
                continue
            self._note(chosen.name, shown, tried)
            return answered
        raise AssertionError("the last try answers or raises")

    def _note(self, model: str, shown: ModelRequest, tried: ModelRequest) -> None:
        if len(self._is_taken) > KNOWN_MAX:
            self._is_taken.clear()
        self._is_taken |= {(model, hash_): hash_ in tried.files for hash_ in shown.files}


async def with_files(bus: Bus, request: ModelRequest, sight: Sight) -> ModelRequest:
    """Return a request with the files that its rows show.

    Raises:
        ModelError: they can't be read now; asked again, they may be.
    """
    user = SessionKey.parse(request.session_key).user
    rows = _fitting([_taken(row, sight) for row in request.rows])
    wanted = {(row.by or user, file.hash): file for row in rows for file in files_of([row])}
    read = await asyncio.gather(*(_read(bus, owner, file) for (owner, _), file in wanted.items()))
    found = {one: data for one, data in zip(wanted, read, strict=True) if data is not None}
    there = [
        _worded(row, ["" if (row.by or user, f.hash) in found else GONE for f in files_of([row])])
        for row in rows
    ]
    files = {hash_: base64.b64encode(data).decode() for (_, hash_), data in found.items()}
    return msgspec.structs.replace(request, rows=tuple(there), files=files)


async def _read(bus: Bus, owner: str, file: Attachment) -> bytes | None:
    try:
        return await store.read(bus, owner, file)
    except InvalidInput:  # no hash: a record that was written by nobody of ours
        return None
    except (Unavailable, BusError) as error:
        reason = f"an attachment can't be read: {error}"
        raise ModelError(reason, is_retryable=True, kind="attachment") from error


# ---------------------------------------------------------------- rows


def _taken(row: Row, sight: Sight) -> Row:
    return _worded(row, [sight.obstacle(file) for file in files_of([row])])


def _fitting(rows: Sequence[Row]) -> list[Row]:
    left_out = crowded_out(files_of(rows))
    whys = iter([CROWDED] * left_out)
    return [_worded(row, [next(whys, "") for _ in files_of([row])]) for row in rows]


def _without(request: ModelRequest, hashes: Sequence[str]) -> ModelRequest:
    """Return a request that names these files instead of showing them."""
    if not hashes:
        return request
    rows = [
        _worded(row, [REFUSED if file.hash in hashes else "" for file in files_of([row])])
        for row in request.rows
    ]
    files = {hash_: data for hash_, data in request.files.items() if hash_ not in hashes}
    return msgspec.structs.replace(request, rows=tuple(rows), files=files)


def _newest(rows: Sequence[Row]) -> list[str]:
    """Return the hashes of the files that came last."""
    found = [[file.hash for file in files_of([row])] for row in rows]
    return next((hashes for hashes in reversed(found) if hashes), [])


def _worded(row: Row, whys: Sequence[str]) -> Row:
    """Put words in the place of the files of a row that are not shown: those with a reason."""
    if not any(whys):
        return row
    reasons = iter(whys)
    return msgspec.structs.replace(row, blocks=tuple(_words(row.blocks, reasons)))


def _words(blocks: Sequence[Block], reasons: Iterator[str]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, AttachmentBlock) and (why := next(reasons)):
            yield TextBlock(text=named(block.file, why))
        else:
            yield block
