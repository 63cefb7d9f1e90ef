# SPDX-License-Identifier: Apache-2.0
"""Packages of web services: shared objects of PackagesRoot that duda_main() loads."""

import re

import pytest

from harness.server import section
from harness.services import HEAD, build_service, needs_duda, reload

pytestmark = needs_duda

DICE_HEADER = """
#include <duda/package.h>
struct api_dice {
    int (*roll)(void);
    int (*say)(duda_request_t *dr);
};
DUDA_PACKAGE(struct api_dice, dice)
"""

# It answers by itself: packages have the objects of the API.
DICE = """
#include <duda/duda.h>
#include "dice.h"
static int rolls;
static int roll_dice(void)
{
    return ++rolls;
}
static int say_roll(duda_request_t *dr)
{
    return response->printf(dr, "roll %d", roll_dice());
}
static const struct api_dice table = {roll_dice, say_roll};
static struct duda_package package = {"dice", "1.0", &table, DUDA_PACKAGE_ABI};
struct duda_package *duda_package_main(void)
{
    return &package;
}
"""

PLAYER = f"""{HEAD}
#include "dice.h"
static void play(duda_request_t *dr)
{{
    dice->say(dr);
    response->end(dr, NULL);
}}
int duda_main(void)
{{
    duda_load_package(dice, "dice");
    duda_load_package(dice, "dice");
    return router->get("/", play) ? 0 : -1;
}}
"""

# Uses the table at once, as services of the original did.
EAGER = f"""{HEAD}
#include "dice.h"
static void open_table(void)
{{
    duda_load_package(dice, "NAME");
    dice->roll();
}}
int duda_main(void)
{{
    open_table();
    return 0;
}}
"""

OTHER = f"""{HEAD}
static void say(duda_request_t *dr)
{{
    response->printf(dr, "other");
    response->end(dr, NULL);
}}
int duda_main(void)
{{
    return router->get("/", say) ? 0 : -1;
}}
"""


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


def build_package(folder, name, source):
    """Compiles folder/NAME.dpkg."""
    built = build_service(folder / "build", name, source, files={"dice.h": DICE_HEADER})
    return built.rename(folder / f"{name}.dpkg")


@pytest.fixture
def serve_players(serve_services, tmp_path, packages):
    """Starts a server with services that include dice.h: serve_players({"one": SOURCE})."""

    def start(sources, root=packages, settings=None):
        services = tmp_path / "services"
        for name in sources:
            (services / f"{name}.src").mkdir(parents=True, exist_ok=True)
            (services / f"{name}.src" / "dice.h").write_text(DICE_HEADER)
        keys = {"ServicesRoot": services, **({"PackagesRoot": root} if root else {})}
        return serve_services(sources, settings, files={"plugins/duda/duda.conf": section("DUDA", keys)})

    return start


def ask(server, target):
    with server.connect() as client:
        return client.ask(target, host="localhost")


def test_package(serve_players, packages):
    """A package is one object for all services, and stays as long as one uses it."""
    build_package(packages, "dice", DICE)
    server = serve_players({"one": PLAYER, "two": PLAYER.replace("play", "play2")}, settings={"Workers": 1})
    assert ask(server, "/one/").body == b"roll 1"
    assert ask(server, "/two/").body == b"roll 2"
    build_service(server.services, "one", PLAYER.replace("play", "play3"), files={"dice.h": DICE_HEADER})
    reload(server)
    assert ask(server, "/one/").body == b"roll 3"


@pytest.mark.parametrize(
    "name, reason",
    [
        ("dice", "No such file or directory"),
        ("../dice", "this is no name of a package"),
        ("plain", "it is no package of this version"),
        ("older", "it was compiled for another version: compile it again"),
        ("empty", "duda_package_main.. has returned NULL"),
    ],
)
def test_bad_package(serve_players, packages, name, reason):
    """A service whose package cannot be loaded does not go on: one error that names both, and the others run."""
    build_package(packages, "plain", "int number = 1;")
    build_package(packages, "older", DICE.replace("DUDA_PACKAGE_ABI};", "DUDA_PACKAGE_ABI + 1};"))
    build_package(packages, "empty", DICE.replace("return &package", "return package.abi ? NULL : &package"))
    server = serve_players({"eager": EAGER.replace("NAME", name), "other": OTHER})
    assert ask(server, "/eager/").status == 503
    assert ask(server, "/other/").body == b"other"
    server.wait_log(rf'the service "eager" cannot be used.*the package "{re.escape(name)}" cannot be loaded: {reason}')
    assert server.log.count('"eager"') == 1


def test_without_packages_root(serve_players):
    server = serve_players({"eager": EAGER.replace("NAME", "dice")}, root=None)
    server.wait_log(r'the package "dice" cannot be loaded: PackagesRoot of \[DUDA\] is not set')


def test_too_late(serve_players, packages):
    """Packages are loaded in duda_main() only; later the pointer is NULL."""
    late = PLAYER.replace("dice->say(dr);", 'duda_load_package(dice, "dice"); response->printf(dr, "%d", !dice);')
    late = late.replace('    duda_load_package(dice, "dice");\n', "")
    server = serve_players({"late": late})
    assert ask(server, "/late/").body == b"1"
    server.wait_log(r'service late: the package "dice" can only be loaded in duda_main\(\)')
