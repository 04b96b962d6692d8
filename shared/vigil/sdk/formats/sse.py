"""Server-Sent Events as a client reads them (WHATWG HTML, 9.2.6). Pure.

Only what Vigil sends: fields and comments in UTF-8, lines that end with a line feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec


class ServerEvent(msgspec.Struct, frozen=True):
    """An event; with empty `data` it only says where the stream is, by its `id`."""

    id: str
    event: str
    data: str


def events(lines: Iterable[bytes]) -> Iterator[ServerEvent]:
    r"""Yield the events of a stream, line by line as it comes.

    >>> stream = b"retry: 1000\nid: 6\n\n:\n\nid: 7\nevent: timer.fired\ndata: {}\n\n"
    >>> [(one.id, one.data) for one in events(stream.splitlines(keepends=True))]
    [('6', ''), ('7', '{}')]
    """
    id_ = event = ""
    data: list[str] = []
    is_new = False
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if is_new or data:
                yield ServerEvent(id_, event, "\n".join(data))
            event, data, is_new = "", [], False
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            id_, is_new = value, True
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
