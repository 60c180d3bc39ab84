//! Cowbird's engine in a switch: what it serves is installed, gets its turns, and is removed again.

use crate::deploy::{Desired, Extent, bring};
use crate::error::CtrlError;
use crate::generator::Generators;
use crate::session::Session;
use p4rack_codegen::scheme::cowbird::{Cowbird, Instance, Start};
use p4rack_p4rt::p4::v1::{PacketMetadata, PacketOut, Update, update};
use p4rack_p4rt::p4rack::generator::v1::Config;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::cowbird::Management;
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::ipv4::{Ipv4, Udp};
use p4rack_wire::roce::{Aeth, Bth};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Number of the packet generator that gives turns.
const GENERATOR: u32 = 0xc0b1;
/// How long to wait for a reply before asking again.
const RETRY: Duration = Duration::from_millis(200);
/// Maximum attempts.
const TRIES: u32 = 10;
/// What precedes a base transport header in a frame.
const BTH_AT: usize = Ethernet::BYTES + Ipv4::BYTES + Udp::BYTES;

/// A refusal that the other end of a queue pair sent: the pair is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The engine's number of the queue pair.
    pub qpn: u32,
    /// Why, as the syndrome of an acknowledgement has it.
    pub syndrome: u8,
}

/// The engine in a switch. The session's controller is primary.
#[derive(Debug)]
pub struct Engine {
    session: Session,
    generators: Generators,
    schema: Schema,
    cowbird: Cowbird,
    /// Port at which turns come in, and their queue pair.
    tick: (u16, u32),
    /// The fields of what precedes a packet of ours: all 0, as the program itself is meant.
    metadata: Vec<PacketMetadata>,
    /// What is installed, by number of the instance.
    served: BTreeMap<u32, Vec<Update>>,
    /// Instances that get turns: the first ones.
    turns: u32,
    /// Refusals that came while something else was waited for.
    lost: Vec<Lost>,
}

impl Engine {
    /// Brings the switch to a rack's program and entries, so that nothing is served. Turns come in at `port`, by frames for the
    /// queue pair `tick_qpn`.
    pub async fn start(
        mut session: Session,
        desired: &Desired,
        cowbird: Cowbird,
        port: u16,
        tick_qpn: u32,
    ) -> Result<Engine, CtrlError> {
        bring(&mut session, desired, Extent::All, &mut |_| {}).await?;
        let schema = desired.schema.clone();
        let zero = |field: &p4rack_p4rt::p4::config::v1::controller_packet_metadata::Metadata| {
            PacketMetadata { metadata_id: field.id, value: vec![0] }
        };
        let metadata = schema.header_fields("packet_out").iter().map(zero).collect();
        let generators = Generators::of(&session);
        let (tick, served, lost) = ((port, tick_qpn), BTreeMap::new(), Vec::new());
        Ok(Engine { session, generators, schema, cowbird, tick, metadata, served, turns: 0, lost })
    }

    /// Numbers of instances that are free, the lowest first.
    pub fn free(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.cowbird.instances).filter(|number| !self.served.contains_key(number))
    }

    /// Has a set served. Errors: nothing of it is left in the switch, or the session is unusable.
    pub async fn serve(&mut self, instance: &Instance) -> Result<(), CtrlError> {
        let inserts = self.cowbird.serve(instance, &self.schema);
        let inserts = inserts.map_err(|error| CtrlError::Program(error.to_string()))?;
        // Registers first: entries give them life.
        for (side, frame) in
            self.cowbird.begin_frames(instance.number, &instance.start).into_iter().enumerate()
        {
            self.ask(&frame, instance.number, side as u8).await?;
        }
        if let Err(error) = self.session.write(&self.schema, &inserts).await {
            for insert in inserts.into_iter().rev() {
                // Those that were refused are not there.
                let _ = self.session.write(&self.schema, &[delete(insert)]).await;
            }
            return Err(error);
        }
        self.served.insert(instance.number, inserts);
        self.give_turns().await
    }

    /// Serves a set no more. Returns how far it was.
    pub async fn end(&mut self, number: u32) -> Result<Start, CtrlError> {
        let Some(inserts) = self.served.remove(&number) else { return Ok(Start::default()) };
        let deletes: Vec<Update> = inserts.into_iter().rev().map(delete).collect();
        self.session.write(&self.schema, &deletes).await?;
        self.give_turns().await?;
        let mut done = [0, 1];
        for (side, done) in (0..).zip(&mut done) {
            let frame = self.cowbird.look_frame(number, side);
            *done = self.ask(&frame, number, side).await?.done;
        }
        Ok(Start { reads: done[0], writes: done[1], ..Start::default() })
    }

    /// The next refusal; `None` if none comes by `until`.
    pub async fn lost(&mut self, until: Instant) -> Result<Option<Lost>, CtrlError> {
        while self.lost.is_empty() {
            let Some(packet) = self.session.packet_in(until).await? else { return Ok(None) };
            self.lost.extend(refusal(&packet.payload));
        }
        Ok(self.lost.pop())
    }

    /// Gives all instances up to the last one turns.
    async fn give_turns(&mut self) -> Result<(), CtrlError> {
        let turns = self.served.keys().next_back().map_or(0, |last| last + 1);
        if turns == self.turns {
            return Ok(());
        }
        let (port, qpn) = self.tick;
        let entry = self.cowbird.ticks(port, qpn, turns, &self.schema);
        let entry = entry.map_err(|error| CtrlError::Program(error.to_string()))?;
        let kind = match (self.turns, turns) {
            (0, _) => update::Type::Insert,
            (_, 0) => update::Type::Delete,
            _ => update::Type::Modify,
        };
        self.session.write(&self.schema, &[Update { r#type: kind.into(), ..entry }]).await?;
        if turns == 0 {
            self.generators.remove(GENERATOR).await?;
        } else {
            let config = Config {
                number: GENERATOR,
                frame: self.cowbird.tick_frame(qpn),
                ingress_port: port.into(),
                period_ns: (self.cowbird.probe.0 / u64::from(turns)).max(1),
                count: 0,
                delay_ns: 0,
            };
            self.generators.set(config).await?;
        }
        self.turns = turns;
        Ok(())
    }

    /// Sends a frame to the program, until its reply comes.
    async fn ask(&mut self, frame: &[u8], instance: u32, side: u8) -> Result<Management, CtrlError> {
        // What the program is told precedes the frame as fields.
        let payload = frame.get(2..).unwrap_or_default().to_vec();
        for _ in 0..TRIES {
            let packet = PacketOut { payload: payload.clone(), metadata: self.metadata.clone() };
            self.session.packet_out(packet).await?;
            let until = Instant::now() + RETRY;
            while let Some(packet) = self.session.packet_in(until).await? {
                match Cowbird::reply(&packet.payload) {
                    Some(reply) if (reply.instance, reply.side) == (instance, side) => return Ok(reply),
                    Some(_) => {}
                    None => self.lost.extend(refusal(&packet.payload)),
                }
            }
        }
        Err(CtrlError::Timeout("a reply of Cowbird's program".into(), (RETRY * TRIES).as_millis()))
    }
}

fn delete(insert: Update) -> Update {
    Update { r#type: update::Type::Delete.into(), ..insert }
}

/// What a frame refuses, if it does.
fn refusal(frame: &[u8]) -> Option<Lost> {
    let bytes = frame.get(BTH_AT..)?;
    let bth = Bth::parse(bytes).ok()?;
    let aeth = Aeth::parse(bytes.get(Bth::BYTES..)?).ok()?;
    Some(Lost { qpn: bth.qpn, syndrome: aeth.syndrome })
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::MacAddr;
    use p4rack_wire::roce::frame::{Extension, Path, compose};
    use p4rack_wire::roce::{Nak, Opcode, Syndrome};
    use std::net::Ipv4Addr;

    #[test]
    fn a_refusal_names_its_queue_pair_and_a_cut_frame_nothing() {
        let path = Path {
            src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            src_ip: Ipv4Addr::new(10, 0, 0, 1),
            dst_ip: Ipv4Addr::new(10, 0, 0, 2),
            src_port: 50_000,
            dscp: 0,
        };
        let syndrome = Syndrome::Nak(Nak::RemoteAccess).code();
        let mut frame = Vec::new();
        let extension = Extension::Ack(Aeth { syndrome, msn: 3 });
        compose(&path, Bth::new(Opcode::Acknowledge, 0x1234, 5), &extension, &[], &mut frame);
        assert_eq!(refusal(&frame), Some(Lost { qpn: 0x1234, syndrome }));
        assert_eq!(refusal(&frame[..BTH_AT + Bth::BYTES + 3]), None);
    }
}
