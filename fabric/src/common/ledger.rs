//! Where a machine's frames have gone.

/// Where the frames of an [`Endpoint`](crate::Endpoint) have gone since it began. Between two calls nothing is
/// [unaccounted](Ledger::unaccounted) for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Frames that applications gave.
    pub app_in: u64,
    /// Of these: frames that count as sent, each once, however many copies of it have left.
    pub sent: u64,
    /// Of these: dropped, each for a [`Reason`](super::Reason).
    pub app_dropped: u64,
    /// Of these: waiting to leave.
    pub waiting: u64,
    /// Frames of applications that have left for the link, copies included.
    pub data_out: u64,
    /// The machine's own frames that have left, such as requests.
    pub control_out: u64,
    /// Frames that came from the link.
    pub link_in: u64,
    /// Of these: handed to applications.
    pub app_out: u64,
    /// Of these: for applications that have not fetched them.
    pub unfetched: u64,
    /// Of these: for the machine itself, such as grants.
    pub control_in: u64,
    /// Of these: dropped, each for a reason.
    pub link_dropped: u64,
}

impl Ledger {
    /// Frames that were neither sent nor handed over, were not dropped, and don't wait.
    pub fn unaccounted(&self) -> u64 {
        let down = self.sent + self.app_dropped + self.waiting;
        let up = self.app_out + self.unfetched + self.control_in + self.link_dropped;
        self.app_in.abs_diff(down) + self.link_in.abs_diff(up)
    }
}
