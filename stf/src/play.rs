//! A switch in simulated time: takes a frame and returns all resulting frames.

use p4rack_switch::{Switch, TraceEvent};
use p4rack_wire::Nanos;

/// Maximum frames that one frame may become.
pub const MAX_FRAMES: usize = 10_000;

/// One frame became more than [`MAX_FRAMES`] frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet became more than 10000 frames")]
pub struct TooMany;

/// A frame that the switch sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Egress port; `None` is the controller.
    pub port: Option<u16>,
    /// Time of sending.
    pub time: Nanos,
    /// The frame, without FCS.
    pub frame: Vec<u8>,
}

/// Fate of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Frames sent, in order.
    pub sent: Vec<Sent>,
    /// Trace events, if the program was compiled for tracing.
    pub trace: Vec<TraceEvent>,
    /// Messages of `log_msg`.
    pub log: Vec<String>,
}

/// A switch and its time.
#[derive(Debug)]
pub struct Player {
    /// The switch, for control-plane operations.
    pub switch: Switch,
    now: Nanos,
}

impl Player {
    /// Starts at time `now`.
    pub fn new(switch: Switch, now: Nanos) -> Player {
        Player { switch, now }
    }

    /// The current time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Lets time pass while nothing is waiting to be sent.
    pub fn skip(&mut self, time: Nanos) {
        self.now = self.now.saturating_add(time);
    }

    /// Passes a frame to the switch and returns the frames sent until `end`.
    pub fn send(&mut self, port: u16, frame: &[u8], end: Nanos) -> Result<Fate, TooMany> {
        self.switch.handle_frame(port, frame, self.now);
        self.until(end)
    }

    /// Lets time pass until `end`.
    pub fn until(&mut self, end: Nanos) -> Result<Fate, TooMany> {
        let (mut fate, mut out) = (Fate::default(), Vec::new());
        loop {
            while let Some(port) = self.switch.poll_transmit(self.now, &mut out) {
                fate.sent.push(Sent { port: Some(port), time: self.now, frame: out.clone() });
                if fate.sent.len() > MAX_FRAMES {
                    return Err(TooMany);
                }
            }
            while self.switch.poll_cpu(&mut out) {
                fate.sent.push(Sent { port: None, time: self.now, frame: out.clone() });
            }
            match self.switch.next_timeout() {
                Some(time) if time <= end => self.now = self.now.max(time),
                _ => break,
            }
        }
        self.now = self.now.max(end);
        fate.trace.extend(std::iter::from_fn(|| self.switch.poll_trace()));
        fate.log.extend(std::iter::from_fn(|| self.switch.poll_log()));
        Ok(fate)
    }
}
