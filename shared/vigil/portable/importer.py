"""Taking an export in: into another home, or for another person. A repeat adds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from ..attachments import store
from ..attachments.examine import examined
from ..board.kept import ROWS, KeptBoard, KeptKind
from ..board.kinds.goal import GOALS
from ..board.kinds.preference import PREFERENCES
from ..board.kinds.task import TASKS
from ..bus.bus import Bus
from ..contracts import Change, decode_board, decode_memory, encode
from ..contracts.board import TimetableRow
from ..contracts.events import Attachment
from ..errors import InvalidInput, WrongLastSequence
from ..settings import own
from ..settings.config import Config
from ..subjects import Scope, check_part
from ..teams import holding
from ..timetable.check import check_known
from . import adopt, deleted, talks
from .bundle import Bundle, BundleError
from .export import REMINDERS, ExportedRecord
from .talk_intake import TalkIntake, id_in, is_label
from .talks import ExportedTalk

T = TypeVar("T")
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding a stranger's JSON raises: it's none, or is nested without end."""
KINDS: Final[dict[str, KeptKind[Any]]] = {
    "task": TASKS,
    "goal": GOALS,
    "preference": PREFERENCES,
    "row": ROWS,
}


class RefusedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that wasn't taken."""

    part: str
    line: int
    reason: str
    is_by_rule: bool = False
    """There is nothing wrong with it, but that it isn't for another home."""


class ImportReport(msgspec.Struct, kw_only=True):
    """What came of it, by what it is."""

    taken: dict[str, int] = {}
    there: dict[str, int] = {}
    """What was there before."""
    deleted: dict[str, int] = {}
    """What the person deleted since the export was made: it isn't brought back."""
    refused: list[RefusedLine] = []
    left: dict[str, str] = {}
    """Parts that stay in the export, and why."""

    def count(self, what: str, *, is_new: bool, times: int = 1) -> None:
        if times:
            counts = self.taken if is_new else self.there
            counts[what] = counts.get(what, 0) + times

    def leave_out(self, what: str) -> None:
        """Count what was deleted since."""
        self.deleted[what] = self.deleted.get(what, 0) + 1


class Importer:
    """Takes one bundle in, for one person.

    Args:
        brings_back: also what they deleted since it was made.

    Raises, from each method:
        Unavailable, BusError: the broker is away, or refused; call again.
    """

    def __init__(
        self,
        bus: Bus,
        config: Config,
        bundle: Bundle,
        to: str,
        now: datetime,
        *,
        is_trusted: bool,
        brings_back: bool = False,
    ) -> None:
        self._bus, self._config, self._bundle = bus, config, bundle
        self._user, self._to, self._now = bundle.manifest.user, to, now
        self._is_trusted, self._brings_back = is_trusted, brings_back
        own_space = to if self._user != to else ""
        self._space = own_space if is_trusted else f"outside:{to}"
        """Of ids and names that may not be those of what is here; empty: they may."""
        self._talks = TalkIntake(bus, to, self._space, now, is_trusted=is_trusted)
        self.report = ImportReport()

    async def run(self) -> ImportReport:
        """Take in what can be; tell of each line that can't. Raises: BundleError, too."""
        self._bundle.check()
        await self._memories()
        await self._board()
        talks_there = self._talks_there()
        gone = await self._deleted_talks(talks_there)
        await self._files(talks_there, gone)
        await self._conversations(talks_there, gone)
        await self._settings()
        names = {part.name for part in self._bundle.manifest.parts if part.bytes}
        left = {f"records/{name}.jsonl": why for name, why in adopt.NOT_TAKEN.items()}
        self.report.left = {name: why for name, why in left.items() if name in names}
        if REMINDERS in names:
            self.report.left[REMINDERS] = "is what was set there: ask for it here"
        if any(name.startswith("workspaces/") for name in names):
            self.report.left["workspaces"] = "copy what you need into the folder of the agent"
        return self.report

    def _lines(self, name: str, kind: type[T]) -> Iterator[tuple[int, T]]:
        for number, line in enumerate(self._bundle.lines(f"records/{name}.jsonl"), 1):
            try:
                found = msgspec.json.decode(line, type=kind)
            except _UNREADABLE as error:
                self._refuse(name, number, error)
            else:
                yield number, found

    def _records(self, name: str) -> Iterator[tuple[int, str, Any]]:
        for number, line in self._lines(name, ExportedRecord):
            try:
                record = adopt.renamed(msgspec.json.decode(line.record), self._user, self._to)
            except _UNREADABLE as error:
                self._refuse(name, number, error)
            else:
                yield number, line.subject, record

    def _refuse(self, name: str, number: int, error: Exception) -> None:
        reason = error.reason if isinstance(error, InvalidInput) else str(error)
        refused = RefusedLine(
            part=f"records/{name}.jsonl",
            line=number,
            reason=reason,
            is_by_rule=isinstance(error, adopt.StaysBehind),
        )
        self.report.refused.append(refused)

    async def _memories(self) -> None:
        mine = await self._bus.read("MEMORIES", [Scope("*", self._to).everything])
        there = {(one.subject, id_) for one in mine if (id_ := id_in(one.data))}
        found = list(self._records("MEMORIES"))
        values = [value for _, _, value in found]
        ids = {id_ for value in values if (id_ := deleted.id_of(value))}
        forgotten = deleted.forgotten_in(_decoded(one.data) for one in mine)
        gone = self._forgotten_since(values, ids, forgotten)
        for number, _, value in found:
            if deleted.id_of(value) in gone and not self._brings_back:
                self.report.leave_out("memory")
                continue
            try:
                if not self._is_trusted and adopt.strange_ids(value, ids):
                    raise adopt.StaysBehind("memory_ids", "names memories that aren't with it")
                ours = adopt.with_new_ids(value, ids, self._space) if self._space else value
                record = decode_memory(msgspec.json.encode(ours))
                whose = Scope.of(record.agent, self._to)
                record = adopt.memory(record, whose, is_trusted=self._is_trusted)
                if deleted.id_of(value) in gone:
                    record = adopt.again(record, self._to, forgotten)
            except (InvalidInput, RecursionError) as error:
                self._refuse("MEMORIES", number, error)
                continue
            op = str(record.__struct_config__.tag)
            place = whose.record(op), record.id
            is_new = place not in there
            if is_new:
                there.add(place)
                await self._bus.publish(place[0], encode(record))
            self.report.count(f"memory ({op})", is_new=is_new)

    def _forgotten_since(self, values: list[Any], ids: set[str], forgotten: set[str]) -> set[str]:
        """Return the memories of the export that were forgotten since, with what goes with them."""
        before = deleted.forgotten_in(values)
        since = {
            one
            for one in ids - before
            if one in forgotten or (self._space and adopt.new_id(self._space, one) in forgotten)
        }
        return deleted.gone_with(since, values)

    async def _board(self) -> None:
        waiting = list(self._records("BOARD"))
        while waiting:
            # A row may follow one that stands below it.
            again: list[tuple[int, str, Any]] = []
            refusals: list[tuple[int, InvalidInput]] = []
            for one in waiting:
                try:
                    await self._entity(one[2])
                except InvalidInput as error:
                    again.append(one)
                    refusals.append((one[0], error))
            if len(again) == len(waiting):
                for number, refusal in refusals:
                    self._refuse("BOARD", number, refusal)
                return
            waiting = again

    async def _entity(self, value: Any) -> None:
        entry = decode_board(msgspec.json.encode(value))
        taken = adopt.entity(entry.entity, self._now, is_trusted=self._is_trusted)
        if taken.owner != self._to:
            raise InvalidInput("owner", "is somebody else's")
        check_part("id", taken.id)  # it becomes a part of a subject
        name = str(taken.__struct_config__.tag)
        board = KeptBoard(self._bus, KINDS[name])
        whose = Scope.of(taken.agent, taken.owner)
        found = await board.find([whose], taken.id)
        is_removed = found is not None and getattr(found.entity, "is_removed", False)
        if is_removed and not self._brings_back:
            self.report.leave_out(name)
            return
        is_new = found is None or is_removed
        if is_new and isinstance(taken, TimetableRow):
            check_known(taken, None, self._config)
        change = Change(by=self._to, why="imported", cause="import")
        if found is None:
            among = holding(taken.owner, taken.agent)
            await board.create(lambda _: taken, among, change, self._now)
        elif is_removed:
            await board.change(found, taken, change, self._now)
        self.report.count(name, is_new=is_new)

    async def _files(self, there: dict[str, tuple[int, ExportedTalk]], gone: set[str]) -> None:
        named = {key: talk.files() for key, (_, talk) in there.items()}
        kept = set().union(*(files for key, files in named.items() if key not in gone))
        left = set().union(*(named[key] for key in gone)) - kept
        for number, about in self._lines("FILES", Attachment):
            if about.hash in left:
                self.report.leave_out("file")
                continue
            try:
                data = self._bundle.read(f"files/{about.hash}", FILE_BYTES_MAX)
                # What it is, its bytes tell, and not who wrote the export.
                found = examined(about.name, data)
                if found.hash != about.hash:
                    raise InvalidInput("hash", "isn't that of the file")
                is_new = not await store.is_kept(self._bus, self._to, found.hash)
                if is_new:
                    await store.upload(self._bus, self._to, found, data)
                    await store.keep(self._bus, self._to, found.hash)
            except (InvalidInput, BundleError) as error:
                self._refuse("FILES", number, error)
                continue
            self.report.count("file", is_new=is_new)

    def _talks_there(self) -> dict[str, tuple[int, ExportedTalk]]:
        """Return the conversations of the export by their keys, each with its first line."""
        found: dict[str, tuple[int, ExportedTalk]] = {}
        for number, subject, value in self._records("SESSIONS"):
            try:
                said = talks.line_of(subject, value)
            except (InvalidInput, RecursionError) as error:
                self._refuse("SESSIONS", number, error)
                continue
            if said is not None:
                key, line = said
                _, talk = found.setdefault(str(key), (number, ExportedTalk(key=key)))
                talk.add(line)
        return found

    async def _deleted_talks(self, there: dict[str, tuple[int, ExportedTalk]]) -> set[str]:
        """Return those that were deleted here since the export was made."""
        if self._brings_back:
            return set()
        since, is_theirs = self._bundle.manifest.made_at, self._user == self._to
        return {
            key
            for key, (_, talk) in there.items()
            if await self._talks.is_deleted(talk, since, is_theirs=is_theirs)
        }

    async def _conversations(
        self, there: dict[str, tuple[int, ExportedTalk]], gone: set[str]
    ) -> None:
        for key, (number, talk) in there.items():
            if key in gone:
                self.report.leave_out("conversation")
                continue
            try:
                taken = await self._talks.take(talk)
            except InvalidInput as error:
                self._refuse("SESSIONS", number, error)
                continue
            self.report.count("conversation", is_new=taken.new > 0)
            self.report.count("message", is_new=True, times=taken.new)
            self.report.count("message", is_new=False, times=taken.there)

    async def _settings(self) -> None:
        mine = f"$KV.{own.BUCKET}.{own.PREFIX}{own.hash_of(self._user)}"
        for number, subject, value in self._records("KV_CONFIG"):
            try:
                if is_label(subject):
                    is_new = await self._talks.label(value, self._user)
                    self.report.count("title", is_new=is_new)
                    continue
                if subject != mine or not self._is_trusted:
                    raise adopt.StaysBehind("subject", adopt.NO_AUTHORITY)
                found = msgspec.structs.replace(own.read(msgspec.json.encode(value)), by=self._to)
                there = await own.find(self._bus, self._to)
                is_new = there.revision == 0
                if is_new:
                    await own.put(self._bus, self._to, found, expect=0)
            except (InvalidInput, WrongLastSequence) as error:
                self._refuse("KV_CONFIG", number, error)
                continue
            self.report.count("settings", is_new=is_new)


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE:
        return None
