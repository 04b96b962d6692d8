"""What a file is, by its bytes: what is taken, and what is refused with which words."""

from __future__ import annotations

import contextlib
import struct
import unicodedata
import zlib
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from tests.support.pictures import jpeg, pdf, png
from vigil.attachments import examine
from vigil.attachments.examine import examined
from vigil.attachments.texts import text_in
from vigil.errors import InvalidInput
from vigil.texts.bars import barred, bytes_barred

GIF: Final = b"GIF89a" + struct.pack("<HH", 3, 5) + b"\0" * 10
TABLE: Final = "größe,zahl\r\n\t1\f2\n\u2028字\n"
_VP8X: Final = b"VP8X" + b"\0" * 8 + b"\x02\0\0\x04\0\0"
_VP8L: Final = b"VP8L" + b"\0" * 4 + b"\x2f" + struct.pack("<I", 2 | 4 << 14)
_VP8: Final = b"VP8 " + b"\0" * 7 + b"\x9d\x01\x2a" + struct.pack("<HH", 3, 5)


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (png(3, 5), "image/png", (3, 5)),
        (jpeg(3, 5), "image/jpeg", (3, 5)),
        (GIF, "image/gif", (3, 5)),
        *((b"RIFF\0\0\0\0WEBP" + one, "image/webp", (3, 5)) for one in (_VP8X, _VP8L, _VP8)),
    ],
)
def test_an_image_is_what_its_bytes_say(data: bytes, kind: str, size: tuple[int, int]) -> None:
    found = examined("holiday.pdf", data)
    assert (found.type, found.width, found.height) == (kind, *size)
    assert (found.name, found.size, found.pages) == ("holiday.pdf", len(data), 0)


@pytest.mark.parametrize(
    "data",
    [
        *(TABLE.encode(code) for code in ("utf-8", "utf-8-sig", "utf-16")),
        b"\xfe\xff" + TABLE.encode("utf-16-be"),
    ],
)
def test_a_text_is_what_its_bytes_say(data: bytes) -> None:
    """Whatever it's called, and in whichever of its forms."""
    found = examined("photo.png", data)
    assert (found.type, found.size, found.name) == ("text/plain", len(data), "photo.png")
    assert text_in(data) == TABLE
    assert found.shown_bytes == len(barred(TABLE).encode())
    assert found.unnamed == "a text, 1 kB"


@given(st.text(st.sampled_from("aß字🗺\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")))
@up_to(300)
def test_what_bars_make_of_a_text_is_counted(text: str) -> None:
    assert bytes_barred(text) == len(barred(text).encode())


@given(st.text())
@up_to(300)
def test_no_text_with_controls_is_one(text: str) -> None:
    data = text.encode()
    controls = {c for c in text if unicodedata.category(c) == "Cc"} - set("\t\n\f\r")
    if controls or not text.removeprefix("\ufeff").strip():
        with pytest.raises(InvalidInput):
            examined("a", data)
    else:
        assert examined("a", data).type == "text/plain"


BROKEN_BOMB = (
    b"/Type/ObjStm" * 100 + b"\nstream\n" + zlib.compress(bytes(2**20))[:-30] + b"\xff" * 40
)
"""One stream that is listed a hundred times, and can't be unpacked to its end: all of it counts."""


@pytest.mark.parametrize("is_packed", [False, True])
def test_pages_are_counted_also_of_packed_objects(is_packed: bool) -> None:
    found = examined("plan.png", pdf(3, is_packed=is_packed))
    assert (found.type, found.pages) == ("application/pdf", 3)
    assert found.in_words == "plan.png, 3 pages, 1 kB"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "must not be empty"),
        (b"<script>alert(1)</script>\0", examine.UNTAKEN),
        (b"\x1b[31mred\x1b[0m", examine.UNTAKEN),
        ("grün".encode("latin-1"), examine.UNTAKEN),
        ("grün\x85".encode(), examine.UNTAKEN),
        ("grün".encode("utf-16-le"), examine.UNTAKEN),
        ("grün".encode("utf-32"), examine.UNTAKEN),
        ("grün".encode("utf-16")[:-1], examine.UNTAKEN),
        (b"\xed\xa0\x80", examine.UNTAKEN),
        (b"\xff\xfe\x00\xd8", examine.UNTAKEN),
        (b"\xef\xbb\xbf \n", "must not be empty"),
        (b"PK\x03\x04", examine.UNTAKEN),
        (png(3, 5)[:20], "is no whole image/png image: its header tells no size"),
        (png(3, 5)[:-8], "is no whole image/png image: its end is missing"),
        (jpeg(3, 5)[:-2], "is no whole image/jpeg image: its end is missing"),
        (b"RIFF\xff\0\0\0WEBP" + _VP8, "is no whole image/webp image: its end is missing"),
        (png(0, 5), "is no whole image/png image: its header tells no size"),
        (jpeg(3, 5)[:8], "is no whole image/jpeg image: its header tells no size"),
        (png(60_000, 60_000), "is 60000x60000 pixels; at most 8000 pixels on a side, 40 million"),
        (png(7000, 7000), "is 7000x7000 pixels"),
        (pdf(2)[:-10], "is no whole PDF file: its end is missing"),
        (pdf(101, is_packed=True), "has 101 pages; at most 100"),
        (pdf(1, more=b"/Encrypt 5 0 R"), "is an encrypted PDF file"),
        (pdf(1, more=zlib.compress(bytes(40 * 1024**2)), is_packed=True), "unpacks to more than"),
        (pdf(1, more=b"/Type /ObjStm stream\n" * 1001), "lists its objects in more than 1000"),
        (pdf(1, more=BROKEN_BOMB), "unpacks to more than"),
    ],
)  # fmt: skip
def test_what_could_harm_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        examined("a", data)
    assert caught.value.field == "file"
    assert caught.value.reason.startswith(reason) or reason in caught.value.reason


@pytest.mark.parametrize(
    "name", ["", " ", "..", "../a.png", "a\\b.png", "a\nb.png", "a\u202egnp.exe", "a\0", "x" * 121]
)
def test_a_name_is_one_line_without_a_path(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        examined(name, png(1, 1))
    assert caught.value.field == "name"


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF1234WEBP", b"%PDF-"]),
    st.binary(max_size=200),
)
@up_to(300)
def test_no_bytes_are_a_fault(head: bytes, rest: bytes) -> None:
    with contextlib.suppress(InvalidInput):
        assert examined("a", head + rest).size == len(head + rest)
