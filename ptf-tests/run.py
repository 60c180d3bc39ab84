#!/usr/bin/env python3
"""Runs the tests of generated programs against a target: `python run.py --platform embedded [--arch tna] [RACK]`.

For each scheme it generates the rack's program, starts the target in a network namespace of its own
(unless the platform is `external`), installs the program over P4Runtime and runs PTF. Exit code: 0 if
everything passed, 1 if something failed, 2 for wrong usage, 77 if nothing could be tested here.
"""

import argparse
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
PLATFORMS = HERE / "platforms"
#: Exit code where the target or the rights for it are missing: neither passed nor failed.
NOTHING_TESTED = 77
SCHEMES = ("l2", "pl2-counter", "pl2-clock", "edm-timed-dst", "edm-timed", "edm-calendar", "edm-matched", "cowbird")
ARCHITECTURES = ("v1model", "tna", "t2na")
#: Tofino's times have 32 bits, so PL2's slots on its racks must not be as long as those of the rack here: 1 ms.
TOFINO_RATE = "12 Mb/s"
#: Tests that then pass on a quiet machine only, by scheme; and one that writes a time beyond its horizon.
SHORT = "slots of 32-bit times last 1 ms, shorter than a test's exchange of frames"
TOFINO_CANNOT = {
    "pl2-counter": {"lanes.ALaneHoldsOneReservationThatHasNotBegun": SHORT},
    "pl2-clock": {
        "lanes.ALaneHoldsOneReservationThatHasNotBegun": SHORT,
        "lanes.WhatComesTooEarlyIsBestEffort": SHORT,
        "reservations.ReservedTimeAddsUpAtBothPorts": SHORT,
        "unsolicited.BeyondTheThresholdTheyAreDropped": SHORT,
        "unsolicited.ReservationsAloneReachTheThreshold": SHORT,
        "management.EveryRegisterIsWrittenReadAndResetInTime": "slots of 32-bit times end before the second that it writes",
    },
}
#: Schemes that differ from another one in these parts alone: the rest is tested there.
OWN_PARTS = {scheme: ("edm", "edm_matched", "drops") for scheme in ("edm-timed", "edm-calendar", "edm-matched")}
#: Additional tests on v1model if no description is given: a scheme, a line of the rack's [pl2], and which tests.
VARIANTS = (("pl2-clock", "slot_parts = 4", ("clock_mode",)),)
GROUPS = {
    "l2": {"l2_only"},
    "pl2-counter": {"pl2", "counter_mode"},
    "pl2-clock": {"pl2", "clock_mode"},
    "edm-timed-dst": {"edm"},
    "edm-timed": {"edm"},
    "edm-calendar": {"edm"},
    "edm-matched": {"edm", "edm_matched"},
    "cowbird": {"cowbird"},
}
sys.path[:0] = [str(HERE), str(PLATFORMS)]

from google.protobuf import text_format  # noqa: E402
from p4rack_ptf import sandbox  # noqa: E402


def arguments():
    names = sorted(path.stem.replace("_", "-") for path in PLATFORMS.glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rack", nargs="?", type=pathlib.Path, help="rack description [the one here, and variants]")
    parser.add_argument("--platform", required=True, choices=names, help="what to test")
    parser.add_argument("--arch", choices=ARCHITECTURES, help="of the programs [the description's, or v1model]")
    parser.add_argument("--scheme", action="append", choices=SCHEMES, help="can be repeated [all]")
    parser.add_argument("--test", action="append", default=[], metavar="FILE[.CLASS]", help="only these [all]")
    parser.add_argument("--binary", default=os.environ.get("P4RACK_BIN", "p4rack"), help="the p4rack command")
    parser.add_argument("--grpc-addr", default="127.0.0.1:9559", metavar="HOST:PORT", help="P4Runtime")
    parser.add_argument("--device-id", type=int, help="[the description's]")
    parser.add_argument("--cpu-port", type=int, help="check that the description says so too")
    parser.add_argument("--election-id", type=int, default=1)
    parser.add_argument("--artefacts", type=pathlib.Path, help="a generated program's folder instead of RACK")
    parser.add_argument("--test-dir", type=pathlib.Path, default=HERE / "tests", help="other tests than those here")
    external = parser.add_argument_group("platform external")
    external.add_argument("--p4info", type=pathlib.Path, help="install this P4Info instead of the generated one")
    external.add_argument("--device-config", type=pathlib.Path, help="install this instead of the program's text")
    external.add_argument("--port-map", nargs="+", default=[], metavar="PORT@IF", help="interfaces of the ports")
    return parser.parse_args()


def main():
    args = arguments()
    binary = shutil.which(args.binary)
    if not binary and not args.artefacts:
        sys.exit(f"no command {args.binary}; give --binary or set P4RACK_BIN")
    platform = importlib.import_module(args.platform.replace("-", "_"))
    run = types.SimpleNamespace(**vars(args))
    run.binary = binary
    run.given, run.wanted_device = args.artefacts, args.device_id
    run.has_cpu_interface, run.cables = hasattr(platform, "CPU_PORTS"), []
    run.test_ports = dict(port_at_interface(pair) for pair in args.port_map)
    problem = platform.missing(run)
    if platform.STARTS_A_SWITCH and not problem:
        problem = sandbox.enter_namespace()
    if problem:
        print(f"skipped: {problem}")
        return NOTHING_TESTED
    total = {"passed": 0, "failed": 0, "skipped": 0}
    started = time.monotonic()
    schemes = args.scheme
    if args.artefacts:
        from p4rack_ptf.names import Artefacts

        schemes = [Artefacts(args.artefacts).constants["scheme"]]
    own = not (args.rack or args.artefacts)
    if own:
        run.rack = HERE / "rack.toml"
    schemes = schemes or schemes_of(run.rack)
    runs = [(scheme, None, OWN_PARTS.get(scheme, ("all",))) for scheme in schemes]
    if own:
        if args.arch in (None, "v1model"):
            runs += [variant for variant in VARIANTS if variant[0] in schemes]
    for scheme, run.line, run.specs in runs:
        with tempfile.TemporaryDirectory(prefix="p4rack-ptf-") as folder:
            run.folder = pathlib.Path(folder)
            counted = run_scheme(run, platform, scheme)
        for key in total:
            total[key] += counted[key]
    counts = ", ".join(f"{count} {what}" for what, count in total.items())
    what = " ".join(filter(None, (args.platform, args.arch)))
    print(f"==== {what}: {counts} in {time.monotonic() - started:.1f} s ====")
    return 1 if total["failed"] or not total["passed"] else 0


def schemes_of(rack):
    """Protocols of a description's switch, each alone."""
    try:
        text = rack.read_text()
    except OSError as error:
        sys.exit(f"{rack}: {error.strerror}; give a rack description")
    has = {"l2", *(protocol for protocol in ("pl2", "edm", "cowbird") if re.search(rf"(?m)^\s*\[{protocol}\]", text))}
    return [scheme for scheme in SCHEMES if scheme.partition("-")[0] in has]


def port_at_interface(text):
    port, at, interface = text.partition("@")
    if not at or not port.isdigit():
        sys.exit(f"--port-map: {text} is not PORT@INTERFACE")
    return int(port), interface


def run_scheme(run, platform, scheme):
    """PTF's counts for one scheme."""
    from p4rack_ptf.names import Artefacts
    from p4rack_ptf.session import Session

    print(", ".join(filter(None, (f"── {run.platform}", run.arch, scheme, run.line))), flush=True)
    generated = run.given or generate(run, platform, scheme)
    run.artefacts = Artefacts(generated)
    run.constants = run.artefacts.constants
    run.device_id = run.constants["device_id"] if run.wanted_device is None else run.wanted_device
    if run.cpu_port not in (None, run.constants["cpu_port"]):
        sys.exit(f"--cpu-port {run.cpu_port}: the description says {run.constants['cpu_port']}; change one of them")
    running = None
    if platform.STARTS_A_SWITCH:
        getattr(platform, "interfaces", lay_cables)(run)
        running = platform.start(run)
    try:
        info = run.artefacts.info
        if run.p4info:
            info = text_format.Parse(run.p4info.read_text(), type(info)())
        session = Session(run.grpc_addr, run.device_id, run.election_id)
        session.install(info, platform.device_config(run))
        session.close()
        return run_ptf(run, platform, scheme, generated)
    finally:
        if running:
            running.stop()
            remove_cables(run)


def generate(run, platform, scheme):
    """Generates the program for the platform's target. The folder."""
    target = getattr(platform, "TARGET", None)
    cpu_port = getattr(platform, "CPU_PORTS", {}).get(run.arch)
    rack, folder = run.rack, run.folder / "generated"
    faster = run.arch in ("tna", "t2na") and rack == HERE / "rack.toml" and not scheme.startswith("edm")
    if target or cpu_port or run.line or faster:
        text = run.rack.read_text()
        if cpu_port and rack == HERE / "rack.toml":
            # The chip's; where a host has it, that one moves.
            text = re.sub(rf"(?m)^port = {cpu_port}$", "port = 9", text)
            text = text.replace("[switch]", f"[switch]\ncpu_port = {cpu_port}", 1)
        if faster:
            text = re.sub(r"(?m)^port_rate.*$", f'port_rate = "{TOFINO_RATE}"', text)
        if target:
            text = re.sub(r"(?m)^(target|time_unit_ns)\b.*$", "", text)
            text = text.replace("[switch]", f'[switch]\ntarget = "{target}"', 1)
        if run.line:
            text = text.replace("[pl2]", f"[pl2]\n{run.line}", 1)
        rack = run.folder / "rack.toml"
        rack.write_text(text)
    command = [run.binary, "generate", rack, "--scheme", scheme, "-o", folder]
    if run.arch:
        command += ["--arch", run.arch]
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(1)
    return folder


def lay_cables(run):
    """A veth pair for each port: one end the switch's, one the tests'; and one for the CPU port where that is none of
    P4Runtime's."""
    ports = [host["port"] for host in run.constants["hosts"]]
    run.switch_ports = {port: f"s{port}" for port in ports}
    run.test_ports = {port: f"t{port}" for port in ports}
    run.cables = [(run.switch_ports[port], run.test_ports[port]) for port in ports]
    if run.has_cpu_interface:
        run.cables.append(("cpu-switch", "cpu-gateway"))
    for pair in run.cables:
        sandbox.cable(*pair)


def remove_cables(run):
    for interface, _ in run.cables:
        subprocess.run(["ip", "link", "del", interface], check=True)


def run_ptf(run, platform, scheme, generated):
    """Runs PTF; its counts."""
    # Tests of another folder are all for its scheme.
    own = run.test_dir == HERE / "tests"
    others = set().union(*GROUPS.values()) - GROUPS[scheme] if own else set()
    if own and run.constants.get("pl2", {}).get("slot_parts", 1) == 1:
        others.add("slot_parts")
    specs = (run.test or list(run.specs)) + [f"^{group}" for group in sorted(others)]
    arch = run.constants.get("arch", "v1model")
    cannot = TOFINO_CANNOT.get(scheme, {}) if arch in ("tna", "t2na") else {}
    params = {
        "artefacts": str(generated.resolve()),
        "grpc_addr": run.grpc_addr,
        "device_id": run.device_id,
        "election_id": run.election_id,
        "cannot": {**getattr(platform, "CANNOT", {}), **cannot},
    }
    command = [sys.executable, pathlib.Path(sys.executable).with_name("ptf"), "--test-dir", run.test_dir.resolve()]
    command += ["--pypath", HERE, "--platform-dir", PLATFORMS, "--platform", run.platform.replace("-", "_")]
    command += ["--test-params", ";".join(f"{key}={value!r}" for key, value in params.items())]
    command += ["--log-file", run.folder / "ptf.log", "--socket-recv-size", "16384"]
    for port, interface in run.test_ports.items():
        command += ["--interface", f"0-{port}@{interface}"]
    process = subprocess.Popen(
        [*command, *specs], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=run.folder
    )
    ran, failed, skipped = 0, set(), 0
    for line in process.stdout:
        print(line, end="", flush=True)
        if match := re.match(r"Ran (\d+) tests? in", line):
            ran = int(match[1])
        elif match := re.match(r"(?:FAIL|ERROR): (\S+)", line):
            failed.add(match[1])
        elif ran and (match := re.match(r"(?:OK|FAILED) .*skipped=(\d+)", line)):
            skipped = int(match[1])
    if process.wait() and not failed:
        failed.add(f"PTF itself, which ended with {process.returncode}")
        ran += 1
    for name in sorted(failed):
        print(f"FAILED {scheme}: {name}")
    return {"passed": ran - len(failed) - skipped, "failed": len(failed), "skipped": skipped}


if __name__ == "__main__":
    sys.exit(main())
