"""What a file is, by its bytes, and whether it may be taken. Pure.

No picture is decoded: an image tells its size in its header. Of a PDF file only the streams that
list its objects are unpacked, up to a bound. What is neither has to be text from its beginning to
its end.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import struct
import unicodedata
import zlib
from typing import Final

from ..contracts.events import Attachment
from ..errors import InvalidInput
from ..texts.bars import bytes_barred
from .texts import text_in

SIDE_MAX: Final = 8000
"""Pixels of a side. The largest that the Messages API takes (its documentation on vision)."""
PIXELS_MAX: Final = 40_000_000
PAGES_MAX: Final = 100
"""The most that the Messages API takes of a PDF file for every model (its documentation on it)."""
UNPACKED_BYTES_MAX: Final = 16 * 1024**2
"""Of all streams of a PDF file that list objects, together."""
STREAMS_MAX: Final = 1000
"""That list objects. Programs that write PDF files put 100 objects or more into each."""
PIECE_BYTES: Final = 64 * 1024
NAME_LENGTH_MAX: Final = 120
IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF: Final = "application/pdf"
TEXT: Final = "text/plain"
UNTAKEN: Final = "must be a PNG, JPEG, GIF or WebP image, a PDF file, or text in UTF-8"
_PAGE: Final = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_OBJECTS: Final = re.compile(rb"/Type\s{0,8}/ObjStm(?![A-Za-z])")
_STREAM: Final = re.compile(rb"stream\r?\n")
_DICTIONARY_BYTES: Final = 2048
"""Between the type of a stream and its data, at most."""
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""Markers of a JPEG file that hold its size."""


def examined(name: str, data: bytes) -> Attachment:
    """Return what a file is.

    Raises:
        InvalidInput: `file` or `name`, and why it isn't taken.
    """
    if not data:
        raise InvalidInput("file", "must not be empty")
    width, height, pages, shown_bytes = 0, 0, 0, 0
    kind = _type_of(data) or TEXT
    if kind == TEXT:
        shown_bytes = _shown_bytes_of(data)
    elif kind == PDF:
        pages = _pages_of(data)
    else:
        width, height = _size_of(kind, data)
    return Attachment(
        hash=hashlib.sha256(data).hexdigest(),
        name=checked_name(name),
        type=kind,
        size=len(data),
        width=width,
        height=height,
        pages=pages,
        shown_bytes=shown_bytes,
    )


def checked_name(name: str) -> str:
    """Return a file's name if it's one. Raises: InvalidInput.

    >>> checked_name("Plan für Ann 🗺.pdf")
    'Plan für Ann 🗺.pdf'
    """
    if not name.strip() or name in (".", ".."):
        raise InvalidInput("name", "must name the file")
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidInput("name", f"must have at most {NAME_LENGTH_MAX} characters")
    if "/" in name or "\\" in name:
        raise InvalidInput("name", "must not contain slashes")
    # Line and page separators, controls, and what turns the direction of a text around.
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in _TURNS for c in name):
        raise InvalidInput("name", "must not contain line breaks or control characters")
    return name


_TURNS: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def looks_like_one(data: bytes) -> bool:
    """Return whether bytes begin as an image or a PDF file does.

    >>> looks_like_one(b"%PDF-1.7"), looks_like_one(b"GIF is a format")
    (True, False)
    """
    return bool(_type_of(data))


def _type_of(data: bytes) -> str:
    """Return what bytes begin as; empty: as neither an image nor a PDF file."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"%PDF-"):
        return PDF
    return ""


def _shown_bytes_of(data: bytes) -> int:
    text = text_in(data)
    if text is None:
        raise InvalidInput("file", UNTAKEN)
    if not text.strip():
        raise InvalidInput("file", "must not be empty")
    return bytes_barred(text)


# ---------------------------------------------------------------- images


def _size_of(kind: str, data: bytes) -> tuple[int, int]:
    try:
        width, height = _READERS[kind](data)
    except (struct.error, IndexError):
        width, height = 0, 0
    if not width or not height:
        raise InvalidInput("file", f"is no whole {kind} image: its header tells no size")
    if not _is_ended(kind, data):
        raise InvalidInput("file", f"is no whole {kind} image: its end is missing")
    if max(width, height) > SIDE_MAX or width * height > PIXELS_MAX:
        most = f"{SIDE_MAX} pixels on a side, {PIXELS_MAX // 10**6} million in all"
        raise InvalidInput("file", f"is {width}x{height} pixels; at most {most}")
    return width, height


def _png(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        return 0, 0
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + max(int(length), 2)
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _is_ended(kind: str, data: bytes) -> bool:
    """Whether an image's end is there; of a GIF image nobody can tell without decoding it."""
    match kind:
        case "image/png":
            return b"IEND\xaeB`\x82" in data
        case "image/jpeg":
            return b"\xff\xd9" in data
        case "image/webp":
            return len(data) >= 8 + int.from_bytes(data[4:8], "little")
        case _:
            return True


_READERS: Final = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}


# ---------------------------------------------------------------- PDF files


def _pages_of(data: bytes) -> int:
    if b"%%EOF" not in data[-2048:]:
        raise InvalidInput("file", "is no whole PDF file: its end is missing")
    if b"/Encrypt" in data:
        raise InvalidInput("file", "is an encrypted PDF file, which no model can read")
    pages, left = len(_PAGE.findall(data)), UNPACKED_BYTES_MAX
    for count, found in enumerate(_OBJECTS.finditer(data), 1):
        if count > STREAMS_MAX:
            raise InvalidInput("file", f"lists its objects in more than {STREAMS_MAX} streams")
        begin = _STREAM.search(data, found.end(), found.end() + _DICTIONARY_BYTES)
        if begin is None:
            continue
        unpacked = _unpacked(data, begin.end(), left)
        left -= len(unpacked)
        if left <= 0:
            most = f"{UNPACKED_BYTES_MAX // 1024**2} MiB"
            raise InvalidInput("file", f"is a PDF file that unpacks to more than {most}")
        pages += len(_PAGE.findall(unpacked))
    if pages > PAGES_MAX:
        raise InvalidInput("file", f"has {pages} pages; at most {PAGES_MAX}")
    return pages


def _unpacked(data: bytes, begin: int, bytes_max: int) -> bytes:
    """Return a stream's bytes, at most so many, up to where they can't be unpacked: what was
    unpacked counts, whatever comes behind it."""
    unpacking, unpacked = zlib.decompressobj(), bytearray()
    # In pieces: what follows the stream would be copied each time, and an error loses one.
    with contextlib.suppress(zlib.error):
        while len(unpacked) < bytes_max and not unpacking.eof:
            piece = unpacking.unconsumed_tail
            if not piece:
                piece, begin = data[begin : begin + PIECE_BYTES], begin + PIECE_BYTES
            if not piece:
                break
            unpacked += unpacking.decompress(piece, min(PIECE_BYTES, bytes_max - len(unpacked)))
    return bytes(unpacked)
