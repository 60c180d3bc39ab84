//! The `[pool]` table: memory nodes whose memory is lent; and `[workload.cache]`: stores in cached regions of it.

use super::hosts::{check_engine, known_host};
use crate::rack::reader::{as_integer_to, as_string};
use crate::rack::units::{parse_size, show_size};
use crate::rack::{Cache, Pool, Rack, Section, Sink, Workload};
use p4rack_fabric::remote::{Way, names_of};

/// A pool that is described; `None` if it is not described well enough, which was reported.
pub(super) type Described = Option<Pool>;

/// Bytes of an extent, the unit that the balloon lends.
const EXTENT_BYTES: (u64, u64) = (2 << 20, 1 << 30);
const EXTENT_HELP: &str = "write a power of two from \"2 MiB\" to \"1 GiB\"";
/// Seconds of a lease unless the description says how many.
const LEASE_S: u32 = 2;
/// Bytes of a block of a region.
const BLOCK_BYTES: (u64, u64) = (64, 4_096);

pub(super) fn read_pool(sink: &mut Sink<'_>, mut section: Section<'_, '_>) -> Described {
    let memory = section.list(sink, "memory", "names of hosts", as_string);
    if memory.is_none() && !section.has("memory") {
        section.missing(sink, "memory", "[\"h1\", \"h2\"]");
    }
    let extent = section.parsed(sink, "extent", EXTENT_HELP, |text| {
        let bytes = parse_size(text)?;
        match bytes.is_power_of_two() && (EXTENT_BYTES.0..=EXTENT_BYTES.1).contains(&bytes) {
            true => Ok(bytes),
            false => Err(format!("{} are no extent", show_size(bytes))),
        }
    });
    let lease = section.integer(sink, "lease_s", (1, 3_600));
    section.finish(sink);
    Some(Pool {
        memory: memory?.value.into_iter().map(|host| host.value).collect(),
        extent_bytes: extent.map_or(EXTENT_BYTES.0, |extent| extent.value),
        lease_s: lease.map_or(LEASE_S, |lease| lease.value as u32),
    })
}

/// Reads the parameters of a store's regions. `None`: it is not described well enough, which was reported.
pub(super) fn read_cache(
    sink: &mut Sink<'_>,
    mut section: Section<'_, '_>,
    pool: Option<&Described>,
) -> Option<Cache> {
    let wanted = "percentages from 1 to 100, such as [100, 50, 25, 10]";
    let local = section.list(sink, "local_percent", wanted, as_integer_to(100));
    if let Some(local) = local.as_ref().filter(|local| local.value.is_empty()) {
        sink.error(&local.span, &local.field, "is empty".to_owned(), format!("write {wanted}"));
    }
    let policy = section.string(sink, "policy", "a policy of `p4rack cache policies`");
    let block = section.integer(sink, "block_bytes", BLOCK_BYTES);
    if let Some(block) = block.as_ref().filter(|block| !block.value.is_power_of_two()) {
        let message = format!("{} is no power of two", block.value);
        sink.error(&block.span, &block.field, message, "write 64, 128, 256, … 4096");
    }
    let engine = section.string(sink, "engine", "the name of a host");
    section.finish(sink);
    if pool.is_none() {
        let message = "needs the memory nodes of a pool".to_owned();
        sink.refuse(&["workload.cache"], message, "add [pool] with memory = [\"h1\", \"h2\"]");
    }
    let local = local.map(|local| local.value.into_iter().map(|percent| percent.value).collect());
    Some(Cache {
        local_percent: local.unwrap_or_else(|| vec![100, 50, 25, 10]),
        policy: policy.map_or_else(|| "runs".to_owned(), |policy| policy.value),
        block_bytes: block.map(|block| block.value as u32),
        engine: engine.map(|engine| engine.value),
        pool: pool?.clone()?,
    })
}

/// Checks that the pool's hosts exist, and that regions suit the workload.
pub(super) fn check_cache(sink: &mut Sink<'_>, workload: &Workload, cache: &Cache, hosts: &[&str]) {
    let memory = &cache.pool.memory;
    if memory.is_empty() {
        sink.refuse(&["pool.memory"], "is empty".to_owned(), "name one host at least");
    }
    for (n, host) in memory.iter().enumerate() {
        let field = format!("pool.memory[{n}]");
        if !known_host(sink, &field, host, hosts) {
            continue;
        }
        if memory[..n].contains(host) {
            sink.refuse(&[&field], format!("{host} stands there twice"), "remove one");
        } else if workload.senders.contains(host) {
            let message = format!("{host} is one of the clients");
            sink.refuse(&[&field], message, "name another host: the memory must be remote");
        }
    }
    for (n, percent) in cache.local_percent.iter().enumerate() {
        if cache.local_percent[..n].contains(percent) {
            let field = format!("workload.cache.local_percent[{n}]");
            sink.refuse(&[&field], format!("{percent} stands there twice"), "remove one");
        }
    }
    if workload.store.as_ref().is_some_and(|store| store.log.is_some()) {
        let message = "is another store than [workload.log]".to_owned();
        sink.refuse(&["workload.cache"], message, "remove one of the tables");
    }
    if workload.kill.is_some() && workload.senders.len() < 2 {
        let message = "leaves no client that gets its memory".to_owned();
        sink.refuse(&["workload.kill"], message, "name two clients at least, or remove it");
    }
    check_engine(sink, workload, "workload.cache.engine", cache.engine.as_ref(), hosts);
}

/// Checks that a killed client's memory can go to another one. Boards and RDMA pools lend their memory in extents, and an extent is lent
/// again once its holder's lease has ended.
pub(super) fn check_takeover(sink: &mut Sink<'_>, rack: &Rack) {
    let Some(workload) = rack.workload.as_ref().filter(|workload| workload.kill.is_some()) else { return };
    let mut ways = workload.schemes.iter().filter_map(|run| rack.meant(*run).way);
    if rack.cache().is_none() || ways.any(Way::lends_extents) {
        return;
    }
    let lending: Vec<Way> = Way::ALL.iter().copied().filter(|way| way.lends_extents()).collect();
    let message =
        "kills no client: no way of workload.schemes lends extents that another client can take over";
    sink.refuse(&["workload.kill"], message.to_owned(), format!("add {}, or remove it", names_of(&lending)));
}
