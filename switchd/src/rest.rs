//! Rests of the packet generators: the data plane sleeps for as long as they keep it busy.
//!
//! An endless generator may ask for more than its thread can do. The thread would never sleep, and as it has real-time priority, every
//! other thread on its processor would get only what the kernel keeps for them: 50 ms of each second. Hosts on the same machine would
//! answer a second late.

use p4rack_wire::Nanos;

/// Maximum time between two runs of the generators: work for packets delays them no further.
const MAX: Nanos = Nanos::from_micros(200);

/// Says when generators may run again. Times are those of the thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rest {
    /// Runs so far.
    runs: u64,
    /// Start of the last run's turn, and the processor time that was used before it.
    start: Nanos,
    cpu_before: Nanos,
    /// Processor time used at the end of the last turn.
    cpu: Nanos,
}

impl Rest {
    /// The end of a turn that began at `start`: until when generators, which have run `runs` times, rest. Half of the time since their
    /// last run then was sleep.
    pub fn after(&mut self, runs: u64, start: Nanos, cpu: Nanos) -> Nanos {
        if runs != self.runs {
            (self.runs, self.start, self.cpu_before) = (runs, start, self.cpu);
        }
        self.cpu = cpu;
        let worked = cpu.saturating_sub(self.cpu_before);
        self.start.saturating_add((worked + worked).min(MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of the generators in 100 ms, and the time that the thread works. A turn of the generators takes 6 µs, and each has
    /// `packets` turns of 4 µs after it, one every `apart` ns.
    fn simulate(period: u64, packets: u64, apart: u64) -> (u64, u64) {
        let (mut rest, mut now, mut cpu, mut runs, mut until) = (Rest::default(), 0, 0, 0, Nanos(0));
        let (mut due, mut arrivals) = (0, Vec::new());
        loop {
            now = now.max(due.max(until.0).min(arrivals.last().copied().unwrap_or(u64::MAX)));
            if now >= 100_000_000 {
                return (runs, cpu);
            }
            let start = now;
            if due.max(until.0) <= now {
                (runs, due) = (runs + 1, (now / period + 1) * period);
                now += 6_000;
                arrivals = (1..=packets).rev().map(|nth| now + nth * apart).collect();
            }
            if arrivals.last().is_some_and(|at| *at <= now) {
                arrivals.pop();
                now += 4_000;
            }
            cpu += now - start;
            until = rest.after(runs, Nanos(start), Nanos(cpu));
        }
    }

    #[test]
    fn generators_and_what_they_cause_take_half_of_the_time() {
        for (period, packets) in [(1, 0), (1_000, 0), (10_000, 0), (10_000, 2), (100, 3)] {
            let (runs, cpu) = simulate(period, packets, 5_000);
            assert!((40_000_000..=51_000_000).contains(&cpu), "{period} {packets}: {cpu} ns of 100 ms");
            assert!(runs >= 2_500, "{period} {packets}: {runs}");
        }
    }

    #[test]
    fn generators_that_ask_for_less_keep_their_times() {
        assert_eq!(simulate(20_000, 0, 0), (5_000, 30_000_000));
        assert_eq!(simulate(1_000_000, 5, 10_000).0, 100);
    }

    #[test]
    fn packets_delay_generators_by_200_us_at_most() {
        // Packets alone would keep the thread busy.
        let (runs, _) = simulate(10_000, 1_000, 4_000);
        assert!((450..=520).contains(&runs), "{runs}");
    }
}
