//! A driver that checks a machine's promises as `Machine` states them.

use p4rack_fabric::Machine;
use p4rack_fabric::common::SplitMix;
use p4rack_wire::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// An answer arrives this long after its request.
const DELAY: Nanos = Nanos(1_000);
/// Polls of a turn at most.
const POLLS_MAX: usize = 20_000;
/// Turns at the same time at most.
const TURNS_MAX: usize = 4;
/// A machine that may rest does so after this.
const LONG: Nanos = Nanos::from_secs(60);

/// A machine, its inputs, and the peers that answer it.
pub trait Rig {
    type Machine: Machine<Buffer: Debug + Default, Sent: Debug>;
    /// Something on its way to the machine.
    type Mail;
    const NAME: &'static str;
    /// Whether things get lost on their way to the others.
    const LOSES: bool = true;
    /// Whether the machine comes to rest when no more requests come.
    const RESTS: bool = true;

    fn machine(&mut self) -> &mut Self::Machine;
    /// Asks something of the machine. The others' messages for it are returned.
    fn ask(&mut self, what: u8, now: Nanos) -> Vec<Self::Mail>;
    /// The peers' answers to a message of the machine.
    fn answer(
        &mut self,
        sent: <Self::Machine as Machine>::Sent,
        out: &<Self::Machine as Machine>::Buffer,
        now: Nanos,
    ) -> Vec<Self::Mail>;
    fn deliver(&mut self, mail: Self::Mail, now: Nanos);
    /// Polls the machine's other side until there is nothing.
    fn collect(&mut self, now: Nanos);
}

/// A driver's step.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// It asks something of the machine.
    Ask(u8),
    /// It lets time pass.
    Wait(u64),
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => any::<u8>().prop_map(Step::Ask),
        4 => (0u64..6_000).prop_map(Step::Wait),
        1 => (0u64..60_000).prop_map(Step::Wait),
    ]
}

/// Everything that a machine sent, with its time.
type Record = Vec<(Nanos, String)>;

/// Drives a machine twice, calmly and nervously. Errors: the promise that it breaks.
pub fn check<R: Rig>(rig: impl Fn() -> R, steps: &[Step]) -> Result<(), String> {
    let calm = Driver::new(rig(), false).run(steps)?;
    let nervous = Driver::new(rig(), true).run(steps)?;
    match calm.iter().zip(&nervous).find(|(calm, nervous)| calm != nervous) {
        Some((calm, nervous)) => Err(format!("polled more often it sends {nervous:?} instead of {calm:?}")),
        None if calm.len() != nervous.len() => Err("polled more often it sends more, or less".to_owned()),
        None => Ok(()),
    }
}

struct Driver<R: Rig> {
    rig: R,
    /// It calls when nothing is due, too.
    nervous: bool,
    now: Nanos,
    mail: BTreeMap<(Nanos, u64), R::Mail>,
    posted: u64,
    losses: SplitMix,
    record: Record,
}

impl<R: Rig> Driver<R> {
    fn new(rig: R, nervous: bool) -> Driver<R> {
        let (mail, losses) = (BTreeMap::new(), SplitMix(1));
        Driver { rig, nervous, now: Nanos::ZERO, mail, posted: 0, losses, record: Vec::new() }
    }

    fn run(mut self, steps: &[Step]) -> Result<Record, String> {
        // Times are valid only after polls.
        self.turn()?;
        for step in steps {
            match step {
                Step::Ask(what) => {
                    let mail = self.rig.ask(*what, self.now);
                    self.post(mail);
                    self.turn()?;
                }
                Step::Wait(ns) => self.run_until(self.now + Nanos(*ns))?,
            }
        }
        if R::RESTS {
            self.run_until(self.now + LONG)?;
            if let Some(at) = self.rig.machine().next_call(Nanos::ZERO) {
                return Err(format!("it does not rest: at {} it wants to be called at {at}", self.now));
            }
        }
        Ok(self.record)
    }

    fn post(&mut self, mail: Vec<R::Mail>) {
        for mail in mail {
            self.posted += 1;
            self.mail.insert((self.now + DELAY, self.posted), mail);
        }
    }

    fn run_until(&mut self, until: Nanos) -> Result<(), String> {
        loop {
            let mail = self.mail.first_key_value().map(|((at, _), _)| *at);
            let next = self.rig.machine().next_call(Nanos::ZERO).into_iter().chain(mail).min();
            let next = next.filter(|at| *at <= until);
            if self.nervous {
                self.disturb(next.unwrap_or(until))?;
            }
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            while let Some(first) = self.mail.first_entry().filter(|first| first.key().0 <= self.now) {
                self.rig.deliver(first.remove(), self.now);
            }
            self.turn()?;
        }
        self.now = until;
        Ok(())
    }

    /// Calls although nothing is due before `end`.
    fn disturb(&mut self, end: Nanos) -> Result<(), String> {
        let start = self.now;
        for part in 1..4 {
            let between = Nanos(start.0 + end.0.saturating_sub(start.0) * part / 4);
            if between > start && between < end {
                let machine = self.rig.machine();
                machine.handle_timeout(between);
                if let Some(sent) = machine.poll_link(between, &mut Default::default()) {
                    return Err(format!("it sends {sent:?} at {between}, and said {end}"));
                }
            }
        }
        Ok(())
    }

    /// Runs the machine's due work, until its next call is later.
    fn turn(&mut self) -> Result<(), String> {
        for _ in 0..TURNS_MAX {
            let machine = self.rig.machine();
            if self.nervous || machine.next_timeout().is_some_and(|at| at <= self.now) {
                machine.handle_timeout(self.now);
            }
            self.drain()?;
            if self.rig.machine().next_call(Nanos::ZERO).is_none_or(|at| at > self.now) {
                return Ok(());
            }
        }
        let at = self.rig.machine().next_call(Nanos::ZERO);
        Err(format!("at {} it has nothing more to send, and still wants to be called at {at:?}", self.now))
    }

    fn drain(&mut self) -> Result<(), String> {
        let mut out = Default::default();
        let mut polls = 0;
        while let Some(sent) = self.rig.machine().poll_link(self.now, &mut out) {
            polls += 1;
            if polls > POLLS_MAX {
                return Err(format!("its output at {} has no end", self.now));
            }
            self.record.push((self.now, format!("{sent:?} {out:?}")));
            if R::LOSES && self.losses.next().is_multiple_of(8) {
                continue;
            }
            let mail = self.rig.answer(sent, &out, self.now);
            self.post(mail);
        }
        if self.nervous {
            for _ in 0..2 {
                if let Some(sent) = self.rig.machine().poll_link(self.now, &mut out) {
                    return Err(format!("at {} it sends {sent:?} after it had nothing", self.now));
                }
            }
        }
        self.rig.collect(self.now);
        Ok(())
    }
}
