//! Cowbird's engine in a switch: installs instances, gives them turns, and removes them again.

use crate::deploy::{Desired, Extent, bring};
use crate::error::CtrlError;
use crate::generator::Generators;
use crate::session::Session;
use p4rack_codegen::scheme::cowbird::{Cowbird, Instance, LIFE_REGISTERS, Run, Start};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Entity, P4Data, PacketMetadata, PacketOut, RegisterEntry, Update, update};
use p4rack_p4rt::p4rack::generator::v1::Config;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::cowbird::Management;
use p4rack_wire::roce::frame::{self, Extension};
use p4rack_wire::roce::{Opcode, Syndrome};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Number of the first packet generator that gives turns: those of a run have that of its first instance behind it.
const GENERATOR: u32 = 0xc0b1;
/// How long to wait for a reply before asking again.
const RETRY: Duration = Duration::from_millis(200);
/// Maximum attempts.
const TRIES: u32 = 10;
/// Minimum interval of turns by packet-out, which timers and a connection keep without effort.
const PACKET_OUT_PERIOD_MIN: Duration = Duration::from_millis(1);

/// How long a compute node may give no answer, if its turns come often enough.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Probes of an instance that may get no answer, if turns are rare.
const PROBES: u32 = 8;

/// Source of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// The switch's packet generator, by frames that come in at this port.
    Generator(u16),
    /// The controller, by packet-outs, which come in at this port: for a switch without packet generator. No more than one each
    /// millisecond, and only while [`Engine::lost`] waits.
    PacketOuts(u16),
}

impl Turns {
    fn port(self) -> u16 {
        match self {
            Turns::Generator(port) | Turns::PacketOuts(port) => port,
        }
    }
}

/// A refusal that the other end of a queue pair sent: the pair is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The engine's number of the queue pair.
    pub qpn: u32,
    /// Why, as the syndrome of an acknowledgement has it.
    pub syndrome: u8,
}

/// Turns that come.
#[derive(Clone, Debug)]
struct Generated {
    run: Run,
    /// Time from one to the next. By packet-out they may come less often, but as often relative to others.
    period_ns: u64,
    /// Of packet-outs: sum of the periods so far. The run with the smallest one is next.
    passed_ns: u64,
}

/// The engine in a switch. The session's controller is primary.
#[derive(Debug)]
pub struct Engine {
    session: Session,
    generators: Generators,
    schema: Schema,
    cowbird: Cowbird,
    /// Source of turns, and the first queue pair that they address.
    tick: (Turns, u32),
    /// Fields of the header in front of our packets: all 0, which addresses the program itself.
    metadata: Vec<PacketMetadata>,
    /// Host and installed entries, by number of the instance.
    served: BTreeMap<u32, (u16, Vec<Update>)>,
    /// Runs to which turns are pointed in the switch: the first instance, and the one behind the last.
    pointed: BTreeMap<u32, u32>,
    /// Runs whose turns come, by their first instance.
    generated: BTreeMap<u32, Generated>,
    /// When the next turn by packet-out is due.
    due: Option<Instant>,
    /// Refusals that came while something else was waited for.
    lost: Vec<Lost>,
    /// The last signs of life of each instance, and since when they are the same.
    life: BTreeMap<u32, (Vec<Option<P4Data>>, Instant)>,
    /// Whether the switch can't read registers, so that silence goes unnoticed.
    is_blind: bool,
}

impl Engine {
    /// Brings the switch to a rack's program and entries, so that nothing is served. Turns are frames for the queue pair
    /// `tick_qpn`.
    pub async fn start(
        mut session: Session,
        desired: &Desired,
        cowbird: Cowbird,
        turns: Turns,
        tick_qpn: u32,
    ) -> Result<Engine, CtrlError> {
        bring(&mut session, desired, Extent::All, &mut |_| {}).await?;
        let schema = desired.schema.clone();
        let zero = |field: &p4rack_p4rt::p4::config::v1::controller_packet_metadata::Metadata| {
            PacketMetadata { metadata_id: field.id, value: vec![0] }
        };
        let metadata = schema.header_fields("packet_out").iter().map(zero).collect();
        let generators = Generators::of(&session);
        let (tick, served, lost) = ((turns, tick_qpn), BTreeMap::new(), Vec::new());
        Ok(Engine {
            session,
            generators,
            schema,
            cowbird,
            tick,
            metadata,
            served,
            pointed: BTreeMap::new(),
            generated: BTreeMap::new(),
            due: None,
            lost,
            life: BTreeMap::new(),
            is_blind: false,
        })
    }

    /// Numbers of as many instances that are free: the first ones that follow each other, or else the lowest ones. `None`: fewer are free.
    pub fn free(&self, count: usize) -> Option<Vec<u32>> {
        let all = 0..self.cowbird.instances;
        let free: Vec<u32> = all.filter(|number| !self.served.contains_key(number)).collect();
        let follows = |numbers: &&[u32]| numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let run = free.windows(count.max(1)).find(follows);
        run.or_else(|| free.get(..count)).map(<[u32]>::to_vec)
    }

    /// Has a set served. Errors: nothing of it is left in the switch, or the session is unusable.
    pub async fn serve(&mut self, instance: &Instance) -> Result<(), CtrlError> {
        let inserts = self.cowbird.serve(instance, &self.schema);
        let inserts = inserts.map_err(|error| CtrlError::Program(error.to_string()))?;
        self.session.write(&self.schema, &inserts.rings).await?;
        let begun = self.begin(instance, &inserts.others).await;
        if begun.is_err() {
            for insert in inserts.rings.iter().rev() {
                // The first error is what counts.
                let _ = self.session.write(&self.schema, &[delete(insert.clone())]).await;
            }
            return begun;
        }
        self.served.insert(instance.number, (instance.compute.port, inserts.all()));
        let turning = self.give_turns().await;
        if turning.is_err() {
            // The first error is what counts.
            let _ = self.end(instance.number).await;
        }
        turning
    }

    /// Sets an instance's registers, then inserts the entries that activate it. Errors: none of that is left in the
    /// switch.
    async fn begin(&mut self, instance: &Instance, inserts: &[Update]) -> Result<(), CtrlError> {
        for (side, frame) in
            self.cowbird.begin_frames(instance.number, &instance.start).into_iter().enumerate()
        {
            self.ask(&frame, instance.number, side as u8).await?;
        }
        let written = self.session.write(&self.schema, inserts).await;
        if let Err(CtrlError::Updates { failures }) = &written {
            // A refused entry is absent or another instance's: queue pairs' numbers are drawn at random.
            let refused = |nth: usize| failures.iter().any(|failure| failure.number == nth + 1);
            for (_, insert) in inserts.iter().enumerate().rev().filter(|(nth, _)| !refused(*nth)) {
                let _ = self.session.write(&self.schema, &[delete(insert.clone())]).await;
            }
        }
        written
    }

    /// Stops serving a set. Returns its progress.
    pub async fn end(&mut self, number: u32) -> Result<Start, CtrlError> {
        let Some((_, inserts)) = self.served.remove(&number) else { return Ok(Start::default()) };
        self.life.remove(&number);
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

    /// The next refusal; `None` if none comes by `until`. During the wait it sends turns, if they are packet-outs.
    pub async fn lost(&mut self, until: Instant) -> Result<Option<Lost>, CtrlError> {
        while self.lost.is_empty() {
            let due = self.due.filter(|due| *due < until);
            match self.session.packet_in(due.unwrap_or(until)).await? {
                Some(packet) => self.lost.extend(refusal(&packet.payload)),
                None if due.is_none() => return Ok(None),
                None => {}
            }
            if due.is_some_and(|due| due <= Instant::now())
                && let Some(next) = self.generated.values_mut().min_by_key(|one| one.passed_ns)
            {
                next.passed_ns += next.period_ns;
                let qpn = next.run.qpn(self.tick.1);
                let packet = self.packet(self.cowbird.tick_frame(qpn));
                self.session.packet_out(packet).await?;
                self.due = Some(Instant::now() + self.period());
            }
        }
        Ok(self.lost.pop())
    }

    /// Instances whose compute node has given no answer for too long: neither to probes nor to requests. Where a switch can't
    /// read registers there are none.
    pub async fn silent(&mut self) -> Result<Vec<u32>, CtrlError> {
        if self.is_blind || self.served.is_empty() {
            return Ok(Vec::new());
        }
        let registers = LIFE_REGISTERS.iter().filter_map(|name| self.schema.register(name).ok());
        let ids = registers.filter_map(|register| register.preamble.as_ref()).map(|preamble| preamble.id);
        let entity = |register_id| {
            let all = RegisterEntry { register_id, ..Default::default() };
            Entity { entity: Some(EntityKind::RegisterEntry(all)) }
        };
        let found = match self.session.read(ids.map(entity).collect()).await {
            Err(error) if error.is_unimplemented() => {
                tracing::warn!(
                    "this switch can't read registers: compute nodes that fall silent go unnoticed"
                );
                self.is_blind = true;
                return Ok(Vec::new());
            }
            found => found?,
        };
        let mut signs: BTreeMap<u32, Vec<Option<P4Data>>> = BTreeMap::new();
        for entity in found {
            let Some(EntityKind::RegisterEntry(cell)) = entity.entity else { continue };
            let number = cell.index.and_then(|index| u32::try_from(index.index).ok());
            if let Some(number) = number.filter(|number| self.served.contains_key(number)) {
                signs.entry(number).or_default().push(cell.data);
            }
        }
        let now = Instant::now();
        let mut silent = Vec::new();
        for (number, signs) in signs {
            let limit = self.silence_max(number);
            let (last, since) = self.life.entry(number).or_insert_with(|| (Vec::new(), now));
            if *last != signs {
                (*last, *since) = (signs, now);
            } else if now.duration_since(*since) > limit {
                silent.push(number);
            }
        }
        Ok(silent)
    }

    /// How long an instance's compute node may give no answer: at rest, it uses few of its turns for a probe.
    fn silence_max(&self, number: u32) -> Duration {
        let mut runs = self.generated.values().map(|one| &one.run);
        let round = runs.find(|run| run.instances.contains(&number)).map_or(1, Run::round);
        (self.period() * round * self.cowbird.rest_turns * PROBES).max(SILENCE_MAX)
    }

    /// From one turn to the next, of whichever instance.
    fn period(&self) -> Duration {
        let period = self.cowbird.probe.0 / (self.served.len() as u64).max(1);
        let least = match self.tick.0 {
            Turns::PacketOuts(_) => PACKET_OUT_PERIOD_MIN,
            Turns::Generator(_) => Duration::from_nanos(1),
        };
        Duration::from_nanos(period).max(least)
    }

    fn packet(&self, payload: Vec<u8>) -> PacketOut {
        PacketOut { payload, metadata: self.metadata.clone() }
    }

    /// Gives the hosts of all instances turns, and the instances of each.
    async fn give_turns(&mut self) -> Result<(), CtrlError> {
        let runs = Run::of(&self.served.iter().map(|(number, (host, _))| (*number, *host)).collect());
        self.point(&runs).await?;
        self.generate(runs).await
    }

    /// Points turns at these runs.
    async fn point(&mut self, runs: &[Run]) -> Result<(), CtrlError> {
        let wanted: BTreeMap<u32, u32> =
            runs.iter().map(|run| (run.instances.start, run.instances.end)).collect();
        let former: Vec<(u32, u32)> = self.pointed.iter().map(|(begin, end)| (*begin, *end)).collect();
        for (begin, end) in former.into_iter().filter(|(begin, _)| !wanted.contains_key(begin)) {
            self.point_one(update::Type::Delete, begin, end).await?;
            self.pointed.remove(&begin);
        }
        for (begin, end) in wanted {
            let kind = match self.pointed.get(&begin) {
                Some(before) if *before == end => continue,
                Some(_) => update::Type::Modify,
                None => update::Type::Insert,
            };
            self.point_one(kind, begin, end).await?;
            self.pointed.insert(begin, end);
        }
        Ok(())
    }

    async fn point_one(&mut self, kind: update::Type, begin: u32, end: u32) -> Result<(), CtrlError> {
        let (by, first) = self.tick;
        let entry = self.cowbird.ticks(by.port(), Run::qpn_at(first, begin), &(begin..end), &self.schema);
        let entry = entry.map_err(|error| CtrlError::Program(error.to_string()))?;
        self.session.write(&self.schema, &[Update { r#type: kind.into(), ..entry }]).await
    }

    /// Has the turns of these runs come, at the rates that they need, and no others.
    async fn generate(&mut self, runs: Vec<Run>) -> Result<(), CtrlError> {
        let former: Vec<u32> = self.generated.keys().copied().collect();
        for begin in former.into_iter().filter(|begin| runs.iter().all(|run| run.instances.start != *begin)) {
            if let Turns::Generator(_) = self.tick.0 {
                self.generators.remove(GENERATOR + begin).await?;
            }
            self.generated.remove(&begin);
        }
        // A new run neither waits for what others have had nor catches up with it.
        let passed_ns = self.generated.values().map(|one| one.passed_ns).min().unwrap_or_default();
        for run in runs {
            let (begin, period_ns) = (run.instances.start, run.period(self.cowbird.probe.0));
            let before = self.generated.get(&begin).map(|one| (one.period_ns, one.passed_ns));
            if let Turns::Generator(port) = self.tick.0
                && before.is_none_or(|before| before.0 != period_ns)
            {
                let config = Config {
                    number: GENERATOR + begin,
                    frame: self.cowbird.tick_frame(run.qpn(self.tick.1)),
                    ingress_port: port.into(),
                    period_ns,
                    count: 0,
                    delay_ns: 0,
                };
                self.generators.set(config).await?;
            }
            let passed_ns = before.map_or(passed_ns, |before| before.1);
            self.generated.insert(begin, Generated { run, period_ns, passed_ns });
        }
        if let Turns::PacketOuts(_) = self.tick.0 {
            self.due = (!self.generated.is_empty()).then(Instant::now);
        }
        Ok(())
    }

    /// Sends a frame to the program, until its reply comes.
    async fn ask(&mut self, frame: &[u8], instance: u32, side: u8) -> Result<Management, CtrlError> {
        // The program gets the header's values as fields in front of the frame.
        let payload = frame.get(2..).unwrap_or_default().to_vec();
        for _ in 0..TRIES {
            let packet = self.packet(payload.clone());
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

/// The request that a frame refuses, if any. Repeated replies and frames of other protocols refuse nothing.
fn refusal(frame: &[u8]) -> Option<Lost> {
    let packet = frame::parse(frame, false).ok()?.packet;
    match packet.extension {
        Extension::Ack(aeth) if packet.opcode == Opcode::Acknowledge => {
            let refused = matches!(Syndrome::of(aeth.syndrome), Ok(Syndrome::Nak(_)));
            refused.then_some(Lost { qpn: packet.bth.qpn, syndrome: aeth.syndrome })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::MacAddr;
    use p4rack_wire::cowbird::opcode;
    use p4rack_wire::roce::frame::{BTH_AT, Path, compose};
    use p4rack_wire::roce::{Aeth, Bth, Nak};
    use std::net::Ipv4Addr;

    #[test]
    fn a_refusal_names_its_queue_pair_and_other_frames_nothing() {
        let path = Path {
            src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            src_ip: Ipv4Addr::new(10, 0, 0, 1),
            dst_ip: Ipv4Addr::new(10, 0, 0, 2),
            src_port: 50_000,
            dscp: 0,
        };
        let mut frame = Vec::new();
        let mut composed = |opcode, syndrome: Syndrome| {
            let extension = Extension::Ack(Aeth { syndrome: syndrome.code(), msn: 3 });
            compose(&path, Bth::new(opcode, 0x1234, 5), &extension, &[], &mut frame);
            frame.clone()
        };
        let refuses = Syndrome::Nak(Nak::RemoteAccess);
        let frame = composed(Opcode::Acknowledge, refuses);
        assert_eq!(refusal(&frame), Some(Lost { qpn: 0x1234, syndrome: refuses.code() }));
        assert_eq!(refusal(&frame[..BTH_AT + Bth::BYTES + 3]), None);
        for (opcode, syndrome) in [(Opcode::Acknowledge, Syndrome::Ack), (Opcode::ReadResponseLast, refuses)]
        {
            assert_eq!(refusal(&composed(opcode, syndrome)), None);
        }
        let reply = Bth { opcode: opcode::REPLY, ..Bth::new(Opcode::ReadRequest, 0, 0) };
        let mut frame = Vec::new();
        compose(&path, reply, &Extension::None, &[0xff; Management::BYTES], &mut frame);
        assert!(Cowbird::reply(&frame).is_some() && refusal(&frame).is_none(), "a reply that came twice");
    }
}
