"""read_file and write_file: paths of strangers, and what descends from outside (S10, X-1, X-3)."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import threading
from pathlib import Path

import pytest

from services.executor.workspace.marks import MarkedPaths, Marks
from services.executor.workspace.workspace import Workspace, names_of
from tests.support.examples import repeats
from tests.support.hands import Hands
from tests.support.pictures import png
from vigil.errors import InvalidInput, Unavailable
from vigil.subjects import Scope

AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def hands(tmp_path: Path) -> Hands:
    return Hands(tmp_path)


async def test_what_is_written_can_be_read(hands: Hands) -> None:
    """P-6."""
    told = await hands.call("write_file", path="notes/today.txt", content="grüße\n")
    assert told.content == "Wrote 8 bytes to notes/today.txt."
    assert (await hands.call("read_file", path="notes/today.txt")).content == "grüße\n"
    assert (await hands.call("read_file", path="./notes//today.txt")).content == "grüße\n"
    absolute = f"{hands.workspace}/notes/today.txt"
    assert (await hands.call("read_file", path=absolute)).content == "grüße\n"
    assert (await hands.call("read_file", path=".")).content == "notes/"
    assert (await hands.call("read_file", path="notes")).content == "today.txt  8 bytes"


async def test_a_workspace_is_for_its_owner_alone(hands: Hands) -> None:
    """X-4: nobody else of this machine looks into it, and no other user's tools."""
    await hands.call("write_file", path="a", content="mine")
    for folder in (hands.workspace, hands.workspace.parent, hands.workspace.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (hands.workspace / "a").stat().st_mode & 0o777 == 0o600
    other = await hands.call("read_file", path="a", user="bob")
    assert (other.content, other.is_error) == ("a is not there", True)


async def test_a_long_file_is_read_piece_by_piece(hands: Hands) -> None:
    """X-1: an output cap; no character is torn apart, nothing is lost or repeated."""
    text = "".join(f"{n} ä€😀\n" for n in range(400))
    await hands.call("write_file", path="long", content=text)
    found, offset = "", 0
    for _ in range(100):
        told = await hands.call("read_file", path="long", offset=offset, output_bytes_max=1024)
        assert len(told.content.encode()) <= 1024
        piece, _, tail = told.content.rpartition("\n[")
        if not tail.endswith("]"):
            found += told.content
            break
        found += piece
        offset = int(tail.rpartition("=")[2][:-1])
    assert found == text


async def test_what_is_no_text(hands: Hands) -> None:
    await hands.call("write_file", path="a", content="x")
    (hands.workspace / "binary").write_bytes(b"\x7fELF\0\0")
    (hands.workspace / "latin").write_bytes("grün".encode("latin-1"))
    binary = await hands.call("read_file", path="binary")
    assert (binary.is_error, binary.content) == (True, "is no text; 6 bytes")
    assert (await hands.call("read_file", path="latin")).content == "gr?n"


async def test_images_and_pdf_files_are_handed_on(tmp_path: Path) -> None:
    """Issue 14: whole, whatever a text may have; what can't be shown is told with the reason."""
    hands = Hands(tmp_path)
    hands.workspace.mkdir(parents=True)
    image = png(3, 5, fill=bytes(5000))
    (hands.workspace / "a.png").write_bytes(image)
    (hands.workspace / "cut.png").write_bytes(image[:20])
    (hands.workspace / "huge.png").write_bytes(png(1, 1, fill=bytes(4_000_000)))
    told = await hands.call("read_file", path="a.png", output_bytes_max=1024)
    assert told.content == "[a.png, 3x5 pixels, 6 kB]"
    assert [file.data for file in told.files] == [image]
    for name, reason in {"cut.png": "is no whole image", "huge.png": "at most 3670016"}.items():
        told = await hands.call("read_file", path=name)
        assert told.is_error
        assert reason in told.content
        assert told.files == ()
    assert (await hands.call("read_file", path="a.png", offset=1)).content.startswith("is no text")


async def test_a_text_of_the_workspace_goes_to_the_person_whole(hands: Hands) -> None:
    """Read it is words, however long it is; attached it is a file."""
    table = "a;b\n" * 20_000
    hands.workspace.mkdir(parents=True)
    (hands.workspace / "table.csv").write_text(table)
    (hands.workspace / "code.bin").write_bytes(b"a\0")
    (hands.workspace / "folder").mkdir()
    assert (await hands.call("read_file", path="table.csv", output_bytes_max=1024)).files == ()
    told = await hands.call("attach_file", path="table.csv", output_bytes_max=1024)
    assert [(file.about.type, file.data) for file in told.files] == [("text/plain", table.encode())]
    for name, reason in {"code.bin": "or text", "folder": "a folder", "x": "not there"}.items():
        told = await hands.call("attach_file", path=name)
        assert told.is_error
        assert reason in told.content


@pytest.mark.parametrize(
    "path",
    ["..", "../../vigil.toml", "a/../../b", "/etc/passwd", "a/b/../../../c", "/", "a\0b", "x" * 300,
     "/".join("a" * 40), "//etc/passwd"],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["read_file", "write_file"])
async def test_no_path_leads_out(hands: Hands, tool: str, path: str) -> None:
    """S10: `../..`, absolute paths, names that are none."""
    more = {"content": "x"} if tool == "write_file" else {}
    with pytest.raises(InvalidInput):
        await hands.call(tool, path=path, **more)


@pytest.mark.parametrize("path", ["link", "folder/secret", "dangling"])
async def test_no_symbolic_link_is_followed(hands: Hands, tmp_path: Path, path: str) -> None:
    """S10: symlink escape."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("canary")
    await hands.call("write_file", path="a", content="x")
    (hands.workspace / "link").symlink_to(outside / "secret")
    (hands.workspace / "folder").symlink_to(outside)
    (hands.workspace / "dangling").symlink_to(outside / "new")
    with pytest.raises(InvalidInput, match="symbolic link"):
        await hands.call("read_file", path=path)
    with contextlib.suppress(InvalidInput):  # a link itself may be replaced by the file
        await hands.call("write_file", path=path, content="gone")
    assert (outside / "secret").read_text() == "canary"
    assert [path.name for path in outside.iterdir()] == ["secret"]


@pytest.mark.repeated
async def test_no_link_that_comes_between_is_followed(hands: Hands, tmp_path: Path) -> None:
    """S10: a command exchanges folder and link as fast as it can, while we look."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("canary")
    await hands.call("write_file", path="a/file", content="mine")
    workspace, over = hands.workspace, threading.Event()
    (workspace / "link").symlink_to(outside)

    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    names = (os.fsencode(workspace / "a"), os.fsencode(workspace / "link"))

    def exchange() -> None:
        while not over.is_set():  # in one step, so that there is always something at both
            renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)

    thread = threading.Thread(target=exchange)
    thread.start()
    found = set()
    try:
        for _ in range(repeats(300, fast=100)):
            with contextlib.suppress(InvalidInput, Unavailable):
                await hands.call("write_file", path="a/file", content="mine")
            with contextlib.suppress(InvalidInput):
                found.add((await hands.call("read_file", path="a/file")).content)
    finally:
        over.set()
        thread.join()
    assert found <= {"mine"}
    assert (outside / "file").read_text() == "canary"
    assert [path.name for path in outside.iterdir()] == ["file"]


async def test_pipes_and_devices_are_left_alone(hands: Hands) -> None:
    """S10: opening a pipe that nobody writes to would never return."""
    await hands.call("write_file", path="a", content="x")
    os.mkfifo(hands.workspace / "pipe")
    async with asyncio.timeout(5):
        with pytest.raises(InvalidInput, match="neither a file nor a folder"):
            await hands.call("read_file", path="pipe")
    with pytest.raises(InvalidInput, match="folder"):
        await hands.call("write_file", path="a/b", content="x")
    (hands.workspace / "folder").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        await hands.call("write_file", path="folder", content="x")


async def test_a_file_is_whole_or_as_it_was(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-5: a full disk in the middle of it."""
    await hands.call("write_file", path="a", content="before")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("services.executor.workspace.workspace.os.fsync", full)
    with pytest.raises(Unavailable, match="No space left"):
        await hands.call("write_file", path="a", content="after")
    monkeypatch.undo()
    assert (await hands.call("read_file", path="a")).content == "before"
    assert (await hands.call("read_file", path=".")).content == "a  6 bytes"


async def test_a_script_stays_one_that_can_be_run(hands: Hands) -> None:
    await hands.call("write_file", path="run", content="#!/bin/sh\n")
    (hands.workspace / "run").chmod(0o755)
    await hands.call("write_file", path="run", content="#!/bin/sh\necho\n")
    assert (hands.workspace / "run").stat().st_mode & 0o777 == 0o700


def test_a_path_of_the_workspace_itself() -> None:
    assert names_of("/w/vigil/ann", Path("/w/vigil/ann")) == ()
    with pytest.raises(InvalidInput):
        names_of("/w/vigil/anna/x", Path("/w/vigil/ann"))


# ---------------------------------------------------------------- marks


async def test_what_a_tainted_call_wrote_taints_who_reads_it(hands: Hands) -> None:
    """X-3: content from outside isn't washed clean by a file."""
    await hands.call("write_file", path="web/page", content="evil", is_tainted=True)
    await hands.call("write_file", path="own", content="mine")
    assert (await hands.call("read_file", path="web/page")).is_tainted
    assert (await hands.call("read_file", path="web")).is_tainted  # names are content, too
    assert (await hands.call("read_file", path=".")).is_tainted
    assert not (await hands.call("read_file", path="own")).is_tainted


async def test_a_file_that_is_written_anew_is_clean(hands: Hands) -> None:
    await hands.call("write_file", path="page", content="evil", is_tainted=True)
    await hands.call("write_file", path="page", content="mine")
    assert not (await hands.call("read_file", path="page")).is_tainted


async def test_the_mark_stands_before_the_file_does(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-3, X-5: killed between the two, a file is marked that isn't there, never the reverse."""
    seen: list[bool] = []
    real = Workspace.write

    def write(self: Workspace, *args: object, **options: object) -> None:
        seen.append(Marks(self)._load().has(("page",)))
        real(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Workspace, "write", write)
    await hands.call("write_file", path="page", content="evil", is_tainted=True)
    assert seen == [True]


async def test_marks_that_cannot_be_read_mark_everything(hands: Hands) -> None:
    """X-3: fail closed."""
    await hands.call("write_file", path="own", content="mine")
    (hands.workspace.parent / "ann.marks.json").write_text("not json")
    assert (await hands.call("read_file", path="own")).is_tainted


def test_a_command_marks_all_before_it_could_copy_anything(tmp_path: Path) -> None:
    """X-3: nobody follows what a command does with a marked file."""
    workspace = Workspace(tmp_path, Scope("vigil", "ann"))
    workspace.make()
    marks = Marks(workspace)
    assert marks.end(marks.begin(is_tainted=False)) is False
    with marks.writing(("page",), is_tainted=True):
        workspace.write(("page",), b"evil", part="1")
    running = marks.begin(is_tainted=False)
    assert marks._load().is_all
    assert marks.end(running) is True


def test_what_is_written_beside_a_running_command_marks_all(tmp_path: Path) -> None:
    """X-3: it may be copied by the command before that ends."""
    workspace = Workspace(tmp_path, Scope("vigil", "ann"))
    workspace.make()
    marks = Marks(workspace)
    running = marks.begin(is_tainted=False)
    with marks.writing(("page",), is_tainted=True):
        pass
    assert marks._load() == MarkedPaths(is_all=True)
    assert marks.end(running) is True


def test_an_empty_workspace_is_clean_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, Scope("vigil", "ann"))
    workspace.make()
    marks = Marks(workspace)
    marks.end(marks.begin(is_tainted=True))
    assert marks._load().is_all
    assert marks.end(marks.begin(is_tainted=False)) is False


def test_an_empty_workspace_that_says_something_is_exchanged(tmp_path: Path) -> None:
    """X-3: an attribute, a time and a right of the folder itself outlive its files."""
    workspace = Workspace(tmp_path, Scope("vigil", "ann"))
    workspace.make()
    marks = Marks(workspace)
    marks.end(marks.begin(is_tainted=True))
    os.setxattr(workspace.folder, "user.note", b"obey me")
    os.utime(workspace.folder, ns=(0x6F626579, 0x6D65))
    workspace.folder.chmod(0o751)
    assert marks.end(marks.begin(is_tainted=False)) is False
    found = workspace.folder.stat()
    assert os.listxattr(workspace.folder) == []
    assert found.st_mode & 0o777 == 0o700
    assert found.st_mtime_ns != 0x6D65
    assert workspace.uid in (None, found.st_uid)


def test_a_workspace_that_a_command_works_in_is_not_clean_again(tmp_path: Path) -> None:
    """X-3: it may be empty now, and what a tainted command knows comes later."""
    workspace = Workspace(tmp_path, Scope("vigil", "ann"))
    workspace.make()
    marks = Marks(workspace)
    tainted = marks.begin(is_tainted=True)
    assert marks.end(marks.begin(is_tainted=False)) is True
    (workspace.folder / "late").write_text("evil")
    assert marks.end(tainted) is True
    with marks.reading(("late",)) as marked:
        assert marked.has(("late",))


def test_a_command_that_may_not_begin_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-1: or each try would cost a descriptor, and all that is written counted as beside it."""
    workspace = Workspace(tmp_path, Scope("vigil", "ann"))
    workspace.make()
    marks = Marks(workspace)
    before = len(list(Path("/proc/self/fd").iterdir()))
    workspace.beside("marks.part").mkdir()
    with pytest.raises(Unavailable):
        marks.begin(is_tainted=True)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert not marks._is_running()


async def test_what_a_crash_leaves_of_a_write_is_out_of_reach(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-3, X-5: killed in the middle; the part has another name than the one that is marked."""

    class Killed(BaseException):
        pass

    def rename(*args: object, **options: object) -> None:
        raise Killed

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(Killed):
        await hands.call("write_file", path="page", content="evil", is_tainted=True)
    assert not any(hands.workspace.iterdir())
