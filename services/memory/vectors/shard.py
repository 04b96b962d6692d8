"""One shard of the Qdrant engine in a folder, with what it was made with. Blocking; one thread.

    {folder}/made-with.json    which shard it is, and what it was made with, since its first flush:
                               whoever is to fill it may be killed before they know
    {folder}/{number}/         the shard; any other is a copy in the making, or what one took the
                               place of, and is overwritten

Every call of the engine holds Python's interpreter lock, for milliseconds or (`optimize`) minutes:
so this runs in a process of its own (`engine.py`). Nothing here is optimised: ADR 0017 says why.
"""

from __future__ import annotations

import os
import shutil
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import qdrant_edge as engine

from vigil.files import written

from .engine_calls import StoredPoint
from .filters import INDEXES, LAYOUT, Between, Condition, Conditions, Is, IsOneOf, NotBy

MADE_WITH: Final = "made-with.json"
COPY_ROWS: Final = 256
"""At once: some 20 ms, so long does a search wait for it."""
FLUSH_PAGES: Final = 16
"""Flushed now and then, so that searches don't wait for all of it in the end."""
SCRUB_BYTES: Final = 1 << 20
_END: Final = object()


class MadeWith(msgspec.Struct, frozen=True, kw_only=True):
    """Another embedder, dimension or layout: everything is made anew."""

    embedder: str
    dimension: int
    shard: str = ""
    """Its folder."""
    points: int = 0
    """At the last flush. Fewer than that on opening: something was lost."""
    layout: int = 1
    """`filters.LAYOUT`; what says none is of the first."""

    def is_like(self, other: MadeWith) -> bool:
        return msgspec.structs.replace(self, shard=other.shard, points=other.points) == other


class Shard:
    """What is stored can be found at once, and survives a kill once it was flushed."""

    def __init__(self, folder: Path, made_with: MadeWith, live: engine.EdgeShard) -> None:
        self._folder = folder
        self._made_with = made_with
        self._live = live
        self._copy: ShardCopy | None = None
        self._old: Iterator[None] = iter(())

    @classmethod
    def open(
        cls, folder: Path, embedder: str, dimension: int, *, is_anew: bool
    ) -> tuple[Shard, bool]:
        """Return the shard, and whether it was made anew because there was none to be used."""
        folder.mkdir(parents=True, exist_ok=True)
        wanted = MadeWith(embedder=embedder, dimension=dimension, layout=LAYOUT)
        made_with = None if is_anew else _made_with(folder, wanted)
        _scrub_all_but(folder, made_with)
        live = _load(folder, made_with) if made_with is not None else None
        if made_with is not None and live is not None:
            return cls(folder, made_with, live), False
        _scrub_all_but(folder, None)
        made_with = msgspec.structs.replace(wanted, shard="1")
        return cls(folder, made_with, _create(folder, made_with)), True

    def upsert(self, rows: list[StoredPoint]) -> None:
        self._live.update(_upsert([_point(row) for row in rows]))

    def search(self, vector: bytes, limit: int, conditions: Conditions) -> list[tuple[int, float]]:
        request = engine.QueryRequest(
            limit=limit,
            query=engine.Query.Nearest(_floats(vector)),
            filter=_filter(conditions),
        )
        # Without payloads, which take four times as long to read as the rest of a search of 1,000.
        return [(int(found.id), found.score) for found in self._live.query(request)]

    def count(self, conditions: Conditions) -> int:
        return self._live.count(engine.CountRequest(exact=True, filter=_filter(conditions)))

    def flush(self) -> None:
        self._live.flush()
        self._mark()

    def forget(self, conditions: Conditions) -> None:
        """Find what matches no more, and begin a copy without it."""
        self._abandon()
        if conditions:
            gone = engine.UpdateOperation.delete_points_by_filter(_filter(conditions))
            self._live.update(gone)
            # Fewer points are right from now on, even if the rest of this never happens.
            self.flush()
        number = int(self._made_with.shard) + 1
        made_with = msgspec.structs.replace(self._made_with, shard=str(number))
        self._copy = ShardCopy(self._live, made_with, _create(self._folder, made_with))

    def copy_more(self) -> bool:
        """Copy some more points; return whether that were all."""
        return self._copying().more()

    def take_over(self) -> None:
        """Put the copy in the place of the original, which is still to be overwritten."""
        copy, old, old_folder = self._copying(), self._live, self._folder / self._made_with.shard
        copy.following.flush()
        self._copy, self._live, self._made_with = None, copy.following, copy.made_with
        self._mark()
        self._old = _ended(old, old_folder)

    def scrub_more(self) -> bool:
        """Overwrite some more of what was taken the place of; return whether that was all."""
        return next(self._old, _END) is _END

    def close(self) -> None:
        """Close the files. What is left to be overwritten is when it is opened again."""
        if self._copy is not None:
            self._copy.following.close()
        self._live.close()

    def _mark(self) -> None:
        """Say which shard it is, and how much it holds. It has been flushed."""
        points = _points(self._live)
        self._made_with = msgspec.structs.replace(self._made_with, points=points)
        draft = self._folder / f"{MADE_WITH}.draft"
        draft.write_bytes(msgspec.json.encode(self._made_with))
        draft.replace(self._folder / MADE_WITH)

    def _copying(self) -> ShardCopy:
        if self._copy is None:
            raise RuntimeError("no copy was begun")
        return self._copy

    def _abandon(self) -> None:
        """End a copy that was begun, and overwrite what is left to be."""
        if self._copy is not None:
            self._copy.following.close()
            self._copy = None
        _exhaust(self._old)
        _scrub_all_but(self._folder, self._made_with)


class ShardCopy:
    """Another shard that gets all points of one, a page at a time."""

    def __init__(
        self, live: engine.EdgeShard, made_with: MadeWith, following: engine.EdgeShard
    ) -> None:
        self._live = live
        self.made_with = made_with
        self.following = following
        self._offset: engine.PointId | None = None
        self._pages = 0

    def more(self) -> bool:
        """Copy a page; return whether it was the last."""
        page = engine.ScrollRequest(
            offset=self._offset, limit=COPY_ROWS, with_payload=True, with_vector=True
        )
        records, self._offset = self._live.scroll(page)
        points = [engine.Point(r.id, r.vector or [], r.payload) for r in records]
        if points:
            self.following.update(_upsert(points))
        self._pages += 1
        if self._pages % FLUSH_PAGES == 0:
            self.following.flush()
        return self._offset is None


def _ended(shard: engine.EdgeShard, folder: Path) -> Iterator[None]:
    shard.close()
    yield
    yield from scrub(folder)


def scrub(folder: Path) -> Iterator[None]:
    """Overwrite every file of a folder, then remove it: in steps of some milliseconds."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield from _overwrite(path)
    yield
    shutil.rmtree(folder)


def _overwrite(path: Path) -> Iterator[None]:
    with path.open("r+b", buffering=0) as file:
        for start, end in written(file.fileno()):  # holes for the most part
            file.seek(start)
            while file.tell() < end:
                file.write(bytes(min(SCRUB_BYTES, end - file.tell())))
                os.fsync(file.fileno())
                yield


def _scrub_all_but(folder: Path, made_with: MadeWith | None) -> None:
    """Overwrite what a kill left; without `made_with`, everything."""
    if made_with is None:
        (folder / MADE_WITH).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and (made_with is None or path.name != made_with.shard):
            _exhaust(scrub(path))


def _exhaust(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def _made_with(folder: Path, wanted: MadeWith) -> MadeWith | None:
    """Return what the folder is made with, if that is what is wanted."""
    try:
        found = msgspec.json.decode((folder / MADE_WITH).read_bytes(), type=MadeWith)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if found.is_like(wanted) and found.shard.isdecimal() else None


def _load(folder: Path, made_with: MadeWith) -> engine.EdgeShard | None:
    """Return the shard if it can be opened and has lost nothing."""
    try:
        shard = engine.EdgeShard.load(str(folder / made_with.shard))
    except BaseException as error:
        # The engine panics on broken files, and a panic is no Exception.
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None
    if _points(shard) >= made_with.points:
        return shard
    shard.close()
    return None


def _create(folder: Path, made_with: MadeWith) -> engine.EdgeShard:
    """Make an empty shard. It counts as one when it is first flushed."""
    place = folder / made_with.shard
    place.mkdir()
    # 16 bits a number take half the time and room, and a cosine is off by 1e-5 at most (ADR 17).
    vectors = engine.EdgeVectorParams(
        size=made_with.dimension,
        distance=engine.Distance.Dot,
        datatype=engine.VectorStorageDatatype.Turbo16,
    )
    # Without the write-ahead log: what wasn't flushed is made again from SQLite.
    config = engine.EdgeConfig(vectors=vectors, wal_enabled=False)
    shard = engine.EdgeShard.create(str(place), config)
    for field, kind in INDEXES.items():
        shard.update(engine.UpdateOperation.create_field_index(field, _SCHEMAS[kind]))
    return shard


def _points(shard: engine.EdgeShard) -> int:
    return shard.count(engine.CountRequest(exact=True))


def _point(row: StoredPoint) -> engine.Point:
    return engine.Point(row.num, _floats(row.vector), row.payload)


def _upsert(points: list[engine.Point]) -> engine.UpdateOperation:
    return engine.UpdateOperation.upsert_points(points)


def _floats(vector: bytes) -> list[float]:
    """Return float32s, little endian, as the engine takes them."""
    floats = array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tolist()


def _filter(conditions: Conditions) -> engine.Filter:
    return engine.Filter(must=[_condition(one) for one in conditions])


def _condition(one: Condition) -> engine.FieldCondition | engine.Filter:
    match one:
        case Is(key, value):
            return engine.FieldCondition(key, match=engine.MatchValue(value))
        case IsOneOf(key, values):
            return engine.FieldCondition(key, match=engine.MatchAny(list(values)))
        case Between(key, least, most):
            return engine.FieldCondition(key, range=engine.RangeFloat(gte=least, lte=most))
        case NotBy(key, at):
            later = engine.FieldCondition(key, range=engine.RangeFloat(gt=at))
            return engine.Filter(should=[engine.IsEmptyCondition(key), later])


_SCHEMAS: Final = {
    "keyword": engine.PayloadSchemaType.Keyword,
    "float": engine.PayloadSchemaType.Float,
}
