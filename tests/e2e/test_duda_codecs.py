# SPDX-License-Identifier: Apache-2.0
"""The packages that come with the server: base64, json, sha1 and sha256, as services use them."""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import shutil

import pytest

from harness import build
from harness.server import await_true
from harness.services import CPP, HEAD, STRICT, build_cpp, build_service, needs_duda, reload, service_config
from test_concurrent import in_parallel

pytestmark = needs_duda

NAMES = ("base64", "json", "sha1", "sha256")
INCLUDES = "".join(f"#include <duda/packages/{name}/{name}.h>\n" for name in NAMES)
LOAD = "".join(f'    duda_load_package({name}, "{name}");\n' for name in NAMES)

# Responds with what the body is by each package.
CODER = f"""{HEAD}{INCLUDES}
static void encode(duda_request_t *dr)
{{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char hex[DUDA_SHA256_HEX_BYTES];
    size_t len;
    const char *body = request->body(dr, &len);
    json_t *root = json->create_object(), *parsed = json->parse_data(dr);
    char *text = base64->encode_url(body, len, NULL);
    if (!parsed)
        json->add_to_object(root, "error", json->create_string(json->get_error()));
    json->add_to_object(root, "value", parsed);
    json->add_to_object(root, "base64", json->create_string(text));
    sha1->encode(body, digest, len);
    json->add_to_object(root, "sha1", json->create_string(sha1->hex(digest, hex)));
    sha256->hmac("key", 3, body, len, digest);
    json->add_to_object(root, "hmac", json->create_string(sha256->hex(digest, hex)));
    free(text);
    json->send(dr, root);
    json->delete(root);
}}
int duda_main(void)
{{
{LOAD}    return router->post("/", encode) ? 0 : -1;
}}
"""


def ask(server, target):
    with server.connect() as client:
        return client.ask(target, host="localhost")


def expect(body):
    """The response of CODER."""
    result = {"base64": base64.urlsafe_b64encode(body).decode().rstrip("="), "sha1": hashlib.sha1(body).hexdigest()}
    result["hmac"] = hmac.new(b"key", body, "sha256").hexdigest()
    try:
        result["value"] = json.loads(body)
    except ValueError:
        result["error"] = f"line {body.count(10) + 1}, column 1: this is no value"
    return result


def post(client, target, body):
    return json.loads(client.ask(target, host="localhost", method="POST", body=body).body)


@pytest.mark.concurrent
def test_all_workers_at_once(serve_services):
    """What one thread parses or hashes, and its errors, are not those of another one."""
    server = serve_services({"coder": CODER}, {"Workers": 3, "MaxKeepAliveRequest": 1000000})

    def ask_often(number):
        bodies = [json.dumps({"n": number, "list": list(range(number))}).encode(), b"\n" * number + b"?", b"[1, 2.5]"]
        with server.connect() as client:
            for i in range(100):
                body = bodies[i % len(bodies)]
                assert post(client, "/coder/", body) == expect(body)

    in_parallel(8, ask_often)


def test_unloaded_and_loaded_again(serve_services):
    """The last service that uses packages goes, and they go with it; another one loads them again."""
    server = serve_services({"coder": CODER}, {"Workers": 1})
    sites = server.conf / "sites" / "default"
    text = sites.read_text()
    for _ in range(3):
        with server.connect() as client:
            assert post(client, "/coder/", b"[1]") == expect(b"[1]")
        assert count_loaded(server) == len(NAMES)
        sites.write_text(text.replace("Name coder", "Name coder\n    Enabled Off"))
        reload(server)
        await_true(lambda: count_loaded(server) == 0)
        sites.write_text(text)
        reload(server)


def count_loaded(server):
    maps = pathlib.Path(f"/proc/{server.pid}/maps").read_text()
    return len({name for name in NAMES if f"{name}.dpkg" in maps})


def test_a_large_body(serve_services):
    """A million numbers, and one more value than the package takes."""
    numbers = 999_999
    server = serve_services({"coder": CODER}, {"MaxRequestSize": "4M"})
    with server.connect() as client:
        body = b"[" + b",".join([b"0"] * numbers) + b"]"
        assert post(client, "/coder/", body) == expect(body)
        assert post(client, "/coder/", b"[" + body + b"]")["error"].endswith(": too many values")


@pytest.mark.parametrize("n, right", [(128, True), (129, False), (500_000, False)])
def test_a_deep_body(serve_services, n, right):
    source = CODER.replace('json->add_to_object(root, "value", parsed);', "json->delete(parsed);")
    server = serve_services({"coder": source}, {"MaxRequestSize": "4M"})
    with server.connect() as client:
        answer = post(client, "/coder/", b"[" * n + b"]" * n)
        assert ("error" not in answer) == right
        assert right or answer["error"] == "line 1, column 129: too many arrays and objects within each other"


SYSTEM_JSON = CODER.replace(HEAD, f"#include <cjson/cJSON.h>\n{HEAD}")
PLAIN_CPP = f"""{INCLUDES}
#include <duda/duda.h>
DUDA_REGISTER("tests", "C++");
static void encode(duda_request_t *dr)
{{
    unsigned char digest[SHA_DIGEST_LENGTH];
    char text[DUDA_SHA1_HEX_BYTES];
    json_t *value = json->create_number(cJSON_Number);
    response->http_content_type(dr, "txt");
    if (!base64->decode("Zg", 2, nullptr) && sha1->encode("abc", digest, 3) == 0 &&
        sha256->is_equal(digest, digest, 20))
        response->printf(dr, "%s %s", sha1->hex(digest, text), json->print_unformatted_gc(dr, value));
    json->delete_(value);
    response->end(dr, nullptr);
}}
int duda_main(void)
{{
{LOAD}    return router->get("/", encode) ? 0 : -1;
}}
"""


@pytest.mark.skipif(not pathlib.Path("/usr/include/cjson/cJSON.h").exists(), reason="libcjson-dev is not installed")
def test_beside_the_header_of_cjson(serve_services):
    """A service may include both; the types are the same."""
    server = serve_services({"coder": SYSTEM_JSON})
    with server.connect() as client:
        assert post(client, "/coder/", b"[1]") == expect(b"[1]")


@pytest.mark.parametrize("compiler", [name for name in CPP if shutil.which(name)])
def test_packages_in_cpp(serve, site_root, tmp_path, compiler):
    build_cpp(tmp_path, "plain", PLAIN_CPP, compiler)
    server = serve(config=service_config(tmp_path, ["plain"], site_root))
    assert ask(server, "/plain/").body == b"a9993e364706816aba3e25717850c26c9cd0d89d 8"


# ── the pages ──


def read_blocks(page):
    return re.findall(r"^```c\n(.*?)^```", (build.TOP / "docs" / page).read_text(), re.M | re.S)


def make_handler(number, block):
    """A block that is a part of a function, with the variables that it has from elsewhere."""
    return f"""
void handler_{number}(duda_request_t *dr)
{{
    json_t *root = json->parse_data(dr);
{block}}}
"""


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_a_page(tmp_path, name):
    """All of them compile, and its duda_main() loads the package."""
    blocks = read_blocks(f"reference/duda/{name}.md")
    (main,) = [block for block in blocks if "int duda_main(void)" in block]
    functions = [block for block in blocks if block.startswith("static")]
    parts = [make_handler(i, block) for i, block in enumerate(blocks) if block not in (main, *functions)]
    show = "static void show(duda_request_t *dr)\n{\n    response->end(dr, NULL);\n}\n" if "show)" in main else ""
    source = "\n".join([HEAD, INCLUDES, *functions, *parts, show, main])
    build_service(tmp_path, name, source, warnings=(*STRICT, "-Wno-unused-variable"))


def test_example_of_the_guide(serve_services):
    (source,) = [block for block in read_blocks("guide/write-services.md") if "duda_load_package" in block]
    server = serve_services({"hello": source})
    assert json.loads(ask(server, "/hello/").body) == {"hello": "world"}
