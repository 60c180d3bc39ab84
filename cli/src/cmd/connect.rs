//! Options that select a P4Runtime switch, and helpers of the commands that use them.

use p4rack_codegen::rack::Switch;
use p4rack_codegen::shell::quoted;
use p4rack_ctrl::connect::{Tls, parse_election_id};
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol, RequestLog, RoleConfig};
use p4rack_lab::state::{Runtime, SWITCH};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Address and identity for a switch.
#[derive(clap::Args, Clone, Debug)]
// An id of its own: commands that take these options have a group called `Args` too.
#[group(id = "switch-target")]
pub struct Args {
    /// Address of the P4Runtime server, HOST:PORT [default: as described, or 127.0.0.1:9559]
    #[arg(long, value_name = "ADDR", help_heading = "Switch")]
    grpc_addr: Option<String>,
    #[command(flatten)]
    identity: Identity,
}

/// Address of a switch over either protocol.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "either-target")]
pub struct Either {
    #[command(flatten)]
    p4runtime: Args,
    /// Address of the BFRuntime server of a switch that runs a program for Tofino, HOST:PORT
    #[arg(long, value_name = "ADDR", conflicts_with = "grpc_addr", help_heading = "Switch")]
    bfrt_addr: Option<String>,
}

impl Either {
    /// How to connect to a switch; omitted options come from the description.
    pub fn for_switch(&self, switch: Option<&Switch>) -> ConnectOptions {
        match &self.bfrt_addr {
            Some(addr) => {
                let protocol = Protocol::BfRuntime;
                self.p4runtime.identity.refuse_p4runtimes();
                ConnectOptions { protocol, ..self.p4runtime.identity.at(addr.clone(), switch) }
            }
            None => self.p4runtime.for_switch(switch),
        }
    }
}

/// Identity, and options of the connection.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "switch-identity")]
pub struct Identity {
    /// Device id at that server [default: as described, or 1]
    #[arg(long, value_name = "N", help_heading = "Switch", value_parser = crate::numbers::number::<u64>)]
    device_id: Option<u64>,
    /// P4Runtime election id; the highest one is primary
    #[arg(long, value_name = "HI,LO", default_value = "0,1", value_parser = parse_election_id, help_heading = "Switch")]
    election_id: u128,
    /// P4Runtime role [default: full access]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, help_heading = "Switch")]
    role: String,
    /// Permissions of the role: a text-format stratum.P4RoleConfig, ids as in P4Info [default: everything]
    #[arg(long, value_name = "FILE", requires = "role", value_parser = role_config, help_heading = "Switch")]
    role_config: Option<RoleFile>,
    /// Encrypt the connection
    #[arg(long, requires = "cacert", help_heading = "Switch")]
    ssl: bool,
    /// Certificate authority of the server, PEM
    #[arg(long, value_name = "FILE", requires = "ssl", help_heading = "Switch")]
    cacert: Option<PathBuf>,
    /// Certificate of this controller, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "private_key"], help_heading = "Switch")]
    cert: Option<PathBuf>,
    /// Key of this controller's certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["ssl", "cert"], help_heading = "Switch")]
    private_key: Option<PathBuf>,
    /// Name in the server's certificate, if it differs from the address
    #[arg(long, value_name = "NAME", requires = "ssl", help_heading = "Switch")]
    server_name: Option<String>,
    /// Log every request as text-format protobuf to this file
    #[arg(long, value_name = "FILE", value_parser = request_log, help_heading = "Switch")]
    log_requests: Option<RequestLog>,
}

/// Permissions of a role, and the file that has them.
#[derive(Clone, Debug)]
struct RoleFile {
    path: PathBuf,
    config: RoleConfig,
}

fn role_config(path: &str) -> Result<RoleFile, CtrlError> {
    let path = PathBuf::from(path);
    Ok(RoleFile { config: RoleConfig::read(&path)?, path })
}

fn request_log(path: &str) -> Result<RequestLog, CtrlError> {
    RequestLog::create(Path::new(path))
}

impl Args {
    /// Whether the options give the server's address.
    pub fn names_a_server(&self) -> bool {
        self.grpc_addr.is_some()
    }

    /// How to connect to a switch; omitted options come from the description.
    pub fn for_switch(&self, switch: Option<&Switch>) -> ConnectOptions {
        let described = switch.map(|switch| switch.grpc_addr.to_string());
        let addr = self.grpc_addr.clone().or(described).unwrap_or_else(|| "127.0.0.1:9559".into());
        self.identity.at(addr, switch)
    }

    /// The options as another command takes them, without the log.
    pub fn words(&self) -> Vec<String> {
        let Identity { device_id, election_id, role, role_config, ssl, cacert, cert, private_key, .. } =
            &self.identity;
        let is_default = *election_id == 1;
        let election = (!is_default).then(|| format!("{},{}", election_id >> 64, *election_id as u64));
        let file = |file: &Option<PathBuf>| file.as_ref().map(|path| path.display().to_string());
        let given = [
            ("--grpc-addr", self.grpc_addr.clone()),
            ("--device-id", device_id.map(|id| id.to_string())),
            ("--election-id", election),
            ("--role", Some(role.clone()).filter(|role| !role.is_empty())),
            ("--role-config", role_config.as_ref().map(|file| file.path.display().to_string())),
            ("--cacert", file(cacert)),
            ("--cert", file(cert)),
            ("--private-key", file(private_key)),
            ("--server-name", self.identity.server_name.clone()),
        ];
        let given = given.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
        given.flatten().chain(ssl.then(|| "--ssl".to_owned())).collect()
    }
}

impl Identity {
    /// Whether a device id is given.
    pub fn has_device_id(&self) -> bool {
        self.device_id.is_some()
    }

    /// Ends the program if an option is given that BFRuntime has nothing for: it would have no effect.
    pub fn refuse_p4runtimes(&self) {
        let given = [
            ("--device-id", self.device_id.is_some()),
            ("--role", !self.role.is_empty()),
            ("--role-config", self.role_config.is_some()),
            ("--log-requests", self.log_requests.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!(
                "{option} is P4Runtime's, and a switch is reached over BFRuntime: leave {option} out"
            );
            clap::Command::new("p4rack").error(clap::error::ErrorKind::ArgumentConflict, message).exit();
        }
    }

    /// How to connect to a switch at an address; omitted options come from the description.
    pub fn at(&self, addr: String, switch: Option<&Switch>) -> ConnectOptions {
        let identity = self.cert.clone().zip(self.private_key.clone());
        let tls = Tls { cacert: self.cacert.clone(), identity, server_name: self.server_name.clone() };
        ConnectOptions {
            addr,
            protocol: Protocol::P4Runtime,
            device_id: self.device_id.or(switch.map(|switch| switch.device_id)).unwrap_or(1),
            election_id: self.election_id,
            role: self.role.clone(),
            role_config: self.role_config.as_ref().map(|file| file.config.clone()),
            tls: self.ssl.then_some(tls),
            log: self.log_requests.clone(),
        }
    }
}

/// Runs a future to completion.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    // The runtime is compiled once for each type that it runs, and there is one type a call.
    let future: Pin<Box<dyn Future<Output = T> + '_>> = Box::pin(future);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a current-thread runtime needs only an epoll descriptor")
        .block_on(future)
}

/// Works until SIGINT or SIGTERM. Work that ends before has failed.
pub async fn until_signalled(work: impl Future<Output = ()>) -> ExitCode {
    let mut end = match signal(SignalKind::terminate()) {
        Ok(end) => end,
        Err(error) => {
            eprintln!("error: waiting for SIGTERM: {error}");
            return ExitCode::from(3);
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => ExitCode::SUCCESS,
        _ = end.recv() => ExitCode::SUCCESS,
        () = work => ExitCode::from(3),
    }
}

/// Prints an error and returns its exit code.
pub fn fail(error: &CtrlError, as_json: bool) -> ExitCode {
    if as_json {
        println!("{:#}", json!({ "error": error.to_string() }));
    }
    eprintln!("error: {error}");
    hint_of(error).iter().for_each(|hint| eprintln!("{hint}"));
    ExitCode::from(1)
}

/// A hint for a switch that does not answer, if one runs in a namespace of its own.
pub fn hint_of(error: &CtrlError) -> Option<String> {
    matches!(error, CtrlError::Connect { .. }).then(|| kept_rack_hint(SWITCH)).flatten()
}

/// A hint for racks of `up --keep`: the command as it runs at the `place`, in a namespace of its own.
pub fn kept_rack_hint(place: &str) -> Option<String> {
    let mut racks = Runtime::locate().racks().ok()?;
    // Where the command runs already, the address is wrong.
    let here = std::fs::read_link("/proc/self/ns/net").ok();
    let is_here = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok() == here;
    racks.retain(|rack| place != SWITCH || !rack.switches.iter().any(|switch| is_here(switch.process.pid)));
    if racks.is_empty() {
        return None;
    }
    let names: Vec<&str> = racks.iter().map(|rack| rack.name.as_str()).collect();
    let words: Vec<String> = std::env::args().skip(1).map(|word| quoted(&word)).collect();
    let rack = if racks.len() > 1 { "--rack NAME " } else { "" };
    Some(format!(
        "{} runs here, {place} in a namespace of its own: p4rack exec {rack}{place} -- p4rack {}",
        names.join(", "),
        words.join(" ")
    ))
}
