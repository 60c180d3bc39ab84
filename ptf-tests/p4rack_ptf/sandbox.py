"""A network namespace of the tests' own, and cables in it.

Nothing here can reach the machine's network or be in the way of another program's ports.
"""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import subprocess

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def enter_namespace():
    """Moves this process into a new network namespace. Returns why not, or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET if uid == 0 else CLONE_NEWUSER | CLONE_NEWNET
    if libc.unshare(flags) != 0:
        why = os.strerror(ctypes.get_errno())
        return f"needs a network namespace ({why}), get it by running as root or allowing user namespaces"
    if uid != 0:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    set_up("lo")
    return None


def set_up(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", interface.encode(), 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", interface.encode(), flags | IFF_UP))


def no_ipv6(interface):
    """The kernel's own chatter would come between the tests' frames."""
    pathlib.Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")


def cable(one, other):
    """A pair of interfaces, both up."""
    subprocess.run(["ip", "link", "add", one, "type", "veth", "peer", "name", other], check=True)
    for end in (one, other):
        no_ipv6(end)
        set_up(end)
