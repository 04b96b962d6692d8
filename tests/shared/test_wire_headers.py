"""Headers on the wire: what is written is what is read, all of them or one."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import BadHeaderError, BadSubjectError

from vigil.bus.wire import header_of, headers_of, publication

NAMES: Final = st.text("abAB-12", min_size=1, max_size=5)
VALUES: Final = st.text(max_size=12)
"""Of any characters, ends of lines among them."""


def _head(command: bytes) -> bytes:
    line, _, rest = command.partition(b"\r\n")
    size = int(line.split(b" ")[-2])
    return rest[:size]


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5), st.binary(max_size=9))
def test_each_header_is_one_line_and_is_read_as_it_was_written(
    headers: dict[str, str], data: bytes
) -> None:
    command = publication("a.b", data, "r", headers)
    assert command.endswith(data + b"\r\n")
    head = _head(command)
    assert head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") == len(headers) + 2
    found = headers_of(head)
    on_one_line = {name: re.sub("[\r\n]", " ", value.strip()) for name, value in headers.items()}
    assert found == {name: value.strip() for name, value in on_one_line.items()}
    for name in (*headers, "ab-none", "a"):
        assert header_of(head, name) == found.get(name)


@given(st.text(max_size=9), st.text(max_size=9))
def test_no_subject_ends_a_command_before_its_time(subject: str, reply: str) -> None:
    if not subject or re.search("[ \t\r\n]", subject + reply):
        with pytest.raises(BadSubjectError):
            publication(subject, b"", reply, None)
    else:
        assert publication(subject, b"hi", reply, None).count(b"\r\n") == 2


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(BadHeaderError):
        publication("a.b", b"", "", {"mode: x\r\nother": "y"})
