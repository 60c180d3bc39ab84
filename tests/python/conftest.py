"""A switch in a network namespace of the tests' own.

The test process moves into a new network namespace, so that nothing here can reach the machine's
network or be in the way of another program's ports. The switch's ports are TAP devices: what a test
writes to one arrives at the switch, what it reads from one the switch has sent.
"""

import fcntl
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import time

import pytest

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ptf-tests"))

from p4rack_ptf.sandbox import enter_namespace, no_ipv6, set_up  # noqa: E402

PROGRAM = ROOT / "switchd/tests/p4runtime/rig.p4"
ADDR = "127.0.0.1:9559"
PORTS = (1, 2)


# gRPC's threads would stay behind: before anything is imported that starts one.
NO_NAMESPACE = enter_namespace()


class Port:
    """The far end of one of the switch's ports."""

    def __init__(self, interface):
        self.interface = interface
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", interface.encode(), IFF_TAP | IFF_NO_PI))
        no_ipv6(interface)
        set_up(interface)

    def send(self, frame):
        os.write(self.fd, frame)

    def receive(self, timeout_s=2.0):
        """The next frame, or None."""
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return None
        return os.read(self.fd, 65536)


class Switch:
    """A running `p4rack switch` without a program."""

    def __init__(self, binary):
        self.binary = binary
        self.ports = {number: Port(f"port{number}") for number in PORTS}
        command = [binary, "switch", "run", "--no-p4", "--grpc-server-addr", ADDR]
        for number, port in self.ports.items():
            command += ["-i", f"{number}@{port.interface}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline()
        assert ready.startswith("ready"), f"the switch said {ready!r}"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=10)
        self.process.stdout.close()
        for port in self.ports.values():
            os.close(port.fd)
        return status


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("P4RACK_BIN")
    if not path:
        pytest.fail("set P4RACK_BIN to the p4rack binary")
    return path


@pytest.fixture(scope="session")
def p4info(binary, tmp_path_factory):
    """File with the test program's P4Info."""
    path = tmp_path_factory.mktemp("p4info") / "rig.p4info.txtpb"
    subprocess.run([binary, "p4", "info", str(PROGRAM), "-o", str(path)], check=True)
    return path


@pytest.fixture
def switch(binary):
    if NO_NAMESPACE:
        pytest.skip(NO_NAMESPACE)
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("needs /dev/net/tun, get it by: modprobe tun")
    running = Switch(binary)
    yield running
    assert running.stop() == 0


def eventually(condition, timeout_s=5.0):
    """Waits until `condition()` is true, and returns whether it came to that."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False
