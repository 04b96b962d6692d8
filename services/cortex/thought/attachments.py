"""Files of a conversation for one model call: read from the store when it is asked, by their hash.

The history holds what they are. What the model doesn't take, a request has no room for, or is not
there any more is named by words; the same history makes the same request, as long as it is there.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from vigil.attachments import store
from vigil.bus.bus import Bus, BusError
from vigil.contracts import Attachment, AttachmentBlock, Block, Row, TextBlock
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import SessionKey

from ..core.context.sight import CROWDED, GONE, Sight, crowded_out, files_of, named
from .model import ModelError, ModelRequest


class _Wanted(NamedTuple):
    owner: str
    file: Attachment


async def with_files(bus: Bus, request: ModelRequest, sight: Sight) -> ModelRequest:
    """Return a request with the files that its rows show.

    Raises:
        ModelError: they can't be read now; asked again, they may be.
    """
    if not any(files_of(request.rows)):
        return request
    user = SessionKey.parse(request.session_key).user
    rows = _fitting([_taken(row, sight) for row in request.rows])
    wanted = {
        (row.by or user, file.hash): _Wanted(row.by or user, file)
        for row in rows
        for file in files_of([row])
    }
    read = await asyncio.gather(*(_read(bus, one) for one in wanted.values()))
    found = {one: data for one, data in zip(wanted, read, strict=True) if data is not None}
    there = [
        _there(row, {hash_ for owner, hash_ in found if owner == (row.by or user)}) for row in rows
    ]
    files = {hash_: base64.b64encode(data).decode() for (_, hash_), data in found.items()}
    return msgspec.structs.replace(request, rows=tuple(there), files=files)


async def _read(bus: Bus, wanted: _Wanted) -> bytes | None:
    try:
        return await store.read(bus, wanted.owner, wanted.file)
    except InvalidInput:  # no hash: a record that was written by nobody of ours
        return None
    except (Unavailable, BusError) as error:
        reason = f"an attachment can't be read: {error}"
        raise ModelError(reason, is_retryable=True, kind="attachment") from error


def _taken(row: Row, sight: Sight) -> Row:
    return _worded(row, [sight.obstacle(file) for file in files_of([row])])


def _fitting(rows: Sequence[Row]) -> list[Row]:
    left_out = crowded_out(list(files_of(rows)))
    whys = iter([CROWDED] * left_out)
    return [_worded(row, [next(whys, "") for _ in files_of([row])]) for row in rows]


def _there(row: Row, hashes: set[str]) -> Row:
    return _worded(row, ["" if file.hash in hashes else GONE for file in files_of([row])])


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
