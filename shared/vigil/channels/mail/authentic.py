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

_COMMENT: Final = re.compile(r"\([^()]*\)")
_PAIR: Final = re.compile(r"([\w.-]+)\s*=\s*(\"[^\"]*\"|[^\s;]+)")
COMMENTS_DEEP_MAX: Final = 10


def is_passed(results: Sequence[str], authserv_id: str, author: str) -> bool:
    """Whether a server vouches for an address.

    Args:
        results: the fields Authentication-Results, the topmost first.

    >>> is_passed(["mx.a.example; dmarc=pass header.from=b.example"], "mx.a.example", "x@b.example")
    True
    >>> is_passed(["mx.a.example; dkim=pass header.d=c.example"], "mx.a.example", "x@b.example")
    False
    """
    wanted = authserv_id.lower()
    found = next((one for one in map(_read, results) if one and _is_named(one[0], wanted)), None)
    if found is None:
        return False
    domain = ids.domain_of(author)
    verdicts = [(method, result) for method, result, _ in found[1] if method == "dmarc"]
    if verdicts:
        return all(
            result == "pass" and props.get("header.from", domain) == domain
            for method, result, props in found[1]
            if method == "dmarc"
        )
    return any(
        result == "pass" and _is_aligned(method, props, domain)
        for method, result, props in found[1]
    )


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
    text = field
    for _ in range(COMMENTS_DEEP_MAX):
        text, count = _COMMENT.subn(" ", text)
        if not count:
            break
    if "(" in text or ")" in text or text.count('"') % 2:
        return None
    who, *rest = text.split(";")
    named = who.split()
    if not named:
        return None
    found: list[Result] = []
    for one in rest:
        pairs = [(name.lower(), value.strip('"').lower()) for name, value in _PAIR.findall(one)]
        if pairs:
            (method, result), *props = pairs
            found.append((method.partition("/")[0], result, dict(props)))
    return named[0].lower(), found
