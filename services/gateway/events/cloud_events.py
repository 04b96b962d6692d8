"""CloudEvents 1.0 from outside: what comes in by HTTP, and on the bus (structured mode). Pure.

The library reads attributes and checks them; what it would make up (an id, a time) must be there
or stays absent. Of an event only the attributes below are taken: extension attributes are dropped,
and no header goes any further (RELIABILITY S5). The data becomes text, as it came.

Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
"""

from __future__ import annotations

import binascii
import contextlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from vigil.contracts import ExternalPayload
from vigil.errors import InvalidInput

from ..http.decide import TooLarge, is_too_deep
from ..http.problem import Problem

if TYPE_CHECKING:
    from cloudevents.core.base import BaseCloudEvent

STRUCTURED: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch"
REQUIRED: Final = ("specversion", "id", "source", "type")
LENGTHS_MAX: Final[Mapping[str, int]] = {
    "id": 256,
    "source": 1024,
    "type": 256,
    "subject": 200,
    "agentid": 64,
}
"""Characters of the attributes that are kept or looked at."""
_PREFIX: Final = "ce-"
_DATA: Final = "data"
_DATA_BASE64: Final = "data_base64"


class EventLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an event is taken in."""

    content_bytes_max: int
    json_depth_max: int


class OutsideEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, as far as it's taken in. `subject` and `agent` are empty if it names none."""

    id: str
    origin: str
    kind: str
    subject: str
    agent: str
    occurred_at: datetime | None
    """Aware UTC."""
    content: str

    def payload(self, source: str, *, is_trusted: bool = False) -> ExternalPayload:
        """Return what is stored; `source` is who let it in."""
        return ExternalPayload(
            source=source,
            content=self.content,
            kind=self.kind,
            origin=self.origin,
            origin_id=self.id,
            occurred_at=self.occurred_at,
            is_trusted=is_trusted,
        )


def of_http(
    headers: Iterable[tuple[bytes, bytes]], body: bytes, limits: EventLimits
) -> OutsideEvent:
    """Read the event of an HTTP request; `headers` are ASGI's: names in lower case.

    Raises:
        InvalidInput: naming the attribute and the reason.
        Problem: 415, a form of events that isn't taken.
    """
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    media_type = _media_type(dict(pairs).get("content-type", ""))
    if media_type == STRUCTURED:
        return structured(body, limits)
    if media_type.startswith(BATCH):
        raise Problem(415, "batches are not taken: send one event a request")
    if media_type.startswith("application/cloudevents"):
        raise Problem(415, f"of the structured formats only {STRUCTURED} is taken")
    attributes = [(name, value) for name, value in pairs if name.startswith(_PREFIX)]
    if not attributes:
        raise Problem(415, f"send {STRUCTURED}, or the attributes as ce-* headers")
    return _binary(attributes, dict(pairs).get("content-type"), body, limits)


def structured(body: bytes, limits: EventLimits) -> OutsideEvent:
    """Read an event in the JSON format. Raises: InvalidInput."""
    given = _json(body, dict[str, msgspec.Raw], limits)
    # An attribute that is null is none (CloudEvents 1.0.2, JSON format, 2.2.1).
    raw = {name: one for name, one in given.items() if name == _DATA or bytes(one) != b"null"}
    _check_required(raw)
    for name in ("time", _DATA_BASE64):
        if name in raw and not bytes(raw[name]).startswith(b'"'):
            raise InvalidInput(name, "must be a string")
    content = _content_of(raw)
    # The library reads the attributes; the data was read above, as it came.
    head = {name: value for name, value in raw.items() if name not in (_DATA, _DATA_BASE64)}
    event = _read("structured", {"content-type": STRUCTURED}, msgspec.json.encode(head))
    return _outside_event(event, raw, content, limits)


def of_text(
    origin_id: str, kind: str, body: bytes, occurred_at: datetime | None, limits: EventLimits
) -> OutsideEvent:
    """Return an event that came in another form than a CloudEvent. Raises: InvalidInput."""
    if body.lstrip()[:1] in (b"{", b"["):
        with contextlib.suppress(_NotJson):  # it's text that begins like JSON
            _json(body, msgspec.Raw, limits)
    return OutsideEvent(
        id=origin_id,
        origin="",
        kind=_checked("type", kind),
        subject="",
        agent="",
        occurred_at=None if occurred_at is None else _in_utc(occurred_at),
        content=_within(_text(body, "body"), limits),
    )


def _binary(
    attributes: list[tuple[str, str]], content_type: str | None, body: bytes, limits: EventLimits
) -> OutsideEvent:
    headers = dict(attributes)
    if len(headers) != len(attributes):
        raise InvalidInput("headers", "have the same attribute more than once")
    given = {name.removeprefix(_PREFIX): value for name, value in headers.items()}
    _check_required(given)
    if content_type is not None:
        headers["content-type"] = content_type
        if _media_type(content_type).endswith(("/json", "+json")) and body:
            _json(body, msgspec.Raw, limits)
    event = _read("binary", headers, b"")
    return _outside_event(event, given, _text(body, "body"), limits)


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


class _NotJson(InvalidInput):
    """Text of another form."""


def _json(body: bytes, kind: Any, limits: EventLimits) -> Any:
    """Decode JSON. It's decoded first: what is broken ends there at once. Raises: InvalidInput."""
    reason = f"is nested deeper than {limits.json_depth_max} levels"
    try:
        decoded = msgspec.json.decode(body, type=kind)
    except UnicodeDecodeError as error:
        raise _NotJson("body", "must be UTF-8") from error
    except RecursionError as error:
        raise InvalidInput("body", reason) from error
    except msgspec.MsgspecError as error:
        raise _NotJson("body", f"is no event in JSON: {error}") from error
    if is_too_deep(body, limits.json_depth_max):
        raise InvalidInput("body", reason)
    return decoded


def _check_required(given: Iterable[str]) -> None:
    """Refuse what lacks an attribute; the library would make one up. Raises: InvalidInput."""
    for name in REQUIRED:
        if name not in given:
            raise InvalidInput(name, "is required")


def _read(
    mode: Literal["structured", "binary"], headers: dict[str, str], body: bytes
) -> BaseCloudEvent:
    """Let the library read the attributes. Raises: InvalidInput, with its words."""
    # Loaded with the first event: it takes 50 ms.
    from cloudevents.core.bindings.http import HTTPMessage, from_binary, from_structured
    from cloudevents.core.exceptions import BaseCloudEventException, CloudEventValidationError
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    read = from_structured if mode == "structured" else from_binary
    try:
        event: BaseCloudEvent = read(HTTPMessage(headers, body), JSONFormat(), CloudEvent)
    except CloudEventValidationError as error:
        field, reasons = next(iter(error.errors.items()))
        raise InvalidInput(field, _reason(field, str(reasons[0]))) from error
    except (BaseCloudEventException, TypeError, AttributeError) as error:
        raise InvalidInput("body", "is no event of CloudEvents 1.0") from error
    except ValueError as error:  # of all attributes the library reads a form of the time's alone
        raise InvalidInput("time", "must be an instant of RFC 3339") from error
    return event


def _reason(field: str, words: str) -> str:
    words = words.removeprefix(f"Attribute '{field}' ").replace("a <class 'str'>", "a string")
    return words.replace("<class 'datetime.datetime'>", "an instant of RFC 3339")


def _outside_event(
    event: BaseCloudEvent, given: Iterable[str], content: str, limits: EventLimits
) -> OutsideEvent:
    return OutsideEvent(
        id=_attribute(event, "id"),
        origin=_attribute(event, "source"),
        kind=_attribute(event, "type"),
        subject=_attribute(event, "subject"),
        agent=_attribute(event, "agentid"),
        occurred_at=_instant(event) if "time" in given else None,
        content=_within(content, limits),
    )


def _within(content: str, limits: EventLimits) -> str:
    size = len(content.encode())
    if size > limits.content_bytes_max:
        raise TooLarge("data", f"must have at most {limits.content_bytes_max} bytes, has {size}")
    return content


def _attribute(event: BaseCloudEvent, name: str) -> str:
    """Return an attribute that is kept. Raises: InvalidInput."""
    value = event.get_attributes().get(name, "")
    if not isinstance(value, str):
        raise InvalidInput(name, "must be a string")
    return _checked(name, value)


def _checked(name: str, value: str) -> str:
    if len(value) > LENGTHS_MAX[name]:
        raise InvalidInput(name, f"must have at most {LENGTHS_MAX[name]} characters")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise InvalidInput(name, "must not contain control characters or halves of characters")
    return value


def _instant(event: BaseCloudEvent) -> datetime:
    at = event.get_time()
    assert at is not None  # noqa: S101 - it was given, and the library refuses null
    return _in_utc(at)


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise InvalidInput("time", "is no instant that can be stored") from error


def _content_of(raw: Mapping[str, msgspec.Raw]) -> str:
    """Return the data as text: a string as its characters, other JSON as it came."""
    if _DATA in raw and _DATA_BASE64 in raw:
        raise InvalidInput(_DATA, "and data_base64 exclude each other")
    if _DATA_BASE64 in raw:
        encoded = _string(raw[_DATA_BASE64], _DATA_BASE64)
        try:
            return _text(binascii.a2b_base64(encoded, strict_mode=True), _DATA_BASE64)
        except ValueError as error:
            raise InvalidInput(_DATA_BASE64, f"is no base64: {error}") from error
    data = bytes(raw.get(_DATA, msgspec.Raw(b"null")))
    if data.startswith(b'"'):
        return _check_nul(_string(data, _DATA), _DATA)
    return "" if data == b"null" else _text(data, _DATA)


def _string(data: bytes | msgspec.Raw, field: str) -> str:
    try:
        return msgspec.json.decode(data, type=str)
    except (UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise InvalidInput(field, f"is no string: {error}") from error


def _text(data: bytes, field: str) -> str:
    """Return UTF-8 as text. Raises: InvalidInput."""
    try:
        return _check_nul(data.decode(), field)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            field, "must be text in UTF-8; an agent can't read anything else"
        ) from error


def _check_nul(text: str, field: str) -> str:
    if "\0" in text:
        raise InvalidInput(field, "must not contain NUL")
    return text
