//! Options of `simple_switch` and `simple_switch_grpc` behind `--`: those of BMv2's targets.

use clap::Parser;
use p4rack_switch::QUEUES;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of the target.
#[derive(Parser, Debug)]
#[command(
    no_binary_name = true,
    disable_version_flag = true,
    override_usage = "simple_switch [OPTIONS] FILE -- [OPTIONS OF THE TARGET]"
)]
pub(super) struct TargetArgs {
    #[arg(long, default_value_t = 511, value_parser = crate::numbers::within::<u16>(1..=511))]
    pub(super) drop_port: u16,
    #[arg(long, value_parser = crate::numbers::within::<usize>(1..=QUEUES))]
    pub(super) priority_queues: Option<usize>,
    #[arg(long, value_parser = crate::cmd::values::addr)]
    pub(super) grpc_server_addr: Option<SocketAddr>,
    #[arg(long, value_parser = crate::numbers::within::<u16>(1..=511))]
    pub(super) cpu_port: Option<u16>,
    #[arg(long, hide = true)]
    grpc_server_ssl: bool,
    #[arg(long, hide = true)]
    grpc_server_cacert: Option<PathBuf>,
    #[arg(long, hide = true)]
    grpc_server_cert: Option<PathBuf>,
    #[arg(long, hide = true)]
    grpc_server_key: Option<PathBuf>,
    #[arg(long, hide = true)]
    grpc_server_with_client_auth: bool,
    #[arg(long)]
    #[allow(dead_code, reason = "accepted for scripts that give it: programs may always be installed")]
    pub(super) enable_swap: bool,
    #[arg(long)]
    pub(super) disable_swap: bool,
    #[arg(long)]
    pub(super) max_mc_groups: Option<u64>,
    #[arg(long)]
    pub(super) max_l1_entries: Option<u64>,
    #[arg(long)]
    pub(super) max_l2_entries: Option<u64>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    pub(super) load_modules: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    pub(super) dp_grpc_server_addr: Option<String>,
}

impl TargetArgs {
    /// The first option of simple_switch_grpc alone.
    pub(super) fn only_grpc(&self) -> Option<&'static str> {
        let all = [
            ("--grpc-server-addr", self.grpc_server_addr.is_some()),
            ("--cpu-port", self.cpu_port.is_some()),
            ("--grpc-server-ssl", self.is_encrypted()),
            ("--disable-swap", self.disable_swap),
            ("--dp-grpc-server-addr", self.dp_grpc_server_addr.is_some()),
        ];
        all.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Whether P4Runtime should be encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        let files = [&self.grpc_server_cacert, &self.grpc_server_cert, &self.grpc_server_key];
        self.grpc_server_ssl || self.grpc_server_with_client_auth || files.into_iter().any(Option::is_some)
    }
}
