# SPDX-License-Identifier: Apache-2.0
"""The unit that is installed: systemd understands it, and finds little to object to."""

import re
import shutil
import subprocess

import pytest

from harness import build

EXPOSURE_MAX = 20  # tenths
UNIT = build.TOP / "dist" / "systemd" / "monkey.service.in"

pytestmark = [
    pytest.mark.single_protocol,
    pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="NOT TESTED: no systemd-analyze here"),
]


@pytest.fixture
def unit(tmp_path):
    text = UNIT.read_text().replace("@CMAKE_INSTALL_FULL_BINDIR@", str(tmp_path))
    path = tmp_path / "monkey.service"
    path.write_text(text.replace("@CMAKE_INSTALL_FULL_SYSCONFDIR@", "/etc"))
    shutil.copy(build.binary(), tmp_path / "monkey")
    return path


def analyze(*args):
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *map(str, args)], capture_output=True, text=True, timeout=60
    )


def test_it_is_understood(unit):
    result = analyze("verify", "--man=no", unit)
    assert result.returncode == 0 and unit.name not in result.stdout + result.stderr, result.stdout + result.stderr
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHomes="))
    assert "ProtectHomes" in analyze("verify", "--man=no", unit).stderr, "it would have been reported"


def test_the_group_of_certificates(unit):
    """What the guide adds for certbot."""
    (lines,) = re.findall(r"```ini\n(.*?)```", (build.TOP / "docs" / "guide" / "operate.md").read_text(), re.S)
    unit.write_text(unit.read_text() + lines)
    result = analyze("verify", "--man=no", unit)
    assert result.returncode == 0 and unit.name not in result.stdout + result.stderr, result.stdout + result.stderr
    result = analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", unit)
    assert result.returncode == 0, result.stdout


def test_the_drop_in_for_scripts(unit):
    """It permits what a JIT needs, and nothing else."""
    lines = (build.TOP / "dist/systemd/scripts.conf").read_text()
    assert re.findall(r"^\w.*", lines, re.M) == ["MemoryDenyWriteExecute=no"]
    assert "MemoryDenyWriteExecute=yes" in unit.read_text()
    unit.write_text(unit.read_text() + lines)
    result = analyze("verify", "--man=no", unit)
    assert result.returncode == 0 and unit.name not in result.stdout + result.stderr, result.stdout + result.stderr


def test_it_is_confined(unit):
    result = analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", unit)
    assert result.returncode == 0, result.stdout
    assert analyze("security", "--offline=yes", "--threshold=5", unit).returncode != 0, "a threshold is one"
