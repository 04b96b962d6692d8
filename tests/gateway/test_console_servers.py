"""MCP servers in the console: added, tried, switched and removed while an executor runs; and the
files that say who an agent is."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.cortex.thought.identity import Identities
from services.gateway.console.pages.about import servers
from tests.support.console import Shown, browser, signed_in
from tests.support.gateway import Gate
from tests.support.mcp_client import NASTY, sandbox
from tests.support.oauth_server import guarded
from tests.support.world import running_world
from vigil.clock import SystemClock
from vigil.doctor import sign_ins
from vigil.edits import toml_sections
from vigil.local.identity_files import FILE_BYTES_MAX, FILES, digest_of
from vigil.oauth import kept
from vigil.settings import config
from vigil.settings.live import followed

GIVEN = {"do": "add", "url": "", "token": "", "folders": "", "risk": "read"}


async def test_a_server_is_added_tried_switched_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is shown of before it starts, in the file as by `vigil mcp`, at once; admins alone;
    nothing that may be secret is told."""
    await sandbox()
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    async with running_world(tmp_path, monkeypatch, SystemClock(), has_hands=True) as world:
        admin = await signed_in(world.gate, "root", is_admin=True)
        ann = await signed_in(world.gate, "ann")
        api = await world.gate.person("ann")
        line = shlex.join([sys.executable, str(NASTY)])
        form = GIVEN | {"name": "notes", "command": line}
        refused = await ann.send("/servers", **form)
        assert refused.status_code == 403
        assert "An admin sees and changes them" in (await ann.page("/servers")).text
        assert (await api.get("/api/servers")).status_code == 403

        first = await admin.client.post(
            "/console/servers", data=form, headers={"sec-fetch-site": "same-origin"}
        )
        assert "Start the server notes?" in first.text
        assert str(NASTY) in first.text
        assert await admin.did("/servers", **form) == "/console/servers?tried=notes"
        page = await admin.page("/servers", tried="notes")
        assert "It works: " in page.text
        assert "notes__add" in page.text
        assert "no network, and nothing else of this machine" in page.text
        assert str(NASTY) not in page.text  # of a command line, the program's name
        assert (await admin.send("/servers", **form)).status_code == 409
        section = config.load({}, home=tmp_path).config.mcp["notes"]
        assert (section.args, section.risk) == ((str(NASTY),), "read")

        where = await admin.did("/servers", do="off", name="notes")
        assert "server/notes/on" in where
        assert not config.load({}, home=tmp_path).config.mcp["notes"].is_enabled
        stale = await admin.send("/servers", do="try", name="notes")
        assert (stale.status_code, "switched off by now" in stale.text) == (409, True)
        assert not config.load({}, home=tmp_path).config.mcp["notes"].is_enabled
        (undo,) = [
            one for one in (await admin.page(where.removeprefix("/console"))).forms if "sure" in one
        ]
        await admin.did("/servers", do=undo["do"], name=undo["name"], sure="yes")
        await admin.did("/servers", do="try", name="notes")
        assert "It works: " in (await admin.page("/servers", tried="notes")).text

        await admin.did("/servers", do="remove", name="notes")
        assert config.load({}, home=tmp_path).config.mcp == {}
        assert (await admin.send("/servers", do="off", name="notes")).status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a__b", "command": "true"},
        {"name": "../x", "command": "true"},
        {"name": "both", "command": "true", "url": "https://a.example/mcp"},
        {"name": "none", "command": ""},
        {"name": "words", "command": "", "url": "https://a.example/mcp", "token": "two words"},
        {"name": "open", "command": "say 'a"},
    ],
)
async def test_what_is_no_server_changes_nothing(
    gate: Gate, tmp_path: Path, wrong: dict[str, str]
) -> None:
    admin = await signed_in(gate, "root", is_admin=True)
    answer = await admin.send("/servers", **GIVEN | wrong)
    assert answer.status_code in (404, 422), answer.text
    home = tmp_path
    assert not list((home / "keys").glob("mcp-*"))
    assert config.load({}, home=home).config.mcp == {}


async def test_a_token_is_kept_apart_and_goes_with_its_server(gate: Gate, tmp_path: Path) -> None:
    admin, home = await signed_in(gate, "root", is_admin=True), tmp_path
    api = await gate.person("root", is_admin=True)
    wanted = {"name": "far", "url": "https://a.example/mcp", "token": "s3cret"}
    assert (await api.post("/api/servers", json=wanted)).status_code == 201
    (kept,) = (home / "keys").glob("mcp-*")
    assert kept.read_text() == "Authorization: Bearer s3cret\n"
    assert kept.stat().st_mode & 0o077 == 0
    assert "s3cret" not in (home / "vigil.toml").read_text()
    page = await admin.page("/servers")
    assert "a.example" in page.text
    assert "s3cret" not in page.text
    assert (await api.delete("/api/servers/far")).status_code == 204
    assert not kept.exists()


PUBLISHED = {
    "name": "io.github.ann/far-notes", "description": "Keeps <b>notes</b>", "version": "1.2.0",
    "packages": [{
        "registryType": "pypi", "identifier": "far-notes", "version": "1.2.0",
        "transport": {"type": "stdio"},
        "environmentVariables": [
            {"name": "NOTES_LANGUAGE", "default": "en"},
            {"name": "NOTES_FOLDER", "isRequired": True, "description": "Where they are."},
            {"name": "NOTES_KEY", "isRequired": True, "isSecret": True},
        ],
    }],
}  # fmt: skip
ASKED = {
    "name": "com.example/wiki", "description": "A wiki of notes", "version": "2.0.0",
    "remotes": [{
        "type": "streamable-http", "url": "https://wiki.example.com/mcp",
        "headers": [{"name": "X-Client", "value": "vigil"}, {"name": "X-Key", "isSecret": True}],
    }],
}  # fmt: skip
OTHERWISE = {
    "name": "com.example/boxed-notes", "description": "Notes in a box", "version": "1.0.0",
    "packages": [{"registryType": "oci", "identifier": "notes", "version": "1.0.0"}],
}  # fmt: skip


async def test_servers_are_found_in_a_catalogue_seen_and_added(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was seen, with what it needs; what is secret is kept apart. Admins alone."""
    monkeypatch.setattr(servers, "TRIED_S", 0.0)  # no executor runs
    published = tmp_path / "published.json"
    listed = [{"server": one} for one in (PUBLISHED, ASKED, OTHERWISE)]
    published.write_text(json.dumps({"servers": listed}))
    (tmp_path / "vigil.toml").write_text(f"[gateway]\nregistry = {json.dumps(str(published))}\n")
    admin, ann = await signed_in(gate, "root", is_admin=True), await signed_in(gate, "ann")
    api = await gate.person("ann")
    assert (await api.get("/api/catalogue", params={"words": "notes"})).status_code == 403
    assert "far-notes" not in (await ann.page("/servers", words="notes")).text

    page = await admin.page("/servers", words="notes")
    assert "Keeps <b>notes</b>" in page.text
    assert "runs uvx far-notes==1.2.0" in page.text
    assert "can't be added by its name: oci" in page.text
    service, program = (one for one in page.forms if one.get("name") in ("far-notes", "wiki"))
    assert program["command"] == "uvx far-notes==1.2.0"
    assert "None of" in (await admin.page("/servers", words="nothing-like-it")).text

    filled = program | {"risk": "read", "env.NOTES_FOLDER": "/notes", "secret.NOTES_KEY": "s3cret"}
    asked = await admin.client.post(
        "/console/servers", data=filled, headers={"sec-fetch-site": "same-origin"}
    )
    for told in ("Start the server far-notes?", "uvx far-notes==1.2.0", "NOTES_LANGUAGE=en"):
        assert told in asked.text
    assert config.load({}, home=tmp_path).config.mcp == {}
    await admin.did("/servers", **filled)
    added = config.load({}, home=tmp_path).config.mcp["far-notes"]
    assert (Path(added.command).name, added.args) == ("uvx", ("far-notes==1.2.0",))
    assert added.env == {"NOTES_LANGUAGE": "en", "NOTES_FOLDER": "/notes"}
    kept_apart = Path(added.env_file)
    assert (kept_apart.read_text(), added.network) == ("NOTES_KEY=s3cret\n", True)
    assert kept_apart.stat().st_mode & 0o077 == 0

    await admin.did("/servers", **service | {"risk": "read", "secret.X-Key": "k3y"})
    far = config.load({}, home=tmp_path).config.mcp["wiki"]
    assert (far.url, far.headers) == ("https://wiki.example.com/mcp", {"X-Client": "vigil"})
    assert Path(far.headers_file).read_text() == "X-Key: k3y\n"
    await admin.did("/servers", do="remove", name="far-notes")
    assert not kept_apart.exists()

    published.write_text("{}")
    page = await admin.page("/servers", words="notes")
    assert "It can't be searched now" in page.text
    assert "wiki.example.com" in page.text


async def test_anothers_agent_is_added_switched_and_removed_as_servers_are(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "TRIED_S", 0.0)  # no executor runs
    admin, home = await signed_in(gate, "root", is_admin=True), tmp_path
    form = GIVEN | {"name": "tax", "url": "https://tax.example/agent", "speaks": "a2a"}
    asked = await admin.client.post(
        "/console/servers", data=form, headers={"sec-fetch-site": "same-origin"}
    )
    assert "Whatever they tell it leaves this machine" in asked.text
    await admin.did("/servers", **form | {"token": "k3y"})
    found = config.load({}, home=home).config
    assert (found.a2a["tax"].url, found.mcp) == ("https://tax.example/agent", {})
    kept_apart = Path(found.a2a["tax"].headers_file)
    assert kept_apart.read_text() == "Authorization: Bearer k3y\n"
    assert "An agent, asked by A2A at" in (await admin.page("/servers")).text
    assert (await admin.send("/servers", **GIVEN | form)).status_code == 409
    assert (await admin.send("/servers", do="sign-in", name="tax")).status_code == 404
    await admin.did("/servers", do="off", name="tax")
    assert not config.load({}, home=home).config.a2a["tax"].is_enabled
    await admin.did("/servers", do="remove", name="tax")
    assert config.load({}, home=home).config.a2a == {}
    assert not kept_apart.exists()
    program = {"name": "prog", "speaks": "a2a", "command": "true"}
    assert (await admin.send("/servers", **GIVEN | program)).status_code == 422


@pytest.mark.parametrize("wrong", [{"A B": "x"}, {"A": ""}, {"A": "x\ny=z"}, {"A": "\x7f"}])
async def test_a_secret_is_a_name_and_a_line(
    gate: Gate, tmp_path: Path, wrong: dict[str, str]
) -> None:
    api = await gate.person("root", is_admin=True)
    wanted = {"name": "far", "url": "https://a.example/mcp", "secrets": wrong}
    answer = await api.post("/api/servers", json=wanted)
    assert answer.status_code == 422
    assert answer.json()["field"].startswith("secrets")
    assert not list((tmp_path / "keys").glob("mcp-*"))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("url", "far"),
        ("url", "file:///etc/hosts"),
        ("url", "http://["),
        ("url", "https://ann:s3cret@a.example/mcp"),
        ("headers", {"X\ny": "z"}),
        ("headers", {"X": "y\r\nZ: z"}),
    ],
)
async def test_what_no_server_is_asked_by_is_refused(
    gate: Gate, tmp_path: Path, field: str, wrong: object
) -> None:
    """By its field: it stood in vigil.toml, and the server never connected."""
    api = await gate.person("root", is_admin=True)
    wanted = {"name": "far", "url": "https://a.example/mcp", field: wrong}
    answer = await api.post("/api/servers", json=wanted)
    assert answer.status_code == 422
    assert answer.json()["field"].startswith(field)
    assert config.load({}, home=tmp_path).config.mcp == {}


async def test_admins_who_change_something_at_once_each_have_it(gate: Gate, tmp_path: Path) -> None:
    """In one file: servers, and who thinks, as a command writes it; no remark is lost. Of two who
    write the same file of an agent, one is told."""
    file = tmp_path / "vigil.toml"
    file.write_text("# Mine.\n" + (file.read_text() if file.exists() else ""))
    api = await gate.person("root", is_admin=True)
    names = [f"s{number}" for number in range(4)]

    async def add(name: str) -> int:
        wanted = {"name": name, "url": "https://a.example/mcp"}
        return (await api.post("/api/servers", json=wanted)).status_code

    def choose(number: int) -> None:
        toml_sections.set_value(file, ("models", f"m{number}", "provider"), "anthropic")

    added, _ = await asyncio.gather(
        asyncio.gather(*map(add, names)),
        asyncio.gather(*(asyncio.to_thread(choose, number) for number in range(4))),
    )
    assert added == [201] * 4
    found = config.load({}, home=tmp_path).config
    assert (set(found.mcp), len(found.models)) == (set(names), 4)
    assert "# Mine.\n" in file.read_text()
    assert not list(tmp_path.glob(".vigil.toml*"))

    one = (await api.get("/api/agents/vigil/files")).json()["files"][0]
    path = f"/api/agents/vigil/files/{one['name']}"
    sent = [
        api.put(path, json={"text": f"I am {number}.", "digest": one["digest"]})
        for number in range(4)
    ]
    assert sorted([it.status_code for it in await asyncio.gather(*sent)]) == [200, 409, 409, 409]


async def test_who_an_agent_is_can_be_written(gate: Gate, tmp_path: Path) -> None:
    """As it was shown, by admins alone; what a cortex reads next."""
    admin, ann = await signed_in(gate, "root", is_admin=True), await signed_in(gate, "ann")
    folder = tmp_path / "agents" / "vigil"
    identities = Identities(tmp_path / "agents")
    identities.ensure("vigil")
    page = await admin.page("/agents/vigil")
    form = next(one for one in page.forms if one.get("file") == "ROLE.md")
    wanted = {
        "file": "ROLE.md",
        "digest": form["digest"],
        "text": "You water plants.</textarea><b>",
    }
    assert (await ann.send("/agents/vigil", **wanted)).status_code == 403
    assert "an admin sees and changes" in (await ann.page("/agents/vigil")).text
    assert await admin.did("/agents/vigil", **wanted) == "/console/agents/vigil?saved=ROLE.md"
    assert identities.load("vigil", "ann").role == wanted["text"]
    assert not (await admin.page("/agents/vigil", saved="ROLE.md")).strange()
    late = await admin.send("/agents/vigil", **wanted | {"text": "mine"})
    assert late.status_code == 409
    role = folder / "ROLE.md"
    for more in (b"x" * FILE_BYTES_MAX + b" the rest", b"na\xefve"):
        role.write_bytes(more)
        form = next(
            one for one in (await admin.page("/agents/vigil")).forms if one.get("file") == role.name
        )
        part = await admin.send("/agents/vigil", **wanted | {"digest": form["digest"]})
        assert part.status_code == 409
        assert "is shown in part" in part.text
        assert role.read_bytes() == more
    role.write_text(wanted["text"])
    large = wanted | {"digest": digest_of(wanted["text"]), "text": "x" * (FILE_BYTES_MAX + 1)}
    assert (await admin.send("/agents/vigil", **large)).status_code in (413, 422)
    assert (await admin.send("/agents/vigil", **wanted | {"file": "notes.md"})).status_code == 404
    assert (await admin.client.get("/console/agents/nobody")).status_code == 404
    assert sorted(one.name for one in folder.iterdir()) == sorted(FILES)


async def test_a_person_signs_in_to_a_server_in_a_browser(gate: Gate, tmp_path: Path) -> None:
    """By a link on the page, to the server's page, and back without a cookie: only with what began
    here, once; and out again, there as well. No token is told."""
    admin, root = await signed_in(gate, "root", is_admin=True), tmp_path
    api = await gate.person("root", is_admin=True)
    async with guarded() as there, browser(gate) as back:
        far = {"name": "far", "url": there.url, "allow_private": True}
        assert (await api.post("/api/servers", json=far)).status_code == 201
        page = await admin.send("/servers", do="sign-in", name="far")
        (link,) = [one for one in Shown(page.text).links if one.startswith(there.issuer.url)]
        where = await there.follow(link)
        assert (where.host, where.path) == ("127.0.0.1", "/console/signed-in")
        forged = await back.get(where.path, params={"code": "x", "state": "x"})
        assert (forged.status_code, "Nobody waits" in forged.text) == (410, True)
        done = await back.get(where.path, params=where.params)
        assert (done.status_code, "Signed in" in done.text) == (200, True)
        assert (await back.get(where.path, params=where.params)).status_code == 410
        kept_at = kept.path_of(root, "far")
        assert kept_at.stat().st_mode & 0o077 == 0
        (view,) = (await api.get("/api/servers")).json()["servers"]
        assert view["sign_in"] == "signed in"
        assert not any(token in str(view) for token in there.issuer.tokens)

        settings = config.load({}, home=root)
        (check,) = sign_ins.checks(settings).values()
        assert check(settings).state == "ok"  # type: ignore[union-attr]
        seen = kept.read(root, "far", there.url)
        assert seen is not None
        kept.write(root, "far", replace(seen, refused="it was taken back"))
        assert "sign in again" in (await admin.page("/servers")).text
        found = check(settings)
        assert found is not None
        assert (found.state, "vigil mcp sign-in far" in found.advice) == ("warn", True)

        there.issuer.says_no = "access_denied"
        page = await admin.send("/servers", do="sign-in", name="far")
        (link,) = [one for one in Shown(page.text).links if one.startswith(there.issuer.url)]
        no = await back.get(where.path, params=(await there.follow(link)).params)
        assert (no.status_code, "access_denied" in no.text) == (422, True)
        wrong = {"gateway": "https://evil.example"}
        assert (await api.post("/api/servers/far/sign-in", json=wrong)).status_code == 422

        await admin.did("/servers", do="sign-out", name="far")
        assert not kept_at.exists()
        assert not there.issuer.renewals
        assert (await api.delete("/api/servers/far/sign-in")).status_code == 404
