//! Time: the monotonic clock as [`Nanos`], and conversion of kernel timestamps to it.

use p4rack_wire::Nanos;

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, exclusive timespec; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Current time on `CLOCK_MONOTONIC`, which all drivers pass to the state machines.
#[inline]
pub fn now() -> Nanos {
    Nanos(read_clock(libc::CLOCK_MONOTONIC))
}

/// Current time in nanoseconds since 1970.
pub fn wall_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// Processor time used by the calling thread.
pub fn thread_cpu() -> Nanos {
    Nanos(read_clock(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// Offset between the wall clock, with which the kernel stamps frames, and the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct WallOffset {
    ahead_ns: i128,
    /// Time of the measurement. Frames already received cannot be later.
    measured: Nanos,
}

impl WallOffset {
    /// Older timestamps are attributed to a step of the wall clock.
    const OLDEST: Nanos = Nanos::from_secs(1);

    /// Measures the offset. Cheap: three clock readings without a system call.
    pub fn measure() -> WallOffset {
        let before = now();
        let wall = wall_ns();
        let after = now();
        let middle = i128::from(before.0) + i128::from(after.0 - before.0) / 2;
        WallOffset { ahead_ns: i128::from(wall) - middle, measured: after }
    }

    /// Converts a kernel timestamp to the monotonic clock. The result is never later than the measurement; if
    /// the wall clock was stepped in between, it is the time of the measurement.
    pub fn monotonic(&self, wall_ns: u64) -> Nanos {
        let at = (i128::from(wall_ns) - self.ahead_ns).clamp(0, i128::from(self.measured.0));
        let at = Nanos(at as u64);
        if self.measured.saturating_sub(at) > Self::OLDEST { self.measured } else { at }
    }

    /// Converts a monotonic time to nanoseconds since 1970.
    pub fn wall(&self, at: Nanos) -> u64 {
        (i128::from(at.0) + self.ahead_ns).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_never_goes_back() {
        let mut last = now();
        for _ in 0..1000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn wall_time_maps_back_to_the_same_instant() {
        let offset = WallOffset::measure();
        let at = Nanos(offset.measured.0 - 5_000);
        assert_eq!(offset.monotonic(offset.wall(at)), at);
    }

    #[test]
    fn a_stamp_from_the_future_or_the_far_past_becomes_now() {
        let offset = WallOffset::measure();
        assert_eq!(offset.monotonic(offset.wall(offset.measured) + 1_000_000), offset.measured);
        assert_eq!(offset.monotonic(0), offset.measured);
    }
}
