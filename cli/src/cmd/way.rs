//! Ways to remote memory as arguments.

use super::adapter::Adapter;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use p4rack_codegen::{Arch, Scheme};
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::Attachment;
use p4rack_hosts::roce::setup::Server;
use p4rack_lab::ways::End;

/// Takes a way by its name, which help and completions list.
pub(super) fn ways() -> impl TypedValueParser<Value = Way> {
    let named = |way: &Way| PossibleValue::new(way.name()).help(way.title()).aliases(way.definition().alias);
    PossibleValuesParser::new(Way::ALL.iter().map(named)).try_map(|name| name.parse::<Way>())
}

/// A client's host, and its way to remote memory.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct WayArgs {
    /// Name of this host in the description
    #[arg(long)]
    pub(super) name: String,
    /// Scheme of the rack
    #[arg(long)]
    pub(super) scheme: Scheme,
    /// Architecture of the switch's program
    #[arg(long)]
    pub(super) arch: Arch,
    /// Way to remote memory
    #[arg(long, value_parser = ways())]
    way: Option<Way>,
    #[command(flatten)]
    adapter: Adapter,
    /// Address of the pool's set-up service, or of the server of bytes, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    memory: Option<String>,
    /// Address of an engine's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    engine: Option<String>,
}

impl WayArgs {
    /// The client's end of the way; `None` if it has none.
    pub(super) fn end(self) -> Option<End> {
        let server = |addr| Server { addr, tls: None };
        let attachment = Attachment {
            ip: self.adapter.ip,
            adapter: self.adapter.config(),
            interface: self.adapter.interface,
            memory: self.memory.map(server),
            engines: self.engine.map(server).into_iter().collect(),
            ..Attachment::local()
        };
        let (scheme, arch, name) = (self.scheme, self.arch, self.name);
        self.way.map(|way| End { way, scheme, arch, name, attachment })
    }
}
