"""Nothing of another person is on any page, whatever id is named, and no form reaches it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from services.gateway.console.site import BELOW, BESIDE, PAGES
from tests.support import approvals
from tests.support.console import signed_in
from tests.support.gateway import Gate
from tests.support.remembering import running_memories, save
from vigil.contracts import DeadLetter, encode
from vigil.subjects import SessionKey

KEY: Final = SessionKey("ann", "vigil", "secret-garden")
SECRET: Final = "the key is under the pot"


async def test_another_persons_ids_lead_nowhere(tmp_path: Path) -> None:
    """Each page of one thing, each form, each parameter that names something."""
    async with running_memories(tmp_path) as gate:
        ids = await filled(gate)
        ann, bob = await signed_in(gate, "ann"), await signed_in(gate, "bob")
        paths = {
            "/inbox/{id}": f"/inbox/{ids['approval']}",
            "/conversations/{key}": f"/conversations/{KEY}",
            "/conversations/{key}/timeline": f"/conversations/{KEY}/timeline",
            "/conversations/{key}/records/{seq}": f"/conversations/{KEY}/records/{ids['seq']}",
            "/tasks/{id}": f"/tasks/{ids['task']}",
            "/goals/{id}": f"/goals/{ids['goal']}",
            "/timetable/{id}": f"/timetable/{ids['row']}",
            "/memories/{id}": f"/memories/{ids['memory']}?agentId=vigil",
            "/memories/graph": f"/memories/graph?id={ids['memory']}",
            "/prompts/{key}/{seq}": f"/prompts/{KEY}/{ids['turn']}",
        }
        of_all = {"/agents/{agent}"}  # an agent is nobody's own; its files are an admin's
        assert set(paths) | of_all == {one.path for one in BELOW}
        named = [f"/prompts?session={KEY}", f"/why?id={ids['said']}&session={KEY}"]
        for path in (*paths.values(), *named):
            assert (await ann.client.get(f"/console{path}")).status_code == 200, path
            answer = await bob.client.get(f"/console{path}")
            assert answer.status_code == 404, (path, answer.text)
            assert SECRET not in answer.text
        assert (await bob.client.get(f"/console/live/{KEY}")).status_code == 404
        for page in (*PAGES, *BESIDE):
            shown = await bob.page(page.path)
            assert SECRET not in shown.text, page.path
            assert KEY.thread not in shown.text, page.path
        forms = [
            (f"/conversations/{KEY}", {"do": do, "text": "hi", "once": "x" * 22, "timer": "tea",
                                       "turn": str(ids["turn"]), "message": "1"})
            for do in ("say", "stop", "cancel", "fork", "replace")
        ]  # fmt: skip
        forms += [
            ("/inbox", {"id": ids["approval"], "digest": approvals.DIGEST, "verdict": "accept"}),
            ("/deliveries", {"do": "requeue", "id": ids["letter"]}),
            ("/timetable", {"do": "run", "id": ids["row"]}),
            (f"/timetable/{ids['row']}", {"do": "remove", "revision": "1"}),
            (f"/timetable/{ids['row']}", {"do": "change", "name": "x", "revision": "1"}),
            *((board, {"do": "move", "id": ids[what], "status": to, "revision": "1"})
              for board, what, to in (("/tasks", "task", "backlog"), ("/goals", "goal", "paused"))),
            (f"/tasks/{ids['task']}", {"do": "move", "status": "done", "revision": "1"}),
            (f"/goals/{ids['goal']}", {"status": "paused", "revision": "1"}),
            (f"/memories/{ids['memory']}", {"agentId": "vigil"}),
            ("/grants", {"id": ids["grant"]}),
        ]  # fmt: skip
        before = len(await gate.stored(str(KEY)))
        for path, fields in forms:
            answer = await bob.send(path, **fields)
            assert answer.status_code == 404, (path, fields, answer.text)
        assert len(await gate.stored(str(KEY))) == before


async def filled(gate: Gate) -> dict[str, str]:
    """Give Ann one of everything; return the ids."""
    api = await gate.person("ann")
    ids: dict[str, str] = {}
    for what, path, body in (
        ("task", "/api/tasks", {"title": SECRET}),
        ("goal", "/api/goals", {"description": SECRET}),
        ("row", "/api/cron", {"name": SECRET, "prompt": SECRET, "cron": "0 9 * * *"}),
        ("grant", "/api/grants", {"tool": "shell", "constraints": [
            {"kind": "argv", "argv": ["echo", SECRET]}]}),
    ):  # fmt: skip
        answer = await api.post(path, json=body)
        assert answer.status_code == 201, answer.text
        ids[what] = answer.json()["id"]
    ids["memory"] = await save(api, SECRET)
    asked = approvals.request(KEY, "c" * 32, reason=SECRET)
    await approvals.ask(gate, asked)
    ids["approval"] = asked.id
    ids["turn"] = str((await gate.stored(str(KEY)))[-1].seq)
    said = await gate.say(str(KEY), SECRET, effect_id="d" * 32, caused_by="m1")
    ids |= {"seq": str(said.seq), "said": "d" * 32}
    letter = DeadLetter(
        id="cortex-SESSIONS-9", service="cortex", stream="SESSIONS", subject=KEY.in_user, seq=9,
        cause=SECRET, at=asked.asked_at, data=b"{",
    )  # fmt: skip
    await gate.admin.publish(KEY.dead("cortex"), encode(letter))
    return ids | {"letter": letter.id}
