//! The `[workload]` table: the workload of `p4rack up`.

use super::hosts::{check_engine, known_host};
use super::pool::{Described, check_cache, check_takeover, read_cache};
use super::tors;
use crate::rack::reader::{as_integer_to, as_string};
use crate::rack::{Kill, Log, Mix, Rack, Rpc, Run, Section, Sink, StoreParameters, Workload, WorkloadKind};

/// Reads the table. `pool` is the pool of the description, if it has one.
pub(super) fn read_workload(
    sink: &mut Sink<'_>,
    mut section: Section<'_, '_>,
    pool: Option<Described>,
) -> Option<Workload> {
    let kind =
        section.parsed(sink, "kind", "write \"incast\", \"outcast\" or \"store\"", |text| match text {
            "incast" => Ok(WorkloadKind::Incast),
            "outcast" => Ok(WorkloadKind::Outcast),
            "store" => Ok(WorkloadKind::Store),
            _ => Err(format!("`{text}` is no workload")),
        });
    if kind.is_none() && !section.has("kind") {
        section.missing(sink, "kind", "\"incast\", \"outcast\" or \"store\"");
    }
    let mut schemes = Vec::new();
    let listed = section.list(sink, "schemes", "names of schemes, such as [\"l2\"]", as_string);
    for scheme in listed.into_iter().flat_map(|listed| listed.value) {
        match scheme.value.parse::<Run>() {
            Err(message) => sink.error(&scheme.span, &scheme.field, message, "write one of these"),
            Ok(parsed) => schemes.push(parsed),
        }
    }
    if kind.as_ref().is_some_and(|kind| kind.value == WorkloadKind::Store) {
        return read_store(sink, section, schemes, pool);
    }
    if pool.is_some() {
        refuse_pool(sink);
    }
    let outcast = kind.as_ref().is_some_and(|kind| kind.value == WorkloadKind::Outcast);
    let (one, many, other) = match outcast {
        false => ("receiver", "senders", ["sender", "receivers"]),
        true => ("sender", "receivers", ["receiver", "senders"]),
    };
    for key in other {
        let help = format!("it has a {one} and {many}");
        section.refuse(sink, key, if outcast { "is an incast's" } else { "is an outcast's" }, &help);
    }
    let center = host_name(sink, &mut section, one);
    let others = section.list(sink, many, "names of hosts", as_string);
    if others.is_none() && !section.has(many) {
        section.missing(sink, many, "[\"h2\", \"h3\"]");
    }
    let load = section.integer(sink, "load_percent", (1, 10_000));
    let payload = section.integer(sink, "payload_bytes", (64, 1500));
    let (duration_s, seed) = read_run(sink, &mut section);
    let rpc = section.section(sink, "rpc").map(|rpc| read_rpc(sink, rpc));
    let kill = read_kill(sink, &mut section);
    let kill_tor = tors::read_kill(sink, &mut section);
    section.finish(sink);
    // A value that is present but invalid has been reported.
    let (rpc, kill) =
        (rpc.map_or(Some(None), |rpc| rpc.map(Some))?, kill.map_or(Some(None), |kill| kill.map(Some))?);
    let (center, others) = (vec![center?], others?.value.into_iter().map(|host| host.value).collect());
    let (receivers, senders) = if outcast { (others, center) } else { (center, others) };
    Some(Workload {
        kind: kind?.value,
        schemes,
        receivers,
        senders,
        load_percent: load.map_or(400, |load| load.value as u32),
        payload_bytes: payload.map_or(1500, |payload| payload.value as u32),
        duration_s,
        seed,
        rpc,
        kill,
        kill_tor,
        store: None,
    })
}

/// Duration and seed of the run.
fn read_run(sink: &mut Sink<'_>, section: &mut Section<'_, '_>) -> (f64, u64) {
    let duration = section.number(sink, "duration_s", (0.1, 3600.0));
    let seed = section.integer(sink, "seed", (0, i64::MAX as u64));
    (duration.map_or(5.0, |duration| duration.value), seed.map_or(1, |seed| seed.value))
}

/// The host that is killed; within, `None` if it is not named.
fn read_kill(sink: &mut Sink<'_>, section: &mut Section<'_, '_>) -> Option<Option<Kill>> {
    section.section(sink, "kill").map(|mut kill| {
        let host = host_name(sink, &mut kill, "host");
        kill.finish(sink);
        Some(Kill { host: host? })
    })
}

fn refuse_pool(sink: &mut Sink<'_>) {
    let message = "is not used by the workload".to_owned();
    sink.refuse(&["pool"], message, "add [workload.cache] to a workload of kind \"store\", or remove it");
}

/// A key-value store: its server is the receiver, its clients are the senders. With a cache, the receivers are the pool's memory nodes.
fn read_store(
    sink: &mut Sink<'_>,
    mut section: Section<'_, '_>,
    schemes: Vec<Run>,
    pool: Option<Described>,
) -> Option<Workload> {
    let cache = section.section(sink, "cache").map(|cache| read_cache(sink, cache, pool.as_ref()));
    let (servers, kill) = match &cache {
        Some(cache) => {
            section.refuse(
                sink,
                "server",
                "is not a server of cached regions",
                "remove it: the memory nodes of [pool] are",
            );
            let memory = cache.as_ref().map(|cache| cache.pool.memory.clone());
            (memory, read_kill(sink, &mut section))
        }
        None => {
            if pool.is_some() {
                refuse_pool(sink);
            }
            (host_name(sink, &mut section, "server").map(|server| vec![server]), None)
        }
    };
    let clients = section.list(sink, "clients", "names of hosts", as_string);
    if clients.is_none() && !section.has("clients") {
        section.missing(sink, "clients", "[\"h1\", \"h2\"]");
    }
    let records = section.integer(sink, "records", (1, 1 << 20));
    let value_bytes = section.integer(sink, "value_bytes", (1, 1 << 16));
    let wanted = "YCSB's mixes, such as [\"A\", \"B\"]";
    let listed = section.list(sink, "mixes", wanted, as_string);
    if let Some(mixes) = listed.as_ref().filter(|mixes| mixes.value.is_empty()) {
        sink.error(&mixes.span, &mixes.field, "is empty".to_owned(), format!("write {wanted}"));
    }
    let mut mixes = if listed.is_some() || section.has("mixes") { Vec::new() } else { Mix::ALL.to_vec() };
    for mix in listed.into_iter().flat_map(|listed| listed.value) {
        match mix.value.parse::<Mix>() {
            Ok(parsed) => mixes.push(parsed),
            Err(message) => sink.error(&mix.span, &mix.field, message, "write one of these"),
        }
    }
    let depth = section.integer(sink, "depth", (1, 128));
    let bulk = section.string(sink, "bulk", "the name of a host").map(|bulk| bulk.value);
    let log = section.section(sink, "log").map(|log| read_log(sink, log));
    if let Some(depth) = depth.as_ref().filter(|depth| cache.is_some() && depth.value > 1) {
        let message = format!("{} operations are more than a client of a region has under way", depth.value);
        sink.error(&depth.span, &depth.field, message, "write 1, or remove it or [workload.cache]");
    }
    let depth = depth.map_or(if log.is_some() { LOG_DEPTH } else { 1 }, |depth| depth.value as u32);
    let (duration_s, seed) = read_run(sink, &mut section);
    let kill_tor = tors::read_kill(sink, &mut section);
    section.finish(sink);
    let value_bytes = value_bytes.map_or(960, |bytes| bytes.value as u32);
    // A value that is present but invalid has been reported.
    let kill = kill.map_or(Some(None), |kill| kill.map(Some))?;
    let cache = cache.map_or(Some(None), |cache| cache.map(Some))?;
    Some(Workload {
        kind: WorkloadKind::Store,
        schemes,
        receivers: servers?,
        senders: clients?.value.into_iter().map(|host| host.value).collect(),
        load_percent: 0,
        payload_bytes: value_bytes,
        duration_s,
        seed,
        rpc: None,
        kill,
        kill_tor,
        store: Some(StoreParameters {
            records: records.map_or(1_000, |records| records.value as u32),
            value_bytes,
            mixes,
            depth,
            bulk,
            log,
            cache,
        }),
    })
}

/// Operations of a log store's client under way, unless the description says how many.
const LOG_DEPTH: u32 = 100;

/// Reads the parameters of a log store.
fn read_log(sink: &mut Sink<'_>, mut section: Section<'_, '_>) -> Log {
    let engine = section.string(sink, "engine", "the name of a host");
    let memory_percent = section.integer(sink, "memory_percent", (1, 99));
    section.finish(sink);
    Log {
        engine: engine.map(|engine| engine.value),
        memory_percent: memory_percent.map_or(20, |percent| percent.value as u32),
    }
}

/// Checks that the workload names existing hosts in legal places.
pub(super) fn check_workload(sink: &mut Sink<'_>, workload: &Workload, hosts: &[&str]) {
    let (one, many) = match workload.kind {
        WorkloadKind::Incast => ("receiver", "senders"),
        WorkloadKind::Outcast => ("sender", "receivers"),
        WorkloadKind::Store => ("server", "clients"),
    };
    let (center, others) = workload.ends();
    let cache = workload.store.as_ref().and_then(|store| store.cache.as_ref());
    if cache.is_none() {
        known_host(sink, &format!("workload.{one}"), center, hosts);
    }
    for (n, other) in others.iter().enumerate() {
        let field = format!("workload.{many}[{n}]");
        if !known_host(sink, &field, other, hosts) {
            continue;
        }
        if others[..n].contains(other) {
            sink.refuse(&[&field], format!("{other} stands there twice"), "remove one");
        } else if cache.is_none() && other == center {
            let help = format!("remove it from the {many}");
            sink.refuse(&[&field], format!("{other} is the {one}"), help);
        }
    }
    if let Some(bulk) = workload.store.as_ref().and_then(|store| store.bulk.as_deref())
        && known_host(sink, "workload.bulk", bulk, hosts)
    {
        let is_owned =
            workload.store.as_ref().is_some_and(|store| store.log.is_some() || store.cache.is_some());
        if bulk == center || others.iter().any(|other| other == bulk) {
            let message = format!("{bulk} is the store's server or client");
            sink.refuse(&["workload.bulk"], message, "name another host");
        } else if is_owned {
            let message = "a log store and a cached region have no host with bulk traffic".to_owned();
            sink.refuse(&["workload.bulk"], message, "remove it, or the store's own table");
        }
    }
    if others.is_empty() {
        sink.refuse(&[&format!("workload.{many}")], "is empty".to_owned(), "name one at least");
    }
    if let Some(store) = &workload.store
        && let Some(log) = &store.log
    {
        check_log(sink, workload, store, log, hosts);
    }
    if let Some(cache) = cache {
        check_cache(sink, workload, cache, hosts);
    }
    if let Some(rpc) = &workload.rpc {
        let client = known_host(sink, "workload.rpc.client", &rpc.client, hosts);
        let server = known_host(sink, "workload.rpc.server", &rpc.server, hosts);
        if client && server && rpc.client == rpc.server {
            let message = format!("{} is the client too", rpc.server);
            let help = "name another host: the values must cross the rack";
            sink.refuse(&["workload.rpc.server"], message, help);
        }
    }
    if let Some(Kill { host }) = &workload.kill
        && known_host(sink, "workload.kill.host", host, hosts)
    {
        if workload.kind == WorkloadKind::Outcast {
            let message = "leaves an outcast without its sender or without a difference".to_owned();
            sink.refuse(&["workload.kill"], message, "remove it, or write an incast");
        } else if !workload.senders.contains(host) {
            let message = format!("{host} is no {}", many.trim_end_matches('s'));
            sink.refuse(&["workload.kill.host"], message, format!("name one of the {many}"));
        }
    }
}

/// Checks what a log store needs beyond other stores.
fn check_log(sink: &mut Sink<'_>, workload: &Workload, store: &StoreParameters, log: &Log, hosts: &[&str]) {
    /// Some fit into a page.
    const VALUE_BYTES_MAX: u32 = 4_096;
    if workload.senders.len() > 1 {
        let message = format!("a log store has one client, not {}", workload.senders.len());
        sink.refuse(&["workload.clients"], message, "name one, or remove [workload.log]");
    }
    if store.value_bytes > VALUE_BYTES_MAX || !store.value_bytes.is_multiple_of(8) {
        let message = format!("{} is no size of a log store's values", store.value_bytes);
        let help = format!("write a multiple of 8 up to {VALUE_BYTES_MAX}, or remove [workload.log]");
        sink.refuse(&["workload.value_bytes"], message, help);
    }
    check_engine(sink, workload, "workload.log.engine", log.engine.as_ref(), hosts);
}

/// Checks that the rack can run the schemes that its workload lists; if it lists none, uses those that the
/// rack has.
pub(super) fn check_schemes(sink: &mut Sink<'_>, rack: &mut Rack) {
    let listed = rack.workload.as_ref().map(|workload| workload.schemes.clone()).unwrap_or_default();
    for (n, scheme) in listed.iter().enumerate() {
        let field = format!("workload.schemes[{n}]");
        if listed[..n].contains(scheme) {
            sink.refuse(&[&field], format!("{scheme} stands there twice"), "remove one");
        } else if let Err(problem) = rack.during(*scheme) {
            let help = "or remove the scheme";
            sink.refuse(&[&field], format!("{scheme} {problem}"), help);
        }
    }
    let own = rack.own_runs();
    if let Some(workload) = rack.workload.as_mut().filter(|workload| workload.schemes.is_empty()) {
        workload.schemes = own;
    }
    check_takeover(sink, rack);
}

fn read_rpc(sink: &mut Sink<'_>, mut section: Section<'_, '_>) -> Option<Rpc> {
    const SIZE_MAX: u32 = 1 << 20;
    let client = host_name(sink, &mut section, "client");
    let server = host_name(sink, &mut section, "server");
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
    Some(Rpc { client: client?, server: server?, value_bytes })
}

fn host_name(sink: &mut Sink<'_>, section: &mut Section<'_, '_>, key: &'static str) -> Option<String> {
    let name = section.string(sink, key, "the name of a host");
    if name.is_none() && !section.has(key) {
        section.missing(sink, key, "the name of a host");
    }
    name.map(|name| name.value)
}
