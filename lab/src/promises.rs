//! Promises of a run, and whether they were kept.

mod cached;

use crate::results::{Bulk, HostKill, Promise, Results, SchemeResult, Setting, StoreResult, TorKill};
use p4rack_codegen::Scheme;
use p4rack_codegen::rack::WorkloadKind;
use p4rack_fabric::remote::{Service, Way};
use p4rack_report::text;

/// Share of the port rate that frames with reserved time deliver to the receiver.
pub const GOODPUT_SHARE: f64 = 0.85;
/// Depth of the congested queue, in frames, that is not exceeded 99.9 % of the time.
pub const QUEUE_P999_FRAMES: u64 = 16;
/// Factor by which the 99th percentile of requests in reserved time is better than plain switching's.
pub const RPC_FACTOR: f64 = 5.0;
/// The mix that only reads. A write takes three steps in EDM's memory and one over TCP, so on a busy machine the others say more of
/// that.
const READS: &str = "C";
/// Factor by which EDM's 99th percentile beside bulk traffic is better than TCP's.
pub const BULK_FACTOR: f64 = 2.0;
/// Share of their goodput that the others keep when a host dies.
pub const KILL_SHARE: f64 = 0.8;
/// Time after the reset within which `counter` recovers.
pub const RECOVERY_MS: u64 = 1_000;
/// Longest time without progress in a run in which one of two switches dies. Nothing has to be noticed or repeated, so it is what
/// processes that share a machine wait for each other.
pub const TOR_KILL_MS: f64 = 1_000.0;
/// Maximum growth of a board's process while clients use its store: with more, its memory would depend on its past
/// requests.
pub const BOARD_GROWTH_BYTES: u64 = 1 << 20;
/// Load below which a plain switch need not lose anything.
const OVERLOAD_PERCENT: u32 = 150;

/// Judges a run: all promises for its schemes and its workload.
pub fn judge(results: &Results) -> Vec<Promise> {
    let plain = results.schemes.iter().find(|scheme| !scheme.reserves_for_frames());
    let mut promises = Vec::new();
    // An outcast waits in its sender.
    let overfull =
        results.setting.kind == WorkloadKind::Incast && results.setting.load_percent >= OVERLOAD_PERCENT;
    for scheme in &results.schemes {
        if let Some(figures) = &scheme.store {
            store(scheme, figures, results.setting.tors, &mut promises);
            if let Some(bulk) = results.setting.bulk.as_ref().filter(|_| scheme.is_scheduled()) {
                beside_bulk(scheme, figures, bulk, results, &mut promises);
            }
        } else if scheme.reserves_for_frames() {
            reserved(scheme, plain, &results.setting, &mut promises);
        } else if overfull {
            promises.push(promise(
                scheme,
                "frames lost in the switch, without reservations",
                "more than 0",
                text::count(scheme.fabric_drops),
                scheme.fabric_drops > 0,
            ));
        }
        if let Some(kill) = &scheme.tor_kill {
            tor_kill(scheme, kill, &mut promises);
        }
    }
    promises
}

/// A store over any way answers, loses nothing and returns what was written.
fn store(scheme: &SchemeResult, figures: &StoreResult, tors: u16, out: &mut Vec<Promise>) {
    for mix in &figures.mixes {
        let what = format!("operations of mix {}", mix.label());
        let measured = format!("{} a second", text::count(mix.ops_per_s as u64));
        out.push(promise(scheme, &what, "some answered", measured, mix.ops_per_s > 0.0));
    }
    cached::promises(scheme, figures, out);
    let lost = "operations and confirmed writes lost";
    out.push(promise(scheme, lost, "0", text::count(figures.lost), figures.lost == 0));
    out.push(promise(scheme, "wrong answers", "0", text::count(figures.wrong), figures.wrong == 0));
    if let Some(share) = figures.cold_share.filter(|_| scheme.name.parse() != Ok(Way::LOCAL)) {
        let measured = format!("{:.1} %", 100.0 * share);
        out.push(promise(scheme, "operations that read remote memory", "some", measured, share > 0.0));
    }
    // A log store's older records fill memory as they come.
    let is_board = scheme.way().is_some_and(|way| way.definition().service == Service::Board);
    let is_full = figures.cold_share.is_none() && figures.mixes.iter().all(|mix| mix.cache.is_none());
    if let Some([early, end]) = figures.server_resident_bytes.filter(|_| is_board && is_full) {
        let more = end.saturating_sub(early);
        let promised = format!("at most {} more at the end", text::bytes(BOARD_GROWTH_BYTES));
        let measured = format!("{} and {} more", text::bytes(early), text::bytes(more));
        out.push(promise(
            scheme,
            "memory of the board's process",
            &promised,
            measured,
            more <= BOARD_GROWTH_BYTES,
        ));
    }
    // Two switches have a copy of each frame, and may drop one that comes late.
    if scheme.is_scheduled() && tors == 1 {
        let (what, drops) = ("frames lost in the fabric", scheme.fabric_drops);
        out.push(promise(scheme, what, "0", text::count(drops), drops == 0));
    }
}

/// The death of one of two switches interrupts nothing for long, and no application gets a frame twice.
fn tor_kill(scheme: &SchemeResult, kill: &TorKill, out: &mut Vec<Promise>) {
    out.push(promise(
        scheme,
        &format!("longest time without progress, switch {} killed after {} ms", kill.tor, kill.after_ms),
        &format!("at most {}", text::micros(TOR_KILL_MS * 1e3)),
        text::micros(kill.longest_ms * 1e3),
        kill.longest_ms <= TOR_KILL_MS,
    ));
    if let Some(doubled) = kill.doubled {
        out.push(promise(scheme, "frames delivered twice", "0", text::count(doubled), doubled == 0));
    }
}

/// With bulk traffic of another host beside them, clients wait for a fraction of their wait over TCP, and the server's
/// queue is no longer than the programs' requests under way. It is counted by the switch in bytes, so late processes
/// change little of it.
fn beside_bulk(
    scheme: &SchemeResult,
    figures: &StoreResult,
    bulk: &Bulk,
    results: &Results,
    out: &mut Vec<Promise>,
) {
    let setting = &results.setting;
    let plain = results.schemes.iter().find(|other| other.name == Scheme::L2.name());
    for mix in figures.mixes.iter().filter(|mix| mix.mix == READS) {
        let Some(other) = plain.and_then(|plain| plain.mix_of(&mix.mix)) else { continue };
        let (limit_us, over_tcp) = (other.p99_us / BULK_FACTOR, text::micros(other.p99_us));
        let promised = format!("at most {}, half of the {over_tcp} over TCP", text::micros(limit_us));
        let what = format!("99th percentile of mix {} beside bulk traffic", mix.mix);
        out.push(promise(scheme, &what, &promised, text::micros(mix.p99_us), mix.p99_us <= limit_us));
    }
    let frames = bulk.frames_under_way;
    let limit_bytes = frames * setting.mtu_frame_bytes;
    out.push(promise(
        scheme,
        "the server's queue at its deepest, beside bulk traffic",
        &format!("at most {frames} frames"),
        text::depth(scheme.queue_max_bytes, setting.mtu_frame_bytes),
        scheme.queue_max_bytes <= limit_bytes,
    ));
}

/// Frames with reserved time are not lost, fill the link and wait little.
fn reserved(scheme: &SchemeResult, plain: Option<&SchemeResult>, setting: &Setting, out: &mut Vec<Promise>) {
    out.push(promise(
        scheme,
        "frames lost in the fabric",
        "0",
        text::count(scheme.fabric_drops),
        scheme.fabric_drops == 0,
    ));

    let load = f64::from(setting.load_percent.min(100)) / 100.0;
    let goodput_min_bps = setting.port_rate_bps as f64 * load * GOODPUT_SHARE;
    out.push(promise(
        scheme,
        match setting.kind {
            WorkloadKind::Incast | WorkloadKind::Store => "goodput at the receiver",
            WorkloadKind::Outcast => "goodput at the receivers",
        },
        &format!("at least {}", text::rate(goodput_min_bps)),
        text::rate(scheme.goodput_bps as f64),
        scheme.goodput_bps as f64 >= goodput_min_bps,
    ));

    let p999_limit_bytes = QUEUE_P999_FRAMES * setting.mtu_frame_bytes;
    out.push(promise(
        scheme,
        "congested queue, 99.9 % of the time",
        &format!("under {}", text::depth(p999_limit_bytes, setting.mtu_frame_bytes)),
        text::depth(scheme.queue_p999_bytes, setting.mtu_frame_bytes),
        scheme.queue_p999_bytes < p999_limit_bytes,
    ));

    let max_limit_bytes = queue_max_frames(setting) * setting.mtu_frame_bytes;
    out.push(promise(
        scheme,
        "congested queue at its deepest",
        &format!("at most {}", text::depth(max_limit_bytes, setting.mtu_frame_bytes)),
        text::depth(scheme.queue_max_bytes, setting.mtu_frame_bytes),
        scheme.queue_max_bytes <= max_limit_bytes,
    ));

    for value in &scheme.rpc {
        let what = format!("99th percentile of {} requests", text::bytes(u64::from(value.value_bytes)));
        let measured = format!("{} ({} answered)", text::micros(value.p99_us), text::count(value.completed));
        match plain.and_then(|plain| plain.rpc_of(value.value_bytes)) {
            Some(other) => {
                let limit_us = other.p99_us / RPC_FACTOR;
                let promised = format!(
                    "at most {}, a fifth of the {} without reservations",
                    text::micros(limit_us),
                    text::micros(other.p99_us)
                );
                let holds = value.completed > 0 && value.p99_us <= limit_us;
                out.push(promise(scheme, &what, &promised, measured, holds));
            }
            None => out.push(promise(scheme, &what, "some answered", measured, value.completed > 0)),
        }
    }

    if let Some(kill) = &scheme.host_kill {
        host_kill(scheme, kill, out);
    }
}

fn host_kill(scheme: &SchemeResult, kill: &HostKill, out: &mut Vec<Promise>) {
    let limit_bps = kill.others_before_bps as f64 * KILL_SHARE;
    let limit = text::rate(limit_bps);
    let before = text::rate(kill.others_before_bps as f64);
    if let Some(reset_after_ms) = kill.reset_after_ms {
        out.push(promise(
            scheme,
            &format!("others after {} was killed and, {reset_after_ms} ms later, its state reset", kill.host),
            &format!("back at {limit} (80 % of {before}) within {RECOVERY_MS} ms"),
            match kill.recovered_after_ms {
                Some(ms) => format!("back after {ms} ms"),
                None => format!("not back; mean {}", text::rate(kill.others_after_bps as f64)),
            },
            kill.others_before_bps > 0 && kill.recovered_after_ms.is_some_and(|ms| ms <= RECOVERY_MS),
        ));
    } else {
        out.push(promise(
            scheme,
            &format!("lowest goodput of the others after {} was killed", kill.host),
            &format!("at least {limit} (80 % of {before})"),
            text::rate(kill.others_min_bps as f64),
            kill.others_before_bps > 0 && kill.others_min_bps as f64 >= limit_bps,
        ));
    }
    out.push(promise(
        scheme,
        &format!("frames lost in the fabric after {} was killed", kill.host),
        "0",
        text::count(kill.fabric_drops),
        kill.fabric_drops == 0,
    ));
}

/// Frames that the congested queue never exceeds: 16, plus 2 K per sender.
pub fn queue_max_frames(setting: &Setting) -> u64 {
    let senders = match setting.kind {
        WorkloadKind::Incast | WorkloadKind::Store => setting.many.len() as u64,
        WorkloadKind::Outcast => 1,
    };
    QUEUE_P999_FRAMES + 2 * u64::from(setting.k) * senders
}

fn promise(scheme: &SchemeResult, what: &str, promised: &str, measured: String, holds: bool) -> Promise {
    Promise {
        scheme: scheme.name.clone(),
        what: what.to_owned(),
        promised: promised.to_owned(),
        measured,
        holds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{good_results, good_store};

    fn broken(change: impl FnOnce(&mut Results)) -> Vec<String> {
        let mut results = good_results();
        change(&mut results);
        judge(&results).iter().filter(|promise| !promise.holds).map(Promise::sentence).collect()
    }

    #[test]
    fn a_good_run_keeps_them_all() {
        let promises = judge(&good_results());
        assert!(promises.iter().all(|promise| promise.holds), "{promises:#?}");
        // 1 for l2; 4 + 2 value sizes + 2 for the kill, twice.
        assert_eq!(promises.len(), 17);
    }

    #[test]
    fn the_death_of_one_of_two_switches_is_short_and_doubles_nothing() {
        let broken = |longest_ms: f64, doubled: Option<u64>| {
            broken(|r| {
                let kill = TorKill { tor: 1, after_ms: 1_900, longest_ms, doubled };
                r.schemes[2].tor_kill = Some(kill);
            })
        };
        assert_eq!(broken(TOR_KILL_MS, Some(0)), [""; 0]);
        let late = broken(TOR_KILL_MS + 1.0, Some(0));
        assert!(late.len() == 1 && late[0].contains("switch 1 killed after 1900 ms"), "{late:?}");
        let twice = broken(1.0, Some(3));
        assert!(twice.len() == 1 && twice[0].contains("frames delivered twice: measured 3"), "{twice:?}");
    }

    /// Each figure, made bad alone, breaks exactly the promise about it.
    #[test]
    fn each_bad_figure_breaks_its_own_promise() {
        type Change = fn(&mut Results);
        let cases: [(&str, Change); 12] = [
            ("l2: frames lost in the switch", |r| r.schemes[0].fabric_drops = 0),
            ("pl2-clock: frames lost in the fabric: measured 1,", |r| r.schemes[2].fabric_drops = 1),
            ("pl2-counter: goodput at the receiver", |r| r.schemes[1].goodput_bps = 84_999_999),
            ("pl2-clock: congested queue, 99.9 %", |r| r.schemes[2].queue_p999_bytes = 16 * 1_530),
            ("pl2-clock: congested queue at its deepest", |r| r.schemes[2].queue_max_bytes = 48 * 1_530 + 1),
            ("pl2-counter: 99th percentile of 4 KiB", |r| r.schemes[1].rpc[1].p99_us = 600_001.0),
            ("pl2-clock: 99th percentile of 1 KiB", |r| r.schemes[2].rpc[0].completed = 0),
            ("pl2-clock: lowest goodput of the others", |r| kill(r, 2).others_min_bps = 55_000_000),
            ("pl2-counter: others after h5 was killed", |r| kill(r, 1).recovered_after_ms = Some(1_001)),
            ("pl2-counter: others after h5 was killed", |r| kill(r, 1).recovered_after_ms = None),
            ("pl2-counter: frames lost in the fabric after h5", |r| kill(r, 1).fabric_drops = 3),
            ("pl2-clock: lowest goodput of the others", |r| kill(r, 2).others_before_bps = 0),
        ];
        for (expected, change) in cases {
            let failures = broken(change);
            assert_eq!(failures.len(), 1, "{expected}: {failures:?}");
            assert!(failures[0].starts_with(expected), "{expected}: {failures:?}");
            assert!(failures[0].contains("measured") && failures[0].contains("promised"));
        }
    }

    fn kill(results: &mut Results, scheme: usize) -> &mut HostKill {
        results.schemes[scheme].host_kill.as_mut().unwrap()
    }

    #[test]
    fn limits_themselves_are_allowed_where_the_promise_says_at_most() {
        assert!(broken(|r| r.schemes[2].queue_max_bytes = 48 * 1_530).is_empty());
        assert!(broken(|r| r.schemes[1].goodput_bps = 85_000_000).is_empty());
        assert!(broken(|r| kill(r, 1).recovered_after_ms = Some(1_000)).is_empty());
    }

    #[test]
    fn without_plain_l2_nothing_is_compared_but_answers_are_asked_for() {
        assert!(broken(|r| drop(r.schemes.remove(0))).is_empty());
        let failures = broken(|r| {
            r.schemes.remove(0);
            r.schemes[0].rpc[0].completed = 0;
        });
        assert_eq!(failures.len(), 1, "{failures:?}");
    }

    #[test]
    fn an_outcast_promises_no_losses_without_reservations() {
        let failures = broken(|r| {
            r.setting.kind = WorkloadKind::Outcast;
            r.schemes[0].fabric_drops = 0;
            r.schemes[2].queue_max_bytes = 24 * 1_530 + 1;
        });
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].contains("congested queue at its deepest"), "{failures:?}");
    }

    #[test]
    fn an_underloaded_port_promises_no_losses_and_only_its_load() {
        let failures = broken(|r| {
            r.setting.load_percent = 50;
            r.schemes[0].fabric_drops = 0;
            r.schemes[1].goodput_bps = 43_000_000;
            r.schemes[2].goodput_bps = 43_000_000;
        });
        assert!(failures.is_empty(), "{failures:?}");
    }

    #[test]
    fn a_store_answers_loses_nothing_and_returns_what_was_written() {
        let broken = |change: fn(&mut Results)| {
            let mut results = good_store();
            change(&mut results);
            judge(&results).iter().filter(|one| !one.holds).map(Promise::sentence).collect::<Vec<_>>()
        };
        // Two mixes, losses and wrong answers, twice; and EDM's drops.
        assert_eq!((judge(&good_store()).len(), broken(|_| {}).len()), (2 * 4 + 1, 0));
        type Change = fn(&mut Results);
        let cases: [(&str, Change); 4] = [
            ("edm-timed-dst: operations of mix C", |r| store(r, 1).mixes[1].ops_per_s = 0.0),
            ("l2: operations and confirmed writes lost: measured 1,", |r| store(r, 0).lost = 1),
            ("edm-timed-dst: wrong answers: measured 1,", |r| store(r, 1).wrong = 1),
            ("edm-timed-dst: frames lost in the fabric", |r| r.schemes[1].fabric_drops = 1),
        ];
        for (expected, change) in cases {
            let failures = broken(change);
            assert!(failures.len() == 1 && failures[0].starts_with(expected), "{expected}: {failures:?}");
        }
        assert!(broken(|r| r.schemes[0].fabric_drops = 1).is_empty(), "plain switching promises nothing");
    }

    #[test]
    fn beside_bulk_traffic_edm_waits_for_half_of_tcps_time_and_its_queue_is_bounded() {
        let broken = |change: fn(&mut Results)| {
            let mut results = good_store();
            results.setting.bulk = Some(Bulk { host: "h5".to_owned(), frames_under_way: 19 });
            for scheme in 0..2 {
                for mix in &mut store(&mut results, scheme).mixes {
                    mix.p99_us = if scheme == 0 { 8_000.0 } else { 4_000.0 };
                }
            }
            results.schemes[1].queue_max_bytes = 19 * results.setting.mtu_frame_bytes;
            change(&mut results);
            judge(&results).iter().filter(|one| !one.holds).map(Promise::sentence).collect::<Vec<_>>()
        };
        assert_eq!(broken(|_| {}), [""; 0]);
        let late = broken(|r| store(r, 1).mixes[1].p99_us = 4_001.0);
        assert!(late.len() == 1 && late[0].contains("mix C beside bulk traffic"), "{late:?}");
        let deep = broken(|r| r.schemes[1].queue_max_bytes += 1);
        assert!(deep.len() == 1 && deep[0].contains("the server's queue at its deepest"), "{deep:?}");
        // TCP promises neither, and without it only the queue is judged.
        assert_eq!(broken(|r| r.schemes[0].queue_max_bytes = 1 << 20), [""; 0]);
        let alone = broken(|r| {
            r.schemes.remove(0);
            store(r, 0).mixes[0].p99_us = 1e9;
        });
        assert_eq!(alone, [""; 0]);
    }

    #[test]
    fn a_log_store_reads_remote_memory_but_where_all_is_local() {
        let mut results = good_store();
        for (scheme, (name, share)) in results.schemes.iter_mut().zip([("local", 0.0), ("cowbird-p4", 0.2)]) {
            (scheme.name, scheme.fabric_drops) = (name.to_owned(), 3);
            scheme.store.as_mut().unwrap().cold_share = Some(share);
        }
        assert!(judge(&results).iter().all(|promise| promise.holds), "{:?}", judge(&results));
        store(&mut results, 1).cold_share = Some(0.0);
        let broken: Vec<String> =
            judge(&results).iter().filter(|one| !one.holds).map(Promise::sentence).collect();
        assert!(
            broken.len() == 1 && broken[0].contains(": operations that read remote memory"),
            "{broken:?}"
        );
    }

    fn store(results: &mut Results, scheme: usize) -> &mut StoreResult {
        results.schemes[scheme].store.as_mut().unwrap()
    }
}
