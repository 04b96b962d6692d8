"""Templates, and the style sheet and scripts, which are files of this folder."""

from __future__ import annotations

import functools
import gzip
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import Response

from vigil.contracts.tools import RISK_MEANINGS
from vigil.texts.verdict import end_of
from vigil.words.amounts import about, count_of, span_of
from vigil.zones.wall import on_clocks

from ..http.browser import policy_of
from . import text
from .shapes.allowed import conditions_of
from .shapes.cards import gist_of
from .shapes.reasons import because, importance_in_words
from .shapes.talk.trouble import remedy_for
from .shapes.tree import kind_in_words

if TYPE_CHECKING:
    import jinja2
else:
    from vigil.imports import LateModule

    jinja2 = LateModule("jinja2")  # needed by the first page, and not by a start

_HERE: Final = Path(__file__).parent
_TYPES: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_YEAR: Final = "public, max-age=31536000, immutable"


@functools.cache
def _environment(console: str) -> jinja2.Environment:
    from .sent_back import SentBack, as_it_is

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=text.shown,
        extensions=[SentBack],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "as_it_is": as_it_is,
        "short": text.short,
        "in_short": text.in_short,
        "usd": text.usd,
        "grouped": text.grouped,
        "exact": text.as_json,
        "thread": text.thread_of,
        "agent": text.agent_of,
        "weight": text.weight,
        "tojson_start": text.start_of_json,
        "epoch": text.epoch_of,
        "span": span_of,
        "about": about,
        "counted": count_of,
        "words": text.words,
        "gist": gist_of,
        "remedy": remedy_for,
        "because": because,
        "risk": RISK_MEANINGS.__getitem__,
        "kind": kind_in_words,
        "conditions": conditions_of,
        "end_of": end_of,
        "importance": importance_in_words,
        "when": jinja2.pass_context(lambda context, at: text.written_moment(at, context["zone"])),
        "moments": jinja2.pass_context(
            lambda context, told: text.with_moments(told, context["zone"])
        ),
        "on_clocks": jinja2.pass_context(lambda context, told: on_clocks(told, context["zone"])),
        "at": jinja2.pass_context(
            lambda context, at: text.moment(at, context["zone"], context["now"])
        ),
    }
    environment.globals |= {"file": functools.partial(address_of, console), "console": console}
    return environment


class _File:
    """A file as it's served: its address has its hash, so a browser may keep it for good."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.packed = gzip.compress(self.data, mtime=0)
        self.kind = _TYPES[path.suffix]
        self.hash = hashlib.sha256(self.data).hexdigest()[:16]
        self.address = f"/static/{self.hash}/{path.name}"
        """Below the console's path."""


@functools.cache
def _files() -> dict[str, _File]:
    """Read them all, for the first of them that is asked for."""
    files = (_HERE / "static").rglob("*.*")
    return {one.name: _File(one) for one in files if one.suffix in _TYPES}


def address_of(console: str, name: str) -> str:
    """Return where a file is served, of the console at that path."""
    return console + _files()[name].address


def source_of(name: str) -> bytes:
    """Return what is in a file."""
    return _files()[name].data


def html(console: str, template: str, context: dict[str, Any], status: int = 200) -> Response:
    """Fill a template; nobody may keep what it shows. Scripts run if there's a `nonce`.

    Args:
        console: its path, as browsers have it.
    """
    made = _environment(console).get_template(template).render(context)
    policy = policy_of(context.get("nonce", ""))
    headers = {"cache-control": "no-store", "content-security-policy": policy}
    return Response(made.encode("utf-8", "replace"), status, headers, "text/html; charset=utf-8")


def static(name: str, version: str, *, may_pack: bool) -> Response:
    """Return a file of that name and hash, or 404.

    Pages aren't packed: how well they can be would tell what is in them.
    """
    found = _files().get(name)
    if found is None or found.hash != version:
        return Response(status_code=404)
    headers = {"cache-control": _YEAR, "vary": "accept-encoding"}
    if not may_pack or len(found.packed) >= len(found.data):
        return Response(found.data, 200, headers, found.kind)
    return Response(found.packed, 200, headers | {"content-encoding": "gzip"}, found.kind)
