//! TCP connections of scripted hosts: the simulator's TCP in segments that programs can parse.

use super::plan::Traffic;
use super::sender::Timed;
use super::spec::SendKind;
use crate::random::{Distribution, Random};
use crate::transport::Transport;
use crate::transport::tcp::{self, Config, Control};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;

/// An application that always has more to send writes while less than this is left to send.
const UNSENT: u64 = 64 << 10;
/// Messages that have not been acknowledged, at most; further ones are dropped and counted.
const OPEN_MAX: usize = 10_000;

/// The sending end of a connection, with what its application writes.
#[derive(Debug)]
pub(super) struct Stream {
    pub sender: tcp::Sender,
    /// Messages at times of their own. Without them, another message is written whenever little is left to send.
    timed: Option<Timed>,
    start: Nanos,
    stop: Nanos,
    left: u64,
    sizes: Arc<Distribution>,
    random: Random,
    /// Ends of messages that have not been acknowledged, and when they were written.
    pub open: VecDeque<(u64, Nanos)>,
    /// Messages that found no room.
    pub refused: u64,
    /// When the link's queue is short enough for further segments.
    pub blocked: Nanos,
    /// When it has something to do.
    pub due: Nanos,
}

/// The receiving end.
#[derive(Debug, Default)]
pub(super) struct StreamEnd {
    pub receiver: tcp::Receiver,
}

impl Stream {
    /// A connection of a traffic's flow.
    pub fn new(traffic: &Traffic, config: Config, mut random: Random) -> Stream {
        let transport = match traffic.spec.send {
            SendKind::Cubic => Transport::Cubic,
            SendKind::Dctcp => Transport::Dctcp,
            _ => Transport::Tcp,
        };
        let is_timed = traffic.gap_ns > 0.0;
        let timed = is_timed.then(|| Timed::new(traffic, false, Random::new(random.next())));
        // Connections are out of step.
        let start = traffic.start + Nanos(random.below(10_000));
        let control = Control::new(transport, config.window_bytes.min(u32::MAX.into()) as u32);
        Stream {
            sender: tcp::Sender::new(config, control),
            due: timed.as_ref().map_or(start, |timed| timed.next),
            timed,
            start,
            stop: traffic.stop,
            left: traffic.spec.messages.unwrap_or(u64::MAX),
            sizes: traffic.sizes.clone(),
            random,
            open: VecDeque::new(),
            refused: 0,
            blocked: Nanos::ZERO,
        }
    }

    /// Lets the application write.
    pub fn write(&mut self, now: Nanos) {
        while let Some(timed) = self.timed.as_mut().filter(|timed| timed.next <= now) {
            let bytes = timed.create();
            match self.open.len() < OPEN_MAX {
                true => self.put(bytes, now),
                false => self.refused += 1,
            }
        }
        while self.timed.is_none()
            && self.left > 0
            && (self.start..self.stop).contains(&now)
            && self.sender.unsent() < UNSENT
            && self.open.len() < OPEN_MAX
        {
            self.left -= 1;
            let bytes = self.sizes.sample(&mut self.random).clamp(1, u32::MAX.into()) as u32;
            self.put(bytes, now);
        }
    }

    fn put(&mut self, bytes: u32, now: Nanos) {
        self.sender.write(0, bytes);
        self.open.push_back((self.sender.written(), now));
    }

    /// Plans the next time. After the end nothing new is written, but what was written is still sent.
    pub fn plan(&mut self, now: Nanos) {
        let writes = match &self.timed {
            Some(timed) => timed.next,
            None if now < self.start => self.start,
            // Acknowledgements make room.
            None => Nanos::MAX,
        };
        let timer = self.sender.next_timeout().unwrap_or(Nanos::MAX).max(Nanos(now.0 + 1));
        let unblocked = if self.blocked > now { self.blocked } else { Nanos::MAX };
        self.due = writes.min(timer).min(unblocked);
    }
}
