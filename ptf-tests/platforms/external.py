"""A switch that was started elsewhere; the tests reach its ports by `--port-map`."""

from p4rack_ptf.platform import by_interfaces

STARTS_A_SWITCH = False
platform_config_update = by_interfaces


def missing(run):
    return None if run.test_ports else "needs the interfaces of the switch's ports, get it by --port-map 1@eth1 …"


def device_config(run):
    """Configuration that P4Runtime installs: the program's text, or the file of `--device-config`."""
    return (run.device_config or run.artefacts.program).read_bytes()
