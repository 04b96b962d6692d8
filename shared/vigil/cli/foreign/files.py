"""Reading the files of another agent's home: those that its form names, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from vigil.errors import InvalidInput

from . import hermes, openclaw
from .home import HomeForm

FORMS: Final[dict[str, HomeForm]] = {one.name: one for one in (openclaw.FORM, hermes.FORM)}
TEXT_BYTES_MAX: Final = 4 * 1024 * 1024


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
        data = _read(path) if path.resolve().is_relative_to(root) else None
        if data is None:
            unread[name] = "is no file of this folder, or too large"
            continue
        try:
            texts[name] = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            unread[name] = "isn't UTF-8"
    if not texts and not unread:
        wanted = ", ".join(form.files)
        raise InvalidInput("dir", f"{folder} has none of {form.name}'s files: {wanted}")
    return texts, unread


def _read(path: Path) -> bytes | None:
    """Return what a file says; None: it's no file, is too large, or can't be read."""
    try:
        is_small = path.is_file() and path.stat().st_size <= TEXT_BYTES_MAX
        return path.read_bytes() if is_small else None
    except OSError:
        return None
