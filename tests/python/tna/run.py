"""Runs open-p4studio's PTF tests, unchanged and with its own client, against the embedded switch.

Each test class gets a namespace of its own, with the interfaces that it expects, and a switch that has just started.
The tests' imports are made in a scratch folder from the files of FOLDER, a copy of open-p4studio; nothing stays.

    run.py FOLDER --binary p4rack [--only tna_register] [--keep LOGS]
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Programs whose tests need no tables of the device but device_configuration.
CLASS_A = """
t2na_counter_true_egress_accounting tna_action_profile tna_alpm tna_bridged_md tna_checksum tna_counter tna_custom_hash
tna_digest tna_dkm tna_exact_match tna_field_slice tna_idletimeout tna_lpm_match tna_meter_bytecount_adjust
tna_meter_lpf_wred tna_operations tna_port_metadata tna_port_metadata_extern tna_ports tna_proxy_hash tna_pvs tna_random
tna_range_match tna_register tna_resubmit tna_symmetric_hash tna_ternary_match tna_timestamp
""".split()
# Programs whose tests need other tables of the device, or install programs.
CLASS_B = """
bri_grpc_error bri_handle selector_resize tna_32q_2pipe tna_32q_multiprogram tna_action_selector tna_dyn_hashing tna_mirror
tna_multicast tna_pktgen
""".split()
# Folder of tests that install programs. They begin with one that runs.
INSTALLING = "bri_set_forwarding_pipeline"
FIRST = "tna_exact_match"
CLASS_B += [f"{INSTALLING}/{part}" for part in """
hitless hitless_negative independent_client multiple_programs single_program warminit
""".split()]
# Programs for Tofino 2.
SECOND = ["t2na_counter_true_egress_accounting"]
# Pipes whose ports loop.
INTERNAL = {"tna_32q_2pipe": "1,3"}
# Tests that need features that no software switch has, or cannot succeed in their form.
EXCEPTIONS = {
    "tna_counter.IndirectCounterLatencyTest": "Thrift services of the driver's process",
    "tna_multicast.TestLag": "Thrift services of the driver's process",
    "tna_exact_match.ExactMatchTimeoutTest": "a server that takes longer than 2 s for 200,000 entries",
    f"{INSTALLING}/hitless_negative.HitlessKeyLessTableNegative": "a MAC address that ends with a port above 255",
    f"{INSTALLING}/hitless_negative.HitlessPVSNegative": "a value set that forgets its entries (its own comment says so)",
    "tna_32q_multiprogram": "two programs together, each in pipes of its own",
    f"{INSTALLING}/multiple_programs": "two programs together, each in pipes of its own",
}
# Programs and tests that fail here, and their missing requirements. Any other failure makes the run
# fail.
KNOWN = {
    "t2na_counter_true_egress_accounting": "counters of the length with which a frame leaves",
    "tna_idletimeout.IdleTimeoutEnableDisable": "times to live that stand still while `IdleTimeout` is disabled",
    "bri_handle": "snapshot.cfg",
    f"{INSTALLING}/hitless_negative.HitlessTnaExactMatchEntrySingleScopeNegative": "luck: a random port with another one behind it",
    f"{INSTALLING}/hitless_negative.HitlessDynHashingNegative": "a hash `hash_1`, which the program that it installs does not have",
    f"{INSTALLING}/hitless_negative.HitlessTnaTernaryMatchNegative": "luck: random masks that match no other packet",
}
# Least percentage of a class that has to pass if all of its tests were run.
LEAST = {"A": 95, "B": 60}
PROGRAMS = "pkgsrc/p4-examples/p4_16_programs"
CPU_PORT = 64
PIPE_SHIFT = 7
# Properties of a port that tests read.
SAID = ["speed", "fec", "conn_id", "chnl_id", "front_port"]
# Seconds for a test class.
PATIENCE = 100
# The same for those that send many requests one by one.
LONG = {"selector_resize.": 1800, "bri_grpc_error.": 1800, "tna_action_selector.": 600, "tna_pktgen.": 300}
LONG[f"{INSTALLING}/"] = 900
# Modules of the driver's process that tests import and do not use.
STUBS = ["pal_rpc", "mc_pd_rpc", "conn_mgr_pd_rpc", "res_pd_rpc"]


def fail(message):
    sys.exit(f"tna-examples: {message}")


def prepare(folder, scratch):
    """Makes the packages that the tests import, and returns the folders to import from."""
    source = folder / "pkgsrc/bf-drivers/src/bf_rt"
    client = source / "bfruntime_grpc_client/python"
    proto = source / "proto/bfruntime.proto"
    tests = folder / "pkgsrc/ptf-modules/ptf-utils"
    pktpy = folder / "pkgsrc/ptf-modules/bf-pktpy"
    for needed in [client / "client.py", proto, tests / "bfruntime_client_base_tests.py", pktpy, folder / PROGRAMS]:
        if not needed.exists():
            fail(f"{needed} is missing; give a copy of https://github.com/p4lang/open-p4studio")
    package = scratch / "tofino/bfrt_grpc"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for name in ["client.py", "info_parse.py"]:
        shutil.copy(client / name, package)
    import google.rpc.status_pb2
    from grpc_tools import protoc

    includes = [proto.parent, Path(google.rpc.status_pb2.__file__).parents[2], Path(protoc.__file__).parent / "_proto"]
    command = [sys.executable, "-m", "grpc_tools.protoc", *(f"-I{include}" for include in includes)]
    command += [f"--python_out={package}", f"--grpc_python_out={package}", str(proto)]
    if subprocess.run(command).returncode != 0:
        fail("the client's messages can't be made")
    stub = package / "bfruntime_pb2_grpc.py"
    stub.write_text(stub.read_text().replace("import bfruntime_pb2 as", "from . import bfruntime_pb2 as"))
    utilities = scratch / "p4testutils"
    shutil.copytree(tests, utilities)
    (utilities / "__init__.py").touch()
    for name in STUBS:
        (scratch / name).mkdir()
        for module in ["__init__", "ttypes", name.removesuffix("_pd_rpc")]:
            (scratch / name / f"{module}.py").touch()
    # As their script orders them.
    return [utilities, scratch / "tofino", package, scratch, pktpy]


def ports_of(name, tests):
    """Ports of the device, each with the numbers of both interfaces, the switch's and the tests', and properties that tests read."""
    described = tests / ("ports_tof2.json" if name in SECOND else "ports.json")
    if described.exists():
        ports = json.loads(described.read_text())["PortToVeth"]
        numbers = ["device_port", "veth1", "veth2"]
        return [(*(port[name] for name in numbers), {k: v for k, v in port.items() if k in SAID}) for port in ports]
    return [(port, 2 * port, 2 * port + 1, {}) for port in range(17)] + [(CPU_PORT, 250, 251, {})]


def sources(folder):
    """Program name, its P4 file, and the folder of its tests, for each test.py."""
    for path in sorted((folder / PROGRAMS).glob("*/test.py")):
        name = path.parent.name
        text = path.parent / f"{name}.p4"
        yield name, text if text.exists() else None, path.parent
    for path in sorted((folder / PROGRAMS / INSTALLING).glob("*/test.py")):
        yield f"{INSTALLING}/{path.parent.name}", folder / PROGRAMS / FIRST / f"{FIRST}.p4", path.parent


def compiled(binary, folder, scratch):
    """Makes the files that tests that install programs read, as the driver's compiler would. Returns their folder."""
    install = scratch / "install"
    for name, text, _ in sources(folder):
        if text is None or name not in CLASS_A + CLASS_B or "/" in name or name in SECOND:
            continue
        program = install / f"share/tofinopd/{name}"
        (program / "pipe").mkdir(parents=True)
        (program / "pipe/context.json").write_text("{}")
        for command, made in [("bfrt-info", "bf-rt.json"), ("preprocess", "pipe/tofino.bin")]:
            run = [str(binary), "p4", command, str(text), *includes(folder, 1)]
            (program / made).write_bytes(subprocess.run(run, capture_output=True, check=True).stdout)
    return install


def includes(folder, generation):
    return ["-I", str(folder / PROGRAMS), "-D", f"__TARGET_TOFINO__={generation}"]


class Namespace:
    """A namespace with pairs of interfaces."""

    def __init__(self, name, ports):
        self.name = name
        self.run("ip", "netns", "add", name)
        self.inside("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        lines = ["link set lo up"]
        for _, ours, theirs, _ in ports:
            lines.append(f"link add veth{ours} mtu 10240 type veth peer name veth{theirs} mtu 10240")
            lines += [f"link set veth{ours} up", f"link set veth{theirs} up"]
        self.inside("ip", "-batch", "-", input="\n".join(lines), text=True)

    def run(self, *command, **options):
        return subprocess.run(command, check=True, **options)

    def inside(self, *command, **options):
        return self.run("ip", "netns", "exec", self.name, *command, **options)

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name])


def start(binary, namespace, name, program, folder, ports, log):
    command = ["ip", "netns", "exec", namespace.name, str(binary), "switch", "run", str(program)]
    command += includes(folder, 2 if name in SECOND else 1)
    command += ["--bfrt-addr", "127.0.0.1:50052", "--pipes", "4"]
    if name in INTERNAL:
        command += ["--internal-pipes", INTERNAL[name]]
    for port, ours, *_ in ports:
        # Frames that leave by an internal pipe come in again.
        if str(port >> PIPE_SHIFT) not in INTERNAL.get(name, "").split(","):
            command += ["-i", f"{port}@veth{ours}"]
    switch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    line = switch.stdout.readline()
    return switch if line.startswith("ready") else (switch.wait() and None)


def ptf(python_path, tests, name, ports):
    command = [sys.executable, shutil.which("ptf", path=str(Path(sys.executable).parent)), "--test-dir", str(tests)]
    for path in python_path:
        command += ["--pypath", str(path)]
    command += ["-pmm", "bf_pktpy.ptf.packet_pktpy", "--socket-recv-size", "10240"]
    for port, _, theirs, said in ports:
        command += ["--interface", ";".join([f"0-{port}@veth{theirs}", *(f"{k}={v}" for k, v in said.items())])]
    arch = "tofino2" if name in SECOND else "tofino"
    given = dict(arch=arch, p4_name=name.split("/")[0], target="asic-model", use_pi="False", traffic_gen="None", test_seed="None")
    given |= dict(num_pipes="4", pkt_size="100", port_mode="100g", counter_byte_adjust="0", reboot="none")
    given |= dict(thrift_server="localhost", grpc_server="localhost", bfrt_grpc_port="50052", config_file="filename")
    said = ";".join(f"{key}='{value}'" for key, value in given.items()) + ";setup=False;cleanup=False"
    return command + ["--test-params", said]


def commands(folder, scratch):
    """The scripts with which tests take interfaces down, in a folder of commands."""
    found = scratch / "commands"
    found.mkdir()
    for script in (folder / "pkgsrc/ptf-modules/ptf-utils").glob("port_if*"):
        shutil.copy(script, found / script.stem)
        (found / script.stem).chmod(0o755)
    return found


def environment(python_path, commands=None):
    paths = [str(path) for path in python_path]
    path = os.environ["PATH"] if commands is None else f"{commands}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(paths)}


class Runner:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.paths = prepare(args.folder, scratch)
        self.install = compiled(args.binary, args.folder, scratch)
        self.commands = commands(args.folder, scratch)
        self.logs = args.keep or scratch / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def tests_of(self, name, tests):
        command = ptf(self.paths, tests, name, ports_of(name, tests)) + ["--list-test-names"]
        listed = subprocess.run(
            command, env=environment(self.paths), capture_output=True, text=True, cwd=self.scratch, timeout=60
        )
        found = re.findall(r"^\s*(test\.\w+)\s*$", listed.stdout + listed.stderr, re.MULTILINE)
        if not found:
            (self.logs / f"{name.replace('/', '.')}.list").write_text(listed.stdout + listed.stderr)
        return [test.split(".")[1] for test in found]

    def one(self, job):
        number, name, program, tests, test = job
        full = f"{name}.{test}"
        log = self.logs / f"{full.replace('/', '.')}.log"
        ports = ports_of(name, tests)
        namespace = Namespace(f"tna{os.getpid()}-{number}", ports)
        switch = None
        try:
            with log.open("w") as file:
                switch = start(self.args.binary, namespace, name, program, self.args.folder, ports, file)
                if switch is None:
                    return "refused", self.reason(log)
                command = ["ip", "netns", "exec", namespace.name, *ptf(self.paths, tests, name, ports), f"test.{test}"]
                work = self.scratch / "work" / full
                work.mkdir(parents=True)
                (work / "install").symlink_to(self.install)
                child = subprocess.Popen(
                    command, env=environment(self.paths, self.commands), stdout=file, stderr=file, cwd=work, start_new_session=True
                )
                patience = next((s for part, s in LONG.items() if full.startswith(part)), PATIENCE)
                try:
                    code = child.wait(timeout=patience)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
                    return "failed", f"not done within {patience} s"
            return ("passed", "") if code == 0 else ("failed", self.reason(log))
        finally:
            if switch is not None:
                switch.send_signal(signal.SIGTERM)
                switch.wait()
            namespace.close()

    def reason(self, log):
        """The last line that looks like an error."""
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        errors = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception|error)\b.*:|\s*details = ", line)]
        return (errors[-1] if errors else lines[-1] if lines else "")[:160]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a copy of open-p4studio")
    parser.add_argument("--binary", type=Path, required=True, help="p4rack")
    parser.add_argument("--only", default="", help="programs or test classes whose name contains one of these, with commas")
    parser.add_argument("--keep", type=Path, help="folder for the logs [default: none are kept]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests in parallel")
    args = parser.parse_args()
    args.folder, args.binary = args.folder.resolve(), args.binary.resolve()
    if os.geteuid() != 0:
        fail("namespaces and interfaces need root")
    with tempfile.TemporaryDirectory(prefix="tna-examples-") as scratch:
        runner = Runner(args, Path(scratch))
        jobs = []
        for name, program, tests in sources(args.folder):
            if name not in CLASS_A + CLASS_B or program is None:
                continue
            for test in runner.tests_of(name, tests) or ["(its tests can't be read)"]:
                if any(part in f"{name}.{test}" for part in args.only.split(",")):
                    jobs.append((len(jobs), name, program, tests, test))
        began = time.monotonic()
        results = []
        with ThreadPoolExecutor(args.jobs) as pool:
            for job, (state, why) in zip(jobs, pool.map(runner.one, jobs)):
                _, name, _, _, test = job
                results.append((name, test, state))
                print(f"{state:8} {name}.{test}{'  ' + why if why else ''}", flush=True)
        is_enough = summary(results, time.monotonic() - began, whole=not args.only)
    failed = [(name, test) for name, test, state in results if state != "passed"]
    surprises = [f"{name}.{test}" for name, test in failed if not (among(EXCEPTIONS, name, test) or among(KNOWN, name, test))]
    for surprise in surprises:
        print(f"unexpected: {surprise} is none of those that are known to fail")
    sys.exit(bool(surprises) or not is_enough)


def among(listed, name, test):
    return name in listed or f"{name}.{test}" in listed


def summary(results, seconds, whole):
    """Prints the counts. Whether enough passed, of a run of all tests."""
    is_enough = True
    for title, names in [("A: faithful data plane", CLASS_A), ("B: further tables of the device", CLASS_B)]:
        own = [result for result in results if result[0] in names]
        counted = [state for name, test, state in own if not among(EXCEPTIONS, name, test)]
        passed = counted.count("passed")
        if counted:
            share = 100 * passed / len(counted)
            print(f"class {title}: {passed} of {len(counted)} pass ({share:.0f} %), {len(own) - len(counted)} excepted")
            if whole and share < LEAST[title[0]]:
                print(f"class {title[0]}: less than {LEAST[title[0]]} %")
                is_enough = False
    for full, why in EXCEPTIONS.items():
        if any(full in (f"{name}.{test}", name) for name, test, _ in results):
            print(f"excepted: {full} needs {why}")
    for name, test, state in results:
        if among(KNOWN, name, test):
            print(f"{'passes now' if state == 'passed' else 'known'}: {name}.{test}")
    print(f"{len(results)} tests in {seconds:.0f} s")
    return is_enough


if __name__ == "__main__":
    main()
