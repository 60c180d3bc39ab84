//! Which instance has the next turn: hosts take turns, and the instances of each among themselves.
//!
//! ```text
//!   packet generator of a run ─ frames for its own queue pair ─▶ the run's cell ─▶ the run's next instance
//! ```
//!
//! Runs share neither a cell nor a generator, so a host with many instances has no more turns than one with a single instance.

use p4rack_wire::roce::psn;
use std::collections::BTreeMap;
use std::ops::Range;

/// Instances of one host whose numbers follow each other. Its turns are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Numbers of the instances.
    pub instances: Range<u32>,
    /// Instances of its host, and of all hosts.
    of_host: u32,
    of_all: u32,
    /// Hosts that have instances.
    hosts: u32,
}

impl Run {
    /// The runs of instances, of which each has a number and a host.
    pub fn of<H: Copy + Ord>(served: &BTreeMap<u32, H>) -> Vec<Run> {
        let mut counts = BTreeMap::<H, u32>::new();
        let mut runs: Vec<(Range<u32>, H)> = Vec::new();
        for (number, host) in served {
            *counts.entry(*host).or_default() += 1;
            match runs.last_mut() {
                Some((last, of)) if last.end == *number && of == host => last.end += 1,
                _ => runs.push((*number..*number + 1, *host)),
            }
        }
        let (of_all, hosts) = (served.len() as u32, counts.len() as u32);
        let of_host = |host| counts.get(&host).copied().unwrap_or_default();
        runs.into_iter()
            .map(|(instances, host)| Run { instances, of_host: of_host(host), of_all, hosts })
            .collect()
    }

    /// Turns of all hosts from one turn of one of its instances to this one's next.
    pub fn round(&self) -> u32 {
        self.hosts * self.of_host
    }

    /// Time from one turn to the run's next, at least 1, in the unit of `every`: the time in which as many turns are given as there are
    /// instances.
    pub fn period(&self, every: u64) -> u64 {
        let own = u64::from(self.of_all) * self.instances.len() as u64;
        (every.saturating_mul(self.round().into()) / own.max(1)).max(1)
    }

    /// Number of the queue pair that its turns address, if those of all runs begin with `first`.
    pub fn qpn(&self, first: u32) -> u32 {
        Run::qpn_at(first, self.instances.start)
    }

    /// The same for a run that begins with this instance.
    pub fn qpn_at(first: u32, begin: u32) -> u32 {
        first.wrapping_add(begin) & psn::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(served: &[(u32, char)]) -> Vec<(Range<u32>, u64)> {
        let runs = Run::of(&served.iter().copied().collect());
        runs.into_iter().map(|run| (run.instances.clone(), run.period(1_700))).collect()
    }

    #[test]
    fn a_host_with_many_instances_has_as_many_turns_as_one_with_a_single_instance() {
        let of_both: Vec<_> = (0..17).map(|nth| (nth, if nth < 16 { 'a' } else { 'b' })).collect();
        assert_eq!(runs(&of_both), [(0..16, 200), (16..17, 200)]);
        assert_eq!(
            Run::of(&of_both.into_iter().collect()).iter().map(Run::round).collect::<Vec<_>>(),
            [32, 2]
        );
        // A host alone has all turns, as many as it has instances in the time given.
        assert_eq!(runs(&[(0, 'a'), (1, 'a')]), [(0..2, 850)]);
        assert_eq!(runs(&[]), []);
    }

    #[test]
    fn a_host_whose_numbers_do_not_follow_each_other_has_no_more_turns() {
        let all = runs(&[(0, 'a'), (1, 'b'), (2, 'a'), (3, 'a'), (5, 'a')]);
        let turns: Vec<f64> = all.iter().map(|(_, period)| 1_700.0 / *period as f64).collect();
        assert_eq!(all.iter().map(|one| one.0.clone()).collect::<Vec<_>>(), [0..1, 1..2, 2..4, 5..6]);
        // Of five turns each host has half, and each instance of a host as many as its others.
        let is_near = |turns: f64, wanted: f64| (turns - wanted).abs() < 0.01;
        assert!(is_near(turns[1], 2.5) && is_near(turns[0], 0.625), "{turns:?}");
        assert!(is_near(turns[2], 2.0 * 0.625) && is_near(turns[3], 0.625), "{turns:?}");
    }

    #[test]
    fn runs_have_queue_pairs_of_their_own() {
        let all = Run::of(&(0..4).map(|nth| (nth, nth)).collect());
        let numbers: Vec<u32> = all.iter().map(|run| run.qpn(0xff_fffe)).collect();
        assert_eq!(numbers, [0xff_fffe, 0xff_ffff, 0, 1]);
    }
}
