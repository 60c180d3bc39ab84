"""The embedded switch on veth pairs, started for the tests."""

import os
import subprocess

from p4rack_ptf.platform import Running, by_interfaces, ready_line

STARTS_A_SWITCH = True
platform_config_update = by_interfaces


def missing(run):
    """A missing requirement, with how to get it; or None."""
    return None


def start(run):
    """A switch without program whose ports are `run.switch_ports`, a map of port to interface."""
    command = [run.binary, "switch", "run", "--no-p4"]
    command += ["--grpc-server-addr", run.grpc_addr, "--device-id", str(run.device_id)]
    command += ["--cpu-port", str(run.constants["cpu_port"]), "--drop-port", str(run.constants["drop_port"])]
    for host in run.constants["hosts"]:
        command += ["-i", f"{host['port']}@{run.switch_ports[host['port']]}"]
        command += ["--port-rate", f"{host['port']}={host['rate_bps']} b/s"]
    # Warnings that the tests provoke are expected.
    environment = {"P4RACK_LOG": "error", **os.environ}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    return Running(process, ready_line(process))


def device_config(run):
    """Configuration that P4Runtime installs: the program's text."""
    return run.artefacts.program.read_bytes()
