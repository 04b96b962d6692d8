#!/usr/bin/env bash
# Three extractors of PDF text return none of what a person typed into the fields of a form, nor the notes put on its page.
#
# A form that somebody filled in is a page with labels, and a widget for each field whose value (/V) has an appearance
# stream of its own. Every viewer and printer shows both. One would expect that "the text of the page" is what one sees
# on it.
#
# Seen (2026-11-28): pypdf 7.1.1, pdfminer.six 20260107 and pypdfium2 5.15.2 return the label, "Name:", alone. The value is
# to be had by another call, if at all (pypdf: get_form_text_fields), and a FreeText note by its annotation. Whoever puts
# the extracted text into a search index, or into a model's prompt, has an empty form, and nothing says so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q pypdf==7.1.1 pdfminer.six==20260107 pypdfium2==5.15.2
cat > run.py <<'P'
from io import BytesIO

import pypdfium2
from pdfminer.high_level import extract_text
from pypdf import PdfReader

FONT = b"/Resources << /Font << /F1 5 0 R >> >>"


def stream(drawn, more=b""):
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(drawn), more, drawn)


def shown(text, box):
    drawn = b"BT /F1 12 Tf 2 4 Td (%s) Tj ET" % text
    return stream(drawn, b"/Type /XObject /Subtype /Form /BBox [%s] %s" % (box, FONT))


OBJECTS = [
    b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] /DA (/F1 12 Tf 0 g) "
    b"/DR << /Font << /F1 5 0 R >> >> >> >>",
    b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
    b"/Annots [6 0 R 8 0 R] %s >>" % FONT,
    stream(b"BT /F1 12 Tf 72 700 Td (Name:) Tj ET"),
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ann Miller) /F 4 "
    b"/Rect [120 690 300 710] /DA (/F1 12 Tf 0 g) /AP << /N 7 0 R >> >>",
    shown(b"Ann Miller", b"0 0 180 20"),
    b"<< /Type /Annot /Subtype /FreeText /Contents (Call back on Monday) /F 4 "
    b"/Rect [72 600 300 640] /DA (/F1 12 Tf 0 g) /AP << /N 9 0 R >> >>",
    shown(b"Call back on Monday", b"0 0 228 40"),
]


def written(objects):
    data, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (data + b"xref\n0 %d\n0000000000 65535 f \n" % size + table
            + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(data)))


pdf = written(OBJECTS)
reader = PdfReader(BytesIO(pdf))
document = pypdfium2.PdfDocument(pdf)
document.init_forms()
found = {
    "pypdf": reader.pages[0].extract_text(),
    "pypdf, layout": reader.pages[0].extract_text(extraction_mode="layout"),
    "pdfminer.six": extract_text(BytesIO(pdf)),
    "pypdfium2": document[0].get_textpage().get_text_bounded(),
}
for name, text in found.items():
    print(f"{name}: {text.strip()!r}")
    assert text.strip() == "Name:", f"{name} behaves otherwise now"
fields = reader.get_form_text_fields()
print("pypdf, asked for the fields:", fields)
assert fields == {"name": "Ann Miller"}
P
venv/bin/python run.py
