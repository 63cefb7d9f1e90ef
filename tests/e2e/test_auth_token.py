# SPDX-License-Identifier: Apache-2.0
"""Logins by bearer tokens, what handlers learn of the user, and logins together with rules for addresses (Satisfy)."""

import base64
import hashlib
import hmac
import json
import time

import pytest

from harness import build
from harness.certificates import openssl
from harness.server import await_true, section
from test_auth import ADA, BOB, basic, check, protect, users  # noqa: F401

SECRET = "a secret of thirty-two bytes and more"
ALL = ("/a/secret.txt", "/b/team.txt")

pytestmark = [
    pytest.mark.skipif(not (build.PLUGINS / "auth.so").exists(), reason="the preset has no plugin auth"),
    build.needs_modules,
]


def encode(data):
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(sign, alg, **claims):
    claims = {"sub": "ada", "exp": int(time.time()) + 600, **claims}
    text = encode({"alg": alg, "typ": "JWT"}) + "." + encode({k: v for k, v in claims.items() if v is not None})
    return text + "." + encode(sign(text.encode()))


def hs256(secret=SECRET, **claims):
    return token(lambda text: hmac.new(secret.encode(), text, hashlib.sha256).digest(), "HS256", **claims)


def bearer(text):
    return f"Authorization: Bearer {text}"


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def load_doorman(server_plugins=("liana", "auth", "{doorman}", "static")):
    """plugins.load with the module that decides by a header, and shows the user."""
    names = [name.format(doorman=build.MODULES / "doorman.so") for name in server_plugins]
    return {"plugins.load": section("PLUGINS", {"Load": names})}


def test_tokens(protect, secret, tmp_path):  # noqa: F811
    rule = {"Type": "Bearer", "Match": "/a", "Secret": secret, "Issuer": "https://id.example", "Audience": "shop"}
    server = protect({**rule, "Scope": "read", "Claim": "groups staff"}, config=load_doorman())
    good = {"iss": "https://id.example", "aud": ["shop", "x"], "scope": "read write", "groups": ["staff"]}
    with server.connect() as client:
        answer = client.ask("/a/secret.txt")
        assert answer.status == 401 and answer["WWW-Authenticate"] == 'Bearer realm="restricted"'
        for _ in range(2):  # the second one is in the cache
            assert client.ask("/a/secret.txt", bearer(hs256(**good))).body == b"secret\n"
        shown = client.ask("/a/secret.txt?user", bearer(hs256(**good))).body.decode()
        user, allowed, claims = shown.split(" ", 2)
        assert (user, allowed) == ("ada", "yes") and json.loads(claims)["scope"] == "read write"
        for status, error, changed in [
            (401, "invalid_token", {"exp": int(time.time()) - 5}),
            (401, "invalid_token", {"exp": None}),
            (401, "invalid_token", {"nbf": int(time.time()) + 60}),
            (401, "invalid_token", {"iss": "https://other.example"}),
            (401, "invalid_token", {"aud": "other"}),
            (401, "invalid_token", {"secret": SECRET + "x"}),
            (403, "insufficient_scope", {"scope": "write"}),
        ]:
            answer = client.ask("/a/secret.txt", bearer(hs256(**{**good, **changed})))
            assert answer.status == status and f'error="{error}"' in answer["WWW-Authenticate"], changed
        assert client.ask("/a/secret.txt", bearer(hs256(**{**good, "groups": []}))).status == 403
        none = token(lambda text: b"", "none", **good)
        assert client.ask("/a/secret.txt", bearer(none)).status == 401
        answer = client.ask("/a/secret.txt", "Authorization: Bearer a b")
        assert answer.status == 400 and 'error="invalid_request"' in answer["WWW-Authenticate"]
        assert client.ask("/a/secret.txt", BOB).status == 401
    server.wait_log(r"auth: client 127\.0\.0\.1: the token has expired")
    assert SECRET not in server.log


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_public_keys(protect, tmp_path, kind):  # noqa: F811
    def make(name):
        options = {"rsa": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "ed25519": ["ED25519"]}[kind]
        openssl("genpkey", "-algorithm", *options, "-out", tmp_path / f"{name}.pem")
        openssl("pkey", "-in", tmp_path / f"{name}.pem", "-pubout", "-out", tmp_path / f"{name}.pub")
        return tmp_path / f"{name}.pem"

    def sign_with(key):
        def sign(text):
            (tmp_path / "text").write_bytes(text)
            how = ["-rawin"] if kind == "ed25519" else ["-rawin", "-digest", "sha256"]
            return openssl("pkeyutl", "-sign", "-inkey", key, *how, "-in", tmp_path / "text")

        return token(sign, {"rsa": "RS256", "ed25519": "EdDSA"}[kind])

    first, second, keys = make("first"), make("second"), tmp_path / "keys.pem"
    keys.write_text((tmp_path / "first.pub").read_text())
    server = protect({"Type": "Bearer", "Match": "/a", "Keys": keys, "Require": "user ada"})
    confused = hs256(secret=keys.read_text())  # the public key as the secret of HS256
    with server.connect() as client:
        tokens = {"first": sign_with(first), "second": sign_with(second), "confused": confused}
        assert {name: client.ask("/a/secret.txt", bearer(one)).status for name, one in tokens.items()} == {
            "first": 200,
            "second": 401,
            "confused": 401,
        }
        keys.write_text((tmp_path / "second.pub").read_text())
        await_true(lambda: client.ask("/a/secret.txt", bearer(tokens["second"])).status == 200, 30, "the new key")
        assert client.ask("/a/secret.txt", bearer(tokens["first"])).status == 401  # though it was in the cache


def test_what_handlers_learn(protect, users, secret):  # noqa: F811
    """The user, the claims, and whether the client may have another path."""
    server = protect(
        {"Match": "/a", "Users": users},
        {"Match": "/b", "Users": users, "Require": "user bob"},
        {"Match": "/c", "Type": "Bearer", "Secret": secret},
        config=load_doorman(),
    )
    with server.connect() as client:
        assert client.ask("/?user").body == b"none no -"
        assert client.ask("/a/?user", ADA).body == b"ada no -"
        assert client.ask("/a/?user", BOB).body == b"bob yes -"
        assert client.ask("/?user", BOB).body == b"none yes -"  # the cache has it
        assert client.ask("/?user", basic("bob", "wrong")).body == b"none no -"
        assert client.ask("/c/?user", bearer(hs256(sub="eve", exp=None, iat=1))).status == 401
        assert client.ask("/c/?user", bearer(hs256(sub="eve"))).body.startswith(b"eve no {")


# ── Satisfy ──


@pytest.mark.parametrize("order", ["rules first", "logins first"])
def test_satisfy(protect, users, order):  # noqa: F811
    both = ("{doorman}", "auth") if order == "rules first" else ("auth", "{doorman}")
    server = protect(
        {"Match": "/a", "Users": users},
        {"Match": "/b", "Users": users, "Satisfy": "any", "Require": "user bob"},
        {"Match": "/", "Type": "Off", "Satisfy": "any"},
        config=load_doorman(("liana", *both, "static")),
    )
    first = order == "rules first"
    expected = {
        # decision of the rules, path: without a login, with one, with one that Require does not name
        ("none", "/a/secret.txt"): (401, 200, 200),
        ("allow", "/a/secret.txt"): (401, 200, 200),
        ("deny", "/a/secret.txt"): (451, 451, 451) if first else (401, 451, 451),
        ("none", "/b/team.txt"): (401, 200, 403),
        ("allow", "/b/team.txt"): (200, 200, 200) if first else (401, 200, 403),
        ("deny", "/b/team.txt"): (401, 200, 403),
        ("none", "/"): (200, 200, 200),
        ("deny", "/"): (451, 451, 451),  # there is no login in its place
    }
    with server.connect() as client:
        for (door, path), statuses in expected.items():
            logins = [(), (BOB,), (ADA,)]
            got = tuple(client.ask(path, f"X-Door: {door}", *login).status for login in logins)
            assert got == statuses, (door, path)


# ── what -t says ──


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"Type": "Bearer"}, '"Keys" or "Secret" is missing'),
        ({"Type": "Bearer", "Keys": "missing.pem"}, "missing.pem"),
        ({"Type": "Bearer", "Secret": "S", "Users": "x"}, "in their claims"),
        ({"Type": "Bearer", "Secret": "S", "Require": "group staff"}, "Claim groups staff"),
        ({"Type": "Basic", "Users": "U", "Secret": "S"}, 'only "Type Bearer" has tokens'),
        ({"Type": "Bearer", "Secret": "S", "Claim": "a b c"}, "the name of a claim is needed"),
        ({"Type": "Bearer", "Keys": "S"}, "secret"),
    ],
)
def test_mistakes(check, users, secret, keys, message):  # noqa: F811
    keys = {key: {"S": secret, "U": users}.get(value, value) for key, value in keys.items()}
    code, text = check(section("AUTH", keys))
    assert code == 1 and message in text
