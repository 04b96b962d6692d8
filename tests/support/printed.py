"""PDFs with pages of text, as a word processor writes them, and without, as a scanner does."""

from __future__ import annotations

from io import BytesIO

from pypdf import PdfReader, PdfWriter


def printed(*pages: str) -> bytes:
    """Return a PDF; an empty page has a drawn frame and no text."""
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode(),
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else "72 72 100 100 re S"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * number} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica "
            ">> >> >> >>".encode(),
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream".encode(),
        ]
    return _written(objects)


def filled_in(label: str, name: str, value: str, note: str) -> bytes:
    """Return a PDF whose page has a label, a field that somebody filled in, and a note."""
    drawn = f"BT /F1 12 Tf 72 700 Td ({label}) Tj ET"
    return _written(
        [
            b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>",
            b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Annots [6 0 R 7 0 R] /Resources << /Font << /F1 5 0 R >> >> >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream".encode(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            f"<< /Type /Annot /Subtype /Widget /FT /Tx /T ({name}) /V ({value}) "
            "/Rect [120 690 300 710] >>".encode(),
            f"<< /Type /Annot /Subtype /FreeText /Contents ({note}) "
            "/Rect [72 600 300 640] >>".encode(),
        ]
    )


def _written(objects: list[bytes]) -> bytes:
    data = b"%PDF-1.4\n"
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    lines = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        data
        + f"xref\n0 {size}\n0000000000 65535 f \n{lines}trailer\n<< /Size {size} "
        f"/Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n".encode()
    )


def locked(data: bytes, password: str) -> bytes:
    """Return the PDF as one that opens with a password; the empty one: for every viewer."""
    writer = PdfWriter(clone_from=PdfReader(BytesIO(data)))
    writer.encrypt(password, owner_password="of its maker", algorithm="AES-256")
    made = BytesIO()
    writer.write(made)
    return made.getvalue()
