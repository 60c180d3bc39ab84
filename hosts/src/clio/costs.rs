//! What a packet costs a board on a host.
//!
//! ```text
//!   taken off the port │ executed │ answers sent, one for each packet │ steps of its call │ frames that it takes
//!         700          │   500    │ 2,500 each                        │ 2,000 each        │ 100 for each KiB     ns, about
//! ```
//!
//! What it costs beyond its answers is known later, and charged then.
//!
//! The costs divide the board's processor among hosts, so only their ratios matter. They are counted and not measured: a board that loses
//! its processor in the middle of a packet must not charge that to the packet's host.

use p4rack_wire::clio::{Header, Kind};

/// Of a packet that is taken off the port, whatever becomes of it.
pub(super) const RECEIVED: u64 = 700;
/// Of a check, and a small access.
const EXECUTED: u64 = 500;
/// Of a packet that is sent. On a UDP socket, the receiver's side is part of it.
const SENT: u64 = 2_500;
/// Of a request with one answer.
pub(super) const REQUEST: u64 = RECEIVED + EXECUTED + SENT;

/// Of a step of the slow path.
pub(super) const STEP: u64 = 2_000;

/// Of zeroing as many bytes as the frames have that a request has taken.
pub(super) fn zeroing(bytes: u64) -> u64 {
    bytes / 1_024 * 100
}

/// Answers of a process that wait for the link before others are asked for.
const ANSWERS_MAX: usize = 16;

/// Parameters of the board that decide on its answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Maximum data bytes of a packet.
    pub data_bytes_max: u32,
    /// Maximum bytes of a read.
    pub read_bytes_max: u32,
}

/// What a packet asks for, if it is what it says: its token isn't verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asks {
    /// The process.
    pub pid: u32,
    /// Packets of its answer.
    pub answers: u32,
}

impl Asks {
    /// Its cost.
    pub fn cost(&self) -> u64 {
        RECEIVED + EXECUTED + u64::from(self.answers) * SENT
    }

    /// Whether it may come while `waiting` answers of its process have not left. Answers then wait in the host's queue as requests, where
    /// they take no room from others.
    pub fn may_come(&self, waiting: usize) -> bool {
        waiting < if self.answers > 1 { 1 } else { ANSWERS_MAX }
    }
}

impl Costs {
    /// What a packet asks for.
    pub fn of(&self, packet: &[u8]) -> Asks {
        let Ok(header) = Header::parse(packet) else { return Asks { pid: 0, answers: 0 } };
        let is_read = header.kind == Kind::Read as u8 && header.length <= self.read_bytes_max;
        let answers = if is_read { header.length.div_ceil(self.data_bytes_max).max(1) } else { 1 };
        Asks { pid: header.pid, answers }
    }
}

/// A request for `length` bytes, as a packet.
#[cfg(test)]
pub(super) fn request(kind: Kind, length: u32) -> Vec<u8> {
    use p4rack_wire::clio::{VERSION, packet};
    let header = Header {
        version: VERSION,
        kind: kind as u8,
        code: 0,
        flags: 0,
        attempt: 0,
        index: 0,
        packets: 1,
        id: 0,
        address: 0,
        pid: 0,
        length,
        token: 0,
        epoch: 0,
        reserved: 0,
        crc: 0,
    };
    let data = if kind.has_data() { vec![0; length as usize] } else { Vec::new() };
    let mut out = Vec::new();
    packet::compose(&header, &data, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_costs_as_much_as_its_answers_and_waits_for_earlier_ones() {
        let costs = Costs { data_bytes_max: 1_000, read_bytes_max: 64_000 };
        let of = |kind: Kind, length| costs.of(&request(kind, length)).cost();
        assert_eq!([0, 64, 1_000, 64_001].map(|bytes| of(Kind::Read, bytes)), [REQUEST; 4]);
        assert_eq!(of(Kind::Read, 64_000), REQUEST + 63 * SENT);
        assert_eq!(of(Kind::Write, 900), REQUEST);
        assert_eq!(costs.of(&[0; 47]).cost(), RECEIVED + EXECUTED);
        let [short, long] = [1_000, 1_001].map(|bytes| costs.of(&request(Kind::Read, bytes)));
        assert!(short.may_come(15) && !short.may_come(16) && long.may_come(0) && !long.may_come(1));
    }
}
