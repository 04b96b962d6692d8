"""Images and PDF files of a few bytes, as programs write them."""

from __future__ import annotations

import struct
import zlib


def png(width: int, height: int, *, fill: bytes = b"") -> bytes:
    """Return a PNG file; of a size that nobody could unpack, its head is still right."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * min((width + 1) * height, 1000))
    parts = [(b"IHDR", head), (b"IDAT", rows), (b"tEXt", fill), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def jpeg(width: int, height: int) -> bytes:
    """Return the head of a JPEG file, with a comment before its frame."""
    comment = b"\xff\xfe" + struct.pack(">H", 6) + b"hey!"
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    return b"\xff\xd8" + comment + frame + b"\xff\xd9"


def pdf(pages: int, *, more: bytes = b"", is_packed: bool = False) -> bytes:
    """Return a PDF file with so many pages; `more` stands in it as it is, or packed."""
    objects = b"".join(b"%d 0 obj <</Type /Page /Parent 1 0 R>> endobj\n" % n for n in range(pages))
    if is_packed:
        packed = more or zlib.compress(objects)
        objects = b"9 0 obj <</Type /ObjStm /N %d /Length %d>>\nstream\n%s\nendstream\n" % (
            pages, len(packed), packed,
        )  # fmt: skip
        more = b""
    return b"%PDF-1.5\n1 0 obj <</Type /Pages>> endobj\n" + objects + more + b"\ntrailer\n%%EOF\n"
