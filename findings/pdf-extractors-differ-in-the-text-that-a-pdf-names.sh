#!/usr/bin/env bash
# Of three extractors of PDF text one heeds /ActualText, and that one writes a soft hyphen as U+0002.
#
# A producer that draws something which isn't its text (a ligature of an odd font, a hyphen at a line's end) may say beside
# it what the text is: a marked-content span with /ActualText (ISO 32000-1, 14.9.4). Extractors are whom that is for.
# One would expect "office hours" from a page that draws o-glyph-ce and says "office", and "appointment" where a line
# ends in a hyphen that is said to be U+00AD, or that character.
#
# Seen (2026-11-28): pypdf 7.1.1 and pdfminer.six 20260107 pass over it: "o®ce hours", and "ap-" with a hyphen that is part of the
# word from then on. pypdfium2 5.15.2 says "office hours", but "ap", U+0002, "pointment": a control character in the
# middle of a word, which JSON, databases and broker subjects of many programs refuse or strip. No search for either
# word finds these pages by the text of all three.
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

LIGATURE = (b"BT /F1 12 Tf 72 700 Td /Span << /ActualText (office) >> BDC "
            b"(o) Tj (\\256) Tj (ce) Tj EMC ( hours) Tj ET")
HYPHEN = (b"BT /F1 12 Tf 14 TL 72 700 Td (The ap) Tj "
          b"/Span << /ActualText <FEFF00AD> >> BDC (-) Tj EMC T* (pointment) Tj ET")


def written(drawn):
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /MarkInfo << /Marked true >> >>",
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    data, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (data + b"xref\n0 %d\n0000000000 65535 f \n" % size + table
            + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(data)))


def read(pdf):
    return {
        "pypdf": PdfReader(BytesIO(pdf)).pages[0].extract_text().strip(),
        "pdfminer.six": extract_text(BytesIO(pdf)).strip(),
        "pypdfium2": pypdfium2.PdfDocument(pdf)[0].get_textpage().get_text_bounded().strip(),
    }


expected = [
    (LIGATURE, {"pypdf": "o®ce hours", "pdfminer.six": "o®ce hours", "pypdfium2": "office hours"}),
    (HYPHEN, {"pypdf": "The ap-\npointment", "pdfminer.six": "The ap-\npointment",
              "pypdfium2": "The ap\x02pointment"}),
]
for drawn, known in expected:
    found = read(written(drawn))
    print(found)
    assert found == known, "they behave otherwise now"
P
venv/bin/python run.py
