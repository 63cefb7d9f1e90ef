# SPDX-License-Identifier: Apache-2.0
"""Certbot and a server that may not read its keys, as the unit's DynamicUser: the hook of dist/certbot copies what is
new, and the server notices. The authority is pebble."""

import json
import os
import shutil
import ssl
import subprocess
import urllib.request

import pytest

from harness import build
from harness.certificates import Authority, TlsClient
from harness.content import populate
from harness.server import Server, await_true, free_port, section, write_config

HOOK = build.TOP / "dist" / "certbot" / "deploy-hook"
GROUP = 64123  # of the files; the server has it besides its own, as SupplementaryGroups says
NAME = "site.example"

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(os.geteuid() != 0, reason="certbot wants root"),
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} lacks tls"),
]


def settings(*listen):
    return {"Listen": list(listen), "KeepAliveTimeout": "10m"}  # a renewal takes longer than the default


def copy_by_hook(folder):
    populate(folder / "live" / NAME, {"fullchain.pem": b"certificate", "privkey.pem": b"key"})
    environment = {
        "PATH": os.environ["PATH"],
        "RENEWED_LINEAGE": str(folder / "live" / NAME),
        "MONKEY_CERTIFICATES": str(folder / "certificates"),
        "MONKEY_TLS_GROUP": str(GROUP),
    }
    return subprocess.run([HOOK], env=environment, capture_output=True, text=True, timeout=60)


def test_the_hook(tmp_path):
    """Its folders are those of root and the group, also if another user has made them."""
    (tmp_path / "certificates").mkdir()
    os.chown(tmp_path / "certificates", 65534, 65534)
    for _ in range(2):
        result = copy_by_hook(tmp_path)
        assert result.returncode == 0, result.stderr
    place = tmp_path / "certificates" / NAME
    for path, mode in ((place.parent, 0o750), (place, 0o750), (place / "privkey.pem", 0o640)):
        status = path.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, GROUP, mode), path
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        "fullchain.pem": b"certificate",
        "privkey.pem": b"key",
    }


@pytest.mark.parametrize("name", ["certificates", f"certificates/{NAME}"])
def test_the_hook_follows_no_link(tmp_path, name):
    outside, link = tmp_path / "outside", tmp_path / name
    outside.mkdir(mode=0o700)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    result = copy_by_hook(tmp_path)
    assert result.returncode == 1 and "is a link" in result.stderr
    assert not list(outside.iterdir()) and outside.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["privkey.pem", "privkey.pem.new"])
def test_the_hook_reports_what_is_in_its_way(tmp_path, name):
    (tmp_path / "certificates" / NAME / name).mkdir(parents=True)
    result = copy_by_hook(tmp_path)
    assert result.returncode == 1 and "cannot overwrite directory" in result.stderr


class Pebble:
    """An authority with the protocol ACME, for which all names are this machine."""

    def __init__(self, folder, http_port):
        self.ca = Authority(folder / "authority")
        pair = self.ca.make("acme", "IP:127.0.0.1")
        self.port, self.management, dns, management = (free_port() for _ in range(4))
        config = {
            "listenAddress": f"127.0.0.1:{self.port}",
            "managementListenAddress": f"127.0.0.1:{self.management}",
            "certificate": str(pair.cert),
            "privateKey": str(pair.key),
            "httpPort": http_port,
            "tlsPort": free_port(),
        }
        (folder / "pebble.json").write_text(json.dumps({"pebble": config}))
        names = ["-defaultIPv6", "", "-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{management}"]
        off = ["-http01", "", "-https01", "", "-tlsalpn01", ""]
        self.commands = [
            ["pebble-challtestsrv", *names, *off],
            ["pebble", "-config", folder / "pebble.json", "-dnsserver", f"127.0.0.1:{dns}"],
        ]

    def __enter__(self):
        fast = {**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": fast}
        self.processes = [subprocess.Popen(command, **quiet) for command in self.commands]
        await_true(self.answers, 60, "pebble")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
            process.wait(30)

    def get(self, port, path):
        context = ssl.create_default_context(cafile=self.ca.cert)
        with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", timeout=30, context=context) as response:
            return response.read()

    def answers(self):
        try:
            return self.get(self.port, "/dir")
        except OSError:
            return False

    def root(self):
        return self.get(self.management, "/roots/0").decode()


class Certbot:
    def __init__(self, folder, pebble):
        self.folder, self.certificates = folder / "certbot", folder / "certificates"
        self.options = ["--server", f"https://127.0.0.1:{pebble.port}/dir", "--non-interactive"]
        for name in ("config", "work", "logs"):
            self.options += [f"--{name}-dir", self.folder / name]
        self.environment = {
            **os.environ,
            "REQUESTS_CA_BUNDLE": str(pebble.ca.cert),
            "MONKEY_CERTIFICATES": str(self.certificates),
            "MONKEY_TLS_GROUP": str(GROUP),
        }
        hooks = self.folder / "config" / "renewal-hooks" / "deploy"
        hooks.mkdir(parents=True)
        shutil.copy(HOOK, hooks / "monkey")

    def run(self, *words):
        command = list(map(str, ["certbot", *words, *self.options]))
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.environment)
        assert result.returncode == 0, result.stdout + result.stderr

    def renew(self):
        self.run("renew", "--force-renewal", "--no-random-sleep-on-renew")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("certbot") or not shutil.which("pebble"), reason="no certbot, or no pebble")
def test_certbot(open_folder):
    """The first certificate, over plain HTTP; a renewal, without a signal and with connections that stay."""
    root = populate(open_folder / "root", {"hello.txt": b"hello"})
    challenges = open_folder / "acme"
    (challenges / ".well-known" / "acme-challenge").mkdir(parents=True)
    plain, secure = free_port(), free_port()
    alias = {"Match": "/.well-known/acme-challenge", "To": challenges / ".well-known" / "acme-challenge"}
    host = {"ServerName": NAME}
    write_config(open_folder / "conf", root, settings(f"127.0.0.1:{plain}"), host=host, text=section("ALIAS", alias))
    as_user = ["setpriv", "--reuid=64122", "--regid=64122", f"--groups={GROUP}"]
    server = Server("-c", open_folder / "conf", wrapper=as_user, program=build.for_others())
    try:
        with Pebble(open_folder, plain) as pebble:
            certbot = Certbot(open_folder, pebble)
            certbot.run(
                "certonly", "--webroot", "-w", challenges, "-d", NAME, "--agree-tos",
                "--register-unsafely-without-email",
            )  # fmt: skip
            certbot.renew()  # hooks of the folder run for renewals only
            (open_folder / "root.pem").write_text(pebble.root())
            context = ssl.create_default_context(cafile=open_folder / "root.pem")
            folder = certbot.certificates / NAME
            assert (folder / "privkey.pem").stat().st_mode & 0o777 == 0o640
            keys = {"Certificate": folder / "fullchain.pem", "CertificateKey": folder / "privkey.pem"}
            text = section("ALIAS", alias) + section("TLS", keys)
            listen = [f"127.0.0.1:{plain}", f"127.0.0.1:{secure} tls"]
            write_config(open_folder / "conf", root, settings(*listen), host=host, text=text)
            server.send_signal(1)
            server.wait_log("the new configuration is in use")
            with TlsClient(("127.0.0.1", secure), context, NAME) as before:
                assert before.ask("/hello.txt", host=NAME).body == b"hello"
                certbot.renew()
                server.wait_log(f"tls: the certificates of the host {NAME}: loaded again")
                assert before.ask("/hello.txt", host=NAME).body == b"hello"
                with TlsClient(("127.0.0.1", secure), context, NAME) as after:
                    assert after.ask("/hello.txt", host=NAME).body == b"hello"
                    assert after.fingerprint != before.fingerprint
            live = certbot.folder / "config" / "live" / NAME / "privkey.pem"
            assert subprocess.run([*as_user, "cat", live], capture_output=True).returncode, "only root reads that one"
        server.stop()
    finally:
        server.kill()
