//! Arguments of `p4rack deploy`, for a single deployment and for `--watch`.

use crate::cmd::connect;
use crate::cmd::exercise::Choice;
use crate::cmd::settings::Settings;
use p4rack_codegen::rack::Target;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_ctrl::bmv2::Compiler;
use p4rack_ctrl::connect::Tls;
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::etcd::Access;
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Kinds of switches that a rack can be deployed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One that a description can name, over P4Runtime.
    Target(Target),
    /// Tofino, or the embedded switch with its program, over BFRuntime.
    Tofino,
}

impl FromStr for To {
    type Err = String;
    fn from_str(text: &str) -> Result<To, String> {
        match text {
            "tofino" => Ok(To::Tofino),
            other => other.parse().map(To::Target).map_err(|error: String| format!("{error}, and tofino")),
        }
    }
}

/// A compiler that makes BMv2's JSON.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonCompiler {
    /// p4rack's own
    P4rack,
    /// p4c-bm2-ss, on PATH
    P4c,
}

impl From<JsonCompiler> for Compiler {
    fn from(compiler: JsonCompiler) -> Compiler {
        match compiler {
            JsonCompiler::P4rack => Compiler::Own,
            JsonCompiler::P4c => Compiler::P4c,
        }
    }
}

/// Arguments of `p4rack deploy`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The rack description, TOML; or a topology, whose switches are all brought to what it says. Options that describe a
    /// switch are for racks alone
    #[arg(value_name = "RACK|TOPOLOGY")]
    pub rack: PathBuf,
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub settings: Settings,
    #[arg(long, help = crate::cmd::schemes::help("as described"))]
    pub scheme: Option<Scheme>,
    /// Architecture of the program: v1model, tna or t2na [default: as described; with --to tofino, tna]
    #[arg(long)]
    pub arch: Option<Arch>,
    /// Kind of switch: embedded, bmv2, or tofino (over BFRuntime) [default: the description's target]
    #[arg(long)]
    pub to: Option<To>,
    /// A compiler's output for the rack's program, for switches that do not take P4 text: a file, or for tofino the
    /// output folder of p4c's backend
    #[arg(long, value_name = "FILE")]
    pub device_config: Option<PathBuf>,
    /// With a target of BMv2: what makes its JSON [default: p4rack]
    #[arg(long, value_enum, conflicts_with = "device_config")]
    pub compiler: Option<JsonCompiler>,
    /// Address of a switch's P4Runtime server, HOST:PORT; repeat it for several switches with the same
    /// contents [default: as described]
    #[arg(long, value_name = "ADDR", help_heading = "Switch")]
    pub grpc_addr: Vec<String>,
    /// With --to tofino: address of a switch's BFRuntime server, HOST:PORT; repeat it for several switches
    #[arg(long, value_name = "ADDR", conflicts_with = "grpc_addr", help_heading = "Switch")]
    pub bfrt_addr: Vec<String>,
    #[command(flatten)]
    pub identity: connect::Identity,
    /// Only show what would change; exit code 1 if anything would
    #[arg(long, conflicts_with = "watch")]
    pub dry_run: bool,
    /// Keep running and keep the switches in this state: across their restarts, other clients' writes and
    /// changes of the description. A second `deploy --watch` with another election id serves as a standby; over
    /// BFRuntime, with any
    #[arg(long)]
    pub watch: bool,
    /// Interval between checks of a switch
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, requires = "watch", value_parser = crate::cmd::finite)]
    pub every: f64,
    /// Address of etcd, HOST:PORT, through which controllers share the description. The file is stored there
    /// if there is none yet; the stored one is used
    #[arg(long, value_name = "ADDR", requires = "watch")]
    pub etcd: Option<String>,
    #[command(flatten)]
    pub etcd_access: EtcdArgs,
    /// With --etcd: replace a stored description by the file
    #[arg(long, requires = "etcd")]
    pub publish: bool,
    /// Serve metrics for Prometheus at this address, under /metrics
    #[arg(long, value_name = "ADDR", requires = "watch", value_parser = crate::cmd::values::addr)]
    pub metrics_addr: Option<std::net::SocketAddr>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Address, election id and encryption of the connection to each switch.
    pub fn targets(&self, rack: &Rack) -> Vec<ConnectOptions> {
        if self.to == Some(To::Tofino) {
            self.identity.refuse_p4runtimes();
            let over_bfrt = |addr: &String| ConnectOptions {
                protocol: Protocol::BfRuntime,
                ..self.identity.at(addr.clone(), Some(&rack.switch))
            };
            return self.bfrt_addr.iter().map(over_bfrt).collect();
        }
        let described: Vec<String> = rack.switch.grpc_addrs().map(|addr| addr.to_string()).collect();
        let addresses = if self.grpc_addr.is_empty() { &described } else { &self.grpc_addr };
        addresses.iter().map(|addr| self.identity.at(addr.clone(), Some(&rack.switch))).collect()
    }

    /// The desired state of the switches. Errors: protocol and kind of switch don't go together.
    pub fn desired(&self, rack: &Rack) -> Result<Desired, CtrlError> {
        let input = |message: &str| Err(CtrlError::Input(message.into()));
        match (self.to == Some(To::Tofino), self.bfrt_addr.is_empty()) {
            (true, true) => {
                return input("--to tofino needs the address of a BFRuntime server: --bfrt-addr HOST:50052");
            }
            (false, false) => {
                return input("--bfrt-addr is for switches that run Tofino's programs: add --to tofino");
            }
            _ => {}
        }
        if let Some(arch) = self.arch.filter(|arch| self.to == Some(To::Tofino) && !arch.is_tofino()) {
            return input(&format!(
                "--to tofino is for programs of tna and t2na, and --arch says {arch}: give one of them, or leave --arch out"
            ));
        }
        let scheme = self.scheme.unwrap_or_else(|| rack.scheme());
        let rack = &rack.on(self.arch.unwrap_or(rack.switch.arch));
        let compiled = self.device_config.as_deref();
        let compiler = self.compiler.unwrap_or(JsonCompiler::P4rack).into();
        match self.to {
            Some(To::Tofino) => Desired::for_tofino(rack, scheme, compiled),
            Some(To::Target(target)) => Desired::of_rack(rack, scheme, target, compiled, compiler),
            None => Desired::of_rack(rack, scheme, rack.switch.target, compiled, compiler),
        }
    }

    /// Interval between checks of a switch.
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.every.clamp(0.05, 3600.0))
    }
}

/// Address and credentials of etcd.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "etcd-access")]
pub struct EtcdArgs {
    /// Encrypt the connection to etcd: certificate authority of its server, PEM
    #[arg(long, value_name = "FILE", requires = "etcd", help_heading = "etcd")]
    etcd_cacert: Option<PathBuf>,
    /// Client certificate for etcd, PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_cacert", "etcd_key"], help_heading = "etcd")]
    etcd_cert: Option<PathBuf>,
    /// Key of the client certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_cacert", "etcd_cert"], help_heading = "etcd")]
    etcd_key: Option<PathBuf>,
    /// Name in etcd's certificate, if it differs from the address
    #[arg(long, value_name = "NAME", requires = "etcd_cacert", help_heading = "etcd")]
    etcd_server_name: Option<String>,
    /// Log in to etcd as this user, with the password from P4RACK_ETCD_PASSWORD or --etcd-password-file
    #[arg(long, value_name = "NAME", requires = "etcd", help_heading = "etcd")]
    etcd_user: Option<String>,
    /// File whose first line is the user's password
    #[arg(long, value_name = "FILE", requires = "etcd_user", help_heading = "etcd")]
    etcd_password_file: Option<PathBuf>,
}

/// Variable with the password if no file is given. Not an option, because every user sees the arguments of a
/// process.
const PASSWORD: &str = "P4RACK_ETCD_PASSWORD";

impl EtcdArgs {
    /// How to reach the server at `addr`.
    pub fn at(&self, addr: &str) -> Result<Access, String> {
        let files = [
            ("--etcd-cacert", &self.etcd_cacert),
            ("--etcd-cert", &self.etcd_cert),
            ("--etcd-key", &self.etcd_key),
        ];
        for (option, path) in files {
            if let Some(path) = path {
                // Retrying would not help.
                std::fs::read(path).map_err(|error| format!("{option}: {}: {error}", path.display()))?;
            }
        }
        let identity = self.etcd_cert.clone().zip(self.etcd_key.clone());
        let server_name = self.etcd_server_name.clone();
        let tls = self.etcd_cacert.clone().map(|ca| Tls { cacert: Some(ca), identity, server_name });
        let login = self.etcd_user.clone().map(|user| Ok::<_, String>((user, self.password()?)));
        if self.etcd_user.is_some() && tls.is_none() && !is_loopback(addr) {
            return Err(format!(
                "--etcd-user: the password would go to {addr} in plain text; encrypt the connection with --etcd-cacert"
            ));
        }
        Ok(Access { addr: addr.to_owned(), tls, login: login.transpose()? })
    }

    fn password(&self) -> Result<String, String> {
        let password = self.said_password()?;
        let from = self
            .etcd_password_file
            .as_ref()
            .map(|path| format!("--etcd-password-file: {}: its first line", path.display()));
        match password.is_empty() {
            true => {
                Err(format!("{} is empty; put the password there", from.unwrap_or_else(|| PASSWORD.into())))
            }
            false => Ok(password),
        }
    }

    fn said_password(&self) -> Result<String, String> {
        match &self.etcd_password_file {
            None => std::env::var(PASSWORD).map_err(|_| {
                format!("--etcd-user: set {PASSWORD} to the password, or give --etcd-password-file")
            }),
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text =
                    text.map_err(|error| format!("--etcd-password-file: {}: {error}", path.display()))?;
                Ok(text.lines().next().unwrap_or_default().to_owned())
            }
        }
    }
}

/// Whether HOST:PORT is on this machine.
fn is_loopback(addr: &str) -> bool {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host).trim_matches(['[', ']']);
    let ip = host.parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}
