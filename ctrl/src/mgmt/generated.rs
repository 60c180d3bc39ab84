//! The same over BFRuntime, which carries no packets. Registers are read directly. Changes still go by a management
//! frame, so that the program makes them in one step while others reserve: the packet generator sends it as if by the
//! controller's port.
//!
//! ```text
//!  generator's header   pipe, application │ 0 │ batch  frame │
//!  as the program reads it  packet_out (0: for itself)       │ the first 4 bytes of the destination
//!  the buffer                                                │ the frame from its fifth byte on
//! ```
//!
//! So only application 0 of pipe 0 will do, and the controller's port has to be one of that pipe, as the chip's are. Where hosts are in
//! several pipes, the program sends the frame on to the pipe of the link that it names, and each link's cells are read in that pipe.

use super::{Cell, Operation, Register, exchange_request, forget_request, frame};
use crate::bfrt::{HEADER, Link, Timing};
use crate::error::CtrlError;
use crate::items::{Item, RegisterItem};
use p4rack_codegen::Arch;
use p4rack_codegen::scheme::pl2::{IN_RESERVATION, OUT_RESERVATION, OWNERS, RIGHTS, SHORT_HORIZON_UNITS};
use p4rack_codegen::sde;
use p4rack_p4rt::p4::config::v1::{p4_bitstring_like_type_spec::TypeSpec, p4_data_type_spec};
use p4rack_p4rt::p4::v1::{Entity, Update, update};
use p4rack_p4rt::schema::Schema;
use p4rack_wire::EtherType;
use p4rack_wire::pl2::{Management, Side};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a frame may take to be sent.
const SENT: Duration = Duration::from_secs(2);
/// Interval between looks whether it was.
const LOOK: Duration = Duration::from_millis(1);
/// Pipe and application that write 0 into the header's first two bytes.
const PIPE: u32 = 0;
const APP: u32 = 0;
/// Ports of a pipe.
const OF_A_PIPE: u16 = 128;
/// Bytes of the header that a program takes for its own.
const PACKET_OUT: usize = 2;

/// A rack's facts about its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// The controller's port.
    pub cpu_port: u16,
    /// In clock mode, a time further ahead than this is in the past.
    pub horizon_units: u64,
}

/// Accesses the registers of the program that runs.
#[derive(Debug)]
pub struct Generated<'a> {
    link: &'a mut Link,
    schema: Schema,
    ether_type: EtherType,
    described: Described,
    ports: u16,
    is_clock: bool,
    /// Whether each link's cells are in its own pipe.
    has_pipes: bool,
    /// Whether the packet generator is in use for frames, which then reach the program.
    reaches: bool,
    /// Whether the port by which they come in was not open before.
    closes: bool,
}

impl<'a> Generated<'a> {
    /// Binds to the program that runs, which must be a PL2 program.
    pub async fn new(
        link: &'a mut Link,
        ether_type: EtherType,
        described: Option<Described>,
    ) -> Result<Generated<'a>, CtrlError> {
        let schema = link.schema().await?;
        let register = super::reservations(&schema)?;
        let has_pipes = schema.table(OWNERS).is_ok();
        let spec = register.type_spec.as_ref().and_then(|spec| spec.type_spec.as_ref());
        // Times have 32 bits, and counts 16; whether numbers have signs, a schema of BFRuntime does not say.
        let is_clock = matches!(spec, Some(p4_data_type_spec::TypeSpec::Bitstring(bits))
            if matches!(&bits.type_spec, Some(TypeSpec::Bit(bit)) if bit.bitwidth == 32));
        let ports = u16::try_from(register.size).unwrap_or(u16::MAX);
        let arch = if link.is_second() { Arch::T2na } else { Arch::Tna };
        let described = described
            .unwrap_or(Described { cpu_port: sde::cpu_port(arch), horizon_units: SHORT_HORIZON_UNITS });
        Ok(Generated {
            link,
            schema,
            ether_type,
            described,
            ports,
            is_clock,
            has_pipes,
            reaches: false,
            closes: false,
        })
    }

    /// Number of ports for which the program has registers, from port 0.
    pub fn ports(&self) -> u16 {
        self.ports
    }

    /// Applies `operation` to every register and returns the values that they had just before.
    pub async fn exchange(
        &mut self,
        operation: Operation,
        registers: &[Register],
    ) -> Result<Vec<u32>, CtrlError> {
        if let Some(beyond) = registers.iter().find(|register| register.port >= self.ports) {
            let message =
                format!("the program has registers of {} ports, none of port {}", self.ports, beyond.port);
            return Err(CtrlError::Input(message));
        }
        let done = self.exchange_frames(operation, registers).await;
        self.finish().await.and(done)
    }

    async fn exchange_frames(
        &mut self,
        operation: Operation,
        registers: &[Register],
    ) -> Result<Vec<u32>, CtrlError> {
        let [sources, destinations] =
            [self.values(IN_RESERVATION).await?, self.values(OUT_RESERVATION).await?];
        let held = |register: &Register| {
            let values = if register.target == Side::In { &sources } else { &destinations };
            values.of(register.port, register.port.into())
        };
        let mut before: Vec<u32> = registers.iter().map(held).collect::<Result<_, _>>()?;
        if self.is_clock {
            let now = self.now().await?;
            for free in &mut before {
                let ahead = free.wrapping_sub(now);
                *free = if u64::from(ahead) < self.described.horizon_units { ahead } else { 0 };
            }
        }
        if operation != Operation::Read {
            for register in registers {
                self.send(exchange_request(operation, *register)).await?;
            }
        }
        Ok(before)
    }

    /// Takes back the content of each of these cells, at source and destination, and frees its lane. Returns the
    /// amounts just before: slots (counter) or frames (clock).
    pub async fn forget(&mut self, cells: &[Cell]) -> Result<Vec<u32>, CtrlError> {
        let done = self.forget_frames(cells).await;
        self.finish().await.and(done)
    }

    async fn forget_frames(&mut self, cells: &[Cell]) -> Result<Vec<u32>, CtrlError> {
        let rights = self.values(RIGHTS).await?;
        // Rights are where the source's data frames are checked.
        let held: Vec<u32> =
            cells.iter().map(|one| rights.of(one.source, one.index)).collect::<Result<_, _>>()?;
        for one in cells {
            self.send(forget_request(*one)).await?;
        }
        Ok(held)
    }

    /// The cells of a register.
    async fn values(&mut self, register: &str) -> Result<Values, CtrlError> {
        let all = RegisterItem { register: register.to_owned(), ..Default::default() };
        let entity = Item::Register(all).entity(&self.schema)?;
        let found = match self.has_pipes {
            true => self.link.read_pipes(&entity).await?,
            false => vec![self.link.read(vec![entity]).await?],
        };
        let pipes = found.iter().map(|found| self.numbers(found)).collect::<Result<_, _>>()?;
        Ok(Values { pipes, has_pipes: self.has_pipes })
    }

    async fn read(&mut self, item: RegisterItem) -> Result<BTreeMap<u32, i64>, CtrlError> {
        let found = self.link.read(vec![Item::Register(item).entity(&self.schema)?]).await?;
        self.numbers(&found)
    }

    /// What cells hold, by their indices.
    fn numbers(&self, found: &[Entity]) -> Result<BTreeMap<u32, i64>, CtrlError> {
        let mut values = BTreeMap::new();
        for entity in found {
            if let Item::Register(RegisterItem { index: Some(index), value: Some(value), .. }) =
                Item::of(&self.schema, entity)?
            {
                let strange = || CtrlError::Program(format!("the switch says {value} of cell {index}"));
                let index = u32::try_from(index).map_err(|_| strange())?;
                values.insert(index, value.parse().map_err(|_| strange())?);
            }
        }
        Ok(values)
    }

    /// The cell of the controller's port, where no host's reservations are.
    fn own_cell(&self) -> RegisterItem {
        let index = Some(i64::from(self.described.cpu_port));
        RegisterItem { register: IN_RESERVATION.to_owned(), index, ..Default::default() }
    }

    /// The switch's time: that at which the program resets the cell of the controller's port.
    async fn now(&mut self) -> Result<u32, CtrlError> {
        let port = self.described.cpu_port;
        self.send(exchange_request(Operation::Reset, Register { target: Side::In, port })).await?;
        self.read_own().await
    }

    async fn read_own(&mut self) -> Result<u32, CtrlError> {
        let found = self.read(self.own_cell()).await?;
        cell(&found, self.described.cpu_port.into())
    }

    /// Makes sure that a frame reaches the program: that it resets a mark in the cell of the controller's port.
    async fn reach(&mut self) -> Result<(), CtrlError> {
        if self.reaches {
            return Ok(());
        }
        let port = self.described.cpu_port;
        if port >= OF_A_PIPE {
            return Err(CtrlError::Input(format!(
                "over BFRuntime, management frames come from the packet generator of pipe {PIPE}, by its ports 0 to {}, \
                 and the controller's port is {port}: describe the chip's with cpu_port, 64 (tna) or 2 (t2na), or give \
                 --grpc-addr",
                OF_A_PIPE - 1
            )));
        }
        if self.link.generated(PIPE).await?.iter().any(|app| app.number == APP) {
            return Err(CtrlError::Input(format!(
                "application {APP} of pipe {PIPE}'s packet generator is in use, and management frames need it: remove it, \
                 p4rack generator remove {APP}"
            )));
        }
        self.closes = !self.link.has_open_gate(port.into()).await?;
        self.reaches = true;
        let marked = if self.read_own().await? == 1 { 2 } else { 1 };
        let mark = RegisterItem { value: Some(marked.to_string()), ..self.own_cell() };
        let entity = Some(Item::Register(mark).entity(&self.schema)?);
        let update = Update { r#type: update::Type::Modify as i32, entity };
        self.link.write(&self.schema, &[update]).await?;
        self.transmit(exchange_request(Operation::Reset, Register { target: Side::In, port })).await?;
        if self.read_own().await? == marked {
            return Err(CtrlError::Program(format!(
                "the program takes no management frames from port {port}: is that the controller's port (cpu_port) in the \
                 description from which it was generated?"
            )));
        }
        Ok(())
    }

    /// Sends a management frame, which the program executes.
    async fn send(&mut self, management: Management) -> Result<(), CtrlError> {
        self.reach().await?;
        self.transmit(management).await
    }

    /// Lets the packet generator send a frame, and waits until it has.
    async fn transmit(&mut self, management: Management) -> Result<(), CtrlError> {
        let frame = frame(self.ether_type, management);
        let once = Timing::Once { after_ns: 0, count: 1, gap_ns: 0 };
        let port = self.described.cpu_port.into();
        self.link.generate(APP, port, &frame[HEADER - PACKET_OUT..], &once).await?;
        let until = Instant::now() + SENT;
        while !self.link.generated(PIPE).await?.iter().any(|app| app.number == APP && app.sent > 0) {
            if Instant::now() > until {
                let what = "a frame of the packet generator".to_owned();
                return Err(CtrlError::Timeout(what, SENT.as_millis()));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Ends the application, and leaves the generator's port as it was.
    async fn finish(&mut self) -> Result<(), CtrlError> {
        if !std::mem::take(&mut self.reaches) {
            return Ok(());
        }
        let stopped = self.link.stop_generating(PIPE, APP).await;
        if self.closes {
            self.link.close_gate(self.described.cpu_port.into()).await?;
        }
        stopped
    }
}

/// Cells of a register.
struct Values {
    /// By pipe, or those of all pipes alike.
    pipes: Vec<BTreeMap<u32, i64>>,
    has_pipes: bool,
}

impl Values {
    /// The cell of a link. Errors: the switch did not say what it holds.
    fn of(&self, port: u16, index: u32) -> Result<u32, CtrlError> {
        let pipe = if self.has_pipes { port / OF_A_PIPE } else { 0 };
        let missing =
            || CtrlError::Program(format!("the switch has no pipe {pipe}, where port {port} would be"));
        cell(self.pipes.get(usize::from(pipe)).ok_or_else(missing)?, index)
    }
}

/// Value of a register's cell, in the width of the program's words. Errors: the switch did not say.
fn cell(values: &BTreeMap<u32, i64>, index: u32) -> Result<u32, CtrlError> {
    let missing = || CtrlError::Program(format!("the switch did not say what cell {index} holds"));
    values.get(&index).map(|value| *value as u32).ok_or_else(missing)
}
