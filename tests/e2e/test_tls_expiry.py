# SPDX-License-Identifier: Apache-2.0
"""The ends of validity of certificates among the metrics: of the files that are in use, over renewals and reloads."""

import datetime
import shutil

import pytest

from harness import build
from harness.certificates import Authority
from harness.metrics import needs_status, parse, status_section
from harness.protocol import Client
from harness.server import Server, await_true, section, write_config
from harness.services import reload

pytestmark = [
    needs_status,
    pytest.mark.single_protocol,
    pytest.mark.skipif(not build.speaks("tls"), reason=f"the preset {build.PRESET} has no TLS"),
]

NAME = "monkey_tls_certificate_expiry_timestamp_seconds"
ENDS = {"one": "20400101000000Z", "two": "20300615120000Z", "next": "20450101000000Z", "later": "20490101000000Z"}


def seconds(name):
    parsed = datetime.datetime.strptime(ENDS[name], "%Y%m%d%H%M%SZ")
    return parsed.replace(tzinfo=datetime.timezone.utc).timestamp()


class Site:
    """A server with two hosts, of which the second has two certificates."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = Authority(folder / "ca")
        self.pairs = {name: self.ca.make(name, "localhost", end=end) for name, end in ENDS.items()}
        self.rsa = self.ca.make("rsa", "localhost", kind="rsa", end=ENDS["later"])
        self.conf, self.root = folder / "conf", folder / "root"
        self.root.mkdir()
        self.write()
        self.server = Server("-c", self.conf)

    def write(self, hosts=("one", "two"), more=""):
        if self.conf.exists():
            shutil.rmtree(self.conf)
        files = {"plugins/status/status.conf": status_section()}
        if not hosts:
            files["sites/default"] = section("HOST", {"DocumentRoot": self.root}) + more
        for i, name in enumerate(hosts):
            keys = self.pairs[name].keys()
            if name == "two":
                keys = {key: [value, other] for (key, value), other in zip(keys.items(), (self.rsa.cert, self.rsa.key))}
            text = section("HOST", {"DocumentRoot": self.root, **({"ServerName": "b.test"} if i else {})})
            files["sites/b" if i else "sites/default"] = text + section("TLS", keys) + more
        listen = {"Listen": ["127.0.0.1:0", *(["127.0.0.2:0 tls"] if hosts else [])], "Workers": 2}
        write_config(self.conf, self.root, listen, files=files)

    def read(self):
        """{(host, name of the certificate's file): its end}"""
        with Client(self.server.addresses[0]) as client:
            samples = parse(client.ask("/metrics").body.decode())
        return {(dict(labels)["host"], dict(labels)["certificate"].rpartition("/")[2]): value
                for (name, labels), value in samples.items() if name == NAME}


@pytest.fixture
def site(tmp_path):
    one = Site(tmp_path)
    yield one
    one.server.stop()


def test_expiry_of_certificates(site):
    first = {("default", site.pairs["one"].cert.name): seconds("one"),
             ("b.test", site.pairs["two"].cert.name): seconds("two"),
             ("b.test", site.rsa.cert.name): seconds("later")}
    assert site.read() == first

    # renewed without a signal: the certificate is replaced as ACME clients do
    one, later = site.pairs["one"], site.pairs["next"]
    for old, new in ((one.key, later.key), (one.cert, later.cert)):
        copy = old.with_suffix(".new")
        shutil.copy(new, copy)
        copy.rename(old)
    renewed = {**first, ("default", one.cert.name): seconds("next")}
    await_true(lambda: site.read() == renewed, 60, "the new end")

    # a configuration that is refused changes nothing, even if its certificates are good
    site.write(("later", "two"), more="    Nonsense On\n")
    reload(site.server, accepted=False)
    assert site.read() == renewed

    # a host that has another certificate, and one that is gone
    site.write(("later",))
    reload(site.server)
    await_true(lambda: site.read() == {("default", site.pairs["later"].cert.name): seconds("later")}, 60,
               "the end of the configuration before")

    # without any, TLS is not loaded
    site.write(())
    reload(site.server)
    await_true(lambda: site.read() == {}, 60, "the end of the last certificate")
