# SPDX-License-Identifier: Apache-2.0
"""Files of certificates that change while the server runs, without a signal."""

import contextlib
import functools
import os
import pathlib
import pwd
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

import pytest

from harness import build
from harness.certificates import Authority, TlsClient, openssl
from harness.content import HELLO, populate
from harness.h2 import H2Client
from harness.load import Clients
from harness.server import Server, await_true, section, write_config

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls"),
]
SETTINGS = {"Listen": "127.0.0.1:0 tls", "Workers": 2, "KeepAliveTimeout": "60s"}
AGAIN = r"tls: the certificates of the host localhost: loaded again"
KEPT = AGAIN.replace("loaded again", "the files have changed, but cannot be used, and the former state stays: ")


def replace(path, content):
    """As ACME clients do."""
    new = path.with_name(path.name + "~")
    new.write_bytes(content)
    new.chmod(0o600)
    new.rename(path)


def write(path, content):
    """In place."""
    path.write_bytes(content)
    path.chmod(0o600)


class Watched:
    """A server, the files of its certificate, and certificates to put there."""

    def __init__(self, serve, folder, prepare=None, **keys):
        self.ca = Authority(folder / "authority")
        self.pairs = [self.ca.make(f"localhost{i}", "localhost") for i in range(3)]
        self.cert, self.key, self.longest = folder / "cert", folder / "key", 0
        if prepare:
            prepare(self)
        else:
            self.put(self.pairs[0])
        root = populate(folder / "root", {"hello.txt": HELLO})
        site = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
        site += section("TLS", {"Certificate": self.cert, "CertificateKey": self.key, **keys})
        self.server = serve(SETTINGS, config={"sites/default": site})
        self.context = self.ca.context()

    def put(self, pair, how=replace):
        cert, key, start = pair.cert.read_bytes(), pair.key.read_bytes(), time.monotonic()
        how(self.cert, cert)
        how(self.key, key)
        self.longest = max(self.longest, time.monotonic() - start)

    def connect(self, **rest):
        return TlsClient(self.server.addresses[0], rest.pop("context", self.context), **rest)

    def shown(self):
        """The certificates that eight new connections get, in both workers."""
        found = set()
        for _ in range(8):
            with self.connect() as client:
                client.assert_open()
                found.add(client.fingerprint)
        return found

    def shows(self, pair):
        return self.shown() == {pair.fingerprint}


@pytest.fixture
def watched(serve, tmp_path):
    return Watched(serve, tmp_path)


@pytest.mark.parametrize("how", [replace, write])
def test_new_certificates(watched, how):
    """Connections that are open keep theirs, and continue."""
    assert watched.shows(watched.pairs[0])
    with watched.connect() as old:
        for count, pair in enumerate(watched.pairs[1:] + watched.pairs[:1], 1):
            watched.put(pair, how)
            watched.server.wait_log(AGAIN, count)
            assert watched.shows(pair)
            assert old.ask("/hello.txt", host="localhost").body == HELLO
        assert old.fingerprint == watched.pairs[0].fingerprint
    assert "SIGHUP" not in watched.server.log
    assert KEPT not in watched.server.log or watched.longest > 0.05  # else it has looked between the two files


def test_a_stream_of_http2_continues(serve, tmp_path):
    watched = Watched(serve, tmp_path)
    with H2Client(watched.server.addresses[0], context=watched.ca.context(alpn=["h2"])) as client:
        assert client.ask("/hello.txt").body == HELLO
        watched.put(watched.pairs[1])
        watched.server.wait_log(AGAIN)
        assert client.ask("/hello.txt").body == HELLO
    assert watched.shows(watched.pairs[1])


def test_one_after_the_other(watched):
    """A certificate without its key is not used; the reason is logged once, and the key completes the pair."""
    first, second, _ = watched.pairs
    replace(watched.cert, second.cert.read_bytes())
    watched.server.wait_log(KEPT + r"the private key \S+/key does not belong to the certificate \S+/cert")
    assert watched.shows(first)
    replace(watched.key, second.key.read_bytes())
    watched.server.wait_log(AGAIN)
    assert watched.shows(second)
    assert len(re.findall(KEPT, watched.server.log)) == 1


@pytest.mark.parametrize("cut", [0, 1, 100, -30])
def test_half_written(watched, cut):
    second = watched.pairs[1]
    replace(watched.key, second.key.read_bytes())
    write(watched.cert, second.cert.read_bytes()[:cut])
    watched.server.wait_log(KEPT + r"the certificate \S+/cert (is empty|holds )")
    assert watched.shows(watched.pairs[0])
    write(watched.cert, second.cert.read_bytes())
    watched.server.wait_log(AGAIN)
    assert watched.shows(second)


def test_a_key_that_is_open_to_others(watched):
    """The mode counts as a change, too."""
    watched.key.chmod(0o644)
    watched.cert.write_bytes(watched.pairs[1].cert.read_bytes())
    watched.key.write_bytes(watched.pairs[1].key.read_bytes())
    watched.server.wait_log(KEPT + r"the private key \S+/key is open to others")
    assert watched.shows(watched.pairs[0])
    watched.key.chmod(0o600)
    watched.server.wait_log(AGAIN)
    assert watched.shows(watched.pairs[1])


def test_links_as_of_kubernetes(serve, tmp_path):
    """cert -> ..data/cert, ..data -> ..1: one rename switches both files."""
    volume = tmp_path / "volume"

    def make(folder, pair):
        folder.mkdir(parents=True)
        write(folder / "cert", pair.cert.read_bytes())
        write(folder / "key", pair.key.read_bytes())

    def prepare(watched):
        make(volume / "..0", watched.pairs[0])
        (volume / "..data").symlink_to("..0")
        watched.cert, watched.key = volume / "cert", volume / "key"
        for path in (watched.cert, watched.key):
            path.symlink_to(f"..data/{path.name}")

    watched = Watched(serve, tmp_path, prepare)
    for i, pair in enumerate(watched.pairs[1:], 1):
        make(volume / f"..{i}", pair)
        (volume / "..tmp").symlink_to(f"..{i}")
        (volume / "..tmp").rename(volume / "..data")
        shutil.rmtree(volume / f"..{i - 1}")
        watched.server.wait_log(AGAIN, i)
        assert watched.shows(pair)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(watched, version):
    """The client has verified the certificate of its session; a client without a session gets the new one."""
    context = watched.ca.context(minimum_version=version, maximum_version=version)
    with watched.connect(context=context) as client:
        client.assert_open()
        session = client.sock.session
    watched.put(watched.pairs[1])
    watched.server.wait_log(AGAIN)
    for _ in range(6):
        with watched.connect(context=context, session=session) as client:
            client.assert_open()
            assert client.sock.session_reused
    assert watched.shows(watched.pairs[1])


def test_a_new_ocsp_response(serve, tmp_path):
    """Clients get none at first: the response has ended."""
    authority = Authority(tmp_path / "authority")
    pair = authority.make("localhost0", "localhost")
    write(tmp_path / "cert", pair.cert.read_bytes())
    write(tmp_path / "key", pair.key.read_bytes())
    staple = tmp_path / "staple"
    write(staple, authority.staple(pair, "20240102000000Z", begin="20240101000000Z").read_bytes())
    root = populate(tmp_path / "root", {"hello.txt": HELLO})
    site = section("HOST", {"ServerName": "localhost", "DocumentRoot": root})
    keys = {"Certificate": tmp_path / "cert", "CertificateKey": tmp_path / "key"}
    server = serve(SETTINGS, config={"sites/default": site + section("TLS", {**keys, "OCSPFile": staple})})

    def show():
        host, port = server.addresses[0]
        text = openssl("s_client", "-connect", f"{host}:{port}", "-servername", "localhost", "-status", data=b"")
        return "Cert Status: good" in text.decode()

    assert not show()
    replace(staple, authority.staple(pair).read_bytes())
    server.wait_log(AGAIN)
    assert show()
    replace(staple, b"nonsense")
    server.wait_log(KEPT + r"the file \S+/staple ")
    assert show()


def test_other_authorities_for_clients(serve, tmp_path):
    """What a host asks of clients changes for connections that are open, too: they get 421, and connect again."""
    other = Authority(tmp_path / "other", "other")
    authorities = tmp_path / "authorities"
    own = Authority(tmp_path / "first", "first")
    write(authorities, own.cert.read_bytes())
    watched = Watched(serve, tmp_path, ClientCertificate="Required", ClientCA=authorities)
    old, new = own.make("client", use="clientAuth"), other.make("client", use="clientAuth")
    with watched.connect(context=watched.ca.context(pair=old)) as client:
        assert client.ask("/hello.txt", host="localhost").status == 200
        replace(authorities, other.cert.read_bytes())
        watched.server.wait_log(AGAIN)
        assert client.ask("/hello.txt", host="localhost").status == 421
    with watched.connect(context=watched.ca.context(pair=new)) as client:
        assert client.ask("/hello.txt", host="localhost").status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with watched.connect(context=watched.ca.context(pair=old)) as client:
            client.assert_open()


def test_curl(watched):
    host, port = watched.server.addresses[0]

    def fetch():
        command = ["curl", "-sv", "--cacert", watched.ca.cert, "--resolve", f"localhost:{port}:{host}"]
        done = subprocess.run(
            [*command, f"https://localhost:{port}/hello.txt"], capture_output=True, timeout=60, check=True
        )
        assert done.stdout == HELLO
        return re.search(r"subject: (.*)", done.stderr.decode()).group(1)

    assert "localhost0" in fetch()
    watched.put(watched.pairs[1])
    watched.server.wait_log(AGAIN)
    assert "localhost1" in fetch()


def test_each_host_has_its_own(serve, tmp_path):
    """And a reload between two changes reads what is there."""
    watched = Watched(serve, tmp_path)
    pairs = [watched.ca.make(f"other{i}", "other.test") for i in range(3)]
    cert, key = tmp_path / "other.cert", tmp_path / "other.key"

    def put(pair):
        replace(cert, pair.cert.read_bytes())
        replace(key, pair.key.read_bytes())

    put(pairs[0])
    text = section("HOST", {"ServerName": "other.test", "DocumentRoot": tmp_path / "root"})
    (watched.server.conf / "sites" / "other").write_text(
        text + section("TLS", {"Certificate": cert, "CertificateKey": key})
    )
    watched.server.baseline += 3  # of the loop that waits for old generations, and the root of the other host
    watched.server.send_signal(signal.SIGHUP)
    watched.server.wait_log("is not in use any more")

    def shown(name):
        with watched.connect(name=name) as client:
            assert client.ask("/hello.txt", host=name).body == HELLO
            return client.fingerprint

    put(pairs[1])
    watched.server.wait_log("certificates of the host other.test: loaded again")
    assert {shown("other.test") for _ in range(8)} == {pairs[1].fingerprint}
    assert watched.shows(watched.pairs[0])
    put(pairs[2])
    watched.server.send_signal(signal.SIGHUP)
    watched.server.wait_log("is not in use any more", 2)
    assert {shown("other.test") for _ in range(8)} == {pairs[2].fingerprint}


@pytest.mark.load
def test_changes_under_load(watched):
    """No handshake fails and none is mixed of two pairs, while certificates change and generations come and go."""
    known = {pair.fingerprint for pair in watched.pairs}

    def fetch():
        with watched.connect() as client:
            assert client.ask("/hello.txt", host="localhost").body == HELLO
            assert client.fingerprint in known

    def resume():
        with watched.connect() as client:
            client.assert_open()
            session = client.sock.session
        for _ in range(3):
            with watched.connect(session=session) as client:
                assert client.ask("/hello.txt", host="localhost").body == HELLO

    watched.server.baseline += 2  # of the loop that waits for old generations
    with Clients([fetch, fetch, resume]) as clients:
        for i in range(1, 13):
            watched.put(watched.pairs[i % 3])
            if i % 4 == 0:
                watched.server.send_signal(signal.SIGHUP)
                watched.server.wait_log("the new configuration is in use", i // 4)
            else:
                await_true(lambda now=i: watched.shows(watched.pairs[now % 3]), 60)
    assert not clients.errors
    assert watched.shows(watched.pairs[0])


# ── the kernel's limit ──

LIMITED = ("unshare", "-Ur", "sh", "-c", 'echo 2 >/proc/sys/user/max_inotify_watches && exec "$@"', "sh")


def test_more_folders_than_the_kernel_watches(serve, tmp_path):
    """The files are polled then."""
    if subprocess.run([*LIMITED, "true"], capture_output=True).returncode:
        pytest.skip("NOT TESTED: no user namespaces, in which the limit can be lowered")
    watched = Watched(functools.partial(serve, wrapper=LIMITED), tmp_path)
    watched.server.wait_log(r"looked at every 2 s, .*: raise fs\.inotify\.max_user_watches")
    watched.put(watched.pairs[1])
    watched.server.wait_log(AGAIN)
    assert watched.shows(watched.pairs[1])
    assert len(re.findall(r"looked at every .*max_user_watches", watched.server.log)) == 1


# ── files that only root may read ──

NO_LEAKS = {"ASAN_OPTIONS": "exitcode=97:detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: only root can become another user")
def test_files_that_only_root_may_read(request):
    """Changes are seen, but cannot be loaded: the log says so at the start, and what to do at the change."""
    servers = []

    def serve(settings, config):
        conf = write_config(tmp_path / "conf", tmp_path / "root", {**settings, "User": "www-data"}, files=config)
        for name in (conf, *pathlib.Path(conf).rglob("*")):
            pathlib.Path(name).chmod(0o755)
        servers.append(Server("-c", conf, env=NO_LEAKS))
        return servers[0]

    tmp_path = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))  # the folders of pytest are only for root
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    tmp_path.chmod(0o755)
    with contextlib.ExitStack() as stack:
        watched = Watched(serve, tmp_path)
        stack.callback(servers[0].stop)
        servers[0].wait_log(r"host localhost: the user of the server may not read \S+/cert: when it changes, restart")
        assert watched.shows(watched.pairs[0])
        watched.put(watched.pairs[1])
        servers[0].wait_log(KEPT + r".*\S+/key cannot be read: Permission denied; the user of the server may not read "
                                   r"\S+/cert: let that user read it, or restart the server")
        assert watched.shows(watched.pairs[0])
        os.chown(watched.cert, pwd.getpwnam("www-data").pw_uid, -1)
        os.chown(watched.key, pwd.getpwnam("www-data").pw_uid, -1)
        servers[0].wait_log(AGAIN)
        assert watched.shows(watched.pairs[1])
