//! What `p4rack deploy` brings the switches of a topology to.

use super::args::Args;
use p4rack_codegen::topology::{Runs, Target, Topology, files};
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::provision;
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use p4rack_p4::Options;
use std::path::PathBuf;

/// A switch that has a program.
pub struct Member {
    /// Name of the switch.
    pub name: String,
    /// How to reach it.
    pub target: ConnectOptions,
    /// What it should hold.
    pub desired: Desired,
}

/// A topology's name and its switches with programs. Errors: an option has no effect, or something in the files is wrong.
pub fn members(args: &Args) -> Result<(Topology, Vec<Member>), CtrlError> {
    let given = [
        ("--set", !args.settings.set.is_empty()),
        ("--scheme", args.scheme.is_some()),
        ("--arch", args.arch.is_some()),
        ("--to", args.to.is_some()),
        ("--device-config", args.device_config.is_some()),
        ("--compiler", args.compiler.is_some()),
        ("--device-id", args.identity.has_device_id()),
        ("--grpc-addr", !args.grpc_addr.is_empty()),
        ("--bfrt-addr", !args.bfrt_addr.is_empty()),
        ("--etcd", args.etcd.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{option} is for racks: a topology describes its switches, so leave it out");
        return Err(CtrlError::Input(message));
    }
    let exercise = args.choice.of(&args.rack).map_err(CtrlError::Input)?;
    let topology = Topology::load_exercise(&args.rack, &exercise);
    let topology = topology.map_err(|error| CtrlError::Input(error.to_string()))?;
    if topology.switches.iter().any(|switch| switch.target == Target::Tofino) {
        args.identity.refuse_p4runtimes();
    }
    let (mut members, mut refused) = (Vec::new(), Vec::new());
    for (switch, desired) in topology.switches.iter().zip(provision::desired_of_all(&topology)) {
        let desired = match desired {
            Ok(Some(desired)) => desired,
            Ok(None) => continue,
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        };
        let protocol = match switch.target {
            Target::Tofino => Protocol::BfRuntime,
            Target::Embedded | Target::Bmv2 => Protocol::P4Runtime,
        };
        let target = args.identity.at(switch.grpc_addr.to_string(), None);
        let target = ConnectOptions { protocol, device_id: switch.device_id, ..target };
        members.push(Member { name: switch.name.clone(), target, desired });
    }
    match refused.is_empty() {
        true => Ok((topology, members)),
        false => Err(CtrlError::Input(refused.join("\n"))),
    }
}

/// All files that say what the switches should hold.
pub fn files_of(args: &Args, topology: &Topology) -> Vec<PathBuf> {
    let mut all = vec![args.rack.clone()];
    for switch in &topology.switches {
        match &switch.runs {
            Runs::Nothing => {}
            Runs::Rack(path, _) => all.push(path.clone()),
            Runs::Program(path) => all.extend(files(path, &Options::default())),
        }
        all.extend(switch.entries.clone());
    }
    all
}
