//! Where the parts of a topology stand in its file, for mistakes that depend on what is done with it: on one machine or elsewhere.

use super::{Target, Topology};
use crate::rack::{End, FieldError, RackError};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Lines of a file's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Name of the file.
    pub(super) file: String,
    /// Line of each field that was read, from 1.
    pub(super) lines: BTreeMap<String, usize>,
    /// Name of each switch's table.
    pub(super) switches: Vec<String>,
    /// Name of each link's table.
    pub(super) links: Vec<String>,
}

impl Places {
    /// A mistake of a key of a table, at the key's line or, without one, at the table's.
    fn mistake(&self, table: &str, key: &str, message: String, help: String) -> FieldError {
        let field = format!("{table}.{key}");
        let (field, line) = match (self.lines.get(&field), self.lines.get(table)) {
            (Some(line), _) => (field, *line),
            (None, line) => (table.to_owned(), line.copied().unwrap_or(0)),
        };
        FieldError { file: self.file.clone(), line, field, message, help }
    }
}

impl Topology {
    /// A mistake of a switch's key.
    pub fn mistake_of_switch(
        &self,
        at: usize,
        key: &str,
        message: String,
        help: impl Into<String>,
    ) -> RackError {
        let table = self.places.switches.get(at).map_or("switch", String::as_str);
        RackError { errors: vec![self.places.mistake(table, key, message, help.into())] }
    }

    /// Whether p4rack starts all its switches. Errors: those for Tofino.
    pub fn check_started(&self) -> Result<(), RackError> {
        let is_tofino = |at: &usize| self.switches[*at].target == Target::Tofino;
        let refused = (0..self.switches.len()).filter(is_tofino).flat_map(|at| {
            let name = &self.switches[at].name;
            let message = format!("{name}'s target is tofino, and p4rack starts embedded switches and BMv2");
            let help = "run it elsewhere, then `p4rack deploy` this topology; or write target = \"embedded\", which runs its program, \
                        too";
            self.mistake_of_switch(at, "target", message, help).errors
        });
        sorted(refused.collect())
    }

    /// Whether one machine can run it, in namespaces: what `p4rack up` and `p4rack lab` need. Errors: a switch that is not
    /// started, links that a switch can't make, an address that the switches' namespace lacks.
    pub fn check_local(&self) -> Result<(), RackError> {
        let mut errors = Vec::new();
        let mut add = |checked: Result<(), RackError>| {
            errors.extend(checked.err().into_iter().flat_map(|error| error.errors))
        };
        add(self.check_started());
        for (at, switch) in
            self.switches.iter().enumerate().filter(|(_, switch)| switch.target != Target::Tofino)
        {
            // The namespace has IPv4's loopback addresses alone.
            let (ip, name) = (switch.grpc_addr.ip(), &switch.name);
            let is_there =
                ip == Ipv6Addr::UNSPECIFIED || ip.is_ipv4() && (ip.is_loopback() || ip.is_unspecified());
            if !is_there {
                let message =
                    format!("{ip} is not in the namespace of the switches, where {name} is to serve it");
                let help =
                    "write 127.0.0.1, or leave grpc_addr out; `p4rack deploy` reaches switches elsewhere";
                add(Err(self.mistake_of_switch(at, "grpc_addr", message, help)));
            }
        }
        add(self.check_bmv2_links());
        sorted(errors)
    }

    /// Whether BMv2's switches can make their links. Errors: those with a rate, delay or loss.
    pub fn check_bmv2_links(&self) -> Result<(), RackError> {
        let mut errors = Vec::new();
        for (n, link) in self.links.iter().enumerate() {
            let is_bmv2 =
                |end: &End| matches!(end, End::Port(at, _) if self.switches[*at].target == Target::Bmv2);
            let Some(end) = link.ends.into_iter().find(is_bmv2) else { continue };
            let has = [
                ("rate", link.rate_bps.is_some()),
                ("delay", link.delay.0 > 0),
                ("loss_percent", link.loss_ppm > 0),
            ];
            for (key, _) in has.into_iter().filter(|(_, has)| *has) {
                let table = self.places.links.get(n).map_or("link", String::as_str);
                let message = format!(
                    "BMv2 makes no rate, delay or loss of a link, and {} is BMv2's",
                    self.end_name(end)
                );
                let help = format!("leave `{key}` out, or change the switch's `target`");
                errors.push(self.places.mistake(table, key, message, help));
            }
        }
        sorted(errors)
    }
}

fn sorted(mut errors: Vec<FieldError>) -> Result<(), RackError> {
    errors.sort_by_key(|error| error.line);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(RackError { errors }),
    }
}
