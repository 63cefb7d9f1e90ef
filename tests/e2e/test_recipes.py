# SPDX-License-Identifier: Apache-2.0
"""The recipes of the guide, with the real programs: those of Debian, and what npm and pip install."""

import asyncio
import json
import os
import pathlib
import shutil

import pytest
import websockets

from harness.client import Client
from harness.messages import request
from harness.recipes import PARTS, Recipe, needs_plugins

pytestmark = [pytest.mark.slow, pytest.mark.single_protocol, pytest.mark.timeout(1800)]


@pytest.fixture
def recipe(tmp_path):
    made = []

    def make(heading):
        made.append(Recipe(tmp_path, heading))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def ask(recipe, target, *fields, **rest):
    with Client(recipe.server.addresses[0]) as client:
        return client.ask(target, *fields, **rest)


def needs(*tools):
    missing = [tool for tool in tools if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin")]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}")


def talk(url):
    """Sends a message to a WebSocket that answers in capitals."""

    async def ask():
        async with websockets.connect(url) as client:
            await client.send("hello")
            assert await client.recv() == "HELLO"

    asyncio.run(ask())


# ── applications ──


@needs_plugins("proxy")
@needs("uvicorn")
def test_uvicorn(recipe):
    here = recipe("uvicorn")
    here.write()
    [command] = here.commands()
    here.spawn(command, path=here.folder / "run/app.sock")
    here.serve()
    forged = "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"
    assert ask(here, "/a%20b?c", *forged).body == b"http /a b from 127.0.0.1\n"
    talk(f"ws://{here.server.names[0]}/socket")


@needs_plugins("proxy")
@needs("npm", "node")
def test_express(recipe):
    here = recipe("Express")
    here.write()
    install, command = here.commands()
    here.run_command(install)
    here.spawn(command, port="3000")
    here.serve()
    assert ask(here, "/app/", "X-Forwarded-For: 192.0.2.1").body == b"http://localhost from 127.0.0.1\n"
    assert ask(here, "/app/old")["Location"] == "/app/new"
    assert "Path=/app" in ask(here, "/app/cookie", method="POST", body=b"")["Set-Cookie"]
    talk(f"ws://{here.server.names[0]}/app/socket")
    with Client(here.server.addresses[0]) as client:
        client.send(request("/app/events"))
        assert b"text/event-stream" in client.until(b"\r\n\r\n")
        for count in range(1, 4):
            client.until(b"data: %d\n\n" % count)


@needs_plugins("proxy")
@needs("npm", "node")
def test_verdaccio(recipe):
    """A user publishes a package, and another folder installs it."""
    here = recipe("Verdaccio")
    here.write()
    install, command = here.commands()
    try:
        here.run_command(install)
    except AssertionError:  # a mirror may lack what the newest version needs
        here.run_command(f"{install}@4")
    here.spawn(command, port="4873")
    url = here.serve().url
    user = {"name": "ada", "password": "a long password", "_id": "org.couchdb.user:ada", "type": "user", "roles": []}
    got = ask(here, "/-/user/org.couchdb.user:ada", "Content-Type: application/json", method="PUT",
              body=json.dumps(user).encode())  # fmt: skip
    assert got.status == 201, got.body
    options = f"--registry={url}/ --//{url.partition('//')[2]}/:_authToken={json.loads(got.body)['token']}"
    package = here.folder / "app/package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "a-package", "version": "1.0.0", "main": "a.js"}')
    (package / "a.js").write_text("module.exports = 7;\n" + "// padding\n" * 100_000)
    here.run_command(f"npm publish ./package {options}")
    (here.folder / "app/user").mkdir()
    here.run_command(f"cd user && npm init -y && npm install --no-audit --no-fund a-package {options}")
    assert here.run_command("cd user && node -e 'console.log(require(\"a-package\"))'") == "7\n"


def test_every_recipe_has_a_test():
    source = pathlib.Path(__file__).read_text()
    assert [name for name in PARTS if f'recipe("{name}")' not in source] == []
