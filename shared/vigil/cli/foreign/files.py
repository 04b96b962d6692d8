"""Reading the files of another agent's home: those that its form names, and no others."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from vigil.errors import InvalidInput

from . import hermes, openclaw
from .database import exported
from .home import HomeForm

FORMS: Final[dict[str, HomeForm]] = {one.name: one for one in (openclaw.FORM, hermes.FORM)}
TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
TALK_BYTES_MAX: Final = 1024 * 1024 * 1024
"""Of a file of conversations."""


def texts_of(form: HomeForm, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the files say, and why others can't be read, by their paths.

    Raises: InvalidInput, there is no home of that form.
    """
    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    root = folder.resolve()
    for path in sorted({path for pattern in form.files for path in folder.glob(pattern)}):
        name = path.relative_to(folder).as_posix()
        # A link out of the home would have something else remembered.
        is_inside = path.resolve().is_relative_to(root)
        try:
            text = _text(path) if is_inside else None
        except UnicodeDecodeError:
            unread[name] = "isn't UTF-8"
            continue
        except sqlite3.Error as error:
            unread[name] = f"can't be read: {error}"
            continue
        if text is None:
            unread[name] = "is no file of this folder, or too large"
        else:
            texts[name] = text
    if not texts and not unread:
        wanted = ", ".join(form.files)
        raise InvalidInput("dir", f"{folder} has none of {form.name}'s files: {wanted}")
    return texts, unread


def _text(path: Path) -> str | None:
    """Return what a file says; None: it's no file, is too large, or can't be read.

    Raises: UnicodeDecodeError; sqlite3.Error, it's no database.
    """
    most = TEXT_BYTES_MAX if path.suffix == ".md" else TALK_BYTES_MAX
    try:
        if not path.is_file() or path.stat().st_size > most:
            return None
        if path.name == hermes.DATABASE:
            return exported(path)
        return path.read_bytes().decode("utf-8-sig")
    except OSError:
        return None
