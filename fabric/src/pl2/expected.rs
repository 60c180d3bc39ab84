//! Frames announced to this host by copies of grants (`notify_receiver`, §4.5), and senders that fall silent.
//!
//! This counts frames per sender, not bursts: frames may come unsolicited, again, or under another
//! reservation. A sender is silent when frames of it are missing, the last of them is overdue, and nothing
//! else came from it either. A sender whose grant was lost and that then has nothing to send looks the same;
//! its reservation is as unused as a dead sender's.

use p4rack_wire::Nanos;

#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    frames: u64,
    /// Time at which the last of them should have arrived.
    due: Nanos,
    heard_at: Nanos,
}

impl Sender {
    fn silent_at(&self, patience: Nanos) -> Option<Nanos> {
        (self.frames > 0).then(|| self.due.max(self.heard_at).saturating_add(patience))
    }
}

/// All senders, by number.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    senders: Vec<Sender>,
    patience: Option<Nanos>,
}

impl Expected {
    /// `patience` is the grace period for a late sender; `None` tracks nothing.
    pub fn new(senders: usize, patience: Option<Nanos>) -> Expected {
        Expected { senders: vec![Sender::default(); senders], patience }
    }

    /// Announces frames from a sender, the last of them by `due`.
    pub fn notified(&mut self, sender: usize, frames: u8, due: Nanos) {
        if let (Some(sender), Some(_)) = (self.senders.get_mut(sender), self.patience) {
            sender.frames += u64::from(frames);
            sender.due = sender.due.max(due);
        }
    }

    /// Records a frame from a sender.
    pub fn came(&mut self, sender: usize, now: Nanos) {
        if let (Some(sender), Some(_)) = (self.senders.get_mut(sender), self.patience) {
            sender.frames = sender.frames.saturating_sub(1);
            sender.heard_at = now;
        }
    }

    /// The first time at which a sender may turn out to be silent.
    #[cold]
    pub fn next_timeout(&self) -> Option<Nanos> {
        let patience = self.patience?;
        self.senders.iter().filter_map(|sender| sender.silent_at(patience)).min()
    }

    /// Takes a sender that is silent now.
    pub fn take_silent(&mut self, now: Nanos) -> Option<usize> {
        let patience = self.patience?;
        let silent = |sender: &Sender| sender.silent_at(patience).is_some_and(|at| at <= now);
        let at = self.senders.iter().position(silent)?;
        self.senders[at].frames = 0;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_owes_frames_and_says_nothing_is_silent_once() {
        let mut expected = Expected::new(2, Some(Nanos(100)));
        expected.notified(0, 4, Nanos(50));
        expected.notified(1, 4, Nanos(50));
        assert_eq!(expected.next_timeout(), Some(Nanos(150)));
        (0..4).for_each(|_| expected.came(0, Nanos(60)));
        expected.came(1, Nanos(70));
        assert_eq!(expected.take_silent(Nanos(169)), None, "it was heard at 70");
        assert_eq!(expected.take_silent(Nanos(170)), Some(1));
        assert_eq!((expected.take_silent(Nanos(900)), expected.next_timeout()), (None, None));
        let mut off = Expected::new(1, None);
        off.notified(0, 4, Nanos(0));
        assert_eq!((off.next_timeout(), off.take_silent(Nanos(1_000))), (None, None));
    }
}
