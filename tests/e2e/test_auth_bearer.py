# SPDX-License-Identifier: Apache-2.0
"""Bearer tokens: python3-jwt signs what the server verifies, over HTTP/1.1 and HTTP/2, in the clear and by TLS."""

import base64
import hashlib
import hmac
import json
import os
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from harness import build
from harness.certificates import Authority, TlsClient
from harness.client import Client
from harness.content import populate
from harness.h2 import H2Client
from harness.server import await_true, section
from test_auth import FREE, basic, reload

FILES = {"index.html": b"public\n", "api/a.txt": b"a\n", "api/admin/b.txt": b"b\n"}
pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth"),
    build.needs_modules,
]

SECRET = "0123456789abcdef0123456789abcdef"
WAYS = {"h1": (False, False), "h2": (True, False), "h1-tls": (False, True), "h2-tls": (True, True)}
MAKE = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "PS384": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()  # fmt: skip


@pytest.fixture(scope="module")
def keys():
    return {alg: make() for alg, make in MAKE.items()}


@pytest.fixture(scope="module")
def forged():
    """Keys of the same kinds, which no server knows."""
    return {alg: make() for alg, make in MAKE.items()}


def text64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwks(keys):
    """The public keys as a JWK set, each with its algorithm as kid."""
    rows = []
    for alg, key in keys.items():
        numbers = key.public_key()
        if alg == "EdDSA":
            raw = numbers.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            row = {"kty": "OKP", "crv": "Ed25519", "x": text64(raw)}
        elif alg.startswith("ES"):
            n, size = numbers.public_numbers(), numbers.key_size // 8
            row = {"kty": "EC", "crv": f"P-{size * 8}"}
            row |= {k: text64(getattr(n, k).to_bytes(size, "big")) for k in "xy"}
        else:
            n = numbers.public_numbers()
            row = {"kty": "RSA", "n": text64(n.n.to_bytes(256, "big")), "e": text64(n.e.to_bytes(3, "big"))}
        rows.append({**row, "kid": alg, "alg": alg, "use": "sig"})
    return json.dumps({"keys": rows}, indent=1)


class Site:
    """A host with [AUTH] sections, and how to ask it."""

    def __init__(self, serve, folder, sections, *, way="h1", server=None, limits=FREE, extra=""):
        self.h2, self.tls = WAYS[way]
        for protocol in ("h2",) * self.h2 + ("tls",) * self.tls:
            if not build.speaks(protocol):
                pytest.skip(f"the preset {build.PRESET} has no {protocol}")
        settings = {"Listen": "127.0.0.1:0" + " tls" * self.tls, "Workers": 1, "KeepAliveTimeout": "60s"}
        settings.update(server or {})
        main = section("SERVER", settings) + section("AUTH_LIMITS", limits)
        text = section("HOST", {"ServerName": "localhost", "DocumentRoot": populate(folder / "root", FILES)})
        text += "".join(section("AUTH", keys) for keys in sections) + extra
        if self.tls:
            self.ca = Authority(folder / "ca")
            text += section("TLS", self.ca.make("localhost", "localhost").keys())
        self.server = serve(config={"sites/default": text, "monkey.conf": main})

    def connect(self):
        if self.h2:
            client = H2Client(self.server.addresses[0], context=self.ca.context(alpn=["h2"]) if self.tls else None)
        elif self.tls:
            client = TlsClient(self.server.addresses[0], self.ca.context())
        else:
            client = Client(self.server.addresses[0])
        self.server.clients.append(client)
        return client

    def ask(self, token=None, path="/api/a.txt"):
        if not hasattr(self, "client"):
            self.client = self.connect()
        return self.client.ask(path, *([] if token is None else [f"Authorization: Bearer {token}"]))


def claims(**more):
    return {"sub": "ada", "exp": time.time() + 300, **more}


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def start(serve, tmp_path):
    return lambda *sections, **rest: Site(serve, tmp_path, sections, **rest)


@pytest.mark.parametrize("way", WAYS)
def test_each_algorithm(start, tmp_path, keys, forged, way):
    (tmp_path / "keys.json").write_text(jwks(keys))
    site = start({"Match": "/api", "Type": "Bearer", "Keys": tmp_path / "keys.json", "Realm": "api"}, way=way)
    assert site.ask(path="/").body == b"public\n"
    for alg, key in keys.items():
        token = jwt.encode(claims(), key, alg, headers={"kid": alg})
        for _ in range(3):  # verified, then remembered
            answer = site.ask(token)
            assert answer.status == 200 and answer.body == b"a\n"
        answer = site.ask(token[:-8] + ("A" * 8))
        assert answer.status == 401 and 'error="invalid_token"' in answer["WWW-Authenticate"]
        assert site.ask(jwt.encode(claims(), forged[alg], alg, headers={"kid": alg})).status == 401
        assert site.ask(jwt.encode(claims(), key, alg)).status == 200  # without a kid
    answer = site.ask()
    assert answer.status == 401 and answer["WWW-Authenticate"] == 'Bearer realm="api"'


@pytest.mark.parametrize("alg", [alg for alg in MAKE if alg != "PS384"])  # which a JWK must name
def test_pem(start, tmp_path, keys, alg):
    (tmp_path / "key.pem").write_text(public_pem(keys[alg]))
    site = start({"Type": "Bearer", "Keys": tmp_path / "key.pem"})
    assert site.ask(jwt.encode(claims(), keys[alg], alg, headers={"kid": "any"})).status == 200
    for other in set(MAKE) - {alg}:
        assert site.ask(jwt.encode(claims(), keys[other], other)).status == 401


def test_secret(start, secret):
    site = start({"Type": "Bearer", "Secret": secret})
    assert site.ask(jwt.encode(claims(), SECRET, "HS256")).status == 200
    assert site.ask(jwt.encode(claims(), SECRET, "HS512")).status == 401
    assert site.ask(jwt.encode(claims(), SECRET + "\n", "HS256")).status == 401
    assert site.ask(jwt.encode(claims(), "", "none")).status == 401


def test_public_key_is_no_secret(start, tmp_path, keys):
    """A token that takes the public key for the secret of HMAC: python3-jwt refuses to sign it, so it is made here."""
    pem = public_pem(keys["RS256"])
    (tmp_path / "key.pem").write_text(pem)
    site = start({"Type": "Bearer", "Keys": tmp_path / "key.pem"})
    for alg in ("HS256", "RS256"):
        text = ".".join(text64(json.dumps(part).encode()) for part in ({"alg": alg}, claims()))
        for key in (pem, pem.strip()):
            mac = hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()
            assert site.ask(f"{text}.{text64(mac)}").status == 401


def test_header(start, secret):
    site = start({"Type": "Bearer", "Secret": secret})
    token = jwt.encode(claims(), SECRET, "HS256")
    client = site.connect()
    ask = lambda *fields: client.ask("/api/a.txt", *fields)
    assert ask(f"Authorization: bearer   {token}").status == 200
    for value in ("Bearer", f"Bearer {token} x", f"Bearer {token}, Bearer {token}", f'Bearer "{token}"'):
        answer = ask(f"Authorization: {value}")
        assert answer.status == 400 and 'error="invalid_request"' in answer["WWW-Authenticate"]
    assert ask(f"Authorization: Bearer {token}", f"Authorization: Bearer {token}").status == 400
    for value in ("Basic YTpi", token, f"Token {token}"):
        answer = ask(f"Authorization: {value}")
        assert answer.status == 401 and answer["WWW-Authenticate"] == 'Bearer realm="restricted"'
    assert client.ask(f"/api/a.txt?access_token={token}").status == 401


def test_claims(start, secret):
    site = start(
        {
            "Match": "/api", "Type": "Bearer", "Secret": secret, "Issuer": "https://id.example https://b.example",
            "Audience": "api", "Scope": "read write", "Leeway": "5s",
            "Claim": ["realm.roles admin", "email_verified true", "tenant"],
        }
    )  # fmt: skip
    right = claims(
        iss="https://b.example", aud=["x", "api"], scope="write x read", realm={"roles": ["user", "admin"]},
        email_verified=True, tenant=7, nbf=time.time() + 1, iat=time.time(),
    )  # fmt: skip
    token = lambda **more: jwt.encode({k: v for k, v in {**right, **more}.items() if v is not None}, SECRET, "HS256")
    assert site.ask(token()).status == 200
    wrong = {
        401: [dict(iss="x"), dict(iss=None), dict(aud="x"), dict(aud=None), dict(exp=time.time() - 6), dict(exp=None),
              dict(nbf=time.time() + 60), dict(exp="9999999999"), dict(exp=1e300)],
        403: [dict(scope="read"), dict(scope=None), dict(realm={"roles": ["user"]}), dict(email_verified=False),
              dict(tenant=None)],
    }  # fmt: skip
    for status, all_of_it in wrong.items():
        for more in all_of_it:
            answer = site.ask(token(**more))
            assert answer.status == status, more
            error = "invalid_token" if status == 401 else "insufficient_scope"
            assert f'error="{error}"' in answer["WWW-Authenticate"]
    assert site.ask(token(scope=""))["WWW-Authenticate"].endswith(', scope="read write"')


def test_users(start, secret):
    site = start(
        {"Match": "/api/admin", "Type": "Bearer", "Secret": secret, "Require": "user ada bob"},
        {"Match": "/api", "Type": "Bearer", "Secret": secret},
    )
    ask = lambda sub, path: site.ask(jwt.encode(claims(sub=sub), SECRET, "HS256"), path).status
    assert [ask(sub, "/api/admin/b.txt") for sub in ("ada", "bob", "mallory", "")] == [200, 200, 403, 403]
    assert ask("mallory", "/api/a.txt") == 200
    assert ask("a\nb", "/api/a.txt") == 401  # it would become the user's name in the log


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="the preset has no plugin dirlisting")
def test_listing(start, secret):
    """A listing has the folders below that this token opens."""
    site = start(
        {"Match": "/api/admin", "Type": "Bearer", "Secret": secret, "Scope": "admin"},
        {"Match": "/api", "Type": "Bearer", "Secret": secret},
        extra=section("DIRLISTING", {"Match": "/api"}),
    )
    for scope, shown in (("admin x", True), ("x", False)):
        answer = site.ask(jwt.encode(claims(scope=scope), SECRET, "HS256"), "/api/")
        assert answer.status == 200 and b"a.txt" in answer.body and (b"admin" in answer.body) == shown


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="the preset has no plugin dirlisting")
def test_a_listing_verifies_once(start, secret, tmp_path):
    """A wrong token is verified once for each section that entries of a listing belong to, not for each entry."""
    site = start(
        {"Match": "~^/api/a[0-9]", "Type": "Bearer", "Secret": secret, "Scope": "admin"},
        {"Match": "~^/api/b[0-9]", "Type": "Bearer", "Secret": secret},
        extra=section("DIRLISTING", {"Match": "/api"}),
        server={"LogLevel": "debug"},
    )
    for n in range(300):
        (tmp_path / f"root/api/{'ab'[n % 2]}{n}").touch()
    right, wrong = (jwt.encode(claims(scope="admin"), secret, "HS256") for secret in (SECRET, SECRET[::-1]))
    for times in (1, 2):
        answer = site.ask(wrong, "/api/")
        assert answer.status == 200 and answer.body.count(b"href=\"b") == 0
        site.server.wait_log("the signature of the token is wrong", 2 * times)
        assert site.ask(right, "/api/").body.count(b"href=\"b") == 150
        assert site.server.log.count("the signature of the token is wrong") == 2 * times


def test_expires_while_remembered(start, secret):
    site = start({"Type": "Bearer", "Secret": secret, "Leeway": "0s"}, server={"MaxKeepAliveRequest": 100000})
    end = time.time() + 5
    token = jwt.encode(claims(exp=end), SECRET, "HS256")
    assert site.ask(token).status == 200
    await_true(lambda: site.ask(token).status == 401, what="the end of the token")
    assert time.time() >= end
    assert "has expired" in site.ask(token)["WWW-Authenticate"]


def test_user_in_the_log(start, secret, tmp_path):
    log = tmp_path / "access.log"
    site = start({"Type": "Bearer", "Secret": secret}, extra=section("LOGGER", {"AccessLog": log}))
    assert site.ask(jwt.encode(claims(sub="ada"), SECRET, "HS256")).status == 200
    site.client.close()
    site.server.settle()
    site.server.stop()
    assert " - ada [" in log.read_text()


def test_keys_are_read_again(start, tmp_path, keys):
    """A new key file takes the place of the old one; a token that the cache knows is not valid under it."""
    path = tmp_path / "keys.json"
    path.write_text(jwks({"ES256": keys["ES256"]}))
    site = start({"Type": "Bearer", "Keys": path})
    old = jwt.encode(claims(), keys["ES256"], "ES256", headers={"kid": "ES256"})
    new = jwt.encode(claims(), keys["EdDSA"], "EdDSA", headers={"kid": "EdDSA"})
    assert [site.ask(token).status for token in (old, old, new)] == [200, 200, 401]
    (tmp_path / "next").write_text(jwks({"EdDSA": keys["EdDSA"]}))
    os.rename(tmp_path / "next", path)
    site.server.wait_log("the keys of")
    assert [site.ask(token).status for token in (old, new)] == [401, 200]
    (tmp_path / "next").write_text('{"keys": [\n}')
    os.rename(tmp_path / "next", path)
    site.server.wait_log("is wrong in line 2, column 1")
    assert [site.ask(token).status for token in (old, new)] == [401, 200]


def test_keys_change_when_a_reload_ends_their_generation(start, tmp_path, keys):
    """The thread that watches keys loads them about 100 ms after a change, when the hosts of the former generation may
    have ended. Many files make that load take longer."""
    paths = [tmp_path / f"{i}.json" for i in range(20)]
    for path in paths:
        path.write_text(jwks(keys))
    site = start({"Type": "Bearer", "Keys": paths})
    for delay in range(90, 126, 2):
        (tmp_path / "next").write_text(jwks(keys))
        os.rename(tmp_path / "next", paths[0])
        time.sleep(delay / 1000)  # when the load begins cannot be seen from outside
        reload(site.server)
    token = jwt.encode(claims(), keys["ES256"], "ES256", headers={"kid": "ES256"})
    assert site.ask(token).status == 200


def test_reload(start, secret):
    """Other rules hold for a token that was remembered under the former ones, on the same connection."""
    site = start({"Type": "Bearer", "Secret": secret, "Audience": "old"})
    old, new = (jwt.encode(claims(aud=aud), SECRET, "HS256") for aud in ("old", "new"))
    assert [site.ask(token).status for token in (old, old, new)] == [200, 200, 401]
    host = site.server.conf / "sites" / "default"
    host.write_text(host.read_text().replace("Audience old", "Audience new"))
    reload(site.server)
    assert [site.ask(token).status for token in (old, new)] == [401, 200]


def test_keys_that_are_skipped(start, tmp_path, keys):
    """A set with keys of other types and purposes: the log has a warning, and the others verify."""
    rows = json.loads(jwks(keys))
    rows["keys"] += [{"kty": "AKP"}, {**rows["keys"][0], "use": "enc"}]
    (tmp_path / "keys.json").write_text(json.dumps(rows))
    site = start({"Type": "Bearer", "Keys": tmp_path / "keys.json"})
    site.server.wait_log(r"\(key 6\) has an unknown type \(kty\), and is skipped; .*\(key 7\) is not for signatures")
    for alg, key in keys.items():
        assert site.ask(jwt.encode(claims(), key, alg, headers={"kid": alg})).status == 200


# ── failures ──

LIMITS = {"FailureDelay": "0s", "MaxFailures": 3, "FailureTime": "1h"}


def forge(**more):
    return jwt.encode(claims(**more), "x" * 32, "HS256")


def count_blocked(server):
    return sum("too many failed logins (MaxFailures)" in line for line in server.log.splitlines())


@pytest.mark.parametrize("way", WAYS)
def test_too_many_failures(start, secret, way):
    """A client that has failed too often gets 429 for right tokens, too, in all sections and after a reload."""
    rules = [{"Match": "/api/admin", "Type": "Bearer", "Secret": secret, "Issuer": "https://id.example"}]
    rules.append({"Match": "/api", "Type": "Bearer", "Secret": secret})
    site = start(*rules, way=way, limits=LIMITS, server={"LogLevel": "debug"})
    right = jwt.encode(claims(), SECRET, "HS256")
    assert site.ask(right).status == 200
    wrong = [(forge(), "/api/a.txt"), ("garbage", "/api/a.txt"), (right, "/api/admin/b.txt")]
    assert [site.ask(token, path).status for token, path in wrong] == [401] * 3
    for token in (forge(), right):
        answer = site.ask(token)
        assert answer.status == 429 and 3500 < int(answer["Retry-After"]) <= 3600
        assert answer["WWW-Authenticate"] is None
    assert site.ask().status == 401  # asks for a token
    assert site.ask(path="/").status == 200
    site.server.wait_log(r"client 127\.0\.0\.1: 429 after too many failures", 2)
    assert count_blocked(site.server) == 1
    assert site.server.log.count("the signature of the token is wrong") == 1  # the second one was not verified
    reload(site.server)
    assert site.connect().ask("/api/a.txt", f"Authorization: Bearer {right}").status == 429


@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_failure(start, secret, way):
    """What a client with a right token may send as well: it is neither counted nor delayed."""
    rule = {"Match": "/api", "Type": "Bearer", "Secret": secret, "Issuer": "a", "Scope": "read", "Require": "user ada"}
    site = start(rule, way=way, limits={**LIMITS, "FailureDelay": "10s", "MaxFailures": 1})
    token = lambda **more: jwt.encode(claims(iss="a", **{"scope": "read", **more}), SECRET, "HS256")
    began = time.monotonic()
    site.client = site.connect()
    for _ in range(6):
        assert site.ask().status == 401
        assert site.client.ask("/api/a.txt", basic("ada", "x")).status == 401
        assert site.client.ask("/api/a.txt", "Authorization: Bearer a b").status == 400
        assert "has expired" in site.ask(token(exp=time.time() - 60))["WWW-Authenticate"]
        assert "not valid yet" in site.ask(token(nbf=time.time() + 60))["WWW-Authenticate"]
        assert site.ask(token(scope="write")).status == site.ask(token(sub="eve")).status == 403
    assert site.ask(token()).status == 200
    assert time.monotonic() - began < 50  # one of them that is delayed takes a minute


@pytest.mark.parametrize("more", [{"aud": "x"}, {"iss": "b"}, {"exp": None}, {"exp": "1"}, {"exp": 1, "iss": "b"}])
def test_wrong_claims_are_failures(start, secret, more):
    site = start({"Type": "Bearer", "Secret": secret, "Issuer": "a"}, limits={**LIMITS, "MaxFailures": 1})
    wrong = {k: v for k, v in claims(**{"iss": "a", **more}).items() if v is not None}
    assert [site.ask(jwt.encode(wrong, SECRET, "HS256")).status for _ in range(2)] == [401, 429]


@pytest.mark.parametrize("way", WAYS)
def test_failures_are_delayed(start, secret, way):
    site = start({"Type": "Bearer", "Secret": secret}, way=way, limits={"FailureDelay": "400ms"})
    began = time.monotonic()
    answer = site.ask(forge())
    assert time.monotonic() - began > 0.35
    assert answer.status == 401 and "signature of the token is wrong" in answer["WWW-Authenticate"]
    if not site.h2:  # and a client that leaves while the response is held back
        head = f"GET /api/a.txt HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {forge()}\r\n\r\n"
        site.client.send(head.encode())
        site.server.wait_log("the signature of the token is wrong", 2)


@pytest.mark.parametrize("way", ["h2", "h2-tls"])
def test_streams_that_are_delayed(start, secret, way):
    """The response to one stream is held back; others continue, and some are cancelled."""
    site = start({"Match": "/api", "Type": "Bearer", "Secret": secret}, way=way, limits={"FailureDelay": "500ms"})
    client = site.connect()
    wrong = [client.begin("/api/a.txt", f"Authorization: Bearer {forge()}") for _ in range(6)]
    assert client.ask("/api/a.txt", f"Authorization: Bearer {jwt.encode(claims(), SECRET, 'HS256')}").status == 200
    for stream in wrong[::2]:
        client.cancel(stream)
    assert {client.response(stream).status for stream in wrong[1::2]} == {401}


def test_a_reload_while_a_failure_is_delayed(start, secret):
    """The request ends under the generation with which it began, though the plugin has left."""
    site = start({"Type": "Bearer", "Secret": secret}, limits={"FailureDelay": "1s"})
    client, other = site.connect(), site.connect()
    client.send(f"GET /api/a.txt HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {forge()}\r\n\r\n".encode())
    site.server.wait_log("the signature of the token is wrong")
    (site.server.conf / "monkey.conf").write_text(section("SERVER", {"Listen": "127.0.0.1:0", "Workers": 1}))
    host = site.server.conf / "sites" / "default"
    host.write_text(host.read_text().split("[AUTH]")[0])
    reload(site.server)
    assert other.ask("/api/a.txt").status == 200
    assert client.response().status == 401


def test_passwords_and_tokens_count_together(start, secret, tmp_path):
    (tmp_path / "users").write_text("ada:$apr1$PgA/.M6N$2jtMUoFOZbUQt1oBHnsHr1\n")
    (tmp_path / "users").chmod(0o600)
    rules = [{"Match": "/api/admin", "Users": tmp_path / "users"}, {"Type": "Bearer", "Secret": secret}]
    site = start(*rules, limits={**LIMITS, "MaxFailures": 2})
    assert site.ask(forge()).status == 401
    assert site.client.ask("/api/admin/b.txt", basic("ada", "wrong")).status == 401
    assert site.client.ask("/api/admin/b.txt", basic("ada", "passw0rd")).status == 429
    assert site.ask(forge()).status == 429


@pytest.mark.skipif(not (build.PLUGINS / "dirlisting.so").exists(), reason="the preset has no plugin dirlisting")
def test_listings_of_blocked_clients(start, secret):
    """A public listing does not tell a blocked client whether a token is right."""
    rule = {"Match": "/api", "Type": "Bearer", "Secret": secret}
    extra = section("DIRLISTING", {"Match": "/"})
    site = start(rule, extra=extra, limits={**LIMITS, "MaxFailures": 1}, server={"Indexfile": "none.html"})
    right = jwt.encode(claims(), SECRET, "HS256")
    assert b"api" in site.ask(right, "/").body
    assert site.ask(forge()).status == 401
    answer = site.ask(right, "/")
    assert answer.status == 200 and b"api" not in answer.body
