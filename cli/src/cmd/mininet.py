"""A rack as a Mininet network, run by `p4rack mininet` with the system's Python.

Everything lives in network, mount and process namespaces of its own: when the first process in them
ends, however it ends, the kernel takes all the rest away.
"""

import ctypes
import ipaddress
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
CONFIG = json.loads(sys.argv[1])
BINARY, RACK, SWITCH = CONFIG["binary"], CONFIG["rack"], CONFIG["switch"]
READY_S = 20
LEAD_S, TAIL_S = 1.0, 1.0
SINK_PORT = 5001
#: Reasons of the traffic manager.
NO_ROOM = ("buffer_full", "best_effort_full", "best_effort_share", "queue_limit")
#: Load that the hosts' links offer, in percent of a receiver's link, unless the description sets it.
LOAD_PERCENT = 200


def fail(message, code=1):
    sys.stderr.write(f"error: {message}\n")
    sys.exit(code)


def enter_namespaces():
    """Moves into new namespaces; only a child of this process is inside all of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if uid else 0)
    if libc.unshare(flags) != 0:
        why = os.strerror(ctypes.get_errno())
        fail(f"no namespaces: {why}; run as root, or allow user namespaces (see `p4rack doctor`)")
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def supervise(child):
    """Waits for the child and passes on signals to end. Returns its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def become_first():
    """The first process in the namespaces: dies with its parent, sees its own processes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    for command in ("mount --make-rprivate /", "mount -t proc proc /proc", "ip link set lo up"):
        subprocess.run(command.split(), check=True)
    # Neighbour discovery would be noise on every link. A kernel without IPv6 has nothing to switch off.
    for which in ("all", "default"):
        quietly_write(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", "1")


def quietly_write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError:
        pass


enter_namespaces()
CHILD = os.fork()
if CHILD:
    sys.exit(supervise(CHILD))
become_first()

try:
    from mininet.cli import CLI
    from mininet.log import info, lg, output, setLogLevel
    from mininet.net import Mininet
    from mininet.node import Host, Switch
except ImportError:
    fail("this Python has no Mininet; get it by: sudo apt-get install --no-install-recommends mininet")


def ready(process, what):
    """Waits for the line with which p4rack's programs say that they are ready."""
    line = process.stdout.readline().decode()
    if not line.startswith("ready"):
        process.terminate()
        problem = process.stderr.read().decode().strip() if process.stderr else line
        raise RuntimeError(f"{what} did not start: {problem or line}")


class RackHost(Host):
    """A host of the rack: `eth0` towards the switch is the agent's, applications use `app0`."""

    def __init__(self, name, described, **params):
        self.described, self.agent = described, None
        super().__init__(name, **params)

    def config(self, **_params):
        # Addresses are the agent's to set, on the interface that it makes.
        self.cmd("ip link set lo up; sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
        return {}

    def IP(self, intf=None):
        return self.described["ip"]

    def MAC(self, intf=None):
        return self.described["mac"]

    def start_agent(self):
        command = [BINARY, "host", "run", RACK, "--name", self.name, "--scheme", CONFIG["scheme"]]
        self.agent = self.popen(command)
        ready(self.agent, f"the agent of {self.name}")

    def terminate(self):
        if self.agent:
            self.agent.terminate()
            self.agent.wait()
            self.agent = None
        super().terminate()


class RackSwitch(Switch):
    """The rack's switch, in the namespace that Mininet takes for the machine's own: P4Runtime is
    reached from its shell as from anywhere."""

    def __init__(self, name, hosts, **params):
        self.hosts, self.process = hosts, None
        super().__init__(name, **params)

    def interfaces(self):
        return [word for host in self.hosts for word in ("-i", f"{host['port']}@{port_name(self.name, host)}")]

    def start(self, controllers):
        for host in self.hosts:
            self.cmd(f"ip link set {port_name(self.name, host)} mtu 1600 up")
        self.process = self.launch()
        deploy = [BINARY, "deploy", RACK, "--scheme", CONFIG["scheme"], "--to", CONFIG["kind"]]
        done = subprocess.run(deploy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise RuntimeError(f"installing the program: {done.stdout.decode().strip()}")

    def stop(self, deleteIntfs=True):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None
        super().stop(deleteIntfs)


class EmbeddedSwitch(RackSwitch):
    """p4rack's own."""

    def launch(self):
        command = [BINARY, "switch", "run", "--no-p4", "--stats", "-", "--buffer", str(SWITCH["buffer_bytes"])]
        command += ["--device-id", str(SWITCH["device_id"]), "--grpc-server-addr", SWITCH["grpc_addr"]]
        command += ["--cpu-port", str(SWITCH["cpu_port"]), "--drop-port", str(SWITCH["drop_port"])]
        if CONFIG["scheme"] != "l2":
            # Else best effort could leave no room for what was reserved.
            command += ["--reserve", str(SWITCH["reserved_bytes"])]
        if not ipaddress.ip_address(SWITCH["grpc_addr"].rsplit(":", 1)[0].strip("[]")).is_loopback:
            # Only processes of this namespace reach it, whatever the address.
            command += ["--insecure"]
        for host in self.hosts:
            command += ["--port-rate", f"{host['port']}={host['rate_bps']} b/s"]
        process = self.popen(command + self.interfaces())
        ready(process, "the switch")
        return process

    def lost(self):
        """Frames that the switch had no room for, by reason. The program's drops are its decision:
        unsolicited frames beyond T come again at their slot."""
        self.process.send_signal(signal.SIGUSR1)
        drops = json.loads(self.process.stdout.readline())["drops"]
        return {reason: count for reason, count in drops.items() if reason in NO_ROOM}


class Bmv2Switch(RackSwitch):
    """BMv2's simple_switch_grpc. It has no rates in bits a second: ports are as fast as it is."""

    def launch(self):
        command = ["simple_switch_grpc", "--no-p4", "--device-id", str(SWITCH["device_id"])]
        command += self.interfaces() + ["--", "--grpc-server-addr", SWITCH["grpc_addr"], "--priority-queues", "8"]
        command += ["--cpu-port", str(SWITCH["cpu_port"]), "--drop-port", str(SWITCH["drop_port"])]
        said = tempfile.TemporaryFile()
        process = self.popen(command, stdout=said, stderr=said)
        deadline = time.monotonic() + READY_S
        while self.cmd(f"ss -Hltn 'sport = :{SWITCH['grpc_addr'].rsplit(':', 1)[1]}'").strip() == "":
            if process.poll() is not None or time.monotonic() > deadline:
                said.seek(0)
                why = said.read().decode(errors="replace").strip()
                raise RuntimeError(f"simple_switch_grpc did not start: {why or 'it said nothing'}")
            time.sleep(0.1)
        return process

    def lost(self):
        return None


def port_name(switch, host):
    return f"{switch}-eth{host['port']}"


def build():
    # Mininet's settings of the whole machine (limits, buffers) are not needed here.
    Mininet.inited = True
    net = Mininet(controller=None, build=False)
    kinds = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch}
    switch = net.addSwitch("s1", cls=kinds[CONFIG["kind"]], hosts=CONFIG["hosts"])
    for described in CONFIG["hosts"]:
        host = net.addHost(described["name"], cls=RackHost, described=described)
        net.addLink(host, switch, intfName1="eth0", port2=described["port"])
    net.build()
    net.start()
    for host in net.hosts:
        host.start_agent()
    return net, switch


def incast(net, switch):
    """All senders to one receiver, faster than its link. Checks the promises."""
    workload, seconds = CONFIG["workload"], CONFIG["duration_s"]
    receiver = net.get(workload["receiver"])
    senders = [net.get(name) for name in workload["senders"]]
    rate = receiver.described["rate_bps"] * workload.get("load_percent", LOAD_PERCENT) // 100 // len(senders)
    start = time.monotonic_ns() + int(LEAD_S * 1e9)
    span = ["--start-ns", str(start), "--duration-ns"]
    at = f"{receiver.IP()}:{SINK_PORT}"
    sink_span = span + [str(int((seconds + TAIL_S) * 1e9))]
    sink = receiver.popen([BINARY, "workload", "udp-sink", "--bind", at, *sink_span])
    sending = []
    for number, sender in enumerate(senders):
        command = [BINARY, "workload", "udp-send", "--to", at, "--rate-bps", str(rate), "--seed", str(number)]
        sending.append(sender.popen(command + span + [str(int(seconds * 1e9))]))
    reports = [program_result(process, f"sender {sender.name}") for process, sender in zip(sending, senders)]
    received = program_result(sink, "the sink")
    lost = switch.lost()
    by_source = {source: sum(line["bytes"]) for source, line in received["by_source"].items()}
    offered = sum(sum(report["offered"]["bytes"]) for report in reports)
    output(f"incast: {len(senders)} senders to {receiver.name} under {CONFIG['scheme']}, {seconds} s\n")
    output(f"  offered {offered / 1e6:.1f} MB, arrived {sum(by_source.values()) / 1e6:.1f} MB\n")
    output(f"  lost in the switch: {lost_text(lost)}\n")
    silent = [sender.name for sender in senders if not by_source.get(sender.IP())]
    if silent:
        output(f"✗ nothing arrived from {', '.join(silent)}\n")
    promised = CONFIG["scheme"] != "l2"
    if promised and lost:
        output("✗ reservations promise that nothing is lost in the switch\n")
    return not silent and not (promised and lost)


def lost_text(lost):
    if lost is None:
        return "not known of this switch"
    return ", ".join(f"{count} frames for {reason}" for reason, count in lost.items()) or "nothing"


def program_result(process, what):
    text, problem = process.communicate(timeout=CONFIG["duration_s"] + LEAD_S + TAIL_S + 30)
    if process.returncode:
        raise RuntimeError(f"{what} failed: {problem.decode().strip()}")
    return json.loads(text)


def test(net, switch):
    """Pings between all hosts, then an incast. The exit code."""
    loss = net.pingAll(timeout="2")
    if loss:
        output(f"✗ {loss:.0f} % of the pings were not answered\n")
    fine = incast(net, switch) and not loss
    output("passed\n" if fine else "failed\n")
    return 0 if fine else 1


def main():
    setLogLevel("info" if sys.stdin.isatty() or not CONFIG["test"] else "output")
    # Hosts' output is this command's result, not its log.
    lg.handlers[0].setStream(sys.stdout)
    net = None
    try:
        net, switch = build()
        if CONFIG["test"]:
            return test(net, switch)
        info("*** P4Runtime at %s inside; `s1 p4rack …` reaches it, `h1 CMD` runs CMD on a host\n" % SWITCH["grpc_addr"])
        CLI(net)
        return 0
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if net:
            net.stop()


sys.exit(main())
