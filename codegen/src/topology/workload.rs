//! `[workload]` of a topology: what `p4rack up` sends between its hosts.

use crate::description::{self, RATE_HELP};
use crate::rack::reader::{as_integer_to, as_string};
use crate::rack::units::parse_rate;
use crate::rack::{At, Section, Sink};

/// Largest value of a request.
const VALUE_MAX_BYTES: u32 = 1 << 20;
/// Frames per second of a sender at most: one process sends about a million datagrams.
const FRAMES_MAX: u64 = 2_000_000;
/// Lowest rate of a sender.
const RATE_MIN_BPS: u64 = 1_000;

/// Traffic between hosts, all of it at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// How long it lasts, in seconds.
    pub duration_s: f64,
    /// Seed for the phases of senders' bursts.
    pub seed: u64,
    /// Datagrams, as listed.
    pub udp: Vec<Datagrams>,
    /// Requests, as listed.
    pub rpc: Vec<Requests>,
}

/// `[[workload.udp]]`: datagrams at a constant rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Positions of the senders.
    pub senders: Vec<usize>,
    /// Position of the receiver.
    pub receiver: usize,
    /// Ethernet payload that each sender offers, in bits per second.
    pub rate_bps: u64,
    /// Ethernet payload of a frame.
    pub payload_bytes: u32,
}

/// `[[workload.rpc]]`: values that a client asks of a server over TCP, one at a time for each size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Position of the client.
    pub client: usize,
    /// Position of the server.
    pub server: usize,
    /// Sizes of the values.
    pub value_bytes: Vec<u32>,
}

/// Reads the table; `hosts` are the names of the topology's hosts by position.
pub(super) fn read(sink: &mut Sink<'_>, mut section: Section<'_, '_>, hosts: &[Option<&str>]) -> Workload {
    let duration = section.number(sink, "duration_s", (0.1, 3600.0));
    let seed = section.integer(sink, "seed", (0, i64::MAX as u64));
    let sections = section.sections(sink, "udp");
    let udp = sections.into_iter().filter_map(|section| datagrams(sink, section, hosts)).collect();
    let sections = section.sections(sink, "rpc");
    let rpc = sections.into_iter().filter_map(|section| requests(sink, section, hosts)).collect();
    if !section.has("udp") && !section.has("rpc") {
        let help = "add [[workload.udp]] with senders, receiver and rate, or [[workload.rpc]] with client and server";
        sink.refuse(&["workload"], "sends nothing".to_owned(), help);
    }
    section.finish(sink);
    Workload {
        duration_s: duration.map_or(5.0, |duration| duration.value),
        seed: seed.map_or(1, |seed| seed.value),
        udp,
        rpc,
    }
}

fn datagrams(sink: &mut Sink<'_>, mut section: Section<'_, '_>, hosts: &[Option<&str>]) -> Option<Datagrams> {
    let listed = section.list(sink, "senders", "names of hosts, such as [\"h2\", \"h3\"]", as_string);
    if listed.is_none() && !section.has("senders") {
        section.missing(sink, "senders", "[\"h2\", \"h3\"]");
    }
    if let Some(listed) = listed.as_ref().filter(|listed| listed.value.is_empty()) {
        sink.error(&listed.span, &listed.field, "is empty".to_owned(), "write names of hosts");
    }
    let receiver = host(sink, &mut section, "receiver", hosts);
    let rate = section.parsed(sink, "rate", RATE_HELP, |text| match parse_rate(text)? {
        rate_bps if rate_bps < RATE_MIN_BPS => Err(format!("`{text}` is less than 1 kb/s")),
        rate_bps => Ok(rate_bps),
    });
    if rate.is_none() && !section.has("rate") {
        section.missing(sink, "rate", "\"10 Mb/s\"");
    }
    let payload = section.integer(sink, "payload_bytes", (64, 1500));
    let payload_bytes = payload.map_or(1_500, |payload| payload.value as u32);
    let most_bps = FRAMES_MAX * u64::from(payload_bytes) * 8;
    if let Some(rate) = rate.as_ref().filter(|rate| rate.value > most_bps) {
        let message = format!(
            "is more than a sender can send: {FRAMES_MAX} frames a second, which are {} Mb/s of {payload_bytes} bytes each",
            most_bps / 1_000_000
        );
        sink.error(&rate.span, &rate.field, message, "lower it, or name more senders");
    }
    section.finish(sink);
    let (mut senders, mut are_known): (Vec<usize>, bool) = (Vec::new(), true);
    for sender in listed?.value {
        match known_host(sink, &sender.field, &sender.value, hosts) {
            Some(at) if senders.contains(&at) => {
                let message = format!("`{}` is listed twice", sender.value);
                sink.error(&sender.span, &sender.field, message, "name each sender once");
            }
            Some(at) if Some(at) == receiver => {
                let message = format!("`{}` is the receiver", sender.value);
                sink.error(&sender.span, &sender.field, message, "name another host");
            }
            Some(at) => senders.push(at),
            None => are_known = false,
        }
    }
    are_known.then_some(Datagrams { senders, receiver: receiver?, rate_bps: rate?.value, payload_bytes })
}

fn requests(sink: &mut Sink<'_>, mut section: Section<'_, '_>, hosts: &[Option<&str>]) -> Option<Requests> {
    let client = host(sink, &mut section, "client", hosts);
    let server = host(sink, &mut section, "server", hosts);
    if client.is_some() && client == server {
        let field = section.field("server");
        sink.refuse(&[&field], "is the client itself".to_owned(), "name another host");
    }
    let wanted = "sizes from 1 to 1048576 bytes, such as [1024, 4096]";
    let sizes = section.list(sink, "value_bytes", wanted, as_integer_to(VALUE_MAX_BYTES));
    if let Some(sizes) = sizes.as_ref().filter(|sizes| sizes.value.is_empty()) {
        sink.error(&sizes.span, &sizes.field, "is empty".to_owned(), format!("write {wanted}"));
    }
    section.finish(sink);
    let sizes = sizes.map(|sizes| sizes.value.into_iter().map(|size: At<u32>| size.value).collect());
    Some(Requests {
        client: client?,
        server: server?,
        value_bytes: sizes.unwrap_or_else(|| vec![1_024, 4_096]),
    })
}

/// The position of a named host.
fn host(
    sink: &mut Sink<'_>,
    section: &mut Section<'_, '_>,
    key: &'static str,
    hosts: &[Option<&str>],
) -> Option<usize> {
    let name = section.string(sink, key, "the name of a host");
    if name.is_none() && !section.has(key) {
        section.missing(sink, key, "the name of a host");
    }
    let name = name?;
    known_host(sink, &name.field, &name.value, hosts)
}

/// The position of a host; reports a mistake if there is none of that name.
fn known_host(sink: &mut Sink<'_>, field: &str, name: &str, hosts: &[Option<&str>]) -> Option<usize> {
    let at = hosts.iter().position(|host| *host == Some(name));
    if at.is_none() {
        let known: Vec<&str> = hosts.iter().flatten().copied().collect();
        description::known_host(sink, field, name, &known);
    }
    at
}
