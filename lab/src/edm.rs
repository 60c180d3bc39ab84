//! Memory nodes that this crate starts on hosts of a rack.

use crate::network::host_interfaces;
use crate::running::Running;

/// Key of their regions.
pub const REGION_KEY: u32 = 1;

/// Arguments of `p4rack` that serve fresh memory on a host of a running rack.
pub fn serve_args(running: &Running<'_>, host: &str, bytes: u64) -> Vec<String> {
    let words = ["memory", "serve", &running.path.display().to_string()].map(str::to_owned);
    let options = [
        ("--name", host.to_owned()),
        ("--interface", host_interfaces(running.rack).join(",")),
        ("--scheme", running.scheme.name()),
        ("--arch", running.rack.switch.arch.name().to_owned()),
        ("--bytes", format!("{bytes} B")),
        ("--key", REGION_KEY.to_string()),
    ];
    words.into_iter().chain(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value])).collect()
}
