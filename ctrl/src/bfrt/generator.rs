//! Packet generators of the pipes, over `pktgen.*`.
//!
//! An application sends its part of the pipe's buffer, behind a header of [`HEADER`] bytes: the numbers of pipe and
//! application, of the batch and of the frame. Each application has a part of the buffer of its own here.

use super::Link;
use super::device::{LOCAL_BITS, key, number, pipe, pipe_of, truth};
use crate::error::CtrlError;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::update::Type;

/// Bytes of the header in front of a frame that a timer sends.
pub const HEADER: usize = 6;
/// Bytes of a pipe's buffer.
const BUFFER: usize = 16 << 10;
/// Frames begin in it at multiples of this, and their lengths are multiples of it.
const ALIGNED: usize = 16;
/// The port of a pipe, of the first generation, that has to be enabled for frames to come in.
const FIRST_GATE: u32 = 68;
/// The key of ports by which frames come in.
const GATE: &str = "dev_port";
/// Frames of a batch at most.
const BATCH_MAX: u64 = 1 << 16;

/// When an application sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Once, several frames.
    Once {
        /// Nanoseconds until the first one.
        after_ns: u32,
        /// Number of frames, at least 1.
        count: u64,
        /// Nanoseconds between frames.
        gap_ns: u32,
    },
    /// Without end, a frame at a time.
    Endless {
        /// Nanoseconds between frames, and before the first one.
        period_ns: u32,
    },
    /// When something else happens, by the name of the action.
    Other(String),
}

/// Frames of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFrames {
    /// Number of the application in its pipe.
    pub number: u32,
    /// Port by which the frames come in; its pipe is the application's.
    pub port: u32,
    /// Bytes of a frame behind the header.
    pub bytes: usize,
    /// When it sends.
    pub timing: Timing,
    /// Frames that it has sent.
    pub sent: u64,
}

fn input<T>(message: String) -> Result<T, CtrlError> {
    Err(CtrlError::Input(message))
}

impl Link {
    /// Lets an application send a frame, or another one from now on. `frame` does not include the generator's header.
    pub async fn generate(
        &mut self,
        number: u32,
        port: u32,
        frame: &[u8],
        timing: &Timing,
    ) -> Result<(), CtrlError> {
        let second = self.is_second();
        let apps = if second { 16 } else { 8 };
        if number >= apps {
            return input(format!("a pipe's packet generator has the applications 0 to {}", apps - 1));
        }
        let room = BUFFER / apps as usize;
        let (offset, size) = (number as usize * room, frame.len().next_multiple_of(ALIGNED));
        if frame.is_empty() || size > room {
            return input(format!("a frame of {} bytes: an application has room for {room}", frame.len()));
        }
        let bytes = frame.iter().copied().map(u32::from).chain(std::iter::repeat(0)).take(size);
        let buffer = Entry::of("pktgen.pkt_buffer")
            .exact("pkt_buffer_offset", offset as u128)
            .exact("pkt_buffer_size", size as u128)
            .data("buffer", Value::Numbers(bytes.collect()));
        let app = app(number, port, second, timing)?
            .data("pkt_buffer_offset", offset as u64)
            .data("pkt_len", frame.len() as u64);
        let closes = !self.has_open_gate(port).await?;
        // A running application ends first, because its frame is about to change. It stays disabled if something is refused.
        let mut changes = vec![(Type::Modify, app.clone().data("app_enable", false)), (Type::Modify, buffer)];
        if closes {
            changes.push((Type::Modify, gate(port, second).data("pktgen_enable", true)));
        }
        changes.push((Type::Modify, app.data("app_enable", true)));
        let changed = self.change("setting a packet generator", pipe_of(port), changes).await;
        if changed.is_err() && closes {
            self.close_gate(port).await?;
        }
        changed
    }

    /// Whether generated frames may come in by the gate of a port's pipe.
    pub async fn has_open_gate(&mut self, port: u32) -> Result<bool, CtrlError> {
        let gate = self.entry(pipe_of(port), gate(port, self.is_second())).await?;
        truth(&gate, "pktgen_enable")
    }

    /// Closes it.
    pub(crate) async fn close_gate(&mut self, port: u32) -> Result<(), CtrlError> {
        let closed = gate(port, self.is_second()).data("pktgen_enable", false);
        self.change("closing a packet generator's port", pipe_of(port), vec![(Type::Modify, closed)]).await
    }

    /// Ends an application of a pipe. Applications are always there: it is disabled, with its settings as they are.
    pub async fn stop_generating(&mut self, pipe_id: u32, number: u32) -> Result<(), CtrlError> {
        let app = Entry::of("pktgen.app_cfg").exact("app_id", number.into());
        let ended = self.entry(pipe(pipe_id), app).await?.data("app_enable", false);
        self.change("removing a packet generator", pipe(pipe_id), vec![(Type::Modify, ended)]).await
    }

    /// The applications of a pipe that are enabled.
    pub async fn generated(&mut self, pipe_id: u32) -> Result<Vec<GeneratedFrames>, CtrlError> {
        let second = self.is_second();
        let found = self.entries(pipe(pipe_id), "pktgen.app_cfg").await?;
        let mut enabled = Vec::new();
        for app in &found {
            if truth(app, "app_enable")? {
                enabled.push(read(app, pipe_id, second)?);
            }
        }
        Ok(enabled)
    }

    /// Number of the switch's pipes.
    pub async fn pipes(&mut self) -> Result<u32, CtrlError> {
        let device = self.default_entry(super::EVERYWHERE, "dev.device_configuration").await?;
        let missing = |_| CtrlError::Program("the switch does not say how many pipes it has".into());
        u32::try_from(self::number(&device, "num_pipes")?).map_err(missing)
    }
}

/// The field that says by which port of the pipe frames come in.
fn source(second: bool) -> &'static str {
    if second { "assigned_chnl_id" } else { "pipe_local_source_port" }
}

/// The entry that admits generated frames.
fn gate(port: u32, second: bool) -> Entry {
    let gate = if second { port } else { port >> LOCAL_BITS << LOCAL_BITS | FIRST_GATE };
    Entry::of("pktgen.port_cfg").exact(GATE, gate.into())
}

fn app(number: u32, port: u32, second: bool, timing: &Timing) -> Result<Entry, CtrlError> {
    let app = Entry::of("pktgen.app_cfg").exact("app_id", number.into());
    let (app, count, gap_ns) = match timing {
        Timing::Once { count, .. } if !(1..=BATCH_MAX).contains(count) => {
            return input(format!("{count} frames: a batch of the generator has 1 to {BATCH_MAX}"));
        }
        Timing::Once { after_ns, count, gap_ns } => {
            (app.action("trigger_timer_one_shot").data("timer_nanosec", *after_ns), *count, *gap_ns)
        }
        Timing::Endless { period_ns: 0 } => {
            return input("frames without end need time between them: give --period-ns".into());
        }
        Timing::Endless { period_ns } => {
            (app.action("trigger_timer_periodic").data("timer_nanosec", *period_ns), 1, 0)
        }
        Timing::Other(action) => return input(format!("`{action}` is no timer")),
    };
    // Counts begin with 0.
    Ok(app
        .data(source(second), port & ((1 << LOCAL_BITS) - 1))
        .data("increment_source_port", false)
        .data("batch_count_cfg", 0u64)
        .data("packets_per_batch_cfg", count - 1)
        .data("ibg", 0u64)
        .data("ipg", gap_ns)
        .data("trigger_counter", 0u64)
        .data("batch_counter", 0u64)
        .data("pkt_counter", 0u64))
}

fn read(app: &Entry, pipe_id: u32, second: bool) -> Result<GeneratedFrames, CtrlError> {
    let small = |field| Ok::<u32, CtrlError>(u32::try_from(number(app, field)?).unwrap_or(u32::MAX));
    let timing = match app.action_name() {
        Some("trigger_timer_one_shot") => Timing::Once {
            after_ns: small("timer_nanosec")?,
            count: number(app, "packets_per_batch_cfg")?
                .saturating_add(1)
                .saturating_mul(number(app, "batch_count_cfg")?.saturating_add(1)),
            gap_ns: small("ipg")?,
        },
        Some("trigger_timer_periodic") => Timing::Endless { period_ns: small("timer_nanosec")? },
        other => Timing::Other(other.unwrap_or_default().to_owned()),
    };
    Ok(GeneratedFrames {
        number: key(app, "app_id")?,
        port: pipe_id << LOCAL_BITS | small(source(second))?,
        bytes: number(app, "pkt_len")? as usize,
        timing,
        sent: number(app, "pkt_counter")?,
    })
}
