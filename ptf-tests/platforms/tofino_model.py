"""Tofino's model. The suite installs programs over P4Runtime and the model takes them over BFRuntime, so the suite
only says what is missing; the port map is the model's."""

import shutil

from p4rack_ptf.platform import by_interfaces

STARTS_A_SWITCH = True
platform_config_update = by_interfaces
SDE = "the Tofino SDE, get it by building https://github.com/p4lang/open-p4studio"


def missing(run):
    for tool in ("bf_switchd", "tofino-model"):
        if not shutil.which(tool):
            return f"needs {tool} of {SDE}"
    return "needs tests that install over BFRuntime, get them by a version of p4rack that has them"
