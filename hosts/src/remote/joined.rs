//! Regions of the same length, one after the other, as one region: extents that are lent one by one.

use super::cut::Cut;
use super::{Abilities, Operation, Order, Outcome, Remote, RemoteError, Status, Window};
use p4rack_wire::Nanos;
use std::cell::Cell;

/// Longest wait for one part before a look at the others.
const TURN: Nanos = Nanos::from_micros(50);

/// A [`Remote`] of several others. An operation that crosses an edge between two is an operation on each.
pub struct Joined(Cut<Parts>);

/// Other regions, without operations that cross an edge.
struct Parts {
    parts: Vec<Box<dyn Remote>>,
    abilities: Abilities,
    /// Operations in flight: their part and tag.
    asked: Window<(usize, u64)>,
}

impl Joined {
    /// One after the other. Errors: there are none, or their lengths or abilities differ.
    pub fn new(parts: Vec<Box<dyn Remote>>) -> Result<Joined, RemoteError> {
        let Some(first) = parts.first().map(|part| part.abilities().clone()) else {
            return Err(RemoteError::Lacks("regions that it consists of".to_owned()));
        };
        if parts.iter().any(|part| part.abilities() != &first) || !first.region_bytes.is_multiple_of(8) {
            return Err(RemoteError::Lacks("regions of the same length and abilities".to_owned()));
        }
        let part_bytes = first.region_bytes;
        let longest = |most: u32| u32::try_from(part_bytes).unwrap_or(u32::MAX).min(most);
        let order = match first.order {
            Order::Program | Order::Dependent => Order::Dependent,
            Order::SameBytes => Order::SameBytes,
            Order::ReadsAfterWrites | Order::None => Order::None,
        };
        let abilities = Abilities {
            region_bytes: part_bytes.saturating_mul(parts.len() as u64),
            read_bytes_max: longest(first.read_bytes_max),
            write_bytes_max: longest(first.write_bytes_max),
            edge_bytes: first.edge_bytes.min(part_bytes),
            pieces_max: 0,
            order,
            ..first
        };
        let edges = (1..parts.len() as u64).map(|nth| nth * part_bytes).collect();
        let parts = Parts { parts, abilities, asked: Window::default() };
        Ok(Joined(Cut::new(parts, edges)))
    }
}

impl Remote for Joined {
    fn abilities(&self) -> &Abilities {
        self.0.abilities()
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.0.submit(tag, operation)
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.0.poll(until, ended)
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn losses(&self) -> u64 {
        self.0.losses()
    }
}

impl Parts {
    fn part_bytes(&self) -> u64 {
        self.abilities.region_bytes / self.parts.len().max(1) as u64
    }
}

impl Remote for Parts {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        let part_bytes = self.part_bytes();
        let place = |at: u64| ((at / part_bytes) as usize, at % part_bytes);
        let (nth, operation) = match operation {
            Operation::Read { at, bytes } => (place(at).0, Operation::Read { at: place(at).1, bytes }),
            Operation::Write { at, bytes } => (place(at).0, Operation::Write { at: place(at).1, bytes }),
            Operation::Modify { at, opcode, operands } => {
                (place(at).0, Operation::Modify { at: place(at).1, opcode, operands })
            }
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
        };
        let number = self.asked.next();
        self.parts.get_mut(nth).ok_or(Status::OutOfBounds)?.submit(number, operation)?;
        self.asked.push((nth, tag));
        Ok(())
    }

    /// Waits for the part with the oldest operation. While others have operations too, looks at them in between.
    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let oldest = self.asked.iter_mut().next().map_or(0, |(_, (nth, _))| *nth);
        let waits_for_others = self.asked.iter_mut().any(|(_, (nth, _))| *nth != oldest);
        let (asked, any) = (&mut self.asked, Cell::new(false));
        let mut deliver = |number: u64, outcome: Outcome<'_>| {
            if let Some((_, tag)) = asked.take(number) {
                any.set(true);
                ended(tag, outcome);
            }
        };
        loop {
            let others = self.parts.iter_mut().enumerate().filter(|(nth, _)| *nth != oldest);
            others.map(|(_, part)| part).try_for_each(|part| part.poll(Nanos::ZERO, &mut deliver))?;
            let Some(part) = self.parts.get_mut(oldest) else { return Ok(()) };
            let wait_until = match waits_for_others {
                _ if any.get() || until == Nanos::ZERO => Nanos::ZERO,
                true => until.min(part.now() + TURN),
                false => until,
            };
            part.poll(wait_until, &mut deliver)?;
            if any.get() || wait_until == Nanos::ZERO || part.now() >= until || !waits_for_others {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Nanos {
        self.parts.first().map_or(Nanos::ZERO, |part| part.now())
    }

    fn losses(&self) -> u64 {
        self.parts.iter().map(|part| part.losses()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::delayed::Delayed;
    use super::super::{Local, Piece};
    use super::*;

    fn joined() -> Joined {
        let part = |nth: u8| -> Box<dyn Remote> {
            let mut local = Local::new(16);
            local.bytes().fill(nth);
            Box::new(local)
        };
        Joined::new((0..3).map(part).collect()).unwrap()
    }

    fn ends(joined: &mut Joined, count: usize) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        while all.len() < count {
            joined.poll(Nanos::ZERO, &mut |tag, outcome| all.push((tag, format!("{outcome:?}")))).unwrap();
        }
        all.sort();
        all
    }

    #[test]
    fn operations_cross_the_edges_between_parts() {
        let mut joined = joined();
        assert_eq!(joined.abilities().region_bytes, 48);
        let bytes: Vec<u8> = (100..116).collect();
        joined.submit(7, Operation::Write { at: 8, bytes: &bytes }).unwrap();
        assert_eq!(ends(&mut joined, 1), [(7, "Written".to_owned())]);
        joined.submit(1, Operation::Read { at: 6, bytes: 4 }).unwrap();
        joined.submit(2, Operation::Read { at: 14, bytes: 4 }).unwrap();
        joined.submit(3, Operation::Read { at: 22, bytes: 12 }).unwrap();
        let pieces = [Piece { at: 47, bytes: 1 }, Piece { at: 15, bytes: 2 }];
        joined.submit(4, Operation::Gather { pieces: &pieces }).unwrap();
        let found = ends(&mut joined, 4);
        assert_eq!(found[0], (1, "Read([0, 0, 100, 101])".to_owned()));
        assert_eq!(found[1], (2, "Read([106, 107, 108, 109])".to_owned()));
        assert_eq!(found[2], (3, "Read([114, 115, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2])".to_owned()));
        assert_eq!(found[3], (4, "Read([2, 107, 108])".to_owned()));
        joined.submit(5, Operation::Scatter { pieces: &pieces, bytes: &[1, 2, 3] }).unwrap();
        joined
            .submit(6, Operation::Modify { at: 40, opcode: super::super::Opcode::Swap, operands: [0, 0] })
            .unwrap();
        let found = ends(&mut joined, 2);
        assert_eq!(found[1], (6, format!("Word({})", 0x0202_0202_0202_0201_u64)));
        for operation in [Operation::Read { at: 40, bytes: 9 }, Operation::Read { at: 0, bytes: 17 }] {
            assert!(joined.submit(9, operation).is_err());
        }
    }

    #[test]
    fn a_part_that_answers_is_heard_while_an_older_operation_waits_for_another() {
        let part = |delay| -> Box<dyn Remote> { Box::new(Delayed::new(Local::new(16), delay)) };
        let parts = vec![part(Nanos::from_secs(3_600)), part(Nanos::from_millis(5))];
        let mut joined = Joined::new(parts).unwrap();
        joined.submit(1, Operation::Read { at: 0, bytes: 8 }).unwrap();
        joined.submit(2, Operation::Read { at: 16, bytes: 8 }).unwrap();
        let (until, mut ended) = (joined.now() + Nanos::from_secs(20), Vec::new());
        joined.poll(until, &mut |tag, _| ended.push(tag)).unwrap();
        assert_eq!(ended, [2]);
    }

    #[test]
    fn parts_of_several_lengths_are_refused() {
        let parts: Vec<Box<dyn Remote>> = vec![Box::new(Local::new(16)), Box::new(Local::new(24))];
        assert!(Joined::new(parts).is_err() && Joined::new(Vec::new()).is_err());
    }
}
