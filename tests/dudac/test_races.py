# SPDX-License-Identifier: Apache-2.0
"""The checks of the examples and templates under ThreadSanitizer; other tests run them with the default sanitizers."""

import shutil

import pytest
from dudac.new import list_templates

from running import EXAMPLES, needs_tsan, run_dudac

pytestmark = [pytest.mark.slow, needs_tsan]


def run_test(folder, env=None):
    done = run_dudac("test", folder, "--sanitize", "thread", env=env)
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example(tmp_path, folder, servers):
    run_test(shutil.copytree(folder, tmp_path / folder.name), servers(folder.name))


@pytest.mark.parametrize("template", list_templates())
def test_a_template(tmp_path, template):
    assert run_dudac("new", tmp_path / "apple", "-t", template).returncode == 0
    run_test(tmp_path / "apple")
