//! Promises to hosts that share a rack with a hostile one.

use crate::experiment::{Experiment, NO_ATTACK};
use crate::hostile::OthersOutcome;
use crate::outcome::run;
use p4rack_fabric::hostile::Attack;

fn experiment(kind: &str, attack: &str, traffic: &str) -> Experiment {
    let text = format!(
        "name = \"test\"\nduration_us = 700\nwarmup_us = 200\ndrain_us = 2000\n[rack]\nhosts = 6\n[scheme]\nkind = \"{kind}\"\n\
         in_flight = 2\n[[traffic]]\nname = \"one\"\nsize = 6000\narrivals = \"saturate\"\nflows = 2\n{traffic}\n\
         [[hostile]]\nhost = \"h6\"\nattack = \"{attack}\"\n"
    );
    Experiment::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn others(kind: &str, attack: &str, traffic: &str) -> OthersOutcome {
    let (outcome, _) = run(&experiment(kind, attack, traffic), None).unwrap();
    outcome.others.expect("a host may be hostile")
}

/// The promises, for these attacks.
fn promises(kind: &str, traffic: &str, attacks: &[Attack]) {
    let honest = others(kind, NO_ATTACK, traffic);
    assert!(honest.goodput_gbps.len() >= 4 && honest.frames_lost == 0, "{honest:?}");
    let mut broken = Vec::new();
    for attack in attacks {
        let fared = honest.compare(&others(kind, attack.name(), traffic));
        if !fared.broken().is_empty() {
            broken.push(format!("{attack}: {}", fared.broken().join(", ")));
        }
    }
    assert_eq!(broken, [] as [String; 0], "{kind}, {traffic}");
}

/// Without attacks, the hostile host would send to all hosts or to the victim alone; its attacks go the same way.
fn everybody(kind: &str) {
    let five = "[\"h1\", \"h2\", \"h3\", \"h4\", \"h5\"]";
    let (at_all, aimed): (Vec<Attack>, Vec<Attack>) = Attack::ALL.into_iter().partition(|attack| {
        use Attack::{Broadcast, Garbage, Replay, RsvFlood, WrongDemand};
        matches!(attack, RsvFlood | WrongDemand | Replay | Garbage | Broadcast)
    });
    promises(kind, &format!("pattern = \"all-to-all\"\nreceivers = {five}"), &at_all);
    let to_victim = "[[traffic]]\nname = \"two\"\npattern = \"incast\"\nsenders = [\"h6\"]\nsize = 6000\narrivals = \"saturate\"\nflows = 8";
    promises(
        kind,
        &format!("pattern = \"all-to-all\"\nsenders = {five}\nreceivers = {five}\n{to_victim}"),
        &aimed,
    );
}

/// Answers to the attacks share the way to the hostile host with others' reservations.
fn towards(kind: &str) {
    let towards = "[[traffic]]\nname = \"two\"\npattern = \"incast\"\nsenders = [\"h4\", \"h5\"]\nreceivers = [\"h6\"]\n\
                   size = 6000\narrivals = \"saturate\"\nflows = 2";
    let traffic =
        format!("pattern = \"incast\"\nsenders = [\"h2\", \"h3\", \"h6\"]\nreceivers = [\"h1\"]\n{towards}");
    promises(kind, &traffic, &Attack::ALL);
}

#[test]
fn who_sends_to_the_hostile_host_keeps_its_share_with_clocks() {
    towards("pl2-clock");
}

#[test]
fn who_sends_to_the_hostile_host_keeps_its_share_with_counters() {
    towards("pl2-counter");
}

#[test]
fn an_incast_keeps_its_share_beside_any_attack_with_clocks() {
    promises("pl2-clock", "pattern = \"incast\"", &Attack::ALL);
}

#[test]
fn an_incast_keeps_its_share_beside_any_attack_with_counters() {
    promises("pl2-counter", "pattern = \"incast\"", &Attack::ALL);
}

#[test]
fn everybody_keeps_his_share_beside_any_attack_with_clocks() {
    everybody("pl2-clock");
}

#[test]
fn everybody_keeps_his_share_beside_any_attack_with_counters() {
    everybody("pl2-counter");
}

/// With K the backlog, a host may hold many more slots ahead, so shares are not promised. Reservations ahead are
/// bounded all the same, and nothing is lost.
fn backlog(kind: &str, halves: u64) {
    let kind = format!("{kind}\"\nk = \"backlog");
    // Five sources of four lanes of 40 slots, in counter mode with as much in the other halves.
    let ahead_ns = 5 * 4 * 40 * 124 * halves;
    for attack in Attack::ALL {
        let others = others(&kind, attack.name(), "pattern = \"incast\"");
        assert_eq!(others.frames_lost, 0, "{kind} {attack}");
        // A message of four frames waits once for its slots; 5 µs are for its way and that of its RSV.
        assert!(others.latency_ns.max < ahead_ns + 5_000, "{kind} {attack}: {} ns", others.latency_ns.max);
    }
}

#[test]
fn an_incast_of_long_reservations_waits_no_longer_than_is_bounded_with_clocks() {
    backlog("pl2-clock", 1);
}

#[test]
fn an_incast_of_long_reservations_waits_no_longer_than_is_bounded_with_counters() {
    backlog("pl2-counter", 2);
}

#[test]
fn hostile_hosts_fill_their_links_and_the_same_happens_twice() {
    let one = |attack: Attack| {
        run(&experiment("pl2-clock", attack.name(), "pattern = \"incast\""), None).unwrap().0
    };
    let flood = one(Attack::RsvFlood);
    // 84 bytes at 100 Gb/s are 7 ns; most answers grant nothing and are metered.
    let unanswered = flood.switch.program_drops["best_effort_meter"];
    assert!(flood.frame_hops + unanswered > 60_000, "{} {unanswered}", flood.frame_hops);
    assert_eq!(flood.digest, one(Attack::RsvFlood).digest);
    assert_ne!(flood.digest, one(Attack::Garbage).digest);
}

#[test]
fn mistakes_are_named() {
    for (attack, more, named) in [
        ("rsv-flod", "", "there are rsv-flood"),
        ("early", "victim = \"h6\"", "is the host itself"),
        ("early", "victim = \"h7\"", "is no host"),
    ] {
        let text = format!(
            "name = \"test\"\nduration_us = 700\n[rack]\nhosts = 6\n[scheme]\nkind = \"pl2-clock\"\n[[traffic]]\nname = \"one\"\n\
             pattern = \"incast\"\nsize = 6000\narrivals = \"saturate\"\n[[hostile]]\nhost = \"h6\"\nattack = \"{attack}\"\n{more}\n"
        );
        let error = Experiment::parse(&text, "test.toml").unwrap_err().to_string();
        assert!(error.contains("[hostile]") && error.contains(named), "{error}");
    }
}
