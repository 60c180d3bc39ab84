//! Arguments of the commands that drive a Soft-RoCE adapter: the adapter, and the set-up's server and client.

use super::settings::RackSettings;
use crate::output::OutputFile;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::units::parse_rate;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_fabric::roce::{Config, Regions};
use p4rack_hosts::outlet::Outlet;
use p4rack_hosts::roce::setup::Station;
use p4rack_hosts::roce::tls::{ClientTls, ServerTls};
use p4rack_hosts::roce::{Loss, Member, Members, RocePort};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// The adapter of this command.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Adapter {
    /// Interface of the link; unless the system has the adapter's address there, the adapter takes exclusive use of it
    /// (offloads and ARP off, no address)
    #[arg(long)]
    pub(super) interface: String,
    /// IPv4 address of the adapter: the interface's, if it has one, otherwise one that the system does not use
    #[arg(long)]
    pub(super) ip: Ipv4Addr,
    /// Bytes of a packet's payload: 256, 512, 1024, 2048 or 4096; both ends need the same
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = mtu)]
    mtu: Mtu,
    /// READs and atomic operations of a queue pair under way; both ends need the same
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = crate::numbers::within::<u16>(1..=256))]
    reads_max: u16,
    /// Least time before unacknowledged packets are sent again; grows if acknowledgements take longer
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = crate::numbers::within::<u64>(1..=10_000))]
    timeout_ms: u64,
    /// Accept frames with a wrong iCRC: a switch that rewrites packets can't compute it
    #[arg(long)]
    ignore_icrc: bool,
    /// Lose this many frames of a thousand on purpose, in both directions
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::numbers::within::<u16>(0..=500))]
    lose_per_mille: u16,
}

/// Encryption of the set-up.
#[derive(clap::Args, Debug, Default)]
pub(super) struct Encryption {
    /// Encrypt the set-up; peers then connect with --ssl
    #[arg(long, requires = "grpc_server_cert", requires = "grpc_server_key")]
    grpc_server_ssl: bool,
    /// Certificate of the server, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_key: Option<PathBuf>,
    /// Only accept peers with a certificate of this authority, PEM
    #[arg(long, value_name = "FILE", requires = "grpc_server_ssl")]
    grpc_server_cacert: Option<PathBuf>,
}

impl Encryption {
    /// Whether it is encrypted.
    pub(super) fn is_on(&self) -> bool {
        self.grpc_server_ssl
    }

    /// The files of the server; `None`: plain text.
    pub(super) fn files(self) -> Option<ServerTls> {
        let files = self.grpc_server_cert.zip(self.grpc_server_key);
        let client_ca = self.grpc_server_cacert;
        files.map(|(certificate, key)| ServerTls { certificate, key, client_ca })
    }
}

/// Advice for a service that every host reaches. Encryption keeps no host out without an authority of the clients.
pub(super) const ENCRYPT_OR_CONFIRM: &str = "encrypt with --grpc-server-ssl, and with --grpc-server-cacert admit only \
     clients with a certificate of that authority; or confirm with --insecure";

/// Address and encryption for peers.
#[derive(clap::Args, Debug)]
pub(super) struct GrpcServer {
    /// Address at which peers connect [default: a port of 127.0.0.1]
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    grpc_server_addr: Option<SocketAddr>,
    #[command(flatten)]
    encryption: Encryption,
    /// Serve in plain text at an address other than loopback
    #[arg(long, conflicts_with = "grpc_server_ssl")]
    insecure: bool,
}

impl GrpcServer {
    /// At an address where plain text, if it is that, was confirmed.
    pub(super) fn confirmed(at: SocketAddr, encryption: Encryption) -> GrpcServer {
        GrpcServer { grpc_server_addr: Some(at), insecure: !encryption.is_on(), encryption }
    }

    /// Returns the address and its encryption. Fails if other machines could connect in plain text and `--insecure` is
    /// missing; `danger` completes the message with what a client could then do.
    pub(super) fn check(
        self,
        default: SocketAddr,
        danger: &str,
    ) -> Result<(SocketAddr, Option<ServerTls>), String> {
        let addr = self.grpc_server_addr.unwrap_or(default);
        if !(self.encryption.is_on() || self.insecure || addr.ip().is_loopback()) {
            return Err(format!(
                "--grpc-server-addr {addr} is reached from other machines, and everyone who connects {danger}: \
                 {ENCRYPT_OR_CONFIRM}"
            ));
        }
        Ok((addr, self.encryption.files()))
    }
}

/// The hosts whose addresses peers may have, and the rate at which they are served.
#[derive(clap::Args, Debug, Default)]
pub(super) struct Peers {
    /// The rack's description: a peer's MAC and IP address have to be those of one of its hosts, and the caller's own [default:
    /// peers may have any addresses]
    #[arg(long, value_name = "FILE")]
    rack: Option<PathBuf>,
    #[command(flatten)]
    settings: RackSettings,
    /// The first host's address, if set-ups have a network of their own; the others' follow, and the switch's precedes
    /// it. Callers from elsewhere are refused
    #[arg(long, value_name = "ADDR", requires = "rack")]
    setup_first: Option<Ipv4Addr>,
    /// Rate of the link, e.g. "10 Gb/s": frames then wait in the adapter, where peers take turns [default: as fast as
    /// the interface takes]
    #[arg(long = "rate", value_name = "RATE", value_parser = parse_rate)]
    pub(super) rate_bps: Option<u64>,
}

impl Peers {
    /// The rack's members, if a description is named. Errors: it can't be read.
    pub(super) fn members(&self) -> Result<Option<Members>, String> {
        let Some(path) = &self.rack else { return Ok(None) };
        let rack = Rack::load_set(path, &self.settings.set).map_err(text)?;
        Ok(Some(members(&rack, self.setup_first)))
    }
}

/// The hosts of a rack, and the engine in its switch if it has one.
pub(super) fn members(rack: &Rack, setup_first: Option<Ipv4Addr>) -> Members {
    let setup = |nth: u32| setup_first.map(|first| IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() + nth)));
    let hosts = rack.hosts.iter().zip(0..).map(|(host, nth)| {
        let station = Station { mac: host.mac, ip: host.ip };
        Member { name: host.name.clone(), station, setup: setup(nth) }
    });
    let engine = rack.protocol::<Cowbird>().map(|cowbird| Member {
        name: "the switch's engine".to_owned(),
        station: Station { mac: cowbird.mac, ip: cowbird.ip },
        setup: setup_first.map(|first| IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() - 1))),
    });
    Members::new(hosts.chain(engine).collect())
}

/// Encryption of a connection to a set-up service.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Tls {
    /// Encrypt the set-up
    #[arg(long, requires = "cacert")]
    ssl: bool,
    /// Certificate authority of the servers, PEM
    #[arg(long, value_name = "FILE", requires = "ssl")]
    cacert: Option<PathBuf>,
    /// Our certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "private_key"])]
    cert: Option<PathBuf>,
    /// Key of our certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "cert"])]
    private_key: Option<PathBuf>,
    /// Name in the servers' certificates, if it differs from the address
    #[arg(long, value_name = "NAME", requires = "ssl")]
    server_name: Option<String>,
}

impl Tls {
    /// The files; `None` is plain text.
    pub(super) fn files(&self) -> Option<ClientTls> {
        let identity = self.cert.clone().zip(self.private_key.clone());
        let server_name = self.server_name.clone();
        self.cacert.clone().map(|ca| ClientTls { cacert: Some(ca), identity, server_name })
    }
}

/// Outputs of a process's counters.
#[derive(clap::Args, Debug)]
pub(super) struct Telling {
    /// Write statistics as JSON to this file (`-` for standard output) at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    pub(super) stats: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address, under /metrics
    #[arg(long, value_name = "ADDR", value_parser = crate::cmd::values::addr)]
    pub(super) metrics_addr: Option<SocketAddr>,
}

impl Telling {
    /// Errors: the file can't be written.
    pub(super) fn check(&self) -> Result<(), String> {
        let file = self.stats.as_deref().filter(|path| *path != Path::new("-"));
        file.map_or(Ok(()), |path| OutputFile::open("--stats", path).map(drop))
    }

    /// Errors: the file can't be written, or the address can't be had.
    pub(super) fn open(self) -> Result<Outlet, String> {
        self.check()?;
        Outlet::open(self.stats, self.metrics_addr).map_err(text)
    }
}

fn mtu(text: &str) -> Result<Mtu, String> {
    let found = Mtu::ALL.into_iter().find(|mtu| mtu.bytes().to_string() == text);
    found.ok_or_else(|| "write 256, 512, 1024, 2048 or 4096".to_owned())
}

/// An error as text.
pub(super) fn text(error: impl Display) -> String {
    error.to_string()
}

impl Adapter {
    /// A rack's host's, which does not check iCRCs; everything else is as the options have it.
    pub(super) fn of(interface: String, ip: Ipv4Addr) -> Adapter {
        let (mtu, reads_max, timeout_ms, ignore_icrc, lose_per_mille) = (Mtu::B1024, 16, 20, true, 0);
        Adapter { interface, ip, mtu, reads_max, timeout_ms, ignore_icrc, lose_per_mille }
    }

    /// Parameters.
    pub(super) fn config(&self) -> Config {
        Config {
            mtu: self.mtu,
            reads_max: self.reads_max.into(),
            timeout: Nanos::from_millis(self.timeout_ms),
            icrc_verified: !self.ignore_icrc,
            ..Config::default()
        }
    }

    /// Frames lost on purpose.
    pub(super) fn loss(&self) -> Loss {
        Loss { per_mille: self.lose_per_mille, seed: clock::wall_ns() }
    }

    /// Opens it.
    pub(super) fn open(&self, memory: Regions) -> Result<RocePort<Regions>, String> {
        RocePort::open(&self.interface, self.ip, self.config(), memory, self.loss()).map_err(text)
    }

    /// Its addresses.
    pub(super) fn station(&self, port: &RocePort<Regions>) -> Station {
        Station { mac: port.mac(), ip: self.ip }
    }
}

/// A runtime whose thread answers pings while this one drives the adapter.
pub(super) fn runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(text)
}
