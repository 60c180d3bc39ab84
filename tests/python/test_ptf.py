"""The PTF suite can fail: it is run on programs that were broken on purpose."""

import pathlib
import subprocess
import sys

import pytest
from conftest import NO_NAMESPACE, ROOT

SUITE = ROOT / "ptf-tests"
MUTATIONS = {
    "the guard lets everybody pass": ("drop(DROP_SPOOFED)", "{ }", "guard"),
    "grants come back before slots are taken": (
        "slots                    = slots |+| (bit<32>) hdr.pl2_control.demand;",
        "slots                    = slots;",
        "reservations",
    ),
    "T is never reached": ("meta.reserved > PL2_DROP_THRESHOLD", "false", "unsolicited"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_program_is_noticed(mutation, binary, tmp_path):
    if NO_NAMESPACE:
        pytest.skip(NO_NAMESPACE)
    right, wrong, group = MUTATIONS[mutation]
    generated = tmp_path / "generated"
    rack = [SUITE / "rack.toml", "--scheme", "pl2-counter", "-o", generated]
    subprocess.run([binary, "generate", *rack], check=True, stdout=subprocess.DEVNULL)
    program = pathlib.Path(generated / "ptf.p4")
    text = program.read_text()
    assert right in text
    program.write_text(text.replace(right, wrong))
    command = [sys.executable, SUITE / "run.py", "--platform", "embedded", "--binary", binary]
    command += ["--artefacts", generated, "--test", group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout
    assert f"FAILED pl2-counter: {group}." in done.stdout
