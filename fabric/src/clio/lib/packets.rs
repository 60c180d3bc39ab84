//! Packets of requests, as bytes.

use super::client::Client;
use super::request::{Act, RangedAct};
use p4rack_wire::clio::packet;
use p4rack_wire::clio::{AllocBody, FreeBody, Header, Kind, Manage, ShareBody, WORD_BYTES, flags};

impl Client {
    /// Writes the packet of parts from `nth` on over `out`. Only a READ asks for several.
    pub(super) fn compose(&self, slot: u16, nth: u32, count: u32, out: &mut Vec<u8>) {
        let request = &self.requests[usize::from(slot)];
        let credentials = self.seats[usize::from(request.seat)].credentials;
        let RangedAct { act, address, .. } = request.what;
        let chunk = request.split.nth(nth);
        let mut header = Header {
            version: 0,
            kind: Kind::Write as u8,
            code: 0,
            flags: 0,
            attempt: request.attempt(nth),
            index: nth as u16,
            packets: request.count() as u16,
            id: self.id(slot),
            address: address + u64::from(chunk.at),
            pid: credentials.pid,
            length: chunk.bytes,
            token: credentials.token,
            epoch: credentials.epoch,
            reserved: 0,
            crc: 0,
        };
        let manage = |call: Manage, bytes: usize| Header {
            kind: Kind::Manage as u8,
            code: call as u8,
            length: bytes as u32,
            ..header
        };
        match act {
            Act::Read => {
                let last = request.split.nth(nth + count - 1);
                header.kind = Kind::Read as u8;
                header.length = last.at + last.bytes - chunk.at;
                packet::compose(&header, &[], out);
            }
            Act::Write => {
                let place = chunk.at as usize..(chunk.at + chunk.bytes) as usize;
                packet::compose(&header, &request.data[place], out);
            }
            Act::Atomic(atomic, operands) => {
                let bytes = atomic.operand_bytes();
                let header = Header { kind: Kind::Atomic as u8, code: atomic as u8, length: bytes, ..header };
                let place = packet::begin(&header, bytes as usize, out);
                for (to, operand) in out[place].chunks_exact_mut(WORD_BYTES as usize).zip(operands) {
                    to.copy_from_slice(&operand.to_le_bytes());
                }
                packet::seal(out);
            }
            Act::Fence { all } => {
                let flags = if all { flags::ALL } else { 0 };
                packet::compose(&Header { kind: Kind::Fence as u8, flags, ..header }, &[], out);
            }
            Act::Alloc(body) => {
                let place = packet::begin(&manage(Manage::Alloc, AllocBody::BYTES), AllocBody::BYTES, out);
                body.emit(&mut out[place]);
                packet::seal(out);
            }
            Act::Free(body) => {
                let place = packet::begin(&manage(Manage::Free, FreeBody::BYTES), FreeBody::BYTES, out);
                body.emit(&mut out[place]);
                packet::seal(out);
            }
            Act::Share(body) => {
                let place = packet::begin(&manage(Manage::Share, ShareBody::BYTES), ShareBody::BYTES, out);
                body.emit(&mut out[place]);
                packet::seal(out);
            }
            Act::Call { function, .. } => {
                packet::compose(
                    &Header { kind: Kind::Call as u8, code: function, ..header },
                    &request.data,
                    out,
                );
            }
            // It has no packets, and ends when it starts.
            Act::Release => out.clear(),
        }
    }
}
