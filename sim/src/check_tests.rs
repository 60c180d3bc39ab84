//! Every check finds the fault that was planted for it, and nothing else does.

use crate::check::Verdict;
use crate::crew::Alone;
use crate::experiment::Experiment;
use crate::outcome::{Outcome, run_with};
use crate::world::Planted;

pub(crate) fn experiment(kind: &str, scheme: &str, more: &str) -> Experiment {
    let text = format!(
        "name = \"test\"\nduration_us = 1000\nwarmup_us = 100\n[rack]\nhosts = 6\n[scheme]\nkind = \"{kind}\"\n{scheme}\n\
         [[traffic]]\nname = \"incast\"\npattern = \"incast\"\nsenders = [\"h2\", \"h3\", \"h4\", \"h5\"]\n\
         size = 6000\narrivals = \"saturate\"\nflows = 12\n{more}\n"
    );
    Experiment::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(kind: &str, planted: Option<Planted>) -> Outcome {
    run_with(&experiment(kind, "in_flight = 3", ""), None, &Alone, planted).unwrap().0
}

#[test]
fn sound_runs_pass_every_check() {
    for kind in ["l2", "pl2-clock", "pl2-counter"] {
        let outcome = run(kind, None);
        assert_eq!(outcome.problems, [] as [String; 0], "{kind} {:?}", outcome.checks);
    }
}

/// Each sender's wait is below t, whatever they send together: with clocks they are paced all the same.
#[test]
fn few_senders_below_t_do_not_fill_the_buffer() {
    for in_flight in 1..=3 {
        for senders in [&["h2"][..], &["h2", "h3"], &["h2", "h3", "h4"]] {
            let mut experiment = experiment("pl2-clock", &format!("in_flight = {in_flight}"), "");
            experiment.spec.traffic[0].senders =
                Some(senders.iter().map(|name| (*name).to_owned()).collect());
            let (outcome, ..) = run_with(&experiment, None, &Alone, None).unwrap();
            let queue = outcome.switch.queue_max_bytes;
            assert_eq!((outcome.problems.len(), outcome.frames_dropped), (0, 0), "{in_flight} {senders:?}");
            assert!(queue < 100_000, "{in_flight} {senders:?}: {queue} bytes");
        }
    }
}

/// A host whose own port is the bottleneck reserves no more than it can use.
#[test]
fn a_lone_sender_keeps_its_reservations_near() {
    let mut experiment = experiment("pl2-clock", "in_flight = 3", "");
    experiment.spec.traffic[0].senders = Some(vec!["h2".into()]);
    experiment.spec.traffic[0].receivers = Some(vec!["h1".into(), "h3".into(), "h4".into(), "h5".into()]);
    let (outcome, ..) = run_with(&experiment, None, &Alone, None).unwrap();
    assert_eq!(outcome.problems, [] as [String; 0]);
    assert!(
        outcome.goodput_gbps > 94.5 && outcome.traffic[0].latency_ns.max < 100_000,
        "{}",
        outcome.goodput_gbps
    );
}

fn verdict(kind: &str, planted: Planted) -> Verdict {
    run(kind, Some(planted)).checks
}

#[test]
fn a_frame_that_vanishes_is_missed() {
    for kind in ["l2", "pl2-clock"] {
        assert!(verdict(kind, Planted::Vanish).unaccounted_frames != 0, "{kind}");
    }
}

#[test]
fn frames_that_change_places_are_noticed() {
    assert!(verdict("pl2-clock", Planted::Swap).out_of_order > 0);
}

#[test]
fn grants_for_the_same_time_are_counted() {
    let sound = run("pl2-clock", None).checks;
    let planted = verdict("pl2-clock", Planted::GrantNow);
    assert!(sound.grants > 1_000 && sound.overlapping_grants * 4 < sound.grants, "{sound:?}");
    assert!(planted.overlapping_grants * 2 > planted.grants, "{planted:?}");
}

#[test]
fn reservations_that_nobody_uses_are_a_leak() {
    let experiment = experiment("pl2-counter", "in_flight = 3", "[[fail]]\nhost = \"h2\"\nat_us = 500");
    assert!(run_with(&experiment, None, &Alone, None).unwrap().0.checks.leaked_amount > 0, "a dead host's");
    assert_eq!(
        verdict("pl2-counter", Planted::Leak).leaked_amount,
        0,
        "living hosts give back what lost frames leave"
    );
}

#[test]
fn a_buffer_over_its_limit_is_reported() {
    assert!(verdict("l2", Planted::Overfill).over_limit > 0);
}

#[test]
fn messages_that_never_arrive_are_stuck() {
    assert!(verdict("pl2-clock", Planted::Sleep).stuck_messages > 0);
}

#[test]
fn the_same_seed_gives_the_same_run_and_an_address_does_not() {
    let run = |planted| run("pl2-clock", planted).digest;
    assert_eq!(run(None), run(None));
    assert_ne!(run(None), run(Some(Planted::Address)));
}
