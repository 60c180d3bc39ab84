//! Racks with two switches: what they refuse.

use crate::rack::{Rack, Section, Sink, limits};

/// The switch that a workload kills.
pub(super) fn read_kill(sink: &mut Sink<'_>, section: &mut Section<'_, '_>) -> Option<u16> {
    section.integer(sink, "kill_tor", (1, limits::TORS.1)).map(|tor| tor.value as u16)
}

/// Checks what racks with two switches need, and that no other rack kills one.
pub(super) fn check(sink: &mut Sink<'_>, rack: &Rack) {
    let workload = rack.workload.as_ref();
    if let Some(workload) = workload.filter(|workload| workload.kill_tor.is_some()) {
        let is_owned =
            workload.store.as_ref().is_some_and(|store| store.log.is_some() || store.cache.is_some());
        let refused = match () {
            () if rack.switch.tors == 1 => {
                Some(("leaves the rack without a switch", "set switch.tors to 2, or remove it"))
            }
            () if workload.kill.is_some() => {
                Some(("kills a switch, and workload.kill a host", "remove one of them"))
            }
            () if is_owned => {
                Some(("is for stores whose clients share the records", "remove it, or the store's own table"))
            }
            () => None,
        };
        if let Some((message, help)) = refused {
            sink.refuse(&["workload.kill_tor"], message.to_owned(), help);
        }
    }
    if rack.switch.tors == 1 {
        return;
    }
    if workload.is_some_and(|workload| workload.kill.is_some() && workload.kill_tor.is_none()) {
        let message = "kills a host, whose frames can't be told from lost copies".to_owned();
        sink.refuse(&["workload.kill"], message, "remove it, or set switch.tors to 1");
    }
    if rack.switch.grpc_addr.port() > u16::MAX - rack.switch.tors + 1 {
        let message = format!("{} has no port behind it for the next switch", rack.switch.grpc_addr);
        sink.refuse(&["switch.grpc_addr"], message, "write a lower port");
    }
    for (n, _) in rack.hosts.iter().enumerate().filter(|(_, host)| host.foreign_percent.is_some()) {
        let message = "leads to racks whose frames have no copies and no sequence numbers".to_owned();
        sink.refuse(&[&format!("host[{n}].foreign_percent")], message, "remove it, or set switch.tors to 1");
    }
    for protocol in &rack.protocols {
        if let Some(problem) = protocol.refuses_tors(rack) {
            let section = protocol.definition().section();
            sink.refuse(&[section], problem, "or set switch.tors to 1");
        }
    }
}
