//! A run gives the same result on any number of threads.
// The simulator has no threads; its tests have.
#![allow(clippy::disallowed_methods)]

use crate::check_tests::experiment;
use crate::crew::{Alone, Crew};
use crate::experiment::{Experiment, NO_ATTACK};
use crate::outcome::{Outcome, run_with};
use crate::world::Planted;
use p4rack_fabric::hostile::Attack;
use std::path::Path;
use std::sync::Barrier;

/// Threads that wait for each other without spinning: tests may have fewer processors.
pub(crate) struct Threads(usize, Barrier);

impl Threads {
    pub(crate) fn new(size: usize) -> Threads {
        Threads(size, Barrier::new(size))
    }
}

impl Crew for Threads {
    fn size(&self) -> usize {
        self.0
    }

    fn work(&self, part: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            (1..self.0).for_each(|worker| drop(scope.spawn(move || part(worker))));
            part(0);
        });
    }

    fn meet(&self) {
        self.1.wait();
    }

    fn wait(&self, is_done: &dyn Fn() -> bool) {
        while !is_done() {
            std::thread::yield_now();
        }
    }
}

fn run(experiment: &Experiment, crew: &dyn Crew) -> Outcome {
    run_with(experiment, None, crew, None).unwrap().0
}

/// All that a run shows, its digest included, is the same for one, two, three and four workers.
fn same_for_all(experiment: &Experiment) {
    let alone = serde_json::to_value(run(experiment, &Alone)).unwrap();
    for size in [2, 3, 4] {
        let together = serde_json::to_value(run(experiment, &Threads::new(size))).unwrap();
        assert_eq!(together, alone, "{}: {size} workers", experiment.spec.name);
    }
}

#[test]
fn stored_experiments_show_the_same_on_several_threads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments");
    for name in [
        "clock-pair",
        "clock-calendar",
        "clock-death",
        "clock-faults",
        "clock-rounds",
        "clock-shared-port",
        "counter-all-to-all",
        "counter-faults",
        "counter-paper",
        "l2-cubic",
        "l2-dctcp",
        "l2-pfc",
        "l2-rds",
        "pl2-tcp",
    ] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        let mut experiment = Experiment::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
        // All of it is in their first part.
        experiment.spec.duration_us = experiment.spec.duration_us.min(experiment.spec.warmup_us + 400);
        same_for_all(&experiment);
    }
}

#[test]
fn hostile_hosts_and_random_arrivals_show_the_same_on_several_threads() {
    for attack in [NO_ATTACK, Attack::RsvFlood.name(), Attack::Garbage.name(), Attack::Broadcast.name()] {
        let text = format!(
            "name = \"{attack}\"\nduration_us = 300\nwarmup_us = 100\ndrain_us = 500\n[rack]\nhosts = 9\n\
             [scheme]\nkind = \"pl2-clock\"\n[[hostile]]\nhost = \"h3\"\nattack = \"{attack}\"\n[[traffic]]\n\
             name = \"all\"\npattern = \"all-to-all\"\narrivals = \"poisson\"\nload = 0.4\nsize = 3000\n"
        );
        same_for_all(&Experiment::parse(&text, "hostile.toml").unwrap_or_else(|error| panic!("{error}")));
    }
}

/// Mail read too early, or not at all, is noticed; and it changes the results.
#[test]
fn a_race_is_noticed() {
    let experiment = experiment("pl2-clock", "in_flight = 3", "");
    let crew = Threads::new(2);
    let (sound, _) = run_with(&experiment, None, &crew, None).unwrap();
    assert_eq!((sound.checks.late_frames, &sound.digest), (0, &run(&experiment, &Alone).digest));
    let (racing, _) = run_with(&experiment, None, &crew, Some(Planted::Race)).unwrap();
    assert!(racing.checks.late_frames > 0 && racing.digest != sound.digest, "{:?}", racing.checks);
    assert!(racing.problems.iter().any(|problem| problem.contains("out of turn")), "{:?}", racing.problems);
}
