"""BMv2's simple_switch_grpc on veth pairs, started for the tests where it is installed."""

import pathlib
import shutil
import subprocess
import tempfile

from p4rack_ptf.platform import Running, by_interfaces, listening

STARTS_A_SWITCH = True
platform_config_update = by_interfaces
#: Target in the description: unit of time and device id follow.
TARGET = "bmv2"
CANNOT = {
    "packets.MetadataMustBeTheProgramsOwn": "simple_switch_grpc takes any metadata for the packet_out header",
}


def missing(run):
    for tool, where in (
        ("simple_switch_grpc", "https://github.com/p4lang/behavioral-model (targets/simple_switch_grpc)"),
        ("p4c-bm2-ss", "https://github.com/p4lang/p4c (backends/bmv2)"),
    ):
        if not shutil.which(tool):
            return f"needs {tool}, get it by building {where}"
    return None


def start(run):
    command = ["simple_switch_grpc", "--no-p4", "--device-id", str(run.device_id)]
    for port, interface in run.switch_ports.items():
        command += ["-i", f"{port}@{interface}"]
    command += ["--log-file", str(run.folder / "bmv2"), "--", "--grpc-server-addr", run.grpc_addr]
    command += ["--cpu-port", str(run.constants["cpu_port"]), "--drop-port", str(run.constants["drop_port"])]
    process = subprocess.Popen(command + ["--priority-queues", "8"], stdout=subprocess.DEVNULL)
    return Running(process, listening(process, run.grpc_addr))


def device_config(run):
    """Configuration that P4Runtime installs: p4c's JSON."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "program.json"
        subprocess.run(["p4c-bm2-ss", "--arch", "v1model", "-o", out, run.artefacts.program], check=True)
        return out.read_bytes()
