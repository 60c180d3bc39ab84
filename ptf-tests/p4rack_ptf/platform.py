"""Shared by the platform files. A platform file is one of PTF's, and has besides

- `missing(run)`: a missing requirement, or None;
- `start(run)`: a `Running` switch, where `STARTS_A_SWITCH`;
- `device_config(run)`: the bytes that P4Runtime installs;
- `TARGET`, where the description's target has to be another;
- `CPU_PORTS`, by architecture, where the controller's packets pass through an interface of the CPU port;
- `interfaces(run)`, where the switch has its own: sets `run.test_ports` instead of `run.switch_ports` being made;
- `CANNOT`, tests that this target can't pass by its nature, and why: they are skipped.
"""

import os
import signal
import socket
import subprocess
import time

READY_S = 20
#: Where a switch serves BFRuntime.
BFRT_ADDR = "127.0.0.1:50052"


class NotStarted(Exception):
    """A switch that did not come up."""


class Running:
    """A switch's process, ended by SIGTERM."""

    def __init__(self, process, problem):
        self.process = process
        if problem:
            self.stop()
            raise NotStarted(problem)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Chain:
    """Processes that make up a switch, the last one ended first."""

    def __init__(self):
        self.parts = []

    def add(self, process, wait):
        """Adds a process, which is ready when `wait` reports no problem."""
        try:
            self.parts.append(Running(process, wait(process)))
        except NotStarted:
            self.stop()
            raise

    def stop(self):
        while self.parts:
            self.parts.pop().stop()


def gateway(run, cpu_interface, *options):
    """Starts P4Runtime in front of the BFRuntime server at `BFRT_ADDR`."""
    command = [run.binary, "gateway", "--bfrt-addr", BFRT_ADDR, "--grpc-server-addr", run.grpc_addr]
    command += ["--device-id", str(run.device_id), "--cpu-interface", cpu_interface, *options]
    # Warnings that the tests provoke are expected.
    environment = {"P4RACK_LOG": "error", **os.environ}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def by_interfaces(config):
    """PTF's port map: exactly the interfaces of the command line."""
    config["port_map"] = {(device, port): interface for device, port, interface in config["interfaces"]}


def ready_line(process):
    """Waits for a line that starts with "ready" on standard output. Returns the problem, or None."""
    line = process.stdout.readline()
    return None if line.startswith("ready") else f"{process.args[0]} said {line!r} instead of ready"


def listening(process, addr):
    """Waits until something listens. Returns the problem, or None."""
    host, port = addr.rsplit(":", 1)
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return f"{process.args[0]} ended with {process.returncode}"
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return None
        except OSError:
            time.sleep(0.05)
    return f"{process.args[0]} does not listen on {addr} after {READY_S} s"
