# SPDX-License-Identifier: Apache-2.0
"""The recipes of the guide, with the real programs: those of Debian, and what npm and pip install."""

import asyncio
import json
import os
import pathlib
import re
import shutil
import urllib.parse
import zipfile

import pytest
import websockets

from harness.client import Client
from harness.content import populate
from harness.messages import request
from harness.php import PhpFpm, PhpWithExtensions, needs_php
from harness.recipes import PARTS, Recipe, needs_plugins
from harness.wordpress import PICTURE, Browser, add_theme, choose_permalinks, install, log_in, needs_wordpress
from harness.server import await_true
from harness.services import reload
from harness.wordpress import start_database, upload
from test_cgi_git import git

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


@pytest.fixture
def php(tmp_path):
    """Starts php-fpm, which is ended with the test."""
    made = []

    def start(kind=PhpFpm, **pool):
        made.append(kind(tmp_path / "php", 4, **pool))
        return made[-1]

    yield start
    for each in made:
        each.kill()


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


async def execute(socket, code):
    """Has a kernel of Jupyter execute code. Returns the text that it prints."""
    header = {"msg_id": code, "session": "a", "username": "", "msg_type": "execute_request", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    await socket.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {},
                                  "content": content}))  # fmt: skip
    text, is_idle = "", False
    while not is_idle:
        message = json.loads(await socket.recv())
        if message["parent_header"].get("msg_id") == code:
            text += message["content"].get("text", "") if message["msg_type"] == "stream" else ""
            is_idle = message["content"].get("execution_state") == "idle"
    return text


@needs_plugins("proxy")
def test_jupyterlab(recipe):
    """A kernel keeps its connection and what it has computed over a reload of the server."""
    here = recipe("JupyterLab")
    here.write()
    *install, command = here.commands()
    for line in install:
        here.run_command(line)
    here.spawn(f"{command} --ServerApp.root_dir=. {'--allow-root' * (os.geteuid() == 0)}", port="8888")
    server, host, token = here.serve(), "lab.example.org", "Authorization: token a-long-secret"
    assert ask(here, "/jupyter/lab", token, host=host).status == 200
    assert ask(here, "/jupyter", token, host=host)["Location"].startswith("/jupyter/lab")
    kind = "Content-Type: application/json"
    got = ask(here, "/jupyter/api/kernels", token, kind, method="POST", body=b"{}", host=host)
    assert got.status == 201, got.body
    url = f"ws://{host}/jupyter/api/kernels/{json.loads(got.body)['id']}/channels"

    async def work():
        headers = {"Authorization": "token a-long-secret"}
        address, port = server.addresses[0]
        async with websockets.connect(url, host=address, port=port, extra_headers=headers, max_size=None) as socket:
            assert await execute(socket, "a = 6") == ""
            await asyncio.to_thread(reload, server)
            assert await execute(socket, "print(a * 7)") == "42\n"

    asyncio.run(work())


@needs_plugins("proxy")
@needs("prometheus")
def test_prometheus(recipe):
    here = recipe("Prometheus")
    here.write()
    [command] = here.commands()
    here.spawn(command, port="9090")
    here.serve()
    await_true(lambda: ask(here, "/prometheus/-/ready").status == 200, 120)
    assert ask(here, "/prometheus")["Location"] == "/prometheus/"
    front = ask(here, "/prometheus/")["Location"]
    assert re.fullmatch("/prometheus/(classic/)?graph", front)
    file = re.search(r'(?:src|href)="([^"]*static/[^"]*)"', ask(here, front).body.decode())[1]
    assert ask(here, urllib.parse.urljoin(front, file)).status == 200
    got = json.loads(ask(here, "/prometheus/api/v1/query", "Content-Type: application/x-www-form-urlencoded",
                         method="POST", body=b"query=1%2B1").body)  # fmt: skip
    assert got["data"]["result"][1] == "2"

    def list_targets():  # they are found after the start
        return json.loads(ask(here, "/prometheus/api/v1/targets").body)["data"]["activeTargets"]

    [target] = await_true(list_targets, 60)
    assert target["scrapeUrl"].endswith("/prometheus/metrics")


# ── git ──


@pytest.fixture
def project(tmp_path):
    """A folder with one commit, and a bare repository of it, which its owner serves."""
    work = tmp_path / "work"
    git("init", work)
    (work / "apples.txt").write_text("red\n" * 1000)
    git("add", ".", cwd=work)
    git("commit", "-qm", "the first change", cwd=work)
    (tmp_path / "srv/git").mkdir(parents=True)
    git("clone", "--bare", work, tmp_path / "srv/git/project.git")
    return work


@needs_plugins("cgi", "auth")
@needs("git")
def test_git(recipe, project):
    here = recipe("git")
    password = "$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1"  # passw0rd
    (here.folder / "srv/users").write_text(f"ada:{password}\n")
    (here.folder / "srv/users").chmod(0o640)
    url = f"{here.serve().url}/git/project.git"
    git("clone", "-q", url, here.folder / "clone")
    (here.folder / "clone/apples.txt").write_text("green\n")
    git("commit", "-qam", "the second change", cwd=here.folder / "clone")
    with pytest.raises(AssertionError, match="could not read Username"):
        git("push", "-q", cwd=here.folder / "clone")
    git("push", "-q", url.replace("://", "://ada:passw0rd@"), "HEAD", cwd=here.folder / "clone")
    assert "the second change" in git("-C", here.folder / "srv/git/project.git", "log", "-1", "--format=%an %s")


@needs_plugins("cgi")
@pytest.mark.skipif(not pathlib.Path("/usr/lib/cgit/cgit.cgi").exists(), reason="cgit is not installed")
def test_cgit(recipe, project):
    here = recipe("cgit")
    url = here.serve().url
    page = ask(here, "/").body.decode()
    assert "href='/project.git/'" in page and "/cgit-files/cgit.css" in page
    assert "the first change" in ask(here, "/project.git/log/").body.decode()
    assert ask(here, "/project.git/plain/apples.txt").body == b"red\n" * 1000
    assert ask(here, "/cgit-files/cgit.css")["Content-Type"].startswith("text/css")
    assert ask(here, "/none.git/").status == 404
    git("clone", "-q", f"{url}/project.git", here.folder / "clone")  # cgit has the dumb protocol


@needs_plugins("cgi")
@pytest.mark.skipif(not pathlib.Path("/usr/lib/cgi-bin/gitweb.cgi").exists(), reason="gitweb is not installed")
def test_gitweb(recipe, project):
    here = recipe("gitweb")
    here.serve()
    page = ask(here, "/gitweb/").body.decode()
    assert 'href="/gitweb/project.git"' in page and 'href="/gitweb/static/gitweb.css"' in page
    assert "the first change" in ask(here, "/gitweb/project.git/shortlog").body.decode()
    assert ask(here, "/gitweb/project.git/blob_plain/HEAD:/apples.txt").body == b"red\n" * 1000
    assert ask(here, "/gitweb/static/gitweb.css")["Content-Type"].startswith("text/css")
    assert ask(here, "/gitweb/?p=none.git").status == 404


@needs_plugins("proxy")
@needs("gunicorn")
def test_gunicorn(recipe):
    here = recipe("gunicorn")
    here.write()
    [command] = here.commands()
    here.spawn(command, path=here.folder / "run/app.sock")
    populate(here.folder / "srv/static", {"a.css": b"css"})
    here.serve()
    for body in (b"", b"x" * 300_000):
        got = ask(here, "/a%20b?c", "X-Real-IP: 192.0.2.1", method="POST", body=body, host="example.org")
        assert got.body == b"POST http://example.org/a b from 127.0.0.1, %d bytes\n" % len(body)
    assert ask(here, "/static/a.css").body == b"css"


@needs_plugins("fastcgi")
@needs("uwsgi")
def test_uwsgi(recipe):
    here = recipe("uWSGI")
    here.write()
    [command] = here.commands()
    here.spawn(command, path=here.folder / "run/app.sock")
    populate(here.folder / "srv/www", {"a.css": b"css"})
    here.serve()
    for body in (b"", b"x" * 300_000):
        got = ask(here, "/app/list/1?c", method="POST", body=body)
        assert got.body == b"/app /list/1 from 127.0.0.1, %d bytes\n" % len(body)
    assert ask(here, "/a.css").body == b"css"


# ── PHP ──

FPM = "unix:/run/php/php8.2-fpm.sock"


@needs_plugins("fastcgi")
@needs_php
def test_front_controller(recipe, php):
    here = recipe("A front controller in PHP")
    here.replaced[FPM] = php().to
    here.write()
    public = here.folder / "srv/shop/public"
    (public / "style.css").write_text("a {}\n")
    (public / "admin.php").write_text("<?php echo 'admin';")
    (public.parent / "settings.php").write_text("<?php $password = 'secret';")
    here.serve()
    got = ask(here, "/items/7?a=b", "Content-Type: application/json", method="PUT", body=b'{"c": [1]}')
    assert json.loads(got.body) == {"item": 7, "method": "PUT", "query": {"a": "b"}, "body": {"c": [1]}}
    assert (ask(here, "/style.css").body, ask(here, "/admin.php").body) == (b"a {}\n", b"admin")
    got = ask(here, "/login", method="POST", body=b"")
    assert (got.status, got["Location"], got["Set-Cookie"]) == (303, "/account", "session=a; HttpOnly")
    for path in ("/none/a.php", "/items/", "/", "/../settings.php", "/style.css/"):
        got = ask(here, path)
        assert got.status == 404 and b"secret" not in got.body, path


@needs_plugins("fastcgi")
@needs_wordpress
@pytest.mark.skipif(os.geteuid() != 0, reason="the configuration of WordPress is in /etc")
def test_wordpress(recipe, php, tmp_path):
    """As the package has installed it: its files are not copied."""
    here, name = recipe("WordPress of Debian"), f"test-{os.getpid()}"
    config = pathlib.Path(f"/etc/wordpress/config-{name}.php")
    content = here.folder / "var/lib/wordpress/wp-content"
    shutil.copytree("/var/lib/wordpress/wp-content", content, symlinks=True)
    shutil.rmtree(content / "themes")
    add_theme(content / "themes")
    (content / "plugins/direct.php").write_text("<?php echo 'direct';")
    (content / "uploads/shell.php").write_text("<?php echo 'shell';")
    with start_database(tmp_path / "mariadb") as database:
        here.replaced |= {FPM: php(PhpWithExtensions).to, "/run/mysqld/mysqld.sock": str(database),
                          "/etc/wordpress/config-blog.php": str(config), "CONFIG blog": f"CONFIG {name}"}  # fmt: skip
        try:
            browser = Browser(here.serve().url)
            with config.open("a") as file:  # no site of other machines is asked
                file.write("define('WP_HTTP_BLOCK_EXTERNAL', true);\ndefine('WP_DEFAULT_THEME', 'plain');\n")
            install(browser)
            log_in(browser)
            choose_permalinks(browser)
            link = re.search(r'href="http://[^/]+(/\d{4}/hello-world/)"', browser.read("/"))[1]
            assert "Welcome to WordPress" in browser.read(link)
            assert browser.open(upload(browser))[1] == PICTURE
        finally:
            config.unlink(missing_ok=True)
    linked = ask(here, "/wp-includes/js/underscore.min.js")
    assert linked.body == pathlib.Path("/usr/share/wordpress/wp-includes/js/underscore.min.js").read_bytes()
    assert ask(here, "/wp-content/plugins/direct.php").body == b"direct"
    assert ask(here, "/wp-content/uploads/shell.php").status == 403


@needs_plugins("fastcgi")
@needs_php
@pytest.mark.skipif(not pathlib.Path("/usr/share/dokuwiki/doku.php").exists(), reason="DokuWiki is not installed")
def test_dokuwiki(recipe, php, tmp_path):
    """A page is written and read. Its settings and data are of the test: the package asks DOKU_CONF for them."""
    here = recipe("DokuWiki of Debian")
    here.replaced["/etc/dokuwiki/"] = f"{tmp_path}/etc/dokuwiki/"
    data = here.folder / "var/lib/dokuwiki/data"
    for name in "attic cache index locks log media media_attic media_meta meta pages tmp".split():
        (data / name).mkdir(parents=True)
    prepend = tmp_path / "prepend.php"
    prepend.write_text(f"<?php define('DOKU_CONF', '{tmp_path}/etc/dokuwiki/');")
    here.replaced[FPM] = php(PhpWithExtensions, **{"php_admin_value[auto_prepend_file]": prepend}).to
    browser = Browser(here.serve().url)
    page = browser.read("/doku.php/a_page?do=edit")
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    fields |= {"do[save]": "1", "wikitext": "====== Apples ======\nred", "id": "a_page"}
    browser.read("/doku.php/a_page", fields)
    assert "Apples</h1>" in browser.read("/doku.php/a_page") and (data / "pages/a_page.txt").exists()
    style = re.search(r'href="(/lib/exe/css.php[^"]*)"', page)[1].replace("&amp;", "&")
    assert "font" in browser.read(style)
    assert ask(here, "/lib/tpl/dokuwiki/images/logo.png")["Content-Type"] == "image/png"  # behind a link
    for path in ("/inc/init.php", "/bin/dwpage.php", "/vendor/autoload.php"):
        assert ask(here, path).status == 403


# ── files ──


def make_wheel(folder, name, version):
    """Writes a package of one module, without a tool."""
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": f"version = '{version}'\n", f"{info}/METADATA": f"Name: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/RECORD": ""}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        for path, text in files.items():
            file.writestr(path, text)


@needs_plugins("dirlisting")
def test_pip(recipe):
    here = recipe("A package index for pip")
    for version in ("1.0", "2.0"):
        make_wheel(here.folder / "srv/pip/simple/a-package", "a_package", version)
    url = here.serve().url
    here.run_command("python3 -m venv venv")
    pip = f"venv/bin/pip --isolated --disable-pip-version-check install --index-url {url}/simple/"
    here.run_command(f"{pip} a-package")
    assert here.run_command("venv/bin/python -c 'import a_package; print(a_package.version)'") == "2.0\n"
    here.run_command(f"{pip} A_Package==1.0 2>&1")
    assert here.run_command("venv/bin/python -c 'import a_package; print(a_package.version)'") == "1.0\n"


@needs_plugins("dirlisting", "headers")
@needs("apt-ftparchive", "dpkg-deb", "apt-get")
def test_apt(recipe, tmp_path):
    here = recipe("A repository for apt")
    package, folder = tmp_path / "package", here.folder / "srv/apt/debian"
    control = b"Package: apples\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: red\n"
    populate(package, {"DEBIAN/control": control, "usr/share/apples": os.urandom(3 << 20)})
    folder.mkdir(parents=True)
    here.run_command(f"dpkg-deb --build -Znone {package} {folder}/apples_1.0_all.deb")
    for command in here.commands():
        here.run_command(command)
    url = here.serve().url
    lists = populate(tmp_path / "apt", {"sources.list": f"deb [trusted=yes] {url}/debian ./\n".encode(), "status": b""})
    for name in ("lists/partial", "archives/partial"):
        (lists / name).mkdir(parents=True)
    apt = (f"apt-get -o Dir::Etc::SourceList={lists}/sources.list -o Dir::Etc::SourceParts=- -o Dir::State={lists} "
           f"-o Dir::State::Status={lists}/status -o Dir::Cache={lists} -o APT::Sandbox::User=root "
           "-o Acquire::http::Proxy=false")  # fmt: skip
    assert "Get:" in here.run_command(f"{apt} update")
    assert "Hit:" in here.run_command(f"{apt} update")
    half = (folder / "apples_1.0_all.deb").read_bytes()[: 1 << 20]
    (here.folder / "app/apples_1.0_all.deb").write_bytes(half)
    here.run_command(f"{apt} download apples")
    assert (here.folder / "app/apples_1.0_all.deb").read_bytes() == (folder / "apples_1.0_all.deb").read_bytes()
    assert b"apples_1.0_all.deb" in ask(here, "/debian/").body


@needs_plugins("headers")
@needs("gzip", "zstd", "brotli")
def test_generated_site(recipe):
    here = recipe("A generated site")
    here.write()
    for command in here.commands():
        here.run_command(command)
    here.serve()
    site = here.folder / "srv/site"
    for coding, suffix in (("br", "br"), ("zstd", "zst"), ("gzip", "gz")):
        got = ask(here, "/pears/", f"Accept-Encoding: {coding}")
        assert (got["Content-Encoding"], got["Vary"]) == (coding, "Accept-Encoding"), coding
        assert got.body == (site / f"pears/index.html.{suffix}").read_bytes()
    assert b"They are green." in ask(here, "/pears/").body
    assert ask(here, "/pears")["Location"].endswith("/pears/")
    got = ask(here, "/none")
    assert got.status == 404 and got.body == (site / "404.html").read_bytes()


def test_every_recipe_has_a_test():
    source = pathlib.Path(__file__).read_text()
    assert [name for name in PARTS if f'recipe("{name}")' not in source] == []
