//! Access to PL2's reservation registers in band: management frames as packet-out, replies as packet-in. This
//! is the same on every target, whatever its own register access. Over BFRuntime frames go another way ([`Generated`]).

mod generated;

pub use generated::{Described, Generated};

use crate::error::CtrlError;
use crate::session::Session;
use p4rack_codegen::scheme::pl2::IN_RESERVATION;
use p4rack_p4rt::p4::v1::{PacketMetadata, PacketOut};
use p4rack_p4rt::schema::Schema;
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::pl2::{Kind, Management, Side, VERSION};
use p4rack_wire::{EtherType, MacAddr};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How long to wait for replies before asking again.
const RETRY: Duration = Duration::from_millis(200);
/// Maximum attempts per request.
const TRIES: u32 = 10;
/// Requests in flight.
const WINDOW: usize = 64;

/// An operation on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads the register.
    Read,
    /// Sets the register: slots (counter) or time units from now (clock).
    Write(u32),
    /// Sets the register to "nothing reserved".
    Reset,
}

/// A register of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The port's reservations as a source or as a destination.
    pub target: Side,
    /// Switch port.
    pub port: u16,
}

/// A cell of a (source, destination) pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the source's register: its port, or the number of its link.
    pub source: u16,
    /// Index of the destination's register.
    pub destination: u16,
    /// Number of the cell among all pairs' cells.
    pub number: u32,
    /// Where it is in the program's registers of cells.
    pub index: u32,
}

/// Accesses the registers of the installed program.
#[derive(Debug)]
pub struct Manager<'a> {
    session: &'a mut Session,
    ether_type: EtherType,
    metadata: Vec<PacketMetadata>,
    ports: u16,
    token: u32,
}

impl<'a> Manager<'a> {
    /// Inspects the installed program, which must be a PL2 program.
    pub async fn new(session: &'a mut Session, ether_type: EtherType) -> Result<Manager<'a>, CtrlError> {
        let schema = session.schema().await?;
        let register = reservations(&schema)?;
        let ports = u16::try_from(register.size).unwrap_or(u16::MAX);
        // All fields are 0: the frame is for the program itself, not for a port.
        let zero = |field: &p4rack_p4rt::p4::config::v1::controller_packet_metadata::Metadata| {
            PacketMetadata { metadata_id: field.id, value: vec![0] }
        };
        let metadata = schema.header_fields("packet_out").iter().map(zero).collect();
        // Replies to an earlier controller's requests must not be taken for ours.
        let token = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
        Ok(Manager { session, ether_type, metadata, ports, token })
    }

    /// Number of ports for which the program has registers, from port 0.
    pub fn ports(&self) -> u16 {
        self.ports
    }

    /// Applies `operation` to every register and returns the previous values. Lost frames are sent again. If
    /// a write or reset was repeated, the previous value may be the one that the first attempt set.
    pub async fn exchange(
        &mut self,
        operation: Operation,
        registers: &[Register],
    ) -> Result<Vec<u32>, CtrlError> {
        let requests: Vec<Management> =
            registers.iter().map(|register| exchange_request(operation, *register)).collect();
        self.ask(&requests).await
    }

    /// Takes back the content of each of these cells, at source and destination, and frees its lane. Returns the
    /// amounts: slots (counter) or bytes (clock). Lost frames are sent again; for a cell whose first reply was lost,
    /// the amount is 0.
    pub async fn forget(&mut self, cells: &[Cell]) -> Result<Vec<u32>, CtrlError> {
        let requests: Vec<Management> = cells.iter().copied().map(forget_request).collect();
        self.ask(&requests).await
    }

    async fn ask(&mut self, requests: &[Management]) -> Result<Vec<u32>, CtrlError> {
        let mut values = vec![None; requests.len()];
        for (window, requests) in requests.chunks(WINDOW).enumerate() {
            let first = window * WINDOW;
            let answers = &mut values[first..first + requests.len()];
            self.ask_window(requests, answers).await?;
        }
        Ok(values.into_iter().flatten().collect())
    }

    async fn ask_window(
        &mut self,
        requests: &[Management],
        answers: &mut [Option<u32>],
    ) -> Result<(), CtrlError> {
        for _ in 0..TRIES {
            let mut waiting = HashMap::new();
            for (position, request) in requests.iter().enumerate() {
                if answers[position].is_none() {
                    self.token = self.token.wrapping_add(1);
                    waiting.insert(self.token, position);
                    let payload = frame(self.ether_type, Management { token: self.token, ..*request });
                    let packet = PacketOut { payload, metadata: self.metadata.clone() };
                    self.session.packet_out(packet).await?;
                }
            }
            let until = Instant::now() + RETRY;
            while !waiting.is_empty() {
                let Some(packet) = self.session.packet_in(until).await? else { break };
                let reply = reply(self.ether_type, &packet.payload);
                if let Some((token, value)) = reply
                    && let Some(position) = waiting.remove(&token)
                {
                    answers[position] = Some(value);
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            tracing::debug!(missing = waiting.len(), "asking again");
        }
        let missing = requests.iter().zip(answers).find(|(_, answer)| answer.is_none());
        let port = missing.map_or(0, |(request, _)| request.index);
        let what = format!("the reply about port {port}; does the program have a register for it? It");
        Err(CtrlError::Timeout(what, RETRY.as_millis() * u128::from(TRIES)))
    }
}

/// The register of the ports' reservations as sources.
fn reservations(schema: &Schema) -> Result<&p4rack_p4rt::p4::config::v1::Register, CtrlError> {
    schema
        .register(IN_RESERVATION)
        .map_err(|error| CtrlError::Program(format!("the program on the switch is not one of PL2: {error}")))
}

fn exchange_request(operation: Operation, register: Register) -> Management {
    let (kind, value) = match operation {
        Operation::Read => (Kind::MgmtRead, 0),
        Operation::Write(value) => (Kind::MgmtWrite, value),
        Operation::Reset => (Kind::MgmtReset, 0),
    };
    Management { target: register.target as u8, index: register.port, value, ..request(kind) }
}

fn forget_request(cell: Cell) -> Management {
    let request = request(Kind::MgmtForget);
    Management { index: cell.source, destination: cell.destination, cell: cell.number, ..request }
}

/// A request of this kind with all other fields 0.
fn request(kind: Kind) -> Management {
    Management {
        version: VERSION,
        kind: kind as u8,
        target: 0,
        index: 0,
        token: 0,
        value: 0,
        destination: 0,
        reserved: 0,
        cell: 0,
    }
}

fn frame(ether_type: EtherType, management: Management) -> Vec<u8> {
    let mut frame = vec![0; overhead::MIN_FRAME as usize];
    Ethernet { dst: MacAddr::default(), src: MacAddr::default(), ether_type }.emit(&mut frame);
    management.emit(&mut frame[Ethernet::BYTES..]);
    frame
}

/// Token and value of a reply; `None` for other frames.
fn reply(ether_type: EtherType, frame: &[u8]) -> Option<(u32, u32)> {
    let ethernet = Ethernet::parse(frame).ok()?;
    let rest = frame.get(Ethernet::BYTES..)?;
    if ethernet.ether_type != ether_type || Kind::of(*rest.first()?) != Ok(Kind::MgmtReply) {
        return None;
    }
    let management = Management::parse(rest).ok()?;
    Some((management.token, management.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_named_with_both_its_ports() {
        let request = forget_request(Cell { source: 3, destination: 9, number: 77, index: 5 });
        let bytes = frame(EtherType::PL2_DEFAULT, request);
        let parsed = Management::parse(&bytes[Ethernet::BYTES..]).unwrap();
        assert_eq!((parsed.kind, parsed.index, parsed.destination), (Kind::MgmtForget as u8, 3, 9));
        assert_eq!(parsed.cell, 77);
    }

    #[test]
    fn a_reply_is_told_from_other_frames() {
        let register = Register { target: Side::Out, port: 3 };
        let request = exchange_request(Operation::Write(77), register);
        let mut frame = frame(EtherType::PL2_DEFAULT, Management { token: 0xabcd, ..request });
        assert_eq!(frame.len(), 60);
        assert_eq!(reply(EtherType::PL2_DEFAULT, &frame), None, "a request is no reply");
        frame[Ethernet::BYTES] = VERSION << 4 | Kind::MgmtReply as u8;
        assert_eq!(reply(EtherType::PL2_DEFAULT, &frame), Some((0xabcd, 77)));
        assert_eq!(reply(EtherType::IPV4, &frame), None);
        assert_eq!(reply(EtherType::PL2_DEFAULT, &frame[..20]), None);
        assert_eq!(reply(EtherType::PL2_DEFAULT, &[]), None);
    }
}
