"""The PTF suite can fail: it is run on programs that were broken on purpose."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import NO_NAMESPACE, ROOT

SUITE = ROOT / "ptf-tests"
MUTATIONS = {
    "the guard lets all frames pass": ("drop(DROP_SPOOFED)", "{ }", "guard"),
    "grants come back before slots are taken": (
        "slots                    = slots |+| (bit<32>) hdr.pl2_control.demand;",
        "slots                    = slots;",
        "reservations",
    ),
    "T is never reached": ("meta.pl2.reserved > PL2_DROP_THRESHOLD", "false", "unsolicited"),
}


@pytest.fixture(scope="module")
def runs(binary, tmp_path_factory):
    """A run of the suite for each mutation, in parallel: each is in a namespace of its own and mostly waits."""
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


#: Replacement of the SDE: a compiler that leaves the text itself, a model that does nothing, and a driver that is the
#: embedded switch, at the model's interfaces.
SDE = {
    "p4c": """for text; do :; done
while [ $# -gt 0 ]; do
    case $1 in -o) out=$2 ;; --bf-rt-schema) schema=$2 ;; esac
    shift
done
mkdir -p "$out/pipe" && echo {} > "$out/pipe/context.json" && cp "$text" "$out/pipe/tofino.bin"
"$P4RACK" p4 bfrt-info "$text" > "$schema" """,
    "tofino-model": "exec sleep 300",
    "bf_switchd": """while [ $# -gt 0 ]; do
    case $1 in --conf-file) conf=$2 ;; esac
    shift
done
ports=$(sed -n 's/.*"device_port": \\([0-9]*\\).*/-i \\1@/p; s/.*"veth1": \\([0-9]*\\).*/veth\\1/p' \\
    "${conf%.switchd.conf}.model.json" | paste -d '\\0' - -)
exec "$P4RACK" switch run --no-p4 --grpc-server-addr 127.0.0.1:9558 --bfrt-addr 127.0.0.1:50052 $ports""",
}


def on_the_model(binary, install, *more):
    command = [sys.executable, SUITE / "run.py", "--platform", "tofino-model", "--arch", "tna", "--scheme", "l2"]
    environment = {**os.environ, "SDE_INSTALL": str(install), "P4RACK": str(binary)}
    return subprocess.run(
        [*command, "--binary", binary, *more], env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_models_platform_builds_starts_and_tests(binary, tmp_path):
    if NO_NAMESPACE:
        pytest.skip(NO_NAMESPACE)
    run = on_the_model(binary, tmp_path)
    assert run.returncode == 77 and f"needs {tmp_path}/bin/bf_switchd of the Tofino SDE" in run.stdout
    (tmp_path / "bin").mkdir()
    for name, text in SDE.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
    run = on_the_model(binary, tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "18 passed, 0 failed, 0 skipped" in run.stdout
    (tmp_path / "bin/p4c").write_text("#!/bin/bash\nexit 3\n")
    run = on_the_model(binary, tmp_path)
    assert run.returncode not in (0, 77) and "refused by" in run.stderr
