# SPDX-License-Identifier: Apache-2.0
"""TOML files: schema, defaults, and messages with file, line and key."""

import pytest
from watch_resources import data, servers, workloads
from watch_resources.data import Key, Problem

SCHEMA = {
    "name": Key(str, required=True, example='"W1"', pattern=data.NAME),
    "clients": Key(int, default=1, low=1, high=1000, example="64"),
    "share": Key(float, default=0.5, low=0),
    "close": Key(bool, default=False),
    "kind": Key(str, default="a", choices=("a", "b")),
    "words": Key(list, default=list, of=str),
    "headers": Key(dict, default=dict, of=str),
    "rule": Key(list, default=list, of={"server": Key(str, required=True), "cost_max": Key(float)}),
    "variants": Key(dict, default=dict, of=Key(dict, of={"values": Key(dict, default=dict, of=str)})),
}


def read(tmp_path, text):
    path = tmp_path / "some.toml"
    path.write_text(text)
    return data.read(path, SCHEMA)[1]


def problem(tmp_path, text):
    with pytest.raises(Problem) as found:
        read(tmp_path, text)
    return str(found.value).removeprefix(str(tmp_path) + "/")


def test_defaults_and_values(tmp_path):
    found = read(tmp_path, 'name = "x"\nshare = 1\n[[rule]]\nserver = "s"\n[variants.tls]\n')
    assert (found["clients"], found["share"], found["words"]) == (1, 1, [])
    assert found["rule"] == [{"server": "s", "cost_max": None}]
    assert found["variants"] == {"tls": {"values": {}}}


@pytest.mark.parametrize(
    "text, message",
    [
        ("clients = 3\n", 'some.toml:1: name: the key is missing, for example name = "W1"'),
        ('name = "x"\nklients = 3\n', "some.toml:2: klients: unknown key; do you mean clients?"),
        ('name = "x"\n\n# clients = 4\nclients = "3"\n', "some.toml:4: clients: '3' is not an integer, for example 64"),
        ('name = "x"\nclients = true\n', "some.toml:2: clients: True is not an integer, for example 64"),
        ('name = "x"\nclients = 0\n', "some.toml:2: clients: 0 is too low: 1 is the least"),
        ('name = "x"\nclients = 1001\n', "some.toml:2: clients: 1001 is too high: 1000 is the most"),
        ('name = "x"\nshare = nan\n', "some.toml:2: share: nan is too low: 0 is the least"),
        ('name = "../x"\n', "some.toml:1: name: '../x' is not a name of letters, digits, _, . and -"),
        ('name = ""\n', "some.toml:1: name: '' is not a name of letters, digits, _, . and -"),
        ('name = "x"\nclose = 1\n', "some.toml:2: close: 1 is not true or false"),
        ('name = "x"\nkind = "c"\n', "some.toml:2: kind: 'c' is not one of 'a', 'b'"),
        ('name = "x"\nwords = ["a", 1]\n', "some.toml:2: words.2: 1 is not a string"),
        ('name = "x"\n[headers]\n"X-Y" = 7\n', "some.toml:3: headers.X-Y: 7 is not a string"),
        (
            'name = "x"\nwords = ["""\nclients = 1\n"""]\n'
            '[[rule]]\nserver = "a"\n[[rule]]\nserver = "b"\ncost_mx = 1\n',
            "some.toml:9: rule.2.cost_mx: unknown key; do you mean cost_max?",
        ),
        ('name = "x"\n[[rule]]\ncost_max = 1\n', "some.toml:2: rule.1.server: the key is missing"),
        (
            'name = "x"\n[variants.tls.values]\nlisten = 1\n',
            "some.toml:3: variants.tls.values.listen: 1 is not a string",
        ),
        ('name = "x"\nvariants = 1\n', "some.toml:2: variants: 1 is not a table"),
        ('name = "x"\nname = "y"\n', "some.toml:2: Cannot overwrite a value"),
        ('name = "x"\nclose = tru\n', "some.toml:2: Invalid value"),
        ('name = "x', "some.toml:1: Unterminated string"),
    ],
)
def test_messages(tmp_path, text, message):
    assert problem(tmp_path, text) == message


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(Problem, match="none.toml: No such file or directory"):
        data.read(tmp_path / "none.toml", SCHEMA)
    (tmp_path / "latin").write_bytes(b'name = "\xe9"')
    with pytest.raises(Problem, match="latin: this is no UTF-8 text"):
        data.read(tmp_path / "latin", SCHEMA)


def test_names_of_files(tmp_path):
    with pytest.raises(Problem, match="there is no workload W99: do you mean W9?"):
        data.find_file("workloads", "W99")
    assert data.find_file("servers", "own/x.toml").name == "x.toml"


WORKLOAD = {"name": '"own"', "text": '"own"', "path": '"13.txt"', "clients": "1"}


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("name", '"../../srv"', "own.toml:1: name: '../../srv' is not a name"),  # the folder of this name is removed
        ("path", '"../etc/passwd"', "own.toml:3: path: there is no file '../etc/passwd'; there are 13.txt"),
        ("path", '"26k.bim"', "own.toml:3: path: there is no file '26k.bim'; do you mean 26k.bin?"),
        ("clients", "99999999999", "own.toml:4: clients: 99999999999 is too high: 1000000 is the most"),
        ("pipeline", "100000", "own.toml:5: pipeline: 100000 is too high: 1024 is the most"),
        ("rate", "9999999999", "own.toml:5: rate: 9999999999 is too high"),
        ("seconds", "nan", "own.toml:5: seconds: nan is too low"),
        ("seconds", "inf", "own.toml:5: seconds: inf is too high"),
        ("headers", '{"a b" = "c"}', "own.toml:5: headers.a b: 'a b' is not the name of a header"),
        ("headers", '{"a" = "c\\r\\nd: e"}', "own.toml:5: headers.a: .* is not the value of a header: one line"),
        ("connections", '"close"\npipeline = 2', "own.toml:6: pipeline: a connection for each request has no"),
        ("paths", "5", 'own.toml:3: path: with several paths it holds @n@'),
        ("path", '"x/@n@"\npaths = 5', 'own.toml:3: path: several paths are those of many/@n@ or cold/@n@'),
    ],
)
def test_workloads_that_cannot_be(tmp_path, key, value, said):
    lines = {**WORKLOAD, key: value}
    (tmp_path / "own.toml").write_text("".join(f"{name} = {text}\n" for name, text in lines.items()))
    with pytest.raises(Problem, match=said.replace("(", r"\(")):
        workloads.load_workload(str(tmp_path / "own.toml"))


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", "a//b", "."])
def test_files_of_a_server_stay_in_its_folder(tmp_path, name):
    path = tmp_path / "own.toml"
    path.write_text(f'name = "x"\ntext = "x"\nprograms = ["x"]\ncommand = ["x"]\n[config]\n"{name}" = "x"\n')
    with pytest.raises(Problem, match="own.toml:6: config.*: .* is not a path below the folder of files"):
        servers.load_kind(str(path))
