//! Models of the switch. A model takes frames in, gives frames out, and says when it has to be asked again:
//!
//! ```text
//!  port, frame, now ─ forward, take ─▶ model ─ poll_transmit ─▶ frame, port
//!                                        └ due: when to ask again
//! ```
//!
//! [`P4`] is what is installed: a generated program on the embedded switch's core. A scheduler that no pipeline can run,
//! exact where a pipeline approximates, is another variant of [`SwitchModel`]: for the rest of the simulator, only its
//! handling of frames differs. Calls go through the enum and are inlined.

mod p4;

use crate::experiment::Experiment;
use p4rack_switch::Stats;
use p4rack_wire::Nanos;

pub(crate) use p4::P4;
pub use p4::SwitchError;

/// A model of the switch. Its behaviour depends only on its inputs and their times.
///
/// Links have rates, so frames arrive one after the other, and each port sends one at a time at its own rate.
/// Frames are without FCS. Every frame that arrived was sent, was dropped and counted, or waits: the
/// [`stats`](Model::stats) have to add up, and no model holds more than its buffer. Both are checked at the
/// end of each run.
pub(crate) trait Model {
    /// Handles a frame that arrives on `port`. If a frame leaves immediately, `frame` becomes that one, and
    /// the result is the port it leaves from. Otherwise `frame` becomes an arbitrary buffer for reuse.
    fn forward(&mut self, port: u16, frame: &mut Vec<u8>, now: Nanos) -> Option<u16>;

    /// Handles a frame that arrives on `port`. Nothing leaves before [`poll_transmit`](Model::poll_transmit).
    fn take(&mut self, port: u16, frame: &[u8], now: Nanos);

    /// The next frame to send now, and its port. Call until `None`.
    fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16>;

    /// The time at which it has something to send or to do; `Nanos::MAX` is never.
    fn due(&self) -> Nanos;

    /// Bytes queued at a port, with FCS.
    fn queued_bytes(&self, port: u16) -> u64;

    /// Bytes in the buffer, with FCS.
    fn buffered_bytes(&self) -> u64;

    /// Size of the buffer in bytes.
    fn buffer_limit_bytes(&self) -> u64;

    /// Counters since the last reset: frames by port, depths, drops.
    fn stats(&self, now: Nanos) -> Stats;

    /// Resets these counters; depths restart from the current queues.
    fn reset_stats(&mut self, now: Nanos);

    /// Counters of its scheduler over the whole run.
    fn counted(&self) -> Counted;

    /// Handles a controller's request, a whole frame, and returns the answer, if there is one.
    fn manage(&mut self, request: &[u8], now: Nanos) -> Option<Vec<u8>>;

    /// Number of requests from controllers, which use no link, nor do their answers.
    fn managed(&self) -> u64;
}

/// Counters of a scheduler by reason; reasons that occurred only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Dropped frames.
    pub drops: Vec<(&'static str, u64)>,
    /// Frames sent as best effort because no reservation covers them.
    pub demoted: Vec<(&'static str, u64)>,
    /// Reservation requests answered with "not now".
    pub refused: Vec<(&'static str, u64)>,
}

/// The switch of a rack.
#[derive(Debug)]
pub(crate) enum SwitchModel {
    /// A generated program.
    P4(P4),
}

impl SwitchModel {
    /// The model that an experiment asks for.
    pub fn new(experiment: &Experiment) -> Result<SwitchModel, SwitchError> {
        let spec = &experiment.spec;
        let p4 = P4::new(&experiment.rack, experiment.scheme, |config| {
            config.sample_interval = Nanos::from_micros(spec.sample_us);
            config.seed = spec.seed;
            config.dynamic_percent = spec.rack.dynamic_percent;
        })?;
        Ok(SwitchModel::P4(p4))
    }
}

/// Calls the model's own implementation.
macro_rules! each {
    ($self:ident, $model:ident => $call:expr) => {
        match $self {
            SwitchModel::P4($model) => $call,
        }
    };
}

impl Model for SwitchModel {
    #[inline]
    fn forward(&mut self, port: u16, frame: &mut Vec<u8>, now: Nanos) -> Option<u16> {
        each!(self, model => model.forward(port, frame, now))
    }

    #[inline]
    fn take(&mut self, port: u16, frame: &[u8], now: Nanos) {
        each!(self, model => model.take(port, frame, now))
    }

    #[inline]
    fn poll_transmit(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<u16> {
        each!(self, model => model.poll_transmit(now, out))
    }

    #[inline]
    fn due(&self) -> Nanos {
        each!(self, model => model.due())
    }

    #[inline]
    fn queued_bytes(&self, port: u16) -> u64 {
        each!(self, model => model.queued_bytes(port))
    }

    #[inline]
    fn buffered_bytes(&self) -> u64 {
        each!(self, model => model.buffered_bytes())
    }

    fn buffer_limit_bytes(&self) -> u64 {
        each!(self, model => model.buffer_limit_bytes())
    }

    fn stats(&self, now: Nanos) -> Stats {
        each!(self, model => model.stats(now))
    }

    fn reset_stats(&mut self, now: Nanos) {
        each!(self, model => model.reset_stats(now))
    }

    fn counted(&self) -> Counted {
        each!(self, model => model.counted())
    }

    fn manage(&mut self, request: &[u8], now: Nanos) -> Option<Vec<u8>> {
        each!(self, model => model.manage(request, now))
    }

    fn managed(&self) -> u64 {
        each!(self, model => model.managed())
    }
}
