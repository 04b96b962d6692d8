#!/usr/bin/env bash
# vobject decodes as Base64 what a vCard says is written as it stands (ENCODING=8BIT, or 7BIT).
#
# Expected: vCard 2.1 (versit, 1996) and RFC 2425 know the encodings 7BIT, 8BIT, QUOTED-PRINTABLE and BASE64; the first
# two mean that nothing is encoded, so the value is as it stands.
# Seen (2026-11-30, vobject 0.9.9, Python 3.11): whatever isn't QUOTED-PRINTABLE is decoded as Base64. A name whose
# letters happen to be Base64 becomes other bytes without a word, "Anna Bell" six of them and a phone number six;
# any other raises binascii.Error, so that the card is lost, also with ignoreUnreadable=True. N is as it was written.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check vobject==0.9.9

venv/bin/python - <<'PYTHON'
import binascii
import sys
from importlib.metadata import version

import vobject


def card(name: str) -> str:
    lines = (
        "BEGIN:VCARD",
        "VERSION:2.1",
        f"FN;ENCODING=8BIT:{name}",
        f"N;ENCODING=8BIT:Bell;{name}",
        "TEL;CELL;ENCODING=7BIT:12345678",
        "END:VCARD",
    )
    return "\r\n".join([*lines, ""])


print("vobject", version("vobject"), "on Python", sys.version.split()[0])
read = vobject.readOne(card("Anna Bell"), allowQP=True)
print("FN Anna Bell:", read.fn.value, "| N:", read.n.value.given, "| TEL 12345678:", read.tel.value)
try:
    vobject.readOne(card("Jane"), ignoreUnreadable=True, allowQP=True)
    vobject.readOne(card("Janet"), ignoreUnreadable=True, allowQP=True)
    raised = ""
except binascii.Error as error:
    raised = f"{type(error).__name__}: {error}"
print("FN Janet:", raised[:90])
is_same = (
    read.fn.value == b"\x02y\xda\x05\xe9e"
    and read.n.value.given == "Anna Bell"
    and isinstance(read.tel.value, bytes)
    and bool(raised)
)
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
