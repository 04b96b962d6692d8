"""Whatever a button of the console does can be undone, is asked about, or harms nobody.

`ACTS` has each of them, as the templates, the deeds of a conversation and the slash commands have
them: one that is new isn't there, and has to be thought about first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Literal

from msgspec.structs import replace

from services.gateway.console import appearance, site
from services.gateway.console.pages.sessions import deeds, orders
from tests.support.console import HERE, Shown, signed_in
from tests.support.gateway import Gate
from tests.support.hands_records import SHELF
from vigil.bus.kv import KeyValue
from vigil.contracts import encode
from vigil.contracts.tools import HeldTool

How = Literal["undo", "question"] | str
"""Or why it is harmless."""
SAID: Final = "what is said is the conversation, and is edited or stopped there"
AGAIN: Final = "only tries again"
TAKEN_BACK: Final = "the same button takes it back"
ENDED: Final = "what is made stands on the page, with a button that ends it"
SAID_ANEW: Final = "what is said stands on the page, and is said anew there"
LESS: Final = "only less is allowed by it"
ACTS: Final[dict[str, dict[str, How]]] = {
    "agent": {"": "question", "change": SAID_ANEW},
    "agents": {"": "what is made stands on the page; unasked it may do what is said there"},
    "autonomy": {
        "": TAKEN_BACK,
        "on": TAKEN_BACK,
        "off": TAKEN_BACK,
    },
    "base": {
        "": "signing out is what was meant, and an undo is one itself",
        "on": "undo",
        "off": "undo",
    },
    "browsers": {"": "question"},
    "conversation": {
        "cancel": "question",
        "delete": "question",
        "archive": "undo",
        "unarchive": TAKEN_BACK,
        "fork": "what it comes from stays as it is",
        "name": SAID_ANEW,
        "replace": "the older version stays, and is shown",
        "say": SAID,
        "stop": "it is answered anew by a button",
        "trust": "undo",
        "unvouch": LESS,
        "vouch": "undo",
        "read": "says what was seen",
    },
    "conversations": {"": "goes to a conversation; nothing is stored"},
    "cost": {"": "undo"},
    "deliveries": {"discard": "question", "requeue": AGAIN, "try": AGAIN},
    "enter": {"": "is itself the question whether to sign in"},
    "find": {"": "question"},
    "goals": {"make": ENDED},
    "grants": {"": "question"},
    "health": {"reset": AGAIN},
    "inbox": {"accept": "question", "reject": "nothing is run, and it may be asked for again"},
    "mail": {"pair": "a code expires by itself, and an address has a button that ends it"},
    "memories": {"": "question"},
    "memory": {"": "question"},
    "networks": {
        "add": ENDED,
        "pair": "a code expires by itself, and an id has a button that ends it",
        "remove": "question",
        "try": AGAIN,
    },
    "notifications": {"remove": "question", "try": AGAIN},
    "parts": {
        "move": "undo",
        "subscribe": ENDED,
        "try": AGAIN,
        "unpair": "question",
    },
    "preferences": {
        "forget": "question",
        "never": SAID_ANEW,
        "right": SAID_ANEW,
        "say": SAID_ANEW,
    },
    "question": {"": "is the question"},
    "requests": {
        "accept": "question",
        "always": "question",
        "answer": SAID,
        "edit": "question",
        "fill": SAID,
        "reject": "nothing is run, and it may be asked for again",
    },
    "row": {
        "change": SAID_ANEW,
        "remove": "question",
        "run": "what it does is held back and asked about as ever",
        "trust": "undo",
        "pause": "undo",
        "resume": "undo",
    },
    "servers": {
        "add": "question",
        "remove": "question",
        "sign-in": "only leads somewhere",
        "sign-out": "question",
        "try": AGAIN,
        "on": "undo",
        "off": "undo",
    },
    "settings": {"end": "question", "make": ENDED, "set": SAID_ANEW},
    "task": {"remove": "question"},
    "tasks": {"make": ENDED},
    "timetable": {
        "link": ENDED,
        "make": ENDED,
        "run": "what it does is held back and asked about as ever",
        "unlink": "question",
        "pause": "undo",
        "resume": "undo",
    },
    "today": {"accept": "question", "reject": "nothing is run, and it may be asked for again"},
    "tools": {"": "question"},
    "trust": {"end": LESS, "trust": "undo"},
    "welcome": {
        "finish": "goes on",
        "skip": "goes on",
        "model": SAID_ANEW,
        "you": SAID_ANEW,
        "reach": SAID_ANEW,
    },
}  # fmt: skip
"""By the template whose form has it, and the value of its button; "" where there is one alone."""
SLASHES: Final[dict[str, How]] = {
    **dict.fromkeys(("new", "why", "tasks", "letters", "fine", "help"), "only leads somewhere"),
    **dict.fromkeys(("remind", "edit", "retry", "reply", "open"), SAID),
    "stop": "it is answered anew by a button",
    "trust": "undo",
    "delete": "has to be said twice: /delete yes",
}
_TEMPLATES: Final = Path(appearance.__file__).parent / "templates"
_FORM: Final = re.compile(
    r'<form\b[^>]*method="post".*?</form>|\{% call decide.*?\{% endcall %\}', re.DOTALL
)
_TAG: Final = re.compile(r"<(?:input|button)\b(?:\{\{.*?\}\}|\{%.*?%\}|[^>{])*>", re.DOTALL)
_VALUE: Final = re.compile(r'\bvalue="((?:\{\{.*?\}\}|[^"{])*)"', re.DOTALL)
_WORD: Final = re.compile(r"['\"]([a-z]+)['\"]")


def acts_of(template: str) -> set[str]:
    """Return the values of what does something in the forms of a template."""
    found: set[str] = set()
    for form in _FORM.findall(template):
        if "caller()" in form:
            continue  # a frame, which each call of it fills
        values = [
            value[1]
            for tag in _TAG.findall(form)
            if re.search(r'\bname="(do|verdict|to)"', tag) and (value := _VALUE.search(tag))
        ]
        words = {word for one in values for word in (_WORD.findall(one) if "{{" in one else [one])}
        found |= words or {""}
    return found


def test_each_act_of_a_page_has_an_undo_a_question_or_a_reason() -> None:
    there = {one.stem: acts_of(one.read_text()) for one in _TEMPLATES.glob("*.html")}
    there["conversation"] |= set(deeds.DEEDS)
    assert {name: acts for name, acts in there.items() if acts} == {
        name: set(acts) for name, acts in ACTS.items()
    }
    assert set(orders.OBEYS) == set(SLASHES)


def test_a_page_with_something_final_asks() -> None:
    modules = {one.template.removesuffix(".html"): one for one in (*site.PAGES, *site.BELOW)}
    for name, acts in ACTS.items():
        is_here = name in modules and name != "today"  # its forms go to the inbox
        if is_here and "question" in acts.values():
            assert modules[name].ask is not None, name


async def undone(client: Any, location: str) -> None:
    """Press the undo that a page offers."""
    forms = Shown((await client.get(location)).text).forms
    (undo,) = [one for one in forms if one.get("sure") == "yes"]
    answer = await client.post(undo.pop("action"), data=undo, headers=HERE)
    assert answer.status_code == 303, answer.text


async def test_trust_and_a_raised_cap_are_taken_back(gate: Gate) -> None:
    liv, api = await signed_in(gate, "liv"), await gate.person("liv")
    led = await liv.did("/trust", do="trust", source="hook:ci", agent="vigil")
    (one,) = (await api.get("/api/trust")).json()["sources"]
    assert led == f"/console/trust?undo=trust/{one['id']}/vigil"
    await undone(liv.client, led)
    assert (await api.get("/api/trust")).json()["sources"] == []
    led = await liv.did("/cost", times="1")
    assert (await api.get("/api/budget")).json()["times_raised"] == 1
    await undone(liv.client, led)
    assert (await api.get("/api/budget")).json()["times_raised"] == 0
    # A link may name any number: an undo never raises.
    answer = await liv.send("/cost", do="lower", times="1", sure="yes")
    assert answer.status_code == 409
    assert (await api.get("/api/budget")).json()["times_raised"] == 0


async def test_what_can_not_be_undone_is_asked_about_first(gate: Gate) -> None:
    root, api = (
        await signed_in(gate, "root", is_admin=True),
        await gate.person("root", is_admin=True),
    )
    held = HeldTool(name="wipe", description="Wipes \u202eall", digest="d" * 64, pinned="")
    shelf = replace(SHELF, held=(held,))
    await KeyValue(gate.admin, "TOOLS").put("files", encode(shelf))
    browsers = (await api.get("/api/console/browsers")).json()["browsers"]
    path = "/api/agents/vigil/files"
    (file, *_) = (await api.get(path)).json()["files"]
    written = {"file": file["name"], "digest": file["digest"], "text": "Be kind."}
    await root.did("/agents/vigil", **written)
    (file, *_) = (await api.get(path)).json()["files"]
    again = {"file": file["name"], "digest": file["digest"], "text": "Be brief."}
    for page, fields, told in (
        ("/browsers", {"id": browsers[0]["id"]}, "It is the one that you look at now"),
        ("/agents/vigil", again, "Be kind."),
        ("/tools", {"source": "files", "tool": "wipe", "digest": "d" * 64}, "⟨202E⟩"),
        ("/notifications", {"do": "remove", "id": "x"}, "Notify this browser no more?"),
    ):
        asked = await root.client.post(f"/console{page}", data=fields, headers=HERE)
        assert asked.status_code == 200, asked.text
        shown = Shown(asked.text)
        assert told in shown.text
        (sure,) = shown.forms
        assert fields.items() <= sure.items()
    (file, *_) = (await api.get(path)).json()["files"]
    assert file["text"].strip() == "Be kind."
    assert (await api.get("/api/console/browsers")).json()["browsers"] == browsers
