# SPDX-License-Identifier: Apache-2.0
"""`wr check`: rules that hold, are missed, are not certain, or not measured; and mistakes in their file."""

import pytest
from fakes import make_lines
from watch_resources import rules
from watch_resources.analysis import Results
from watch_resources.data import Problem
from watch_resources.rules import Outcome

CLEAR = [(7 + n / 100, 10) for n in range(8)]  # 0.70 x
NOISY = [(7 + n, 10) for n in range(-3, 5)]  # 0.4 to 1.1


def check(tmp_path, text, lines):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    return rules.check(Results(lines), rules.read_rules(path))


def rule(limit, workload="W1", server="monkey", against="nginx"):
    return f'[[rule]]\nworkload = "{workload}"\nserver = "{server}"\nagainst = "{against}"\n{limit}\n'


@pytest.mark.parametrize(
    "limit, costs, outcome",
    [
        ("cost_max = 0.75", CLEAR, Outcome.HOLDS),
        ("cost_max = 0.65", CLEAR, Outcome.MISSED),
        ("cost_max = 0.7", NOISY, Outcome.UNCERTAIN),
        ("cost_max = 2", NOISY, Outcome.HOLDS),
        ("cost_max = 0.75", [], Outcome.UNMEASURED),
        ("cost_max = 0.75", CLEAR[:1], Outcome.UNCERTAIN),
    ],
)
def test_outcomes(tmp_path, limit, costs, outcome):
    (found,) = check(tmp_path, rule(limit), make_lines("W1", costs))
    assert found.outcome is outcome


def test_pairs_of_the_other_direction(tmp_path):
    (found,) = check(tmp_path, rule("cost_max = 1.2", server="nginx", against="monkey"), make_lines("W1", CLEAR))
    assert found.outcome is Outcome.MISSED and found.interval.ratio == pytest.approx(1.42, abs=0.01)


def test_several_limits_and_metrics(tmp_path):
    lines = make_lines("W1", CLEAR)
    for line in lines:
        if line.get("server") == "monkey":
            line.update(memory_kb={"dirty_max": 50}, latency_us={"p99": 300}, rps=2000)
    text = rule("memory_max = 0.2\np99_max = 2\nrps_min = 1.5")
    found = check(tmp_path, text, lines)
    assert [one.outcome for one in found] == [Outcome.HOLDS, Outcome.MISSED, Outcome.HOLDS]
    assert str(found[0]) == "holds        W1 memory of monkey: at most 0.2 x of nginx: 0.10 x (0.10 to 0.10)"
    assert str(found[1]).startswith("MISSED       W1 p99 of monkey: at most 2 x of nginx: 3.00 x")
    assert "at least 1.5 x of nginx" in str(found[2])


def test_servers_of_a_workload_with_variants(tmp_path):
    lines = make_lines("W8", CLEAR, "monkey+tls", "nginx+cache+tls", variants=["tls"])
    (found,) = check(tmp_path, rule("cost_max = 0.75", "W8", against="nginx+cache"), lines)
    assert found.outcome is Outcome.HOLDS


def test_success_and_failure(tmp_path):
    def passes(limits, costs, strict):
        findings = check(tmp_path, "".join(map(rule, limits)), make_lines("W1", costs))
        return rules.passes(findings, strict)

    assert passes(["cost_max = 0.75"], CLEAR, True)
    assert not passes(["cost_max = 0.75", "cost_max = 0.6"], CLEAR, False)
    assert passes(["cost_max = 0.7"], NOISY, False)
    assert not passes(["cost_max = 0.7"], NOISY, True)
    assert not passes(["cost_max = 0.7"], [], False)


@pytest.mark.parametrize(
    "text, message",
    [
        (rule(""), "rules.toml:1: rule.1: it has no limit: one of cost_max, memory_max, p99_max, rps_min"),
        (rule("cost_max = 1") + rule("cost_mx = 1"), r"rules.toml:10: rule.2.cost_mx: unknown key; do you mean"),
        (rule("cost_max = 1", server="nginx"), "rules.toml:4: rule.1.against: a server is not compared with itself"),
        (rule("cost_max = true"), "rules.toml:5: rule.1.cost_max: True is not a number"),
        ('[[rule]]\nserver = "monkey"\n', "rules.toml:1: rule.1.workload: the key is missing"),
        ("", "rules.toml:1: rule: the key is missing"),
    ],
)
def test_mistakes(tmp_path, text, message):
    with pytest.raises(Problem, match=message):
        check(tmp_path, text, [])


def test_rules_of_the_project():
    assert rules.read_rules(rules.PROJECT_RULES)
