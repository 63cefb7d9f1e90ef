# SPDX-License-Identifier: Apache-2.0
"""Files of users, groups, keys, networks and certificates that are replaced while the server reloads, with files and
configurations among them that cannot be used. What all of them say holds for every request meanwhile."""

import random
import re
import signal
import threading
import time

import jwt
import pytest

from harness import build
from harness.certificates import Authority, TlsClient
from harness.content import populate
from harness.h2 import H2Client
from harness.load import Clients
from harness.server import await_true, section
from test_auth import ADA, FREE, basic
from test_auth_bearer import MAKE, public_pem
from test_storm import DONE, REFUSED
from test_tls_watched import replace

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.concurrent,
    pytest.mark.skipif(
        not (build.speaks("tls") and build.speaks("h2")), reason=f"the preset {build.PRESET} lacks tls or HTTP/2"
    ),
]
HASH = "$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1"  # of the password of ada
AGAIN, KEPT = "loaded again", "the former state stays"
TARGETS = {"/users/a": 200, "/groups/a": 200, "/open/a": 200, "/closed/a": 403}


class Storm:
    """A server, and the files that its configuration names."""

    def __init__(self, serve, folder, seed):
        self.random, self.lock, self.reloads, self.folder = random.Random(seed), threading.Lock(), 0, folder
        self.keys = [MAKE["EdDSA"]() for _ in range(3)]
        self.ca = Authority(folder / "ca")
        self.pairs = [self.ca.make(f"localhost{n}", "localhost") for n in range(3)]
        self.contexts = [self.ca.context(), self.ca.context(alpn=["h2"])]
        self.makers = {
            "users": (self.make_users, "ada\n"),
            "groups": (self.make_groups, "staff ada\n"),
            "keys": (self.make_keys, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
            "open": (lambda: self.make_networks(), "192.0.2.999\n"),
            "closed": (lambda: self.make_networks("127.0.0.1"), "192.0.2.1/64\n"),
        }
        for name in self.makers:
            self.write(name)
        self.write_certificate()
        populate(folder / "root", {path[1:]: b"text" for path in (*TARGETS, "/tokens/a")})
        settings = {"Listen": "127.0.0.1:0 tls", "Workers": 2, "KeepAliveTimeout": "60s"}
        main = section("SERVER", settings) + section("AUTH_LIMITS", FREE)
        self.server = serve(config={"sites/default": self.site(), "monkey.conf": main})
        self.server.baseline += 2  # of the loop that waits for old generations

    # ── content ──

    def numbers(self):
        return self.random.sample(range(250), 5)

    def make_users(self):
        return "".join(f"{name}:{HASH}\n" for name in ("ada", *(f"user{n}" for n in self.numbers())))

    def make_groups(self):
        return "staff: ada " + " ".join(f"user{n}" for n in self.numbers()) + "\n"

    def make_keys(self):
        return public_pem(self.keys[0]) + public_pem(self.random.choice(self.keys[1:]))

    def make_networks(self, *always):
        return "".join(f"{network}\n" for network in (*always, *(f"192.0.2.{n}" for n in self.numbers())))

    def site(self):
        def auth(match, **keys):
            return section("AUTH", {"Match": match, **keys})

        def deny(name):
            return section("RULES", {"Match": f"/{name}", "File": self.folder / name, "Action": "deny"})

        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": self.folder / "root"})
        text += auth("/users", Users=self.folder / "users")
        text += auth("/groups", Users=self.folder / "users", Groups=self.folder / "groups", Require="group staff")
        text += auth("/tokens", Type="Bearer", Keys=self.folder / "keys")
        keys = {"Certificate": self.folder / "cert", "CertificateKey": self.folder / "key"}
        return text + deny("open") + deny("closed") + section("TLS", keys)

    # ── changes ──

    def write(self, name, broken=False):
        make, mistake = self.makers[name]
        replace(self.folder / name, (mistake if broken else make()).encode())

    def write_certificate(self):
        """One file behind the other: those of two pairs cannot be used together."""
        pair = self.random.choice(self.pairs)
        replace(self.folder / "cert", pair.cert.read_bytes())
        replace(self.folder / "key", pair.key.read_bytes())

    def change(self):
        with self.lock:
            name = self.random.choice(["certificate", *self.makers])
            if name == "certificate":
                self.write_certificate()
            else:
                self.write(name, broken=self.random.random() < 0.3)
            return self.random.uniform(0, 0.3)

    def reload(self, text):
        (self.server.conf / "sites" / "default").write_text(text)
        self.server.send_signal(signal.SIGHUP)
        self.reloads += 1
        self.server.wait_log(f"{DONE}|{REFUSED}", self.reloads)

    def mistake_and_mend(self):
        """Each file, without a reload: what it said before holds, until it can be used."""
        with self.lock:
            for name in self.makers:
                begin = len(self.server.lines)
                for broken, wanted in ((True, KEPT), (False, AGAIN)):
                    self.write(name, broken)
                    self.await_line(begin, rf"/{name}\b.*{wanted}")

    def await_line(self, begin, pattern):
        await_true(lambda: any(re.search(pattern, line) for line in self.server.lines[begin:]), 60, pattern)

    def reload_whole(self):
        """With files that can be used, and no change meanwhile."""
        with self.lock:
            for name in self.makers:
                self.write(name)
            self.write_certificate()
            self.reload(self.site())

    def finish(self):
        begin = len(self.server.lines)
        self.reload_whole()
        results = [line for line in self.server.lines[begin:] if DONE in line or REFUSED in line]
        assert DONE in results[0], "\n".join(results)


class StormClients(Clients):
    def __init__(self, storm):
        self.storm, self.answers = storm, 0
        claims = {"sub": "ada", "exp": time.time() + 3600}
        known, foreign = (jwt.encode(claims, key, "EdDSA") for key in (storm.keys[0], MAKE["EdDSA"]()))
        self.tokens = {f"Authorization: Bearer {known}": 200, f"Authorization: Bearer {foreign}": 401}
        super().__init__([self.change, self.log_in, self.log_in_with_streams, self.show_tokens])

    def change(self):
        self.ending.wait(self.storm.change())

    def connect(self, h2=False):
        address = self.storm.server.addresses[0]
        if h2:
            return H2Client(address, context=self.storm.contexts[1], timeout=30)
        return TlsClient(address, self.storm.contexts[0], timeout=30)

    def see(self, answer, status):
        assert answer.status == status, (answer, status)
        self.answers += 1

    def log_in(self):
        """On a connection that stays, until the server says that it closes it."""
        with self.connect() as client:
            for _ in range(20):
                for path, status in TARGETS.items():
                    answer = client.ask(path, ADA)
                    self.see(answer, status)
                    if answer["Connection"] == "close":
                        return
                self.see(client.ask("/users/a", basic("ada", "wrong")), 401)

    def log_in_with_streams(self):
        with self.connect(h2=True) as client:
            numbers = {client.begin(path, ADA): status for path, status in TARGETS.items()}
            for number, status in numbers.items():
                self.see(client.response(number), status)

    def show_tokens(self):
        with self.connect() as client:
            for field, status in self.tokens.items():
                self.see(client.ask("/tokens/a", field), status)


def run_storm(storm, reloads):
    with StormClients(storm) as clients:
        for n in range(reloads):
            more = clients.answers + storm.random.randrange(100)
            if n % 3 == 0:
                storm.reload_whole()
            else:  # every other time a mistake behind the sections that have opened all of the files
                storm.reload(storm.site() + (section("HOST", {"Wrong": "On"}) if n % 3 == 2 else ""))
            await_true(lambda more=more: clients.answers >= more or clients.errors, 60, "answers")
            assert not clients.errors, (clients.errors, storm.server.log[-2000:])
        storm.mistake_and_mend()
    assert not clients.errors, (clients.errors, storm.server.log[-2000:])
    log = storm.server.log
    assert log.count(DONE) >= reloads // 3 and log.count(REFUSED) >= reloads // 3
    storm.finish()


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.load), pytest.param(2, marks=pytest.mark.slow)])
def test_a_storm_of_files(serve, tmp_path, seed):
    run_storm(Storm(serve, tmp_path, seed), 30)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_long_storm_of_files(serve, tmp_path, seed):
    run_storm(Storm(serve, tmp_path, seed), 1000)
