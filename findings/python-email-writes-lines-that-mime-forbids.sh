#!/usr/bin/env bash
# Python's email package writes quoted-printable lines and encoded words that are longer than MIME lets
# them be, by default a little, and with the usual cure for long Message-IDs twelve times over.
#
# Expected: with any policy, lines of quoted-printable have at most 76 characters (RFC 2045, 6.7, rule 5)
# and encoded words at most 75 (RFC 2047, 2), since these bounds are no matter of taste.
# Seen (2026-11-28, CPython 3.11.7, 3.12.1, 3.13.0, the same in each):
# * policy SMTP (max_line_length 78): quoted-printable lines of 78 characters, encoded words of 76.
# * the same with max_line_length=998, which is what people set so that ids of 78 characters and more in
#   In-Reply-To and References aren't written as encoded words: lines of 998, encoded words of 932.
# * with max_line_length=76: 76 and 73.
# One setting bounds three things with bounds of their own. Who needs long ids and correct texts
# writes the fields with ids apart. Readers that were tried (mailparser, postal-mime, Perl's Encode) decode both.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv

venv/bin/python - <<'PYTHON'
import re
import sys
from email.message import EmailMessage
from email.policy import SMTP

SEEN = {78: (76, 78, False), 998: (932, 998, True), 76: (73, 76, False)}
WORD = re.compile(rb"=\?[^? ]*\?[^? ]*\?[^? ]*\?=")
ID = "<" + "a" * 90 + "@example.org>"

print("Python", sys.version.split()[0])
is_same = True
for length, seen in SEEN.items():
    mail = EmailMessage(policy=SMTP.clone(max_line_length=length))
    mail["Subject"] = "Grüße aus dem Süden " * 30
    mail["In-Reply-To"] = ID
    mail.set_content("für Ann " * 80, cte="quoted-printable")
    data = mail.as_bytes()
    head, body = data.split(b"\r\n\r\n", 1)
    word, line = max(map(len, WORD.findall(head))), max(map(len, body.split(b"\r\n")))
    is_whole = f"In-Reply-To: {ID}".encode() in head
    print(f"max_line_length {length}: longest encoded word {word} (75 allowed), "
          f"longest line of quoted-printable {line} (76 allowed), id as it is: {is_whole}")
    is_same = is_same and (word, line, is_whole) == seen
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
