//! Options that name a P4Runtime switch; what the commands that talk to one share.

use p4rack_codegen::rack::Switch;
use p4rack_ctrl::{CtrlError, Target, session::parse_election_id};
use serde_json::json;
use std::process::ExitCode;

/// Which switch, and as whom.
#[derive(clap::Args, Debug)]
// Its own name: the commands that take these options have arguments called `Args` too.
#[group(id = "switch-target")]
pub struct Args {
    /// Where P4Runtime is served, HOST:PORT [default: the description's, or 127.0.0.1:9559]
    #[arg(long, value_name = "ADDR")]
    grpc_addr: Option<String>,
    /// The switch's number at that server [default: the description's, or 1]
    #[arg(long, value_name = "N")]
    device_id: Option<u64>,
    /// P4Runtime election id; the highest one is primary
    #[arg(long, value_name = "HI,LO", default_value = "0,1", value_parser = parse_election_id)]
    election_id: u128,
}

impl Args {
    /// Whether the options say where the server is.
    pub fn names_a_server(&self) -> bool {
        self.grpc_addr.is_some()
    }

    /// The target; what the options leave out comes from the description.
    pub fn for_switch(&self, switch: Option<&Switch>) -> Target {
        let described = switch.map(|switch| switch.grpc_addr.to_string());
        Target {
            addr: self.grpc_addr.clone().or(described).unwrap_or_else(|| "127.0.0.1:9559".into()),
            device_id: self.device_id.or(switch.map(|switch| switch.device_id)).unwrap_or(1),
            election_id: self.election_id,
            role: String::new(),
        }
    }
}

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a current-thread runtime needs only an epoll descriptor")
        .block_on(future)
}

/// Prints an error; its exit code.
pub fn fail(error: &CtrlError, as_json: bool) -> ExitCode {
    if as_json {
        println!("{:#}", json!({ "error": error.to_string() }));
    }
    eprintln!("{error}");
    ExitCode::from(1)
}
