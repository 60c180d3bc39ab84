//! Random writes, right and wrong, against a model of the switch's state.
//!
//! The model knows P4Runtime's rules for keys, references, sizes and atomicity, and nothing of how the switch keeps them.
//! The same writes go to a switch without a server, as the simulator and other tests have it: it answers and holds the same.
//! Each run prints its seed; `P4RACK_SEED` repeats one.

use crate::model::{Attempt, Model, Random};
use crate::rig::*;
use p4rack_entities::{Candidate, Program, read, write as write_here};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::errors::unpack;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::*;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::Nanos;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Writes of a run.
const WRITES: usize = 250;
/// Updates of a write at most.
const UPDATES: u64 = 6;

/// A switch without a server.
struct Here {
    program: Arc<Program>,
    switch: Switch,
}

impl Here {
    fn new() -> Here {
        let ports = (1..=4).map(|port| PortConfig::new(port, 0)).collect();
        let mut switch = Switch::new(Config { ports, cpu_port: Some(CPU), ..Config::default() });
        let candidate = Candidate::new(PROGRAM, compiled().clone()).unwrap();
        Here { program: candidate.load(None, &mut switch), switch }
    }

    fn write(&mut self, atomicity: Atomicity, updates: Vec<Update>) -> Vec<Code> {
        let request = WriteRequest { updates, atomicity: atomicity as i32, ..Default::default() };
        let outcomes = write_here(&self.program, &request, &mut self.switch, Nanos::ZERO);
        outcomes.into_iter().map(|outcome| outcome.err().map_or(Code::Ok, |error| error.code)).collect()
    }

    fn read(&self, wanted: EntityKind) -> Vec<EntityKind> {
        let entities = vec![Entity { entity: Some(wanted) }];
        let request = ReadRequest { entities, ..Default::default() };
        let (found, outcomes) = read(&self.program, request, &self.switch, Nanos::ZERO);
        assert_eq!(outcomes, [Ok(())]);
        found.into_iter().filter_map(|found| found.entity).collect()
    }
}

/// Outcome of each update of a write.
async fn write(client: &mut Client, atomicity: Atomicity, updates: Vec<Update>) -> Vec<Code> {
    let count = updates.len();
    let request = WriteRequest {
        device_id: DEVICE,
        election_id: election(client.election),
        updates,
        atomicity: atomicity as i32,
        ..Default::default()
    };
    match client.rpc.write(request).await {
        Ok(_) => vec![Code::Ok; count],
        Err(status) => {
            assert_eq!(status.code(), tonic::Code::Unknown, "{status:?}");
            let outcomes = unpack(status.details()).expect("an error for each update");
            outcomes.into_iter().map(|outcome| outcome.err().map_or(Code::Ok, |error| error.code)).collect()
        }
    }
}

/// Makes the attempts in the model; returns the permitted answers for each.
fn expected(model: &mut Model, atomicity: Atomicity, attempts: &[Attempt]) -> Vec<Vec<Code>> {
    let before = model.clone();
    let mut answers: Vec<Vec<Code>> = Vec::new();
    for attempt in attempts {
        let answer = model.apply(attempt);
        let refused = answer != [Code::Ok];
        answers.push(answer);
        if refused && atomicity != Atomicity::ContinueOnError {
            let reasons = std::mem::take(&mut model.reasons);
            *model = before;
            model.reasons = reasons;
            let last = answers.len() - 1;
            let aborted = vec![Code::Aborted];
            let kept = |position| if position == last { answers[last].clone() } else { aborted.clone() };
            return (0..attempts.len()).map(kept).collect();
        }
    }
    answers
}

async fn compare(client: &mut Client, here: &Here, model: &Model, context: &str) {
    for (wanted, held) in model.everything() {
        let mut found = client.read(wanted.clone()).await.unwrap();
        assert_eq!(found, here.read(wanted.clone()), "{context}: reading {wanted:?}, served and here");
        let mut held = held;
        let order = |entity: &EntityKind| format!("{entity:?}");
        found.sort_by_key(order);
        held.sort_by_key(order);
        assert_eq!(found, held, "{context}: reading {wanted:?}");
    }
}

async fn run(seed: u64) -> BTreeSet<i32> {
    println!("seed {seed}");
    let (_rig, mut client) = Rig::ready().await;
    let mut here = Here::new();
    let (mut random, mut model) = (Random::new(seed), Model::default());
    for number in 0..WRITES {
        let atomicity = [Atomicity::ContinueOnError, Atomicity::RollbackOnError, Atomicity::DataplaneAtomic]
            [random.below(3) as usize];
        let attempts: Vec<Attempt> =
            (0..=random.below(UPDATES)).map(|_| model.attempt(&mut random)).collect();
        let context = format!("seed {seed}, write {number}, {}", atomicity.as_str_name());
        let expected = expected(&mut model, atomicity, &attempts);
        let updates: Vec<Update> = attempts.iter().map(|attempt| attempt.update.clone()).collect();
        let answers = write(&mut client, atomicity, updates.clone()).await;
        assert_eq!(answers, here.write(atomicity, updates), "{context}: served and here");
        assert_eq!(answers.len(), expected.len(), "{context}");
        for ((answer, allowed), attempt) in answers.iter().zip(&expected).zip(&attempts) {
            assert!(allowed.contains(answer), "{context}: {answer:?}, not {allowed:?}: {:?}", attempt.update);
        }
        if number % 10 == 0 {
            compare(&mut client, &here, &model, &context).await;
        }
    }
    compare(&mut client, &here, &model, &format!("seed {seed}, at the end")).await;
    // Else it tries too little of one kind.
    assert!(
        model.accepted > WRITES / 4 && model.refused > WRITES / 4,
        "{} and {}",
        model.accepted,
        model.refused
    );
    model.reasons
}

#[tokio::test]
async fn replies_and_state_are_the_models_whatever_is_written() {
    match std::env::var("P4RACK_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => drop(run(seed).await),
        None => {
            let mut reasons = BTreeSet::new();
            for seed in 1..=3 {
                reasons.extend(run(seed).await);
            }
            for code in
                [Code::NotFound, Code::AlreadyExists, Code::ResourceExhausted, Code::FailedPrecondition]
            {
                assert!(reasons.contains(&(code as i32)), "nothing was refused with {code:?}");
            }
        }
    }
}
