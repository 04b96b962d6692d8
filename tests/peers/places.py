"""What the servers are asked about: a folder with files, and a site on loopback."""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import sqlite3
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.printed import printed

NOTE: Final = "The parrot is called Kiwi."
PAGE: Final = (
    f"<html><head><title>Birds</title></head><body><h1>Birds</h1><p>{NOTE}</p></body></html>"
)
API: Final = {
    "openapi": "3.0.3",
    "info": {"title": "Birds", "version": "1"},
    "paths": {
        "/birds/{name}": {
            "get": {
                "operationId": "get_bird",
                "summary": "Tell what a bird says.",
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {
                    "200": {
                        "description": "it",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            }
        }
    },
}


def make_folder(folder: Path, page: str) -> None:
    """Write a text, a PDF, tables, a repository, a database, and what the site says of its API."""
    folder.mkdir(parents=True)
    (folder / "note.txt").write_text(f"{NOTE}\n")
    (folder / "birds.csv").write_text("name,age\nKiwi,7\nAda,3\n")
    (folder / "note.pdf").write_bytes(printed(NOTE))
    with contextlib.closing(sqlite3.connect(folder / "birds.db")) as database, database:
        database.execute("CREATE TABLE birds (name TEXT, age INTEGER)")
        database.execute("INSERT INTO birds VALUES ('Kiwi', 7)")
    (folder / "openapi.json").write_text(json.dumps(API | {"servers": [{"url": page}]}))
    _write_workbook(folder / "birds.xlsx")
    git = shutil.which("git")
    if git is not None:
        repository = folder / "repository"
        repository.mkdir()
        (repository / "note.txt").write_text(NOTE)
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        for args in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", NOTE]):
            subprocess.run([git, *args], cwd=repository, check=True)


def _write_workbook(path: Path) -> None:
    """Write an Excel file of one sheet, as small as there are."""
    word = "http://schemas.openxmlformats.org"
    office, package = f"{word}/officeDocument/2006/relationships", f"{word}/package/2006"
    main = f"{word}/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override '
        f'PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/><Override '
        f'PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet '
        'name="Birds" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData><row r="1"><c r="A1" '
        't="inlineStr"><is><t>Kiwi</t></is></c></row></sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/openapi.json":
            url = f"http://{self.headers['host']}"
            kind, body = "application/json", json.dumps(API | {"servers": [{"url": url}]})
        elif self.path.startswith("/birds/"):
            name = self.path.rpartition("/")[2]
            kind, body = "application/json", json.dumps({"name": name, "says": "squawk"})
        elif self.path == "/":
            kind, body = "text/html", PAGE
        else:
            self.send_error(404)
            return
        data = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Tell nobody."""


@contextlib.contextmanager
def site() -> Iterator[str]:
    """Serve a page, and an API with its document, on loopback; give its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
