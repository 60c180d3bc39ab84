//! Where far memory comes from, as the options say.

use crate::cmd::memory::{SchemeArgs, Services, described, in_words};
use p4rack_codegen::Rack;
use p4rack_codegen::setting::Setting;
use p4rack_fabric::remote::{Link, Service, Way};
use p4rack_hosts::remote::Own;
use p4rack_memory::far::{Files, Source};
use std::path::PathBuf;

/// Without a description, far memory is this many times local memory.
const TIMES_LOCAL: u64 = 8;

/// The memory, and the way to it.
#[derive(clap::Args, Debug)]
pub struct SourceArgs {
    /// Rack description; not needed by --way local
    rack: Option<PathBuf>,
    /// Host with the memory
    #[arg(long, value_name = "HOST")]
    at: Option<String>,
    /// Name of this host in the description [default: the one that has an address here, or the only other one]
    #[arg(long, value_name = "HOST")]
    name: Option<String>,
    /// Interface to the rack [default: the one that has this host's address]
    #[arg(long)]
    interface: Option<String>,
    #[command(flatten)]
    scheme: SchemeArgs,
    #[command(flatten)]
    services: Services,
    /// EDM: key of the region
    #[arg(long, default_value = "1", value_parser = crate::numbers::number::<u32>)]
    key: u32,
}

impl SourceArgs {
    /// The source, with everything resolved that the description or a default says. Errors name the option.
    pub fn resolve(&self, local_bytes: u64) -> Result<Source, String> {
        let reserve = self.services.reserve;
        let own_bytes = reserve.unwrap_or(local_bytes.saturating_mul(TIMES_LOCAL));
        let Some(path) = &self.rack else {
            if !self.scheme.settings.set.is_empty() {
                return Err("--set: sets keys of a rack description, and none is named".to_owned());
            }
            let way = self.scheme.way.filter(|way| way.definition().service == Service::None);
            let way = way.ok_or(
                "name a rack description, as in `far run RACK.toml --at HOST`; only --way local needs none",
            )?;
            return Ok(Source { way: way.name().to_owned(), reserve_bytes: own_bytes, ..self.bare() });
        };
        let rack = described(path, &self.scheme)?;
        let way = p4rack_memory::way(&rack, self.scheme.way).map_err(in_words)?;
        let at = self.at.as_deref().ok_or("--at: name the host with the memory")?;
        p4rack_memory::node(&rack, at).map_err(|error| format!("--at: {error}"))?;
        let is_own = way.definition().service == Service::None;
        Ok(Source {
            rack: Some(path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?),
            set: self.scheme.settings.set.iter().map(Setting::assignment).collect(),
            scheme: rack.scheme().to_string(),
            arch: rack.switch.arch.to_string(),
            host: self.host(&rack, at, way)?,
            at: at.to_owned(),
            way: way.name().to_owned(),
            reserve_bytes: if is_own { own_bytes } else { reserve.unwrap_or(0) },
            ..self.bare()
        })
    }

    /// The source without a description.
    fn bare(&self) -> Source {
        let tls = self.services.tls.files();
        Source {
            rack: None,
            set: Vec::new(),
            scheme: String::new(),
            arch: String::new(),
            host: String::new(),
            interface: self.interface.clone(),
            at: String::new(),
            way: String::new(),
            key: self.key,
            memory: self.services.memory.clone(),
            engine: self.services.engine.clone(),
            tls: tls.map(|tls| Files {
                cacert: tls.cacert,
                identity: tls.identity,
                server_name: tls.server_name,
            }),
            reserve_bytes: 0,
        }
    }

    /// This host's name.
    fn host(&self, rack: &Rack, at: &str, way: Way) -> Result<String, String> {
        if let Some(name) = &self.name {
            p4rack_memory::node(rack, name).map_err(|error| format!("--name: {error}"))?;
            return Ok(name.clone());
        }
        let others: Vec<_> = rack.hosts.iter().filter(|host| host.name != at).collect();
        let is_here = |host: &&p4rack_codegen::rack::Host| {
            let own = Own { name: &host.name, mac: host.mac, ip: host.ip, links: 1 };
            // An agent's link has no address by which its host would be known.
            own.interface(Link::Adapter, self.interface.as_deref()).is_ok()
        };
        let here = others.iter().copied().find(is_here);
        let only = || {
            (others.len() == 1 || way.definition().service == Service::None).then(|| others.first().copied())
        };
        match here.or_else(|| only().flatten()) {
            Some(host) => Ok(host.name.clone()),
            None => {
                let names: Vec<_> = others.iter().map(|host| host.name.as_str()).collect();
                Err(format!("--name: name this host; it can be {}", names.join(", ")))
            }
        }
    }
}
