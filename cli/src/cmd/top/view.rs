//! View of `p4rack top`: the state of a switch, with rates since an earlier state.

use super::Look;
use p4rack_codegen::scheme::Cost;
use p4rack_codegen::{DropReason, Rack};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::p4rack::telemetry::v1::PortStats;
use p4rack_report::text::count;
use serde::Serialize;

/// Reason of the switch for frames that the program drops, which counts them by reasons of its own.
const BY_PROGRAM: &str = "ingress_drop";

/// The state at one time, with rates since an earlier one.
#[derive(Debug, Serialize)]
pub struct View {
    seconds: f64,
    /// `None`, here and for each port: the switch does not say.
    buffer_bytes: Option<u64>,
    buffer_max_bytes: Option<u64>,
    ports: Vec<PortView>,
    /// Frames dropped, by reason of the switch or of the program.
    dropped: Vec<Dropped>,
    /// Frames that the program counts among its drops and that are no loss; absent if there are none.
    used_up: Option<Vec<Dropped>>,
}

#[derive(Debug, Serialize)]
struct PortView {
    port: u32,
    host: Option<String>,
    in_bps: f64,
    out_bps: f64,
    /// 0: any.
    rate_bps: u64,
    queue_bytes: Option<u64>,
    queue_max_bytes: Option<u64>,
    /// How far ahead it is reserved, as source and as destination, in the program's units.
    source: String,
    destination: String,
    drops: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Dropped {
    reason: String,
    frames: i64,
    frames_per_s: f64,
}

impl View {
    /// The view of `now`, with rates since `before`.
    pub fn new(before: &Look, now: &Look, rack: Option<&Rack>) -> View {
        let seconds = now.stats.now_ns.saturating_sub(before.stats.now_ns) as f64 / 1e9;
        let per_s = |now: u64, before: u64| {
            // Statistics may have been reset between the two states.
            if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
        };
        let known = |value: u64| (!now.hides_queues).then_some(value);
        let names = rack.map(Rack::drop_reasons).unwrap_or_default();
        let counts = || names.iter().zip(&now.program_drops);
        let uses_up = counts().any(|(reason, count)| *count > 0 && is_no_loss(reason));
        let port_view = |port: &PortStats| {
            let old =
                before.stats.ports.iter().find(|old| old.port == port.port).cloned().unwrap_or_default();
            let host = rack.and_then(|rack| rack.hosts.iter().find(|host| u32::from(host.port) == port.port));
            let (source, destination) =
                now.reserved.get(&port.port).cloned().unwrap_or_else(|| ("-".into(), "-".into()));
            // The program doesn't count by port, so a port's drops can't be separated from frames that the program
            // consumed.
            let drops = port.drops.iter().filter(|(reason, _)| !uses_up || *reason != BY_PROGRAM);
            PortView {
                port: port.port,
                host: host.map(|host| host.name.clone()),
                in_bps: 8.0 * per_s(port.rx_bytes, old.rx_bytes),
                out_bps: 8.0 * per_s(port.tx_bytes, old.tx_bytes),
                rate_bps: port.rate_bps,
                queue_bytes: known(port.queue_bytes),
                queue_max_bytes: known(port.queue_max_bytes),
                source,
                destination,
                drops: known(drops.map(|(_, count)| count).sum()),
            }
        };
        let (mut dropped, mut used_up) = (Vec::new(), Vec::new());
        for (reason, count) in &now.stats.drops {
            let mut counts = [*count, before.stats.drops.get(reason).copied().unwrap_or(0)];
            if reason == BY_PROGRAM {
                for (count, look) in counts.iter_mut().zip([now, before]) {
                    *count =
                        count.saturating_sub(look.program_drops.iter().map(|cell| count_of(*cell)).sum());
                }
            }
            let frames = i64::try_from(counts[0]).unwrap_or(i64::MAX);
            if frames > 0 {
                dropped.push(Dropped {
                    reason: reason.clone(),
                    frames,
                    frames_per_s: per_s(counts[0], counts[1]),
                });
            }
        }
        for (cell, count) in now.program_drops.iter().enumerate().filter(|(_, count)| **count > 0) {
            let reason = names.get(cell);
            let name = reason.map_or_else(|| format!("cell {cell}"), |reason| reason.name.to_owned());
            let old = before.program_drops.get(cell).copied().unwrap_or(0);
            let row = Dropped {
                reason: format!("program: {name}"),
                frames: *count,
                frames_per_s: per_s(count_of(*count), count_of(old)),
            };
            if reason.is_some_and(is_no_loss) { &mut used_up } else { &mut dropped }.push(row);
        }
        View {
            seconds,
            buffer_bytes: known(now.stats.buffer_bytes),
            buffer_max_bytes: known(now.stats.buffer_max_bytes),
            ports: now.stats.ports.iter().map(port_view).collect(),
            dropped,
            used_up: uses_up.then_some(used_up),
        }
    }

    /// The view as tables.
    pub fn text(&self, title: &str) -> String {
        let mut ports = Rows::new(&[
            "port",
            "host",
            ">in Mb/s",
            ">out Mb/s",
            ">of Mb/s",
            ">queue",
            ">most",
            ">source",
            ">destination",
            ">drops",
        ]);
        let mbps = |bps: f64| format!("{:.2}", bps / 1e6);
        let known = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        for port in &self.ports {
            ports.push(vec![
                port.port.to_string(),
                port.host.clone().unwrap_or("-".into()),
                mbps(port.in_bps),
                mbps(port.out_bps),
                if port.rate_bps == 0 { "any".into() } else { mbps(port.rate_bps as f64) },
                known(port.queue_bytes),
                known(port.queue_max_bytes),
                port.source.clone(),
                port.destination.clone(),
                known(port.drops),
            ]);
        }
        let table = |head: &str, of: &[Dropped]| {
            let mut rows = Rows::new(&[head, ">frames", ">a second"]);
            for Dropped { reason, frames, frames_per_s } in of {
                rows.push(vec![reason.clone(), frames.to_string(), format!("{frames_per_s:.1}")]);
            }
            rows.text()
        };
        let used = |used: &Vec<Dropped>| format!("\n{}", table("used up, no loss", used));
        let used = self.used_up.as_ref().map(used).unwrap_or_default();
        let View { seconds, buffer_bytes, buffer_max_bytes, .. } = self;
        let buffer = match (buffer_bytes, buffer_max_bytes) {
            (Some(now), Some(most)) => format!("buffer {} B, at most {} B", count(*now), count(*most)),
            _ => "queues unknown".to_owned(),
        };
        let dropped = table("dropped", &self.dropped);
        format!("{title}, over {seconds:.2} s, {buffer}\n\n{}\n{dropped}{used}", ports.text())
    }
}

/// A cell of a counter of packets.
fn count_of(cell: i64) -> u64 {
    u64::try_from(cell).unwrap_or(0)
}

/// Whether the reason counts frames that have served their purpose, such as turns of an idle engine.
fn is_no_loss(reason: &DropReason) -> bool {
    reason.cost == Cost::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4rack::telemetry::v1::GetStatsResponse;

    #[test]
    fn a_picture_shows_rates_queues_reservations_and_drops() {
        let port = |rx_bytes, tx_bytes| PortStats {
            port: 1,
            rate_bps: 100_000_000,
            rx_bytes,
            tx_bytes,
            queue_bytes: 1500,
            queue_max_bytes: 9000,
            ..Default::default()
        };
        let look = |now_ns, rx, tx, dropped| Look {
            stats: GetStatsResponse {
                now_ns,
                ports: vec![port(rx, tx)],
                drops: [("queue_full".to_owned(), dropped)].into(),
                ..Default::default()
            },
            reserved: [(1, ("free".to_owned(), "12.0 µs".to_owned()))].into(),
            program_drops: vec![0, 4],
            hides_queues: false,
        };
        let text = View::new(&look(0, 0, 0, 0), &look(2_000_000_000, 250_000, 2_500_000, 6), None)
            .text("device 1 at x");
        let expected = "\
device 1 at x, over 2.00 s, buffer 0 B, at most 0 B

port  host  in Mb/s  out Mb/s  of Mb/s  queue   most  source  destination  drops
   1  -        1.00     10.00   100.00  1\u{202f}500  9\u{202f}000    free      12.0 µs      0

dropped          frames  a second
queue_full            6       3.0
program: cell 1       4       0.0
";
        assert_eq!(text, expected);
        let hidden = Look { hides_queues: true, ..look(1_000_000_000, 125_000, 0, 0) };
        let text = View::new(&look(0, 0, 0, 0), &hidden, None).text("x");
        assert!(text.starts_with("x, over 1.00 s, queues unknown\n"), "{text}");
        assert!(
            text.contains(
                "   1  -        1.00      0.00   100.00      -     -    free      12.0 µs      -\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn turns_of_an_idle_engine_are_no_drops() {
        let example =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/cowbird-switch.toml");
        let rack = Rack::load(example).unwrap();
        let cell = |name: &str| rack.drop_reasons().iter().position(|reason| reason.name == name).unwrap();
        let (idle, corrupt) = (cell("cowbird_nothing_to_do"), cell("cowbird_corrupt"));
        let look = |now_ns, turns: i64| {
            let mut program_drops = vec![0; rack.drop_reasons().len()];
            (program_drops[idle], program_drops[corrupt]) = (turns, 2);
            let drops: std::collections::HashMap<_, _> = [(BY_PROGRAM.to_owned(), turns as u64 + 2)].into();
            let port =
                PortStats { port: 2, drops: drops.clone().into_iter().collect(), ..Default::default() };
            let drops = drops.into_iter().collect();
            let stats = GetStatsResponse { now_ns, drops, ports: vec![port], ..Default::default() };
            Look { stats, program_drops, ..Look::default() }
        };
        let text = View::new(&look(0, 600), &look(1_000_000_000, 1_600), Some(&rack)).text("x");
        assert!(!text.contains(BY_PROGRAM), "{text}");
        let port = text.lines().find(|line| line.trim_start().starts_with("2 ")).unwrap();
        assert!(port.ends_with(" 0"), "{text}");
        let (dropped, used) = text.split_once("used up, no loss").unwrap();
        assert!(dropped.contains("program: cowbird_corrupt") && !dropped.contains("nothing_to_do"), "{text}");
        let line = used.lines().find(|line| line.starts_with("program: cowbird_nothing_to_do")).unwrap();
        assert!(line.contains("1\u{202f}600") && line.ends_with("1\u{202f}000.0"), "{text}");
    }
}
