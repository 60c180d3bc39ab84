"""The embedded switch over BFRuntime alone: `p4rack gateway` is between it and the tests, as before Tofino."""

import os
import subprocess

from p4rack_ptf.platform import BFRT_ADDR, Chain, by_interfaces, gateway, ready_line

STARTS_A_SWITCH = True
platform_config_update = by_interfaces
#: The chip's.
CPU_PORTS = {"tna": 64, "t2na": 2}
#: Where the embedded switch serves P4Runtime, which no test uses.
UNUSED_ADDR = "127.0.0.1:9558"


def missing(run):
    return None if run.arch in CPU_PORTS else "needs a program for Tofino, get it by --arch tna or t2na"


def start(run):
    """A switch without program, whose CPU port is an interface as on the chip, and the gateway."""
    command = [run.binary, "switch", "run", "--no-p4", "--grpc-server-addr", UNUSED_ADDR, "--bfrt-addr", BFRT_ADDR]
    command += ["-i", f"{run.constants['cpu_port']}@cpu-switch"]
    for host in run.constants["hosts"]:
        command += ["-i", f"{host['port']}@{run.switch_ports[host['port']]}"]
        command += ["--port-rate", f"{host['port']}={host['rate_bps']} b/s"]
    environment = {"P4RACK_LOG": "error", **os.environ}
    running = Chain()
    running.add(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment), ready_line)
    running.add(gateway(run, "cpu-gateway"), ready_line)
    return running


def device_config(run):
    """Configuration that P4Runtime installs: the program's text."""
    return run.artefacts.program.read_bytes()
