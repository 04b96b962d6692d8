"""What a form of the console sends: its fields, and a file if it has one. All of it is bounded."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec
from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from vigil.settings.sections import Gateway

from ..http import body
from ..http.problem import Problem

FIELDS_MAX: Final = 100
FILES_MAX: Final = 4
MULTIPART: Final = "multipart/form-data"


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent."""

    fields: Mapping[str, str] = {}
    files: tuple[tuple[str, bytes], ...] = ()
    """The names and the bytes of the files that were chosen."""


async def read_form(request: Request, config: Gateway) -> Form:
    """Read what a request sends. Raises: TooLarge, or Problem, 422: it's no form."""
    if request.method != "POST":
        return Form()
    has_file = request.headers.get("content-type", "").startswith(MULTIPART)
    bytes_max = config.body_bytes_max + (FILES_MAX * config.attachment_bytes_max if has_file else 0)
    data = await body.read(request.scope, request.receive, bytes_max)
    try:
        if has_file:
            return await _parts(request, data, config.body_bytes_max)
        pairs = parse_qsl(
            data.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except (ValueError, MultiPartException) as error:
        raise Problem(422, "this isn't a form of the console") from error
    return Form(fields={name: _as_written(value) for name, value in pairs})


async def _parts(request: Request, data: bytes, field_bytes_max: int) -> Form:
    async def once() -> AsyncGenerator[bytes, None]:
        yield data

    parser = MultiPartParser(
        request.headers,
        once(),
        max_files=FILES_MAX,
        max_fields=FIELDS_MAX,
        max_part_size=field_bytes_max,
    )
    found = await parser.parse()
    fields: dict[str, str] = {}
    files: list[tuple[str, bytes]] = []
    for name, value in found.multi_items():
        if not isinstance(value, UploadFile):
            fields[name] = _as_written(value)
        elif value.filename:
            files.append((value.filename, await value.read()))
    await found.close()
    return Form(fields=fields, files=tuple(files))


def _as_written(value: str) -> str:
    r"""Return a field as it was written: browsers send each end of a line as two characters, also
    of a text that was stored with one.

    >>> _as_written("a\r\nb")
    'a\nb'
    """
    return value.replace("\r\n", "\n")
