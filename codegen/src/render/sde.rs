//! Files of a rack for Tofino's software (SDE) beside the program: the driver's configuration, the ports of the chip
//! and, for its model, the interfaces in place of ports.

use super::program::program_name;
use crate::arch::Arch;
use crate::rack::Rack;
use crate::rack::pipes::pipe_of;
use serde_json::{Value, json};

/// Speeds of a port, in bits per second, with the driver's names.
const SPEEDS: [(u64, &str); 8] = [
    (1_000_000_000, "BF_SPEED_1G"),
    (10_000_000_000, "BF_SPEED_10G"),
    (25_000_000_000, "BF_SPEED_25G"),
    (40_000_000_000, "BF_SPEED_40G"),
    (50_000_000_000, "BF_SPEED_50G"),
    (100_000_000_000, "BF_SPEED_100G"),
    (200_000_000_000, "BF_SPEED_200G"),
    (400_000_000_000, "BF_SPEED_400G"),
];
/// The fastest port of the first generation.
const TNA_BPS_MAX: u64 = 100_000_000_000;
/// Number of the model's interface behind the port of the CPU; its scripts expect this one.
const CPU_VETH: u64 = 250;

/// The port of the CPU at this generation of the chip.
pub fn cpu_port(arch: Arch) -> u16 {
    if arch == Arch::T2na { 2 } else { 64 }
}

/// The driver's name of a port's rate; `None` if ports of this generation don't have it.
pub fn speed(arch: Arch, rate_bps: u64) -> Option<&'static str> {
    let exists = arch == Arch::T2na || rate_bps <= TNA_BPS_MAX;
    SPEEDS.iter().find(|(rate, _)| exists && *rate == rate_bps).map(|(_, name)| *name)
}

/// The driver's name of the error correction that a port of a rate begins with: none, but for the signals that need one.
pub fn fec(rate_bps: u64) -> &'static str {
    if rate_bps > TNA_BPS_MAX { "BF_FEC_TYP_REED_SOLOMON" } else { "BF_FEC_TYP_NONE" }
}

/// The files, by the ending of their names; none for other architectures than Tofino's.
pub(super) fn files(rack: &Rack) -> Vec<(&'static str, String)> {
    if !rack.switch.arch.is_tofino() {
        return Vec::new();
    }
    let text = |value: &Value| format!("{value:#}\n");
    vec![
        ("switchd.conf", text(&switchd(rack))),
        ("model.json", text(&model(rack))),
        ("ports.json", text(&ports(rack))),
        ("ports.py", port_script(rack)),
    ]
}

/// The driver's configuration. Paths are relative to `$SDE_INSTALL`, where `bf-sde/build.sh` puts the compiler's output.
fn switchd(rack: &Rack) -> Value {
    let program = program_name(rack.scheme());
    let (family, binary) = match rack.switch.arch {
        Arch::T2na => ("Tofino2", "tofino2.bin"),
        _ => ("Tofino", "tofino.bin"),
    };
    let share = format!("share/p4rack/{program}");
    let mut chip = json!({
        "chip_family": family,
        "instance": 0,
        "pcie_sysfs_prefix": "/sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0",
        "pcie_int_mode": 1,
        "sds_fw_path": "share/tofino_sds_fw/avago/firmware",
    });
    if rack.switch.arch == Arch::T2na {
        chip["microp_fw_path"] = json!("share/microp_fw/microp/tof2/fw/");
    }
    json!({
        "chip_list": [chip],
        "instance": 0,
        "p4_devices": [{
            "device-id": 0,
            "p4_programs": [{
                "program-name": program,
                "bfrt-config": format!("{share}/bf-rt.json"),
                "p4_pipelines": [{
                    "p4_pipeline_name": "pipe",
                    "context": format!("{share}/pipe/context.json"),
                    "config": format!("{share}/pipe/{binary}"),
                    "pipe_scope": [0, 1, 2, 3],
                }],
            }],
            "agent0": "lib/libpltfm_mgr.so",
        }],
    })
}

/// The pair of interfaces for each port of the model: veth0 and veth1 for the first, and so on.
fn model(rack: &Rack) -> Value {
    // The CPU's interfaces are left out.
    let veths = (0..).step_by(2).filter(|veth| *veth != CPU_VETH);
    let hosts = rack.ports().map(|host| u64::from(host.port)).zip(veths);
    let all = hosts.chain([(u64::from(cpu_port(rack.switch.arch)), CPU_VETH)]);
    let pairs = all.map(|(port, veth)| json!({ "device_port": port, "veth1": veth, "veth2": veth + 1 }));
    json!({ "PortToVeth": pairs.collect::<Vec<_>>() })
}

/// The rack's ports, which a board has to connect.
fn ports(rack: &Rack) -> Value {
    let row = |port: u16, rate_bps: u64| {
        let here = rack.hosts.iter().filter(|other| other.port == port);
        json!({
            "device_port": port,
            "pipe": pipe_of(port),
            "rate_bps": rate_bps,
            "speed": speed(rack.switch.arch, rate_bps),
            "hosts": here.map(|host| host.name.as_str()).collect::<Vec<_>>(),
        })
    };
    let rows = rack.ports().map(|host| row(host.port, host.port_rate_bps));
    json!({
        "rack": rack.name,
        "arch": rack.switch.arch,
        "cpu_port": rack.switch.cpu_port,
        "chip_cpu_port": cpu_port(rack.switch.arch),
        "ports": rows.collect::<Vec<_>>(),
    })
}

/// A script for the driver's shell (`bfshell -b`) that brings the ports up.
fn port_script(rack: &Rack) -> String {
    let mut text = format!("# Ports of rack \"{}\": bfshell -b $PWD/THIS_FILE\n", rack.name);
    for host in rack.ports() {
        let port = host.port;
        text += &match speed(rack.switch.arch, host.port_rate_bps) {
            Some(speed) => format!(
                "bfrt.port.port.add(DEV_PORT={port}, SPEED=\"{speed}\", FEC=\"{}\", PORT_ENABLE=True)\n",
                fec(host.port_rate_bps)
            ),
            None => format!("# port {port}: no port has {} b/s\n", host.port_rate_bps),
        };
    }
    text
}
