//! Checks experiments for mistakes.

use super::KIND;
use super::frame::DATAGRAM_MAX;
use super::memory;
use super::spec::{DelaySpec, SendKind, SenderSpec, TopologySpec};
use crate::experiment::{Check, Pattern, SizeSpec};
use p4rack_codegen::rack::units::{parse_rate, parse_size};
use p4rack_codegen::topology::{Runs, Topology};
use p4rack_p4rt::nearest::nearest;
use p4rack_wire::Nanos;

/// Longest run.
const DURATION_MAX_US: u64 = 60_000_000;
/// Flows of an experiment: a tag has 16 bits for their number.
pub(super) const FLOWS_MAX: usize = 60_000;
/// Bytes of a message of UDP at most, and of a request or an answer: 64 frames.
const MESSAGE_MAX: f64 = (4 << 20) as f64;
const REQUEST_MAX: f64 = 64.0 * DATAGRAM_MAX as f64;
/// Bytes of the queue between a host and its link.
const QUEUE_MIN: u64 = 2 << 10;
const QUEUE_MAX: u64 = 64 << 20;
/// Longest delay of a link; the simulator's distributions hold 32 bits.
const DELAY_MAX: Nanos = Nanos::from_secs(4);
/// Longest delay of a switch's pipeline.
const PIPELINE_MAX_NS: u32 = 10_000_000;

fn out_of_range(value: u64, least: u64) -> String {
    format!("{value} is out of range; write {least} to {DURATION_MAX_US}")
}

/// Errors: the delay of a pipeline is none, or too long.
fn pipeline(delay: &DelaySpec) -> Result<(), String> {
    match delay.most_ns()? {
        0..=PIPELINE_MAX_NS => Ok(()),
        most => Err(format!("goes up to {most} ns; a pipeline takes {PIPELINE_MAX_NS} ns at most")),
    }
}

/// Checks the fields of a file by themselves.
pub(super) fn check(found: &mut Check<'_>, spec: &TopologySpec) {
    if spec.kind != KIND {
        found.problem("", 0, "kind", format!("is `{}`, not `{KIND}`", spec.kind));
    }
    let mut within = |key: &str, value: u64, least: u64| {
        if !(least..=DURATION_MAX_US).contains(&value) {
            found.problem("", 0, key, out_of_range(value, least));
        }
    };
    within("duration_us", spec.duration_us, 1);
    within("drain_us", spec.drain_us, 0);
    for (key, value) in
        [("rto_min_us", spec.transport.rto_min_us), ("probe_min_us", spec.transport.probe_min_us)]
    {
        if !(1..=DURATION_MAX_US).contains(&value) {
            found.problem("transport", 0, key, out_of_range(value, 1));
        }
    }
    if spec.warmup_us >= spec.duration_us {
        found.problem("", 0, "warmup_us", "leaves nothing to measure; make it less than duration_us");
    }
    if let Err(error) = pipeline(&spec.pipeline_ns) {
        found.problem(
            "",
            0,
            "pipeline_ns",
            format!("{error}; write 400, or [[0, 320], [0.5, 349], [1, 6820]]"),
        );
    }
    for (name, delay) in &spec.switch_pipeline_ns {
        if let Err(error) = pipeline(delay) {
            found.problem("switch_pipeline_ns", 0, name, error);
        }
    }
    if spec.dynamic_percent.is_some_and(|percent| !(1..=10_000).contains(&percent)) {
        found.problem("", 0, "dynamic_percent", "is out of range; write 1 to 10000");
    }
    match parse_size(&spec.host_queue) {
        Ok(bytes) if (QUEUE_MIN..=QUEUE_MAX).contains(&bytes) => {}
        Ok(_) => found.problem("", 0, "host_queue", "is out of range; write \"2 KiB\" to \"64 MiB\""),
        Err(error) => found.problem("", 0, "host_queue", format!("{error}; write \"1 MiB\"")),
    }
    if !(3_000..=1 << 30).contains(&spec.transport.window_bytes) {
        found.problem("transport", 0, "window_bytes", "is out of range; write 3000 to 1073741824");
    }
    if spec.traffic.is_empty() {
        found.problem("", 0, "traffic", "is empty; add a [[traffic]] table");
    }
    for (nth, traffic) in spec.traffic.iter().enumerate() {
        if spec.traffic[..nth].iter().any(|other| other.name == traffic.name) {
            found.problem("traffic", nth, "name", format!("`{}` is another traffic's already", traffic.name));
        }
        sender(found, spec, nth, traffic);
    }
}

/// Mean time between messages of this mean size at a rate.
pub(super) fn gap_ns(mean_bytes: f64, rate_bps: u64) -> f64 {
    mean_bytes * 8e9 / rate_bps as f64
}

fn sender(found: &mut Check<'_>, spec: &TopologySpec, nth: usize, traffic: &SenderSpec) {
    let send = traffic.send;
    let mut problem = |key: &str, message: String| found.problem("traffic", nth, key, message);
    if traffic.pattern == Pattern::Trace {
        problem("pattern", "is for racks of frames; replay a capture with send = \"pcap\"".to_owned());
    }
    if !(1..=1_000).contains(&traffic.flows) {
        problem("flows", format!("{} is out of range; write 1 to 1000", traffic.flows));
    }
    if !(1..=64).contains(&traffic.under_way) {
        problem("under_way", format!("{} is out of range; write 1 to 64", traffic.under_way));
    }
    for (key, value, least) in [
        ("timeout_us", Some(traffic.timeout_us), 1),
        ("think_us", Some(traffic.think_us), 0),
        ("stop_us", traffic.stop_us, 1),
    ] {
        if let Some(value) = value.filter(|value| !(least..=DURATION_MAX_US).contains(value)) {
            problem(key, out_of_range(value, least));
        }
    }
    if traffic.dscp > 63 {
        problem("dscp", format!("{} is out of range; write 0 to 63", traffic.dscp));
    }
    if traffic.start_us >= spec.duration_us {
        problem("start_us", "is not before the end; make it less than duration_us".to_owned());
    }
    if traffic.stop_us.is_some_and(|stop| (1..=traffic.start_us).contains(&stop)) {
        problem("stop_us", "is before it starts".to_owned());
    }
    if traffic.messages == Some(0) {
        problem("messages", "is 0; write 1 or more, or leave it out".to_owned());
    }
    let most = match send {
        SendKind::RequestResponse => REQUEST_MAX,
        _ if send.is_tcp() => f64::from(u32::MAX),
        _ => MESSAGE_MAX,
    };
    let mut size = |key: &str, size: &SizeSpec| match size.quantiles() {
        _ if size.is_layers() => problem(key, "is a network's layers; write bytes".to_owned()),
        Ok(sizes) if sizes.at(1.0) > most => {
            let largest = sizes.at(1.0);
            problem(key, format!("goes up to {largest:.0} bytes; {} takes {most:.0} at most", send.name()));
        }
        Ok(_) => {}
        Err(error) => problem(key, error),
    };
    size("size", &traffic.size);
    size("answer_size", &traffic.answer_size);
    let mut timing = |is_needed: bool, is_allowed: bool, why: &str| match (&traffic.rate, traffic.interval_us)
    {
        (Some(_), Some(_)) => problem("interval_us", "stands beside `rate`; write one of them".to_owned()),
        (None, None) if is_needed => {
            problem("rate", "is missing; write rate = \"100 Mb/s\" or interval_us = 10".to_owned());
        }
        (Some(rate), None) if is_allowed => match parse_rate(rate) {
            Err(error) => problem("rate", format!("{error}; write \"100 Mb/s\"")),
            Ok(0) => problem("rate", "is 0; write \"100 Mb/s\"".to_owned()),
            Ok(rate_bps) => {
                let gap_ns = traffic.size.quantiles().map_or(1.0, |sizes| gap_ns(sizes.mean(), rate_bps));
                if gap_ns < 1.0 {
                    let message = "leaves less than 1 ns between two messages, on average; lower it, or send larger messages";
                    problem("rate", message.to_owned());
                }
            }
        },
        (None, Some(us)) if is_allowed && !(0.001..=DURATION_MAX_US as f64).contains(&us) => {
            problem("interval_us", format!("{us} is out of range; write 0.001 (1 ns) to {DURATION_MAX_US}"));
        }
        (Some(_), None) if !is_allowed => problem("rate", why.to_owned()),
        (None, Some(_)) if !is_allowed => problem("interval_us", why.to_owned()),
        _ => {}
    };
    match send {
        SendKind::Constant | SendKind::Poisson => timing(true, true, ""),
        SendKind::Pcap => timing(false, false, "is given by the capture; take it out"),
        SendKind::RequestResponse | SendKind::Memory => {
            timing(false, false, "follows from under_way and think_us; take it out");
        }
        SendKind::Tcp | SendKind::Cubic | SendKind::Dctcp => timing(false, true, ""),
    }
    if (send == SendKind::Pcap) != traffic.file.is_some() {
        let message = "names the capture of send = \"pcap\"; give both or none";
        found.problem("traffic", nth, "file", message);
    }
    match send {
        SendKind::Memory => memory::check(found, nth, traffic),
        _ => {
            for (key, is_given) in [
                ("way", traffic.way.is_some()),
                ("read_percent", traffic.read_percent.is_some()),
                ("region", traffic.region.is_some()),
            ] {
                if is_given {
                    found.problem("traffic", nth, key, "is for send = \"memory\"; take it out");
                }
            }
        }
    }
}

/// Why a topology can't be simulated.
pub(super) struct Unfit {
    pub what: String,
    /// The same with the place in the topology's file, where that is known.
    pub place: Option<String>,
}

/// What can't be simulated of a topology.
pub(super) fn unfit(topology: &Topology) -> Vec<Unfit> {
    let mut all = Vec::new();
    if topology.hosts.len() < 2 {
        let what = "has fewer than two hosts, so there is nothing to send".to_owned();
        all.push(Unfit { what, place: None });
    }
    for (at, switch) in topology.switches.iter().enumerate() {
        if switch.runs == Runs::Nothing {
            let message = format!("leaves {}'s program to a controller", switch.name);
            let help = "name one to simulate it";
            let what = format!("{message}; {help}");
            let place = topology.mistake_of_switch(at, "program", message, help).to_string();
            all.push(Unfit { what, place: Some(place) });
        }
    }
    for link in topology.links.iter().filter(|link| link.delay > DELAY_MAX) {
        let ends = link.ends.map(|end| topology.end_name(end)).join("–");
        let seconds = link.delay.as_secs_f64();
        let what = format!(
            "has a link {ends} with a delay of {seconds} s; in virtual time write 4 s at most, although `p4rack up` takes 10 s"
        );
        all.push(Unfit { what, place: None });
    }
    all
}

/// Checks names against the topology.
pub(super) fn check_hosts(found: &mut Check<'_>, spec: &TopologySpec, topology: &Topology) {
    let unknown = |name: &str, known: &mut dyn Iterator<Item = &str>, what: &str| {
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write the name of a {what}"),
        };
        format!("`{name}` is no {what} of the topology; {help}")
    };
    for name in spec.switch_pipeline_ns.keys().filter(|name| topology.switch(name).is_none()) {
        let mut known = topology.switches.iter().map(|switch| switch.name.as_str());
        found.problem("switch_pipeline_ns", 0, name, unknown(name, &mut known, "switch"));
    }
    for (nth, traffic) in spec.traffic.iter().enumerate() {
        for (key, names) in [("senders", &traffic.senders), ("receivers", &traffic.receivers)] {
            for name in names.iter().flatten().filter(|name| topology.host(name).is_none()) {
                let mut known = topology.hosts.iter().map(|host| host.name.as_str());
                found.problem("traffic", nth, key, unknown(name, &mut known, "host"));
            }
        }
        if traffic.send == SendKind::Memory {
            memory::check_hosts(found, nth, traffic, topology);
        }
    }
}
