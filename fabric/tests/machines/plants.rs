//! Bugs that are planted in a machine, to see that the driver finds them.

use super::driver::{Rig, Step, check};
use super::memory::Compute;
use p4rack_fabric::Machine;
use p4rack_fabric::edm::host::compute;
use p4rack_wire::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    None,
    /// It sends its last message for ever.
    EndlessOutput,
    /// It wants to be called at a time that has passed.
    StuckTimeout,
    /// It says that it has something to send, and has nothing.
    EmptyPromise,
    /// It sends something when it is polled for the second time.
    SecondPoll,
    /// It sends before the time that it has named.
    TooEarly,
    /// Its output depends on how often it was polled.
    CountsPolls,
}

/// A compute node with a bug.
struct Planted {
    machine: compute::ComputeNode,
    plant: Plant,
    polls: u64,
    sent: Option<u16>,
}

impl Machine for Planted {
    type Received<'a> = (u16, &'a [u8]);
    type Sent = u16;
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, received: (u16, &[u8]), received_at: Nanos, now: Nanos) {
        self.machine.handle_link(received, received_at, now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.machine.handle_timeout(now);
    }

    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        self.polls += 1;
        if self.plant == Plant::SecondPoll && self.polls % 2 == 1 {
            return None;
        }
        let time = if self.plant == Plant::TooEarly { now + Nanos(20) } else { now };
        let sent = self.machine.poll_link(time, out);
        self.sent = sent.or(self.sent);
        match self.plant {
            Plant::EndlessOutput => self.sent,
            Plant::CountsPolls => sent.inspect(|_| out.push(self.polls as u8)),
            _ => sent,
        }
    }

    fn next_link(&self) -> Option<Nanos> {
        match self.plant {
            Plant::EmptyPromise => self.sent.map(|_| Nanos::ZERO),
            _ => self.machine.next_link(),
        }
    }

    fn next_timeout(&self) -> Option<Nanos> {
        match self.plant {
            Plant::StuckTimeout => self.machine.next_timeout().map(|_| Nanos(1)),
            _ => self.machine.next_timeout(),
        }
    }
}

/// Its machine is the planted one; the rest is a compute node's.
struct WithBug {
    planted: Planted,
    rest: Compute,
}

impl Rig for WithBug {
    type Machine = Planted;
    type Mail = Vec<u8>;
    const NAME: &'static str = "compute node with a bug";

    fn machine(&mut self) -> &mut Planted {
        &mut self.planted
    }

    fn ask(&mut self, what: u8, now: Nanos) -> Vec<Vec<u8>> {
        super::memory::ask(&mut self.planted.machine, what, now);
        Vec::new()
    }

    fn answer(&mut self, to: u16, out: &Vec<u8>, now: Nanos) -> Vec<Vec<u8>> {
        self.rest.answer(to, out, now)
    }

    fn deliver(&mut self, mail: Vec<u8>, now: Nanos) {
        self.planted.handle_link((super::memory::MEMORY, &mail), now, now);
    }

    fn collect(&mut self, _now: Nanos) {
        while self.planted.machine.poll_completion().is_some() {}
    }
}

#[test]
fn planted_bugs_are_found() {
    // Enough for a write whose grant has a wait.
    let steps: Vec<Step> = (0..24).flat_map(|what| [Step::Ask(1 + what), Step::Wait(2_500)]).collect();
    let checked = |plant| {
        let machine = || Planted { machine: super::memory::compute(), plant, polls: 0, sent: None };
        check(|| WithBug { planted: machine(), rest: Compute::new() }, &steps)
    };
    assert_eq!(checked(Plant::None), Ok(()));
    for (plant, found) in [
        (Plant::EndlessOutput, "has no end"),
        (Plant::StuckTimeout, "still wants to be called"),
        (Plant::EmptyPromise, "still wants to be called"),
        (Plant::SecondPoll, "after it had nothing"),
        (Plant::TooEarly, "it sends"),
        (Plant::CountsPolls, "polled more often"),
    ] {
        let broken = checked(plant).expect_err("nothing was found");
        assert!(broken.contains(found), "{plant:?}: {broken}");
    }
}
