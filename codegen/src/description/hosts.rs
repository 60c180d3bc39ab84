//! Checks of hosts that tables name.

use crate::rack::{Sink, Workload};
use p4rack_p4rt::nearest::nearest;

/// Whether the host exists; reports a mistake otherwise.
pub(crate) fn known_host(sink: &mut Sink<'_>, field: &str, name: &str, hosts: &[&str]) -> bool {
    let known = hosts.contains(&name);
    if !known {
        let help = match nearest(name, hosts.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the hosts are {}", hosts.join(", ")),
        };
        sink.refuse(&[field], format!("there is no host `{name}`"), help);
    }
    known
}

/// Checks that the host of an engine exists and has no other role.
pub(super) fn check_engine(
    sink: &mut Sink<'_>,
    workload: &Workload,
    field: &str,
    engine: Option<&String>,
    hosts: &[&str],
) {
    if let Some(engine) = engine.filter(|engine| known_host(sink, field, engine, hosts))
        && (workload.senders.contains(engine) || workload.receivers.contains(engine))
    {
        let message = format!("{engine} is the store's server or client");
        sink.refuse(&[field], message, "name a spare host: the engine needs an adapter of its own");
    }
}
