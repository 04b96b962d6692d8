"""Skills of the open form: what is refused, what a person enables, and what a model reads of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from services.executor.sandbox.choice import why_not
from services.gateway.work import skills as jobs
from tests.support.boxes import KINDS
from tests.support.cli import Cli
from tests.support.hands import Hands, choice_of
from vigil.errors import InvalidInput, NotFound
from vigil.skills import folder
from vigil.skills.form import parse

HEAD = "---\nname: draw-charts\ndescription: Draws charts.\n---\n"


def skill(parent: Path, text: str = f"{HEAD}Run it.", name: str = "draw-charts") -> Path:
    """A folder as somebody offers it."""
    path = parent / name
    (path / "scripts").mkdir(parents=True)
    (path / "SKILL.md").write_text(text)
    (path / "scripts" / "draw.py").write_text("print('drawn')")
    return path


def test_what_a_skill_says() -> None:
    head = (
        "---\nname: draw-charts\ndescription: >-\n  Draws charts.\n  Use it for numbers.\n"
        "license: MIT\nmetadata:\n  author: ann\n  version: '1'\nallowed-tools: Bash(python:*)\n"
        "---\n"
    )
    found = parse("draw-charts", f"{head}\nHow.\n---\nMore.")
    assert found.description == "Draws charts. Use it for numbers."
    assert found.body == "How.\n---\nMore."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "first line"),
        ("---\nname: draw-charts", "no end"),
        ("---\nname: other\ndescription: x\n---\n", "like the folder's"),
        ("---\nname: ../x\ndescription: x\n---\n", "like the folder's"),
        ("---\nname: draw-charts\n---\n", "description"),
        ("---\nname: draw-charts\ndescription: " + "x" * 1025 + "\n---\n", "description"),
        ("---\nname: draw-charts\nname: draw-charts\n---\n", "once each"),
        ("---\nhooks: rm\n---\n", "is no line of a head"),
        (f"{HEAD}See ../../secrets.txt", "../"),
        (f"{HEAD}[more](../other/SKILL.md)", "../"),
        (f"{HEAD}`scripts/../../x`", "../"),
        (f"{HEAD}Hide \x1b[2J this", "U+001B"),
        (f"{HEAD}Hide \u202e this", "U+202E"),
        (f"{HEAD}Hide \U000e0041 this", "U+E0041"),
        (f"{HEAD}Hide x\U000e0112 this", "U+E0112"),
        (f"{HEAD}Hide \u26a0\ufe0f\ufe0e this", "U+FE0E"),
    ],
)
def test_a_text_that_is_none_says_why(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=r"SKILL\.md") as refused:
        parse("draw-charts", text)
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["../x", "..", "Draw", "a--b", "a_b", "-a", "x" * 65, ""])
def test_a_name_that_is_none(tmp_path: Path, name: str) -> None:
    for use in (folder.find, folder.disable):
        with pytest.raises(InvalidInput, match="name"):
            use(tmp_path, name)


def test_a_folder_that_is_none_says_why(tmp_path: Path) -> None:
    """Ten megabytes, links to what is elsewhere, too many files, too deep."""
    large = skill(tmp_path / "large")
    (large / "data").write_bytes(b"x" * 10_000_000)
    linked = skill(tmp_path / "linked")
    (linked / "x").symlink_to("/etc/passwd")
    outside = skill(tmp_path / "outside")
    (outside / "up").symlink_to("..")
    many = skill(tmp_path / "many")
    for number in range(folder.FILES_MAX):
        (many / f"{number}").touch()
    deep = skill(tmp_path / "deep")
    (deep / "/".join("abcdefgh")).mkdir(parents=True)
    pipe = skill(tmp_path / "pipe")
    os.mkfifo(pipe / "pipe")
    empty = tmp_path / "empty"
    empty.mkdir()
    hiding = skill(tmp_path / "hiding")
    (hiding / "more.md").write_text("Maps \U000e0041 as usual.")
    for path, told in (
        (large, "bytes"),
        (linked, "link"),
        (outside, "link"),
        (many, "files"),
        (deep, "deep"),
        (pipe, "no file"),
        (empty, "is not there"),
        (hiding, r"more\.md: holds what a person can't see: U\+E0041"),
    ):
        with pytest.raises(InvalidInput, match=told):
            folder.read(path)
    with pytest.raises(NotFound):
        folder.read(tmp_path / "nowhere")


async def test_it_is_read_step_by_step_and_only_as_it_was_enabled(tmp_path: Path) -> None:
    hands = Hands(tmp_path / "home")
    home = hands.settings.skills
    assert (await hands.call("skill_read")).content == "No skill is enabled."
    folder.enable(home, folder.read(skill(tmp_path)))
    assert (await hands.call("skill_read")).content == "- draw-charts: Draws charts."
    told = await hands.call("skill_read", name="draw-charts")
    assert told.content == "Run it.\n\n[Its other files, read by path:]\n- scripts/draw.py"
    assert not told.is_tainted, "a person read it first"
    script = await hands.call("skill_read", name="draw-charts", path="scripts/draw.py")
    assert script.content == "print('drawn')"
    (offered := tmp_path / "draw-charts" / "map").write_bytes(b"caf\xe9 \xf3\xa0\x81\x81")
    folder.enable(home, folder.read(offered.parent))
    assert "is no text" in (await hands.call("skill_read", name="draw-charts", path="map")).content
    for path in ("../../vigil.toml", "/etc/passwd", "scripts", "SKILL.md/../x"):
        assert (await hands.call("skill_read", name="draw-charts", path=path)).is_error
    assert (await hands.call("skill_read", name="../x")).is_error
    copied = await hands.call("skill_copy", name="draw-charts")
    assert copied.content == "Copied 3 files to skills/draw-charts."
    there = hands.workspace / "skills" / "draw-charts" / "scripts" / "draw.py"
    assert there.read_text() == "print('drawn')"
    assert jobs.find(home, "draw-charts").goal == "Draws charts."
    assert [one.name for one in jobs.read_all(home)[0]] == ["draw-charts"]
    (home / "draw-charts" / "scripts" / "draw.py").write_text("evil")
    for tool in ("skill_read", "skill_copy"):
        changed = await hands.call(tool, name="draw-charts")
        assert "was changed since it was enabled" in changed.content
    assert "can't be used" in (await hands.call("skill_read")).content
    with pytest.raises(InvalidInput, match="changed"):
        jobs.find(home, "draw-charts")
    with pytest.raises(NotFound):
        jobs.find(home, "other")


@pytest.mark.parametrize("kind", KINDS)
async def test_its_scripts_run_in_the_sandbox(tmp_path: Path, kind: Any) -> None:
    """X-1: as any command: they see the workspace, and nothing of what lies beside it."""
    if reason := await why_not(kind):
        pytest.skip(reason)
    hands, offered = Hands(tmp_path / "home", choice_of(kind)), skill(tmp_path)
    peep = f"print('drawn')\nprint(open({str(offered / 'SKILL.md')!r}).read())"
    (offered / "scripts" / "draw.py").write_text(peep)
    folder.enable(hands.settings.skills, folder.read(offered))
    await hands.call("skill_copy", name="draw-charts")
    ran = await hands.call("shell", command="python3 skills/draw-charts/scripts/draw.py")
    assert ran.content.startswith("drawn\n")
    assert "Run it." not in ran.content
    assert "Error" in ran.content


def test_a_person_is_shown_it_before_it_is_enabled(tmp_path: Path) -> None:
    offered = skill(tmp_path)
    cli = Cli(tmp_path / "home", VIGIL_HOME=str(tmp_path / "home"))
    shown = cli("skills", "add", str(offered), code=2).stderr
    assert "Draws charts." in shown
    assert "scripts/draw.py  (can be run)" in shown
    assert "--yes" in shown
    assert "No skill is enabled." in cli("skills").stderr
    cli("skills", "add", str(offered), "--yes")
    assert "draw-charts" in cli("skills").stdout
    assert "scripts/draw.py" in cli("skills", "show", "draw-charts").stdout
    cli("skills", "remove", "draw-charts")
    assert "No skill is enabled." in cli("skills").stderr
