//! When something is to be asked again.

/// The time at which something is asked next. Nothing is taken off an agenda: events for other times are out of date.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due(u64);

impl Default for Due {
    fn default() -> Self {
        Due(u64::MAX)
    }
}

impl Due {
    /// Plans for this time, or for now if it has passed. Returns the time to put on the agenda; `None` if an earlier
    /// one is scheduled.
    #[inline]
    pub fn plan(&mut self, at: u64, now: u64) -> Option<u64> {
        let at = at.max(now);
        let is_new = at < self.0 || self.0 < now;
        is_new.then(|| {
            self.0 = at;
            at
        })
    }

    /// Whether an event of now is the one that was planned. Nothing is planned from then on.
    #[inline]
    pub fn is_now(&mut self, now: u64) -> bool {
        let is_now = self.0 == now;
        if is_now {
            self.0 = u64::MAX;
        }
        is_now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_time_replaces_a_later_one() {
        let mut due = Due::default();
        assert_eq!(due.plan(50, 10), Some(50));
        assert_eq!((due.plan(50, 11), due.plan(60, 11)), (None, None));
        assert_eq!(due.plan(5, 12), Some(12), "it is late");
        assert!(due.is_now(12) && !due.is_now(12));
        assert!(!due.is_now(50), "that one was replaced");
        assert_eq!(due.plan(70, 50), Some(70));
        assert_eq!(due.plan(90, 80), Some(90), "70 has passed");
    }
}
