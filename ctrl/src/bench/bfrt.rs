//! Benchmarks of a switch's BFRuntime server, from a client's point of view.

use super::load::{OUTSTANDING, batches, key, unary};
use super::{Figure, PATIENCE, Run, SPAN, TRY};
use crate::bfrt::Link;
use crate::connect::ConnectOptions;
use crate::desired::Desired;
use crate::error::{CtrlError, refused};
use crate::session::Session;
use p4rack_bfrt::Entry;
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::{
    Entity, KeyField, TableEntry, Update, WriteRequest, entity, key_field::MatchType, table_entry::Value,
    update,
};
use p4rack_p4rt::p4::v1::{PacketMetadata, PacketOut};
use std::sync::Arc;
use std::time::Instant;
use tonic::transport::Channel;

/// The program for the measurements. Its table holds a million entries.
pub const PROGRAM: &str = include_str!("bench_tna.p4");

/// Parameters of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The switch. Its state is cleared.
    pub target: ConnectOptions,
    /// Its P4Runtime server, over which a packet shows when the program runs; without it no packet is sent.
    pub p4runtime: Option<ConnectOptions>,
    /// [`PROGRAM`] in the form that the switch takes.
    pub desired: Desired,
    /// Number of entries to write in batches.
    pub entries: usize,
    /// Only run sections whose name contains this.
    pub only: Option<String>,
}

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
    let mut link = Link::connect(plan.target.clone()).await?;
    if wanted("push") {
        add(push(&mut link, plan).await?);
    }
    if wanted("unary") {
        for outstanding in [1, OUTSTANDING] {
            link.install(&plan.desired).await?;
            link.start().await?;
            let load = Load::new(&link)?;
            add(unary(outstanding, SPAN, move |number| load.clone().write(number, 1)).await?);
        }
    }
    if wanted("batch") {
        link.install(&plan.desired).await?;
        link.start().await?;
        let load = Load::new(&link)?;
        let write = move |first, count| load.clone().write(first, count);
        add(batches(plan.entries, write).await?.0);
    }
    Ok(figures)
}

/// Time from the call that installs the program to the first packet that passed through it.
async fn push(link: &mut Link, plan: &Plan) -> Result<Figure, CtrlError> {
    let mut session = match &plan.p4runtime {
        Some(target) => Some(Session::connect(target.clone()).await?),
        None => None,
    };
    let started = Instant::now();
    link.install(&plan.desired).await?;
    link.start().await?;
    let value = started.elapsed().as_secs_f64() * 1e3;
    let Some(session) = &mut session else {
        let detail = "no packet is sent over BFRuntime".into();
        return Ok(Figure { name: "program push", value, unit: "ms", detail });
    };
    let detail = format!("the push itself {value:.2} ms");
    let header = plan.desired.schema.header_fields("packet_out").first().map_or(1, |field| field.id);
    while started.elapsed() < PATIENCE {
        let metadata = vec![PacketMetadata { metadata_id: header, value: vec![7] }];
        session.packet_out(PacketOut { payload: vec![0; 60], metadata }).await?;
        if session.packet_in(tokio::time::Instant::now() + TRY).await?.is_some() {
            let value = started.elapsed().as_secs_f64() * 1e3;
            return Ok(Figure { name: "program push to first packet", value, unit: "ms", detail });
        }
    }
    Err(CtrlError::Timeout("the first packet".into(), PATIENCE.as_millis()))
}

/// Writes entries.
#[derive(Clone, Debug)]
struct Load {
    grpc: BfRuntimeClient<Channel>,
    request: Arc<WriteRequest>,
    /// An entry that all others copy except for the key.
    pattern: Arc<TableEntry>,
}

impl Load {
    fn new(link: &Link) -> Result<Load, CtrlError> {
        let entry =
            Entry::of("BenchIngress.hosts").exact("hdr.ethernet.dst", 1).action("BenchIngress.forward");
        let (grpc, request, schema) = link.writer()?;
        let pattern = entry.data("port", 1u16).build(schema);
        let fault = |error| CtrlError::Program(format!("the benchmark's schema: {error}"));
        Ok(Load { grpc, request: Arc::new(request), pattern: Arc::new(pattern.map_err(fault)?) })
    }

    /// Entry `number`.
    fn update(&self, number: usize) -> Update {
        let mut entry = (*self.pattern).clone();
        if let Some(Value::Key(given)) = &mut entry.value
            && let [KeyField { match_type: Some(MatchType::Exact(exact)), .. }] = &mut given.fields[..]
        {
            exact.value = key(number);
        }
        let entity = Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) });
        Update { r#type: update::Type::Insert as i32, entity }
    }

    async fn write(mut self, first: usize, count: usize) -> Result<(), CtrlError> {
        let updates = (first..first + count).map(|number| self.update(number)).collect();
        let request = WriteRequest { updates, ..(*self.request).clone() };
        self.grpc.write(request).await.map(drop).map_err(refused("writing entries"))
    }
}
