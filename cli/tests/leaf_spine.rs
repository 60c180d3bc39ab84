//! Two racks under PL2 behind a spine: what a rack promises while frames of another rack take their share.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout, wait_until};
use p4rack_netdev::clock;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::Duration;

/// How long something may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const PAYLOAD: &str = "1472";
/// Traffic of a measurement, and its start after the programs'.
const SPAN_NS: u64 = 3_000_000_000;
const LEAD_NS: u64 = 1_500_000_000;
/// Buckets of a sink's counts.
const BUCKET_NS: u64 = 100_000_000;
/// What another rack may send to the first one.
const SHARE_MBPS: f64 = 20.0;
/// A host's link.
const PORT_MBPS: u64 = 100;
/// How often a mix is measured at most. Where others keep the processors busy, frames wait and come in a burst that the meter drops
/// although their mean is below the share.
const ATTEMPTS: usize = 10;

/// Datagrams of a sender.
#[derive(Debug)]
struct Came {
    offered_mbps: f64,
    arrived_mbps: f64,
    arrived_percent: f64,
    /// From the start to the last one.
    until_ns: u64,
    /// Datagrams that came twice.
    repeated: u64,
}

/// A measured mix.
#[derive(Debug)]
struct Mix {
    /// The rack's own senders.
    own: Vec<Came>,
    /// Those of the other rack.
    foreign: Vec<Came>,
    /// What the first rack's leaf has dropped, by reason.
    dropped: Vec<(String, u64)>,
}

impl Mix {
    /// Of the other rack's datagrams.
    fn foreign_sum(&self, of: fn(&Came) -> f64) -> f64 {
        self.foreign.iter().map(of).sum()
    }

    /// Senders to an uplink send a burst again whose grant comes late, as when others keep the processors busy, and the spine has removed
    /// its numbers.
    fn foreign_repeated(&self) -> u64 {
        self.foreign.iter().map(|came| came.repeated).sum()
    }
}

/// The example, running.
struct Spine {
    runtime: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Spine {
    fn up() -> Option<Spine> {
        if !can_make_namespaces() || !have("ping", "iputils-ping") {
            return None;
        }
        let spine = Spine { _alone: one_at_a_time(), runtime: tempfile::tempdir().unwrap() };
        let output = spine
            .command(&["up", "--keep"])
            .arg(repo("examples/leaf-spine/leaf-spine.toml"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        Some(spine)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = p4rack();
        command.args(words).env("XDG_RUNTIME_DIR", self.runtime.path());
        command
    }

    fn ping(&self, from: &str, to: &str) -> bool {
        let words = ["exec", from, "--", "ping", "-c", "1", "-W", "1", to];
        self.command(&words).output().unwrap().status.success()
    }

    /// Frames that the first rack's leaf has lost so far, by reason: unsolicited ones are sent again.
    fn drops(&self) -> Vec<(String, u64)> {
        let mut command = self.command(&["top", "--switch", "leaf1", "--json", "--every", "0.1"]);
        let output = command.arg(repo("examples/leaf-spine/rack-1.toml")).output().unwrap();
        let view: Value =
            serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let dropped = view["dropped"].as_array().unwrap().iter();
        let counts =
            dropped.map(|one| (one["reason"].as_str().unwrap().to_owned(), one["frames"].as_u64().unwrap()));
        counts.filter(|(reason, _)| !reason.contains("unsolicited")).collect()
    }

    /// Starts `p4rack workload …` on a host, for a span.
    fn program(&self, host: &str, words: &[&str], start_ns: u64, span_ns: u64) -> Child {
        let binary = env!("CARGO_BIN_EXE_p4rack");
        let (start, span) = (start_ns.to_string(), span_ns.to_string());
        let mut all = vec!["exec", host, "--", binary, "workload"];
        all.extend(words);
        all.extend(["--start-ns", &start, "--duration-ns", &span]);
        self.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Sends at these rates in Mb/s to h1. Returns what each sender offered, which may be less on a busy machine, and what arrived.
    fn measure(&self, senders: &[(&str, &str, u64)]) -> Vec<Came> {
        let start_ns = clock::now().0 + LEAD_NS;
        // What waits in hosts arrives later.
        let sink =
            self.program("h1", &["udp-sink", "--bind", "10.0.1.1:7000"], start_ns, SPAN_NS + 500_000_000);
        let sending: Vec<Child> = senders
            .iter()
            .map(|(host, _, mbps)| {
                let rate = (mbps * 1_000_000).to_string();
                let words =
                    ["udp-send", "--to", "10.0.1.1:7000", "--rate-bps", &rate, "--payload-bytes", PAYLOAD];
                self.program(host, &words, start_ns, SPAN_NS)
            })
            .collect();
        let result = |child: Child| -> Value {
            let output = child.wait_with_output().unwrap();
            serde_json::from_str(stdout(&output).trim()).unwrap_or_else(|_| panic!("{}", stderr(&output)))
        };
        let sent: Vec<Value> = sending.into_iter().map(result).collect();
        let came = result(sink);
        assert!(came["by_source"].is_object() && came["repeated"].is_object(), "{came}");
        let each = senders.iter().zip(&sent).map(|((_, ip, _), sent)| {
            let line = came["by_source"][*ip]["bytes"].as_array().cloned().unwrap_or_default();
            let arrived: f64 = line.iter().filter_map(Value::as_f64).sum();
            let offered = sent["datagrams"].as_f64().unwrap() * 1_500.0;
            let mbps = |bytes: f64| bytes * 8e3 / SPAN_NS as f64;
            Came {
                offered_mbps: mbps(offered),
                arrived_mbps: mbps(arrived),
                arrived_percent: 100.0 * arrived / offered.max(1.0),
                until_ns: line.len() as u64 * BUCKET_NS,
                repeated: came["repeated"][*ip].as_u64().unwrap_or(0),
            }
        });
        each.collect()
    }

    /// Measures a mix until `is_kept` holds. In each attempt own frames come once, all of them if they are not more than the port takes;
    /// the leaf drops only what its meter refuses, and that lets pass the share for as long as frames come, and its burst.
    fn until_kept(
        &self,
        own: &[(&str, &str, u64)],
        foreign: &[(&str, &str, u64)],
        is_kept: impl Fn(&Mix) -> bool,
    ) {
        let mut report = Vec::new();
        let fits = own.iter().map(|(_, _, mbps)| mbps).sum::<u64>() < PORT_MBPS;
        for _ in 0..ATTEMPTS {
            let before = self.drops();
            let mut came = self.measure(&[own, foreign].concat());
            let foreign_came = came.split_off(own.len());
            let mix = Mix { own: came, foreign: foreign_came, dropped: since(&before, &self.drops()) };
            println!("{foreign:?} beside {own:?}: {mix:.1?}");
            let arrives_whole = |came: &Came| (99.999..=100.001).contains(&came.arrived_percent);
            assert!(
                mix.own.iter().all(|came| came.repeated == 0 && (!fits || arrives_whole(came))),
                "{mix:?}"
            );
            assert!(mix.dropped.iter().all(|(reason, _)| reason.contains("best_effort_meter")), "{mix:?}");
            let offered = mix.foreign_sum(|came| came.offered_mbps);
            let arrived = mix.foreign_sum(|came| came.arrived_mbps);
            // Frames that waited come after the span.
            let longer = mix.foreign.iter().map(|came| came.until_ns).max().unwrap_or(0).max(SPAN_NS);
            let share = SHARE_MBPS * longer as f64 / SPAN_NS as f64;
            // The meter's burst is an eighth of the buffer.
            let most = share + 262_144.0 / 8.0 * 8e3 / SPAN_NS as f64 + 1.0;
            assert!(arrived <= most && (foreign.is_empty() || arrived > 5.0), "{mix:?}");
            assert!(offered < share * 1.15 || !mix.dropped.is_empty(), "{mix:?}");
            let own_arrived: f64 = mix.own.iter().map(|came| came.arrived_mbps).sum();
            assert!(own_arrived > 20.0 || fits, "{mix:?}");
            if is_kept(&mix) {
                return;
            }
            report.push(mix);
        }
        panic!("{foreign:?} beside {own:?}: {report:#?}");
    }
}

impl Drop for Spine {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--all"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// What was dropped between two looks.
fn since(before: &[(String, u64)], after: &[(String, u64)]) -> Vec<(String, u64)> {
    let more = after.iter().filter_map(|(name, count)| {
        let earlier = before.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
        (*count > earlier).then(|| (name.clone(), count - earlier))
    });
    more.collect()
}

#[test]
fn a_rack_loses_nothing_of_its_own_while_another_rack_takes_its_share() {
    let Some(spine) = Spine::up() else { return };
    for (from, to) in [("h2", "10.0.1.1"), ("h4", "10.0.1.1"), ("h1", "10.0.2.3")] {
        assert!(wait_until(LIMIT, || spine.ping(from, to)), "{from} to {to}");
    }
    let own = [("h2", "10.0.1.2", 30), ("h3", "10.0.1.3", 30)];
    // The rack's own senders, and what others are to offer; together, two of these exceed the share of 20 Mb/s.
    for (own, foreign) in [
        (&own[..], &[][..]),
        (&own, &[("h4", "10.0.2.1", 15)]),
        (&own, &[("h4", "10.0.2.1", 60)]),
        (&own[..1], &[("h4", "10.0.2.1", 12), ("h5", "10.0.2.2", 12)]),
    ] {
        spine.until_kept(own, foreign, |mix| {
            let offered = mix.foreign_sum(|came| came.offered_mbps);
            (offered > 17.0 || mix.dropped.is_empty()) && mix.foreign_repeated() <= 100
        });
    }
    // Overloaded by its own hosts, the rack drops in hosts, not in the leaf, and the other rack keeps its share.
    let own = [("h2", "10.0.1.2", 90), ("h3", "10.0.1.3", 90)];
    spine.until_kept(&own, &[("h4", "10.0.2.1", 15)], |mix| {
        mix.dropped.is_empty() && mix.foreign_repeated() == 0 && mix.foreign[0].arrived_percent > 99.0
    });
}
