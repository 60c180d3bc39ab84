//! Benchmarks of a switch's P4Runtime server, from a client's point of view.

pub mod bfrt;
pub mod hostile;
mod load;
pub mod soak;

use crate::connect::ConnectOptions;
use crate::deploy::{Desired, Extent, Step, bring};
use crate::error::CtrlError;
use crate::session::Session;
use load::{Load, OUTSTANDING};
use p4rack_netdev::process::resident_bytes;
use p4rack_p4rt::p4::v1::{ForwardingPipelineConfig, PacketMetadata, PacketOut};
use p4rack_p4rt::schema::Schema;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tonic::Code;

/// The program for the measurements. Its table holds a million entries.
pub const PROGRAM: &str = include_str!("bench.p4");

/// Duration of a section that counts calls.
const SPAN: Duration = Duration::from_secs(2);
/// Entries that reconciliation has to replace: as many are deleted as inserted.
const CHANGED: usize = 5;
/// How long to wait for the first packet.
const PATIENCE: Duration = Duration::from_secs(10);
/// Duration of one attempt.
const TRY: Duration = Duration::from_millis(2);
/// Streams per role; the embedded switch rejects more.
const STREAMS_A_ROLE: usize = 50;

/// Parameters of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The switch. Its state is cleared.
    pub target: ConnectOptions,
    /// [`PROGRAM`] in the form that the switch takes.
    pub config: ForwardingPipelineConfig,
    /// Process id of the server on this machine.
    pub pid: Option<u32>,
    /// Number of entries to read.
    pub read_entries: usize,
    /// Number of entries to write for the measurement of memory.
    pub many_entries: usize,
    /// Number of streams to open.
    pub streams: usize,
    /// Only run sections whose name contains this.
    pub only: Option<String>,
}

/// A measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the measurement.
    pub name: &'static str,
    /// The measured value.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'static str,
    /// How the value was obtained.
    pub detail: String,
}

/// Result of a benchmark's run. Boxed where it is made, so that a caller compiled for size does not compile the client.
pub type Run<'a, T> = Pin<Box<dyn Future<Output = Result<T, CtrlError>> + 'a>>;

/// Runs all sections and passes each figure to `done`.
pub fn run<'a>(plan: &'a Plan, done: &'a mut dyn FnMut(&Figure)) -> Run<'a, Vec<Figure>> {
    Box::pin(sections(plan, done))
}

async fn sections(plan: &Plan, done: &mut dyn FnMut(&Figure)) -> Result<Vec<Figure>, CtrlError> {
    let mut figures = Vec::new();
    let mut add = |figure: Figure| {
        done(&figure);
        figures.push(figure);
    };
    let wanted = |name: &str| plan.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let fault =
        |error: &dyn std::fmt::Display| CtrlError::Program(format!("the benchmark's P4Info: {error}"));
    let schema = Schema::new(plan.config.p4info.clone().unwrap_or_default()).map_err(|e| fault(&e))?;
    let mut session = Session::connect(plan.target.clone()).await?;
    let load = Load::new(&schema, &plan.target).map_err(|error| fault(&error))?;
    if wanted("push") {
        add(push(&mut session, plan, &schema).await?);
    }
    if wanted("unary") {
        session.set_pipeline(plan.config.clone()).await?;
        add(load.unary(&session, 1, SPAN).await?);
        session.set_pipeline(plan.config.clone()).await?;
        add(load.unary(&session, OUTSTANDING, SPAN).await?);
    }
    if wanted("bad") {
        session.set_pipeline(plan.config.clone()).await?;
        add(load.refused(&session, SPAN).await?);
    }
    if wanted("batch") {
        session.set_pipeline(plan.config.clone()).await?;
        add(load.serialised(&session, 500_000).await?);
        session.set_pipeline(plan.config.clone()).await?;
        add(load.built(&session, 500_000).await?.0);
    }
    if wanted("read") {
        session.set_pipeline(plan.config.clone()).await?;
        load.built(&session, plan.read_entries).await?;
        add(load.read(&mut session, plan.read_entries).await?);
    }
    if wanted("reconcile") {
        session.set_pipeline(plan.config.clone()).await?;
        load.built(&session, plan.read_entries).await?;
        add(reconcile(&mut session, plan, &load).await?);
    }
    if wanted("memory") {
        session.set_pipeline(plan.config.clone()).await?;
        let before = plan.pid.and_then(resident_of);
        let (written, seconds) = load.built(&session, plan.many_entries).await?;
        let after = plan.pid.and_then(resident_of);
        if let (Some(before), Some(after)) = (before, after) {
            let detail = format!(
                "{} entries written in {seconds:.2} s ({:.0}/s); {:.0} MB before",
                plan.many_entries,
                written.value,
                before as f64 / 1e6
            );
            add(Figure { name: "memory with many entries", value: after as f64 / 1e6, unit: "MB", detail });
        }
        session.set_pipeline(plan.config.clone()).await?;
    }
    if wanted("streams") {
        add(streams(plan).await?);
    }
    Ok(figures)
}

/// Time from the call that installs the program to the first packet that passed through it.
async fn push(session: &mut Session, plan: &Plan, schema: &Schema) -> Result<Figure, CtrlError> {
    let header = schema.header_fields("packet_out").first().map_or(1, |field| field.id);
    let started = Instant::now();
    session.set_pipeline(plan.config.clone()).await?;
    let installed = started.elapsed();
    while started.elapsed() < PATIENCE {
        let metadata = vec![PacketMetadata { metadata_id: header, value: vec![7] }];
        session.packet_out(PacketOut { payload: vec![0; 60], metadata }).await?;
        if session.packet_in(tokio::time::Instant::now() + TRY).await?.is_some() {
            let detail = format!("the push itself {:.2} ms", installed.as_secs_f64() * 1e3);
            let value = started.elapsed().as_secs_f64() * 1e3;
            return Ok(Figure { name: "pipeline push to first packet", value, unit: "ms", detail });
        }
    }
    Err(CtrlError::Timeout("the first packet".into(), PATIENCE.as_millis()))
}

/// Reconciles the table with the same entries after a few were changed.
async fn reconcile(session: &mut Session, plan: &Plan, load: &Load) -> Result<Figure, CtrlError> {
    let mut entities = load.entities(plan.read_entries);
    let late = load.entities(plan.read_entries + CHANGED).split_off(plan.read_entries);
    for (entity, other) in entities.iter_mut().step_by(7).zip(late) {
        *entity = other;
    }
    let info = plan.config.p4info.clone().unwrap_or_default();
    let desired = Desired::new(info, plan.config.p4_device_config.clone(), entities)?;
    let mut written = 0;
    let started = Instant::now();
    let mut done = |step| {
        if let Step::Written { updates } = step {
            written = updates;
        }
    };
    bring(session, &desired, Extent::All, &mut done).await?;
    let detail = format!("{} entries, {written} changes, verified by a second read", plan.read_entries);
    let value = started.elapsed().as_secs_f64();
    Ok(Figure { name: "reconcile", value, unit: "s", detail })
}

/// Opens streams; each controller asks to be primary of its own role.
async fn streams(plan: &Plan) -> Result<Figure, CtrlError> {
    let started = Instant::now();
    let (mut open, mut more) = (Vec::with_capacity(plan.streams), "");
    for number in 0..plan.streams {
        let target = ConnectOptions {
            role: format!("bench-{}", number / STREAMS_A_ROLE),
            // Some switches require election ids that are unique across roles.
            election_id: plan.target.election_id.saturating_add(1 + number as u128),
            ..plan.target.clone()
        };
        match Session::connect(target).await {
            Ok(session) => open.push(session),
            Err(CtrlError::Refused { status, .. })
                if status.code() == Code::ResourceExhausted && !open.is_empty() =>
            {
                more = "; more are refused";
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let memory = match plan.pid.and_then(resident_of) {
        Some(bytes) => format!("; {:.0} MB resident", bytes as f64 / 1e6),
        None => String::new(),
    };
    let detail = format!("connected and primary one after the other in {seconds:.2} s{memory}{more}");
    Ok(Figure { name: "open streams in arbitration", value: open.len() as f64, unit: "streams", detail })
}

/// Resident memory of a process, in bytes; none if it is gone.
fn resident_of(pid: u32) -> Option<u64> {
    resident_bytes(pid).ok()
}
