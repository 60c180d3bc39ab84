"""A rack or topology as a Mininet network, run by `p4rack mininet` with the system's Python.

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
BINARY = CONFIG["binary"]
READY_S = 20
#: What is shown of a command's output.
OUTPUT_MAX_BYTES = 1 << 20
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
    """A host of a rack: `eth0` towards the switch is the agent's, applications use `app0`."""

    interface = "app0"

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
        agent = self.described["agent"]
        command = [BINARY, "host", "run", agent["rack"], "--name", self.name, "--scheme", agent["scheme"]]
        command += ["--arch", agent["arch"]]
        self.agent = self.popen(command)
        ready(self.agent, f"the agent of {self.name}")
        # The agent has made the interface.
        self.add_gateway()

    def add_gateway(self):
        host = self.described
        if not host["gateway"]:
            return
        if host["gateway_mac"]:
            self.checked(f"ip neighbour replace {host['gateway']} lladdr {host['gateway_mac']} dev {self.interface}")
        self.checked(f"ip route add default via {host['gateway']} dev {self.interface}")

    def checked(self, command):
        said = self.cmd(command).strip()
        if self.cmd("echo $?").strip() != "0":
            raise RuntimeError(f"{self.name}: `{command}` failed: {said}")

    def run_commands(self):
        """The commands of the description. As Mininet's own exercises, what fails is shown and goes on."""
        for command in self.described["commands"]:
            said, failure = self.run_command(command)
            if said or failure:
                output("\n".join([f"{self.name}$ {command}", *filter(None, (said, failure))]) + "\n")

    def run_command(self, command):
        """What a command prints, and what went wrong."""
        limit_s = CONFIG["command_limit_s"]
        # A file, because commands in the background would keep a pipe open.
        with tempfile.TemporaryFile() as file:
            process = self.popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=file, stderr=file)
            try:
                code = process.wait(limit_s)
                failure = f"✗ exit code {code}" if code else None
            except subprocess.TimeoutExpired:
                # `mnexec -d` has made it the leader of a group.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                failure = f"✗ it did not end within {limit_s} s; a command that ends in & goes on in the background"
            file.seek(0)
            return file.read(OUTPUT_MAX_BYTES).decode(errors="replace").strip(), failure

    def terminate(self):
        if self.agent:
            self.agent.terminate()
            self.agent.wait()
            self.agent = None
        super().terminate()


class PlainHost(RackHost):
    """A host whose link is the kernel's."""

    interface = "eth0"

    def start_agent(self):
        host = self.described
        self.checked(f"ip link set eth0 address {host['mac']}")
        # What the switch gets has to be what a wire would carry: frames, not a burst for the interface to cut.
        self.checked("ip link set eth0 gso_max_segs 1 up")
        self.checked(f"ip address add {host['ip']}/{host['prefix']} dev eth0")
        if host["rate_bps"]:
            self.checked(f"tc qdisc add dev eth0 root tbf rate {host['rate_bps']}bit burst 16kb limit 256kb")
        self.add_gateway()
        for ip, mac in host["neighbours"]:
            self.checked(f"ip neighbour replace {ip} lladdr {mac} dev eth0")


class RackSwitch(Switch):
    """A switch, in the namespace that Mininet takes for the machine's own: P4Runtime is reached from its
    shell as from anywhere."""

    def __init__(self, name, described, **params):
        self.described, self.process = described, None
        # Without OpenFlow's id, Mininet takes it from the name, where not all have a number.
        super().__init__(name, dpid=f"{described['device_id']:x}", **params)

    def interfaces(self):
        ports = [port["port"] for port in self.described["ports"]]
        return [word for port in ports for word in ("-i", f"{port}@{port_name(self.name, port)}")]

    def start(self, controllers):
        for port in self.described["ports"]:
            self.cmd(f"ip link set {port_name(self.name, port['port'])} mtu 1600 up")
        self.process = self.launch()

    def stop(self, deleteIntfs=True):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None
        super().stop(deleteIntfs)


class EmbeddedSwitch(RackSwitch):
    """p4rack's own."""

    def launch(self):
        switch = self.described
        command = [BINARY, "switch", "run", "--no-p4", "--stats", "-", "--buffer", str(switch["buffer_bytes"])]
        command += ["--device-id", str(switch["device_id"]), "--grpc-server-addr", switch["grpc_addr"]]
        command += ["--cpu-port", str(switch["cpu_port"]), "--drop-port", str(switch["drop_port"])]
        command += ["--reserve", str(switch["reserved_bytes"]), "--queueing", switch["queueing"]]
        command += ["--time-unit-ns", str(switch["time_unit_ns"])]
        if not ipaddress.ip_address(switch["grpc_addr"].rsplit(":", 1)[0].strip("[]")).is_loopback:
            # Only processes of this namespace reach it, whatever the address.
            command += ["--insecure"]
        for port in switch["ports"]:
            if port["rate_bps"]:
                command += ["--port-rate", f"{port['port']}={port['rate_bps']} b/s"]
            if port["delay_ns"]:
                command += ["--port-delay", f"{port['port']}={port['delay_ns']} ns"]
            if port["loss_percent"]:
                command += ["--port-loss", f"{port['port']}={port['loss_percent']}"]
        process = self.popen(command + self.interfaces())
        ready(process, f"the switch {self.name}")
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
        switch = self.described
        said = tempfile.TemporaryFile()
        process = self.popen(switch["command"], stdout=said, stderr=said)
        deadline = time.monotonic() + READY_S
        while self.cmd(f"ss -Hltn 'sport = :{switch['grpc_addr'].rsplit(':', 1)[1]}'").strip() == "":
            if process.poll() is not None or time.monotonic() > deadline:
                said.seek(0)
                why = said.read().decode(errors="replace").strip()
                raise RuntimeError(f"simple_switch_grpc did not start: {why or 'it said nothing'}")
            time.sleep(0.1)
        return process

    def lost(self):
        return None


def port_name(switch, port):
    return f"{switch}-eth{port}"


def build():
    # Mininet's settings of the whole machine (limits, buffers) are not needed here.
    Mininet.inited = True
    net = Mininet(controller=None, build=False)
    kinds = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch}
    for described in CONFIG["switches"]:
        net.addSwitch(described["name"], cls=kinds[described["kind"]], described=described)
    for described in CONFIG["hosts"]:
        net.addHost(described["name"], cls=RackHost if described["agent"] else PlainHost, described=described)
    for (a, a_port), (b, b_port) in CONFIG["links"]:
        if b_port is None:
            net.addLink(net.get(b), net.get(a), intfName1="eth0", port2=a_port)
        else:
            net.addLink(net.get(a), net.get(b), port1=a_port, port2=b_port)
    net.build()
    net.start()
    deploy = [BINARY, "deploy", *CONFIG["deploy"]]
    done = subprocess.run(deploy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"installing the program: {done.stdout.decode().strip()}")
    for host in net.hosts:
        host.start_agent()
    for host in net.hosts:
        host.run_commands()
    return net


def incast(net):
    """All senders to one receiver, faster than its link. Checks the promises."""
    workload, seconds, switch = CONFIG["workload"], CONFIG["duration_s"], net.switches[0]
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
    output(f"incast: {len(senders)} senders to {receiver.name} under {workload['scheme']}, {seconds} s\n")
    output(f"  offered {offered / 1e6:.1f} MB, arrived {sum(by_source.values()) / 1e6:.1f} MB\n")
    output(f"  lost in the switch: {lost_text(lost)}\n")
    silent = [sender.name for sender in senders if not by_source.get(sender.IP())]
    if silent:
        output(f"✗ nothing arrived from {', '.join(silent)}\n")
    promised = workload["scheme"] != "l2"
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


def test(net):
    """Pings between all hosts; in a rack, then an incast. The exit code."""
    loss = net.pingAll(timeout="2")
    if loss:
        output(f"✗ {loss:.0f} % of the pings were not answered\n")
    fine = not loss
    if CONFIG["workload"]:
        fine = incast(net) and fine
    output("passed\n" if fine else "failed\n")
    return 0 if fine else 1


def main():
    setLogLevel("info" if sys.stdin.isatty() or not CONFIG["test"] else "output")
    # Hosts' output is this command's result, not its log.
    lg.handlers[0].setStream(sys.stdout)
    net = None
    try:
        net = build()
        if CONFIG["test"]:
            return test(net)
        addresses = ", ".join(f"{switch['name']} {switch['grpc_addr']}" for switch in CONFIG["switches"])
        first = CONFIG["switches"][0]["name"]
        info(f"*** P4Runtime inside: {addresses}; `{first} p4rack …` reaches it, `h1 CMD` runs CMD on a host\n")
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
