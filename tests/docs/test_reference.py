"""The pages of docs/reference are what the code says, and the code says all that there is."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from services.gateway import app
from services.gateway.documents import problems
from tests.docs import commands, reference
from tests.support.sources import nodes
from vigil.observe import actions
from vigil.topology import SERVICES

WORKERS: Final = ("delivery", "executor", "memory", "scheduler")
LEVELS: Final = {
    "error": actions.ERRORS,
    "exception": actions.ERRORS,
    "warning": actions.WARNINGS,
    "info": actions.INFOS,
    "debug": actions.INFOS,
    "Patience": actions.WARNINGS,
    "WarningBurst": actions.WARNINGS,
}
"""What writes a line -> the table that has its action."""
OF_A_VARIABLE: Final = {
    *(("info", "library"), ("info", "delivery.void"), ("info", "delivery.failed")),
    *(("info", "mcp.said"), ("info", "mcp.stderr"), ("info", "gateway.board")),
}
"""Lines whose level or action the source computes."""


@pytest.mark.parametrize("file", reference.FILES, ids=lambda file: file.name)
def test_a_file_is_what_the_code_says(file: Path) -> None:
    """P-7: what others see of HTTP, of the bus and of the commands changes in review, or not at
    all. After a change on purpose: `make reference`."""
    assert file.read_text("utf-8") == reference.FILES[file]()


def test_a_document_laid_out_says_the_same() -> None:
    assert json.loads(reference.openapi()) == json.loads(app.document())


def test_there_is_no_other_page() -> None:
    below = {file for file in reference.FOLDER.rglob("*") if file.is_file()}
    assert below == {file for file in reference.FILES if reference.FOLDER in file.parents}


def test_each_problem_that_is_told_has_a_page() -> None:
    """With its cure: what the document of the API names, and what the code raises."""
    told = {
        int(status)
        for path in json.loads(app.document())["paths"].values()
        for operation in path.values()
        for status in operation["responses"]
        if int(status) >= 400
    }
    raised = {
        node.args[0].value
        for path, node in nodes(ast.Call, where=r"\bProblem\(")
        if path.startswith("services/gateway")
        and isinstance(node.func, ast.Name)
        and node.func.id == "Problem"
        and isinstance(node.args[0], ast.Constant)
    }
    assert told | raised <= set(problems.PROBLEMS)


# ---------------------------------------------------------------- log actions


@functools.cache
def logged() -> frozenset[tuple[str, str]]:
    """Return what writes a line, by its name, and the action of each line in the source."""
    return frozenset(
        (writer_of(node), action)
        for _, node in nodes(ast.Call, where=r"\baction=|\bPatience\(")
        if (action := action_of(node))
    )


def writer_of(call: ast.Call) -> str:
    """Return the name that is called; empty: it has none."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def action_of(call: ast.Call) -> str:
    """Return the action that a call names, with `*` for a service; empty: none."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "action"]
    if writer_of(call) == "Patience":
        named = call.args[:1]
    if not named or writer_of(call) not in LEVELS:
        return ""
    (value,) = named
    if isinstance(value, ast.JoinedStr) and isinstance(end := value.values[-1], ast.Constant):
        return f"*{end.value}"
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def expanded(table: Mapping[str, str]) -> set[str]:
    """Return the actions of a table; what holds for all services as a `*` and for each of them."""
    found = set()
    for action in table:
        found |= {action.format(service=name, worker=name) for name in SERVICES}
        if "{" in action:
            found.add("*" + action.partition("}")[2])
    return found


def test_every_action_has_a_row_at_its_level() -> None:
    found = logged()
    assert len(found) > 150
    wrong = {(writer, action) for writer, action in found if action not in expanded(LEVELS[writer])}
    assert wrong == set()


def test_every_row_is_logged() -> None:
    found = {(id(LEVELS[writer]), action) for writer, action in {*logged(), *OF_A_VARIABLE}}
    for table in (actions.ERRORS, actions.WARNINGS, actions.INFOS):
        missing = [
            action
            for action in table
            if (id(table), "*" + action.partition("}")[2] if "{" in action else action) not in found
        ]
        assert missing == []


# ---------------------------------------------------------------- settings


class Toys(reference.Section, frozen=True, kw_only=True):
    bear: int = 3
    """How many."""
    duck: int = 4


def test_a_setting_without_a_docstring_is_found() -> None:
    with pytest.raises(KeyError, match="duck"):
        list(reference.settings_of(Toys))


# ---------------------------------------------------------------- commands


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_set_without_a_complaint() -> None:
    text = commands.manual()
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Kutf8", "-rLL=100n"],
        input=text, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "vigil config set" in plain
    assert "--timezone" in plain


def test_every_command_and_option_says_what_it_is() -> None:
    silent = [
        " ".join((*path, one.name))
        for path, command in commands.commands()
        for one in command.params
        if not one.hidden and not one.help
    ]
    silent += [" ".join(path) for path, command in commands.commands() if not command.help]
    assert silent == []
