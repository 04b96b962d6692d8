"""Whether a mail is of whom its From names, by what the receiving server found out. Pure.

From is a line that anybody can write. What counts is the field Authentication-Results of the one
server that is configured (RFC 8601): it writes it at the top, and takes away those of others that
claim its name. Whatever can't be read for sure is no pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...mail import ids

_PAIR: Final = re.compile(r"([\w.-]+)\s*=\s*([^\s;]+)")
_IN_QUOTES: Final = str.maketrans("=() \t", "_____")


def is_passed(results: Sequence[str], authserv_id: str, author: str) -> bool:
    """Whether a server vouches for an address.

    Args:
        results: the fields Authentication-Results, the topmost first.

    >>> is_passed(["mx.a.example; dmarc=pass header.from=b.example"], "mx.a.example", "x@b.example")
    True
    >>> is_passed(["mx.a.example; dkim=pass header.d=c.example"], "mx.a.example", "x@b.example")
    False
    """
    found = _results_of(results, authserv_id.lower())
    domain = ids.domain_of(author)
    verdicts = [(result, props) for method, result, props in found if method == "dmarc"]
    if verdicts:
        return all(
            result == "pass" and props.get("header.from") == domain for result, props in verdicts
        )
    return any(
        result == "pass" and _is_aligned(method, props, domain) for method, result, props in found
    )


def _results_of(fields: Sequence[str], wanted: str) -> Sequence[Result]:
    """Return what the server says, by its topmost field. One that can't be read may be that: those
    below it are of whoever sent the mail."""
    for field in fields:
        read = _read(field)
        if read is None:
            return ()
        if _is_named(read[0], wanted):
            return read[1]
    return ()


def _is_named(server: str, wanted: str) -> bool:
    """Whether it's the server that is meant, or one of those that are (``*.a.example``)."""
    return server == wanted or (wanted.startswith("*.") and server.endswith(wanted[1:]))


def _is_aligned(method: str, props: dict[str, str], domain: str) -> bool:
    """Whether what passed is about the domain in From, or one that it lies below."""
    match method:
        case "dkim":
            signed = props.get("header.d") or ids.domain_of(props.get("header.i", ""))
        case "spf":
            signed = ids.domain_of(props.get("smtp.mailfrom", ""))
        case _:
            return False
    return "." in signed and (domain == signed or domain.endswith(f".{signed}"))


Result = tuple[str, str, dict[str, str]]


def _read(field: str) -> tuple[str, list[Result]] | None:
    """Return who wrote a field, and its results; None: it can't be read."""
    text = _plain(field)
    who, *rest = (text or "").lower().split(";")
    named = who.split()
    if not named:
        return None
    found: list[Result] = []
    for one in rest:
        pairs = dict.fromkeys(_PAIR.findall(one))
        if len({name for name, _ in pairs}) != len(pairs):
            return None
        if pairs:
            (method, result), *props = pairs
            found.append((method.partition("/")[0], result, dict(props)))
    return named[0], found


def _plain(field: str) -> str | None:
    """Return a field without comments and quotes; None: it can't be read for sure.

    What the sender of a mail chose stands in both (``smtp.mailfrom``, "domain of X designates"),
    and with quotes it may hold what ends them: then nobody knows what the server itself says.
    """
    kept: list[str] = []
    depth, is_quoted = 0, False
    for char in field:
        if char == "\\" or (depth and char == '"') or (is_quoted and char == ";"):
            return None
        if char == '"':
            is_quoted = not is_quoted
        elif is_quoted:
            kept.append(char.translate(_IN_QUOTES))
        elif char in "()":
            depth += 1 if char == "(" else -1
            kept.append(" ")
        elif not depth:
            kept.append(char)
        if depth < 0:
            return None
    return None if depth or is_quoted else "".join(kept)
