"""Tofino's model with the SDE's driver, and `p4rack gateway` in front of it. The scripts of bf-sde/ compile the program
and start both; the model's interfaces are those of NAME.model.json. Needs SDE_INSTALL."""

import json
import os
import pathlib
import re
import socket
import subprocess
import time

from p4rack_ptf.platform import BFRT_ADDR, READY_S, Chain, NotStarted, by_interfaces, gateway, listening, ready_line
from p4rack_ptf.sandbox import no_ipv6

STARTS_A_SWITCH = True
platform_config_update = by_interfaces
CPU_PORTS = {"tna": 64, "t2na": 2}
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "bf-sde"
SDE = "the Tofino SDE, get it by building https://github.com/p4lang/open-p4studio, then export SDE_INSTALL=…/install"
#: Speed of the model's ports. The program's times follow the description's rate, of any value.
SPEED = "10 Gb/s"


def missing(run):
    if run.arch not in CPU_PORTS:
        return "needs a program for Tofino, get it by --arch tna or t2na"
    install = os.environ.get("SDE_INSTALL")
    if not install:
        return f"needs {SDE}"
    for tool in ("bf_switchd", "tofino-model"):
        if not os.access(pathlib.Path(install) / "bin" / tool, os.X_OK):
            return f"needs {install}/bin/{tool} of {SDE}"
    return None


def interfaces(run):
    """The hosts' ends of the model's pairs, which model.sh makes; the CPU port's pair among them."""
    (described,) = run.artefacts.program.parent.glob("*.model.json")
    pairs = {pair["device_port"]: pair for pair in json.loads(described.read_text())["PortToVeth"]}
    run.cpu_interface = f"veth{pairs[run.constants['cpu_port']]['veth2']}"
    run.test_ports = {
        host["port"]: f"veth{pairs[host['port']]['veth2']}" for host in run.constants["hosts"]
    }


def start(run):
    folder = run.artefacts.program.parent
    built = subprocess.run([SCRIPTS / "build.sh", folder], stdout=subprocess.PIPE, text=True)
    if built.returncode:
        raise NotStarted(f"build.sh ended with {built.returncode}")
    running = Chain()
    quiet = {"stdout": subprocess.DEVNULL, "cwd": run.folder}
    running.add(subprocess.Popen([SCRIPTS / "model.sh", folder], **quiet), lambda model: interfaces_are_up(run))
    running.add(
        subprocess.Popen([SCRIPTS / "switchd.sh", folder], **quiet), lambda driver: listening(driver, BFRT_ADDR)
    )
    options = ["--device-config", built.stdout.splitlines()[-1]]
    description = run.folder / "rack.toml"
    if description.exists():
        # Of its ports alone, for the gateway to add.
        ports = run.folder / "ports.toml"
        ports.write_text(re.sub(r"(?m)^port_rate.*$", f'port_rate = "{SPEED}"', description.read_text()))
        options += ["--rack", ports]
    running.add(gateway(run, run.cpu_interface, *options), ready_line)
    return running


def interfaces_are_up(run):
    """Waits for the pairs that model.sh makes. Returns the problem, or None."""
    needed = [*run.test_ports.values(), run.cpu_interface]
    deadline = time.monotonic() + READY_S
    while absent := set(needed) - {name for _, name in socket.if_nameindex()}:
        if time.monotonic() > deadline:
            return f"model.sh made no {', '.join(sorted(absent))} in {READY_S} s"
        time.sleep(0.05)
    for name in needed:
        no_ipv6(name)
    return None


def device_config(run):
    """Configuration that P4Runtime installs: the program's text, which the gateway recognises."""
    return run.artefacts.program.read_bytes()
