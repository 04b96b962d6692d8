"""What files say (`vigil memory import`): the conversion, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from tests.support.printed import filled_in, locked, printed
from vigil.cli.documents import files
from vigil.cli.documents.files import SCANNED, files_at, text_of
from vigil.cli.documents.sources import FEW, SeenFolder, gone, source_of
from vigil.errors import InvalidInput

PAPER = printed("The boiler is serviced each May.", "", "The roof is of slate.")


def test_a_pdf_is_read_page_by_page() -> None:
    """Issue 32: its pages stand under their numbers, and those without text are named; one that
    opens in every viewer is read, whatever it forbids."""
    for data in (PAPER, locked(PAPER, "")):
        said = text_of(Path("house.PDF"), data)
        assert said.text.split("\n\n") == [
            "# page 1", "The boiler is serviced each May.", "# page 3", "The roof is of slate.",
        ]  # fmt: skip
        assert said.note == "1 of 3 pages holds no text: 2"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (printed("", ""), SCANNED),
        (locked(PAPER, "a secret"), "is encrypted: save it without its password"),
        (b"%PDF-1.4\nnothing else", "is no whole PDF, or takes too long to read"),
    ],
    ids=["scanned", "encrypted", "damaged"],
)
def test_a_pdf_that_cant_be_read_is_left_out_with_its_reason(data: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        text_of(Path("paper.pdf"), data)


def test_a_pdf_has_its_own_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PDF may be larger than a text; nothing is read for longer than it may be."""
    monkeypatch.setattr(files, "BYTES_MAX", 10)
    assert text_of(Path("a.pdf"), PAPER).text
    with pytest.raises(InvalidInput, match="10 are read at most"):
        text_of(Path("a.txt"), PAPER)
    monkeypatch.setattr(files, "PRINTED_BYTES_MAX", 10)
    with pytest.raises(InvalidInput, match="10 are read at most"):
        text_of(Path("a.pdf"), PAPER)
    monkeypatch.undo()
    monkeypatch.setattr(files, "PRINTED_READ_S", 0.0)
    with pytest.raises(InvalidInput, match="takes too long"):
        text_of(Path("a.pdf"), PAPER)


def test_without_the_library_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "is_importable", lambda name: name != "pypdf")
    with pytest.raises(InvalidInput, match=r"pip install vigil-agents"):
        text_of(Path("a.pdf"), PAPER)


def test_what_was_filled_in_is_read_with_its_page() -> None:
    """As every viewer shows it; extractors of text leave it out."""
    form = filled_in("Name:", "name", "Ann Miller", "Call back on Monday")
    said = text_of(Path("form.pdf"), form).text
    assert said.splitlines()[-3:] == ["Name:", "name: Ann Miller", "Call back on Monday"]


def test_what_is_read_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.pdf", "a.md", "c.png", ".d.pdf", ".git/e.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "f.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "disk").mkdir()
    found = files_at(tmp_path)
    assert [one.name for one in found.files] == ["a.md", "b.pdf"]
    there = ("b.pdf", "a.md", "c.png", ".d.pdf", ".git/e.md", "f.md")
    assert found.seen.sources == {f"file:{tmp_path / name}" for name in there}
    assert found.seen.empty == (str(tmp_path / "disk"),)
    assert files_at(tmp_path / "disk").seen.empty


# ---------------------------------------------------------------- which are gone

_NAMES = st.sampled_from(["a", "b", "disk", "c.md", "\udcff.txt", "long" * 30])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(
    st.sets(_PATHS, max_size=12),
    st.sets(_PATHS, max_size=12),
    _PATHS,
    st.sets(_PATHS),
    st.booleans(),
)
@up_to(300)
def test_only_what_surely_was_removed_is_forgotten(
    known: set[str], there: set[str], folder: str, empty: set[str], is_sure: bool
) -> None:
    """Issue 32: never what is there, nor of another folder, nor, unless one is sure, what may be
    out of reach; a source fits, and is of one path."""
    seen = SeenFolder(folder=folder, sources=frozenset(map(source_of, there)), empty=tuple(empty))
    sources = {source_of(one): one for one in known}
    assert len(sources) == len(known)
    assert all(len(one) <= 200 and one.encode() for one in sources)
    found = gone(sources, seen, is_sure=is_sure)
    for one in found.forgotten:
        assert sources[one] not in there
        assert f"{sources[one]}/".startswith(f"{folder}/")
        assert is_sure or not any(sources[one].startswith(f"{away}/") for away in empty)
    missing = sum(f"{path}/".startswith(f"{folder}/") and path not in there for path in known)
    if not is_sure and missing > max(FEW, (missing + len(known & there)) // 2):
        assert found.forgotten == () or missing <= len(known) // 2
        return
    plain = {one for one, path in sources.items() if one == f"file:{path}"}
    for one in plain - set(found.forgotten):
        path = sources[one]
        is_away = not is_sure and any(path.startswith(f"{away}/") for away in empty)
        assert path in there or not f"{path}/".startswith(f"{folder}/") or is_away
    assert not (is_sure and found.kept)
