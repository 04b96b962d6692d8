"""Skills as files: what is read, and what is said of a file that can't be (SPEC J-1, X-6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.work import skills
from vigil.errors import InvalidInput, NotFound

HEAD = "---\ngoal: Look\n---\n"


@pytest.mark.parametrize("path", sorted(skills.SHIPPED.glob("*.md")), ids=lambda path: path.stem)
def test_the_shipped_ones_can_be_used(path: Path) -> None:
    skill = skills.find(skills.SHIPPED, path.stem)
    assert skill.goal
    assert skill.tools
    assert skill.text


def test_a_file_is_a_head_and_a_text() -> None:
    content = (
        "---\nname: x\n# a remark\n\ngoal: 'Look: there'\ntools: [shell, \"read_file\", gh__*]\n"
        "---\nHow.\n\n---\nMore.\n"
    )
    skill = skills.parse("x", content)
    assert (skill.name, skill.goal) == ("x", "Look: there")
    assert skill.tools == ("shell", "read_file", "gh__*")
    assert skill.text == "How.\n\n---\nMore."
    assert skill.task == "Look: there\n\nHow.\n\n---\nMore."
    assert skills.parse("y", HEAD).task == "Look"


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", 1, "the first line must be '---'"),
        ("goal: Look\n", 1, "the first line must be '---'"),
        ("---\ngoal: Look\n", 2, "no end"),
        ("---\n---\n", 2, "there must be a goal"),
        ("---\ngoal:\n---\n", 2, "there must be a goal"),
        ("---\ngoal: a\ngoal: b\n---\n", 3, "'goal' is given twice"),
        ("---\ngoal: a\ncron: b\n---\n", 3, "'cron' is not a known key"),
        ("---\ngoal: a\n  more\n---\n", 3, "must be 'key: value'"),
        ("---\ngoal: a\nmore\n---\n", 3, "must be 'key: value'"),
        ("---\ngoal: a\nname: z\n---\n", 3, "the name must be 'x'"),
        ("---\ngoal: a\ntools: a b\n---\n", 3, "can't be the name of a tool"),
        ("---\ngoal: a\ntools: *\n---\n", 3, "can't be the name of a tool"),
        ("---\ngoal: a\n---\n" + "x" * skills.GOAL_BYTES_MAX, 3, "more than 8192 bytes"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(content: str, line: int, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        skills.parse("x", content)
    assert caught.value.field == "skill"
    assert caught.value.reason.startswith(f"x.md, line {line}: ")
    assert reason in caught.value.reason


@given(st.text(max_size=200))
def test_any_text_is_a_skill_or_refused(content: str) -> None:
    for text in (content, f"---\n{content}\n---\n", f"---\ngoal: {content}\n---\n"):
        try:
            assert skills.parse("x", text).goal
        except InvalidInput as error:
            assert "x.md, line " in error.reason  # noqa: PT017 - it may also be one


def test_a_file_that_cant_be_read_costs_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(HEAD)
    (tmp_path / "latin.md").write_bytes(HEAD.encode() + b"\n\n\xe4")
    (tmp_path / "nul.md").write_bytes(HEAD.encode() + b"a\0")
    (tmp_path / "huge.md").write_text(HEAD + "x" * skills.FILE_BYTES_MAX)
    (tmp_path / "bad name.md").write_text(HEAD)
    (tmp_path / "folder.md").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("no skill")
    (tmp_path / ".hidden.md").write_text(HEAD)
    found, broken = skills.read_all(tmp_path)
    assert [skill.name for skill in found] == ["good"]
    problems = {one.name: one.problem for one in broken}
    assert sorted(problems) == [
        "bad name.md", "folder.md", "huge.md", "latin.md", "nul.md", "pipe.md",
    ]  # fmt: skip
    assert problems["latin.md"] == "latin.md, line 6: is not UTF-8"
    assert problems["nul.md"] == "nul.md, line 4: holds a NUL"
    with pytest.raises(NotFound):
        skills.find(tmp_path, "gone")
    with pytest.raises(InvalidInput):
        skills.find(tmp_path, "../good")


def test_the_examples_are_made_once(tmp_path: Path) -> None:
    """P-4's rule for identities holds for skills, too: whoever empties the folder is left alone."""
    folder = tmp_path / "home" / "skills"
    skills.ensure(folder)
    shipped = sorted(path.stem for path in skills.SHIPPED.glob("*.md"))
    assert [skill.name for skill in skills.read_all(folder)[0]] == shipped
    for path in folder.glob("*.md"):
        path.unlink()
    skills.ensure(folder)
    assert skills.read_all(folder) == ([], [])
    assert skills.read_all(tmp_path / "none") == ([], [])


def test_an_empty_folder_is_filled_and_one_of_a_persons_own_is_not(tmp_path: Path) -> None:
    """A container brings a volume, which is there before anything is in it."""
    empty, own = tmp_path / "empty", tmp_path / "own"
    empty.mkdir()
    own.mkdir()
    (own / "mine.md").write_text(HEAD)
    for folder in (empty, own):
        skills.ensure(folder)
    assert len(skills.read_all(empty)[0]) > 1
    assert [skill.name for skill in skills.read_all(own)[0]] == ["mine"]


def test_a_folder_that_cant_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    skills.ensure(tmp_path / "file" / "skills")
