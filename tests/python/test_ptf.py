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


@pytest.fixture(scope="module")
def runs(binary, tmp_path_factory):
    """A run of the suite for each mutation, all at once: each is in a namespace of its own and mostly waits."""
    if NO_NAMESPACE:
        pytest.skip(NO_NAMESPACE)
    started = {}
    for mutation, (right, wrong, group) in MUTATIONS.items():
        generated = tmp_path_factory.mktemp("ptf") / "generated"
        rack = [SUITE / "rack.toml", "--scheme", "pl2-counter", "-o", generated]
        subprocess.run([binary, "generate", *rack], check=True, stdout=subprocess.DEVNULL)
        program = pathlib.Path(generated / "ptf.p4")
        text = program.read_text()
        assert right in text
        program.write_text(text.replace(right, wrong))
        command = [sys.executable, SUITE / "run.py", "--platform", "embedded", "--binary", binary]
        command += ["--artefacts", generated, "--test", group]
        started[mutation] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield started
    for run in started.values():
        if run.poll() is None:
            run.kill()
            run.wait()


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_program_is_noticed(mutation, runs):
    said, _ = runs[mutation].communicate(timeout=120)
    assert runs[mutation].returncode == 1, said
    assert f"FAILED pl2-counter: {MUTATIONS[mutation][2]}." in said
