//! The `[workload]` table.

use super::check::Draft;
use super::reader::{At, Section, Sink, as_integer_to, as_string};
use super::{Kill, Rpc, Scheme, Workload, WorkloadKind};
use p4rack_p4rt::nearest::nearest;

pub(super) fn read_workload(
    sink: &mut Sink<'_>,
    mut section: Section<'_, '_>,
    drafts: &[Draft],
    has_pl2: bool,
    mixed: bool,
    parts: bool,
    default_schemes: Vec<Scheme>,
) -> Option<Workload> {
    let kind = section.parsed(sink, "kind", "write \"incast\"", |text| match text {
        "incast" => Ok(WorkloadKind::Incast),
        _ => Err(format!("`{text}` is no workload")),
    });
    if kind.is_none() && !section.has("kind") {
        section.missing(sink, "kind", "\"incast\"");
    }
    let mut schemes = Vec::new();
    let listed = section.list(sink, "schemes", "names such as [\"l2\", \"pl2-clock\"]", as_string);
    for scheme in listed.into_iter().flat_map(|listed| listed.value) {
        match scheme.value.parse::<Scheme>() {
            Err(message) => sink.error(&scheme.span, &scheme.field, message, "write one of the three"),
            Ok(parsed) if schemes.contains(&parsed) => {
                sink.error(&scheme.span, &scheme.field, format!("{parsed} stands there twice"), "remove one");
            }
            Ok(parsed) if parsed != Scheme::L2 && !has_pl2 => {
                let help = "add a [pl2] table with mode = \"clock\", or remove the scheme";
                sink.error(&scheme.span, &scheme.field, format!("{parsed} needs PL2's parameters"), help);
            }
            Ok(Scheme::Pl2Counter) if mixed => {
                let message = "counters count one slot for all, but the ports' rates differ".to_owned();
                sink.error(
                    &scheme.span,
                    &scheme.field,
                    message,
                    "remove it: pl2-clock gives each port its own slot",
                );
            }
            Ok(Scheme::Pl2Counter) if parts => {
                let message = "counters count frames, not parts of a slot".to_owned();
                sink.error(&scheme.span, &scheme.field, message, "remove it, or remove slot_parts");
            }
            Ok(parsed) => schemes.push(parsed),
        }
    }
    if schemes.is_empty() {
        schemes = default_schemes;
    }
    let receiver = host_name(sink, &mut section, "receiver", drafts);
    let senders = section.list(sink, "senders", "names of hosts", as_string);
    if senders.is_none() && !section.has("senders") {
        section.missing(sink, "senders", "[\"h2\", \"h3\"]");
    }
    let mut sender_names: Vec<String> = Vec::new();
    for sender in senders.as_ref().map(|senders| senders.value.as_slice()).unwrap_or_default() {
        if !known_host(sink, sender, drafts) {
            continue;
        }
        if sender_names.contains(&sender.value) {
            sink.error(
                &sender.span,
                &sender.field,
                format!("{} stands there twice", sender.value),
                "remove one",
            );
        } else if receiver.as_ref().is_some_and(|receiver| receiver.value == sender.value) {
            let message = format!("{} is the receiver", sender.value);
            sink.error(&sender.span, &sender.field, message, "remove it from the senders");
        } else {
            sender_names.push(sender.value.clone());
        }
    }
    if let Some(senders) = senders.as_ref().filter(|senders| senders.value.is_empty()) {
        sink.error(&senders.span, &senders.field, "is empty".to_owned(), "name one sender at least");
    }
    let load = section.integer(sink, "load_percent", (1, 10_000));
    let payload = section.integer(sink, "payload_bytes", (64, 1500));
    let duration = section.number(sink, "duration_s", (0.1, 3600.0));
    let seed = section.integer(sink, "seed", (0, i64::MAX as u64));
    let rpc = section.section(sink, "rpc");
    let rpc_wanted = rpc.is_some();
    let rpc = rpc.and_then(|rpc| read_rpc(sink, rpc, drafts));
    let kill = section.section(sink, "kill");
    let kill_wanted = kill.is_some();
    let kill = kill.and_then(|mut kill| {
        let host = host_name(sink, &mut kill, "host", drafts);
        kill.finish(sink);
        let host = host?;
        if !sender_names.contains(&host.value) {
            sink.error(
                &host.span,
                &host.field,
                format!("{} is no sender", host.value),
                "name one of the senders",
            );
            return None;
        }
        Some(Kill { host: host.value })
    });
    section.finish(sink);
    if (rpc_wanted && rpc.is_none()) || (kill_wanted && kill.is_none()) {
        return None;
    }
    Some(Workload {
        kind: kind?.value,
        schemes,
        receiver: receiver?.value,
        senders: sender_names,
        load_percent: load.map_or(400, |load| load.value as u32),
        payload_bytes: payload.map_or(1500, |payload| payload.value as u32),
        duration_s: duration.map_or(5.0, |duration| duration.value),
        seed: seed.map_or(1, |seed| seed.value),
        rpc,
        kill,
    })
}

fn read_rpc(sink: &mut Sink<'_>, mut section: Section<'_, '_>, drafts: &[Draft]) -> Option<Rpc> {
    const SIZE_MAX: u32 = 1 << 20;
    let client = host_name(sink, &mut section, "client", drafts);
    let server = host_name(sink, &mut section, "server", drafts);
    if let (Some(client), Some(server)) = (&client, &server)
        && client.value == server.value
    {
        let message = format!("{} is the client too", server.value);
        sink.error(&server.span, &server.field, message, "name another host: the values must cross the rack");
    }
    let wanted = "sizes from 1 to 1048576 bytes, such as [1024, 4096]";
    let sizes = section.list(sink, "value_bytes", wanted, as_integer_to(SIZE_MAX));
    if let Some(sizes) = sizes.as_ref().filter(|sizes| sizes.value.is_empty()) {
        sink.error(&sizes.span, &sizes.field, "is empty".to_owned(), format!("write {wanted}"));
    }
    section.finish(sink);
    let value_bytes = match sizes {
        Some(sizes) => sizes.value.into_iter().map(|size| size.value).collect(),
        None => vec![1024, 4096],
    };
    Some(Rpc { client: client?.value, server: server?.value, value_bytes })
}

fn host_name(
    sink: &mut Sink<'_>,
    section: &mut Section<'_, '_>,
    key: &'static str,
    drafts: &[Draft],
) -> Option<At<String>> {
    let name = section.string(sink, key, "the name of a host");
    if name.is_none() && !section.has(key) {
        section.missing(sink, key, "the name of a host");
    }
    name.filter(|name| known_host(sink, name, drafts))
}

fn known_host(sink: &mut Sink<'_>, name: &At<String>, drafts: &[Draft]) -> bool {
    let names: Vec<&str> = drafts.iter().flat_map(|d| &d.name).map(|name| name.value.as_str()).collect();
    let known = names.contains(&name.value.as_str());
    if !known {
        let help = match nearest(&name.value, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the hosts are {}", names.join(", ")),
        };
        sink.error(&name.span, &name.field, format!("there is no host `{}`", name.value), help);
    }
    known
}
