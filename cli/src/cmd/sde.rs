//! Findings of `p4rack doctor` on Tofino's software (SDE), and on a rack with it.

use super::finding::Finding;
use p4rack_codegen::{Arch, Rack, sde};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Versions for which the driver's configuration and the scripts in bf-sde/ are written.
const VERSION: &str = "9.13";
const GET_SDE: &str = "building https://github.com/p4lang/open-p4studio, then export SDE=…/open-p4studio";
const GET_INSTALL: &str = "export SDE_INSTALL=$SDE/install";
const GET_BOARD: &str = "bfshell -e 'ucli; pm; show -a' on the switch, kept in a file";

/// Where the software is, and its version. `needed` says whether a rack is to run there.
pub fn software(needed: bool) -> Vec<Finding> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from);
    let software = sde_of(folder("SDE").as_deref());
    let installed = installed(folder("SDE_INSTALL").as_deref());
    vec![
        finding("SDE", "Tofino's driver and model", needed, software, GET_SDE),
        finding("SDE_INSTALL", "Tofino's driver and model", needed, installed, GET_INSTALL),
    ]
}

/// Whether a rack can run on a chip and, if its ports are given as the driver shows them, on a board.
pub fn rack(rack: &Rack, board: Option<&Path>) -> Vec<Finding> {
    let purpose = "the rack on hardware";
    let arch = if rack.switch.arch.is_tofino() {
        Ok(rack.switch.arch.to_string())
    } else {
        Err(format!("rack {} is described for {}", rack.name, rack.switch.arch))
    };
    let mut findings = vec![
        finding("architecture", purpose, true, arch, "--arch tna, or arch = \"tna\" under [switch]"),
        finding("CPU port", purpose, true, cpu_port(rack), "cpu_port = 64 (tna) or 2 (t2na) under [switch]"),
        finding(
            "port rates",
            purpose,
            true,
            rates(rack),
            "rates of 1, 10, 25, 40, 50 or 100 Gb/s, on t2na also 200 or 400 Gb/s",
        ),
    ];
    if rack.switch.arch.is_tofino() {
        findings.push(finding(
            "program",
            purpose,
            true,
            generated(rack),
            "what the message says, or another scheme",
        ));
    }
    if let Some(file) = board {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()));
        let found = text.and_then(|text| connected(rack, &text, file));
        findings.push(finding("board", purpose, true, found, GET_BOARD));
    }
    findings
}

fn finding(
    name: &'static str,
    purpose: &'static str,
    needed: bool,
    tried: Result<String, String>,
    get_it_by: &str,
) -> Finding {
    let ok = tried.is_ok();
    let found = tried.unwrap_or_else(|why| why);
    Finding { name, purpose, needed, ok, found, get_it_by: (!ok).then(|| get_it_by.to_owned()) }
}

fn sde_of(folder: Option<&Path>) -> Result<String, String> {
    let folder = folder.ok_or("not set")?;
    if !folder.is_dir() {
        return Err(format!("{}: no such folder", folder.display()));
    }
    let version = version(folder).ok_or_else(|| {
        format!("{}: no version, neither bf-sde-*.manifest nor pkgsrc/bf-drivers/VERSION", folder.display())
    })?;
    match version.strip_prefix(VERSION).is_some_and(|rest| rest.starts_with('.')) {
        true => Ok(version),
        false => Err(format!("version {version}, expected {VERSION}")),
    }
}

/// The vendor's software has its version in the name of a file, the open one in a file.
fn version(folder: &Path) -> Option<String> {
    let names =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let of_name =
        |name: String| Some(name.strip_prefix("bf-sde-")?.strip_suffix(".manifest")?.trim().to_owned());
    names.filter_map(of_name).next().or_else(|| {
        let text = std::fs::read_to_string(folder.join("pkgsrc/bf-drivers/VERSION")).ok()?;
        text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
    })
}

fn installed(folder: Option<&Path>) -> Result<String, String> {
    let folder = folder.ok_or("not set")?;
    let driver = folder.join("bin/bf_switchd");
    match driver.is_file() {
        true => Ok(folder.display().to_string()),
        false => Err(format!("{}: no such file", driver.display())),
    }
}

fn cpu_port(rack: &Rack) -> Result<String, String> {
    let (described, chip) = (rack.switch.cpu_port, sde::cpu_port(rack.switch.arch));
    match described == chip || rack.switch.arch == Arch::V1model {
        true => Ok(described.to_string()),
        false => Err(format!("{described} is described, the chip's is {chip}")),
    }
}

/// Whether there is a program for the rack with all that it describes.
fn generated(rack: &Rack) -> Result<String, String> {
    let scheme = rack.scheme();
    let made = p4rack_codegen::program(rack, scheme, rack.switch.arch);
    made.map(|_| scheme.to_string()).map_err(|error| error.to_string())
}

fn rates(rack: &Rack) -> Result<String, String> {
    // A description for another architecture has a finding of its own.
    let arch = if rack.switch.arch.is_tofino() { rack.switch.arch } else { Arch::T2na };
    match rack.ports().find(|host| sde::speed(arch, host.port_rate_bps).is_none()) {
        None => Ok("all known".to_owned()),
        Some(host) => Err(format!("port {}: no port has {} b/s", host.port, host.port_rate_bps)),
    }
}

/// Looks for the rack's ports in the driver's list of ports, which has the chip's numbers in its third column.
fn connected(rack: &Rack, text: &str, file: &Path) -> Result<String, String> {
    let number = |line: &str| -> Option<u16> {
        let mut cells = line.split('|').map(str::trim);
        let is_place = |cell: &str| cell.split_once('/').is_some_and(|(a, b)| digits(a) && digits(b));
        (is_place(cells.next()?) && is_place(cells.next()?)).then(|| cells.next()?.parse().ok())?
    };
    let known: BTreeSet<u16> = text.lines().filter_map(number).collect();
    if known.is_empty() {
        return Err(format!("{}: no lines such as `1/0 |23/0|132|…`", file.display()));
    }
    match rack.ports().find(|host| !known.contains(&host.port)) {
        None => Ok(format!("{} ports", known.len())),
        Some(host) => {
            Err(format!("{}: port {} of host {} is not on this board", file.display(), host.port, host.name))
        }
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
