//! Entries for the benchmark, and ways to write them.

use super::Figure;
use crate::client::Client;
use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use crate::session::Session;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::{EntityError, Entry, Value};
use p4rack_p4rt::p4::v1::{
    Entity, FieldMatch, TableEntry, Uint128, Update, WriteRequest, field_match, field_match::FieldMatchType,
};
use p4rack_p4rt::raw;
use p4rack_p4rt::schema::Schema;
use prost::Message;
use prost::bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tonic::Code;

/// Updates per batch.
const BATCH: usize = 1000;
/// Single-entry writes in flight, unless one at a time is measured.
pub(super) const OUTSTANDING: usize = 64;
/// Batches in flight.
const BATCHES_OUTSTANDING: usize = 4;

/// Generates entries and requests.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// An update that all others copy except for the key.
    pattern: Arc<Update>,
    request: Arc<WriteRequest>,
}

impl Load {
    pub fn new(schema: &Schema, target: &ConnectOptions) -> Result<Load, EntityError> {
        let entry = Entry::of("BenchIngress.hosts").exact("hdr.ethernet.dst", Value::from(1u8));
        let pattern = entry.action("BenchIngress.forward").param("port", 1).update(schema)?;
        let request = WriteRequest {
            device_id: target.device_id,
            role: target.role.clone(),
            election_id: Some(target.election()),
            ..Default::default()
        };
        Ok(Load { pattern: Arc::new(pattern), request: Arc::new(request) })
    }

    /// Entry `number`. Keys of neighbouring numbers are far apart.
    pub fn update(&self, number: usize) -> Update {
        let mut update = (*self.pattern).clone();
        if let Some(Entity { entity: Some(EntityKind::TableEntry(TableEntry { r#match, .. })) }) =
            &mut update.entity
            && let [FieldMatch { field_match_type: Some(FieldMatchType::Exact(exact)), .. }] =
                &mut r#match[..]
        {
            *exact = field_match::Exact { value: key(number) };
        }
        update
    }

    /// Id of the table.
    pub fn table_id(&self) -> u32 {
        match self.pattern.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
            Some(EntityKind::TableEntry(entry)) => entry.table_id,
            _ => 0,
        }
    }

    /// The first `count` entries.
    pub fn entities(&self, count: usize) -> Vec<Entity> {
        (0..count).filter_map(|number| self.update(number).entity).collect()
    }

    fn batch(&self, first: usize, count: usize) -> WriteRequest {
        let updates = (first..first + count).map(|number| self.update(number)).collect();
        WriteRequest { updates, ..(*self.request).clone() }
    }

    /// Writes with one entry each, `outstanding` in flight.
    pub async fn unary(
        &self,
        session: &Session,
        outstanding: usize,
        span: Duration,
    ) -> Result<Figure, CtrlError> {
        let (load, grpc) = (self.clone(), session.grpc.clone());
        let write = move |number| {
            let (load, mut grpc) = (load.clone(), grpc.clone());
            async move { grpc.write(load.batch(number, 1)).await.map(drop).map_err(refused("writing an entry")) }
        };
        unary(outstanding, span, write).await
    }

    /// Invalid writes of another client, as fast as they are rejected, while the primary writes sequentially.
    pub async fn refused(&self, session: &Session, span: Duration) -> Result<Figure, CtrlError> {
        let stranger = Client::connect(session.target().clone()).await?;
        let count = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for task in 0..OUTSTANDING {
            let (mut client, channel) = (stranger.grpc.clone(), stranger.channel.clone());
            let (load, count) = (self.clone(), count.clone());
            tasks.spawn(async move {
                while started.elapsed() < span {
                    // Sent by a client that is not primary, or not a message at all.
                    let (answer, meant) = if task % 2 == 0 {
                        let election_id = Some(Uint128 { high: u64::MAX, low: 0 });
                        let request = WriteRequest { election_id, ..load.batch(0, 1) };
                        (client.write(request).await.map(|_| ()), Code::PermissionDenied)
                    } else {
                        (raw::write(&channel, Bytes::from_static(&[0xff; 40])).await, Code::Internal)
                    };
                    match answer {
                        Err(status) if status.code() == meant => drop(count.fetch_add(1, Ordering::Relaxed)),
                        Err(status) => return Err(refused("writing what must be refused")(status)),
                        Ok(()) => return Err(CtrlError::Program("a bad write was accepted".into())),
                    }
                }
                Ok(())
            });
        }
        let (mut good, mut slowest, mut client) = (0, Duration::ZERO, session.grpc.clone());
        while started.elapsed() < span {
            let asked = Instant::now();
            client.write(self.batch(good, 1)).await.map_err(refused("writing an entry"))?;
            (good, slowest) = (good + 1, slowest.max(asked.elapsed()));
        }
        all(tasks).await?;
        let detail = format!(
            "{good} good ones of the primary meanwhile, none refused, the slowest took {:.1} ms",
            slowest.as_secs_f64() * 1e3
        );
        let value = count.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
        Ok(Figure { name: "bad writes refused", value, unit: "writes/s", detail })
    }

    /// Batches that are serialised before the clock starts.
    pub async fn serialised(&self, session: &Session, entries: usize) -> Result<Figure, CtrlError> {
        let serialise = |batch| self.batch(batch * BATCH, BATCH).encode_to_vec().into();
        let requests: Vec<Bytes> = (0..entries / BATCH).map(serialise).collect();
        let requests = Arc::new(std::sync::Mutex::new(requests));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..BATCHES_OUTSTANDING {
            let (channel, requests) = (session.channel.clone(), requests.clone());
            tasks.spawn(async move {
                let next = || requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                while let Some(request) = next() {
                    raw::write(&channel, request).await.map_err(refused("writing serialised entries"))?;
                }
                Ok(())
            });
        }
        all(tasks).await?;
        let seconds = started.elapsed().as_secs_f64();
        Ok(rate("batch of 1000, serialised before", entries / BATCH * BATCH, seconds))
    }

    /// Batches that are built while others are in flight. Also returns how long it took.
    pub async fn built(&self, session: &Session, entries: usize) -> Result<(Figure, f64), CtrlError> {
        let (load, grpc) = (self.clone(), session.grpc.clone());
        let write = move |first, count| {
            let (load, mut grpc) = (load.clone(), grpc.clone());
            async move { grpc.write(load.batch(first, count)).await.map(drop).map_err(refused("writing entries")) }
        };
        batches(entries, write).await
    }

    /// Reads all entries of the table.
    pub async fn read(&self, session: &mut Session, entries: usize) -> Result<Figure, CtrlError> {
        let wildcard = TableEntry { table_id: self.table_id(), ..Default::default() };
        let all = Entity { entity: Some(EntityKind::TableEntry(wildcard)) };
        let started = Instant::now();
        let found = session.read(vec![all]).await?.len();
        let seconds = started.elapsed().as_secs_f64();
        if found != entries {
            return Err(CtrlError::Program(format!("{entries} entries were written and {found} read back")));
        }
        let detail = format!("{found} entries, {:.0}/s", found as f64 / seconds);
        Ok(Figure { name: "read of the table", value: seconds, unit: "s", detail })
    }
}

/// The key of entry `number`. Those of neighbouring numbers are far apart.
pub(super) fn key(number: usize) -> Vec<u8> {
    // Odd, so that different numbers give different keys of 48 bits.
    let value = 1 + (number as u64).wrapping_mul(0x9e37_79b9_7f4b) % (1 << 48);
    value.to_be_bytes()[2..].to_vec()
}

/// Writes entries one by one, by number, `outstanding` in flight.
pub(super) async fn unary<F>(
    outstanding: usize,
    span: Duration,
    write: impl Fn(usize) -> F + Clone + Send + 'static,
) -> Result<Figure, CtrlError>
where
    F: Future<Output = Result<(), CtrlError>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..outstanding {
        let (write, next) = (write.clone(), next.clone());
        tasks.spawn(async move {
            while started.elapsed() < span {
                write(next.fetch_add(1, Ordering::Relaxed)).await?;
            }
            Ok(())
        });
    }
    all(tasks).await?;
    let name = if outstanding == 1 { "unary, one after the other" } else { "unary, 64 outstanding" };
    Ok(rate(name, next.load(Ordering::Relaxed), started.elapsed().as_secs_f64()))
}

/// Writes this many entries in batches, given by their first number and their count, some in flight. Also returns how
/// many seconds it took.
pub(super) async fn batches<F>(
    entries: usize,
    write: impl Fn(usize, usize) -> F + Clone + Send + 'static,
) -> Result<(Figure, f64), CtrlError>
where
    F: Future<Output = Result<(), CtrlError>> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..BATCHES_OUTSTANDING {
        let (write, next) = (write.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= entries {
                    return Ok(());
                }
                write(first, BATCH.min(entries - first)).await?;
            }
        });
    }
    all(tasks).await?;
    let seconds = started.elapsed().as_secs_f64();
    Ok((rate("batch of 1000, built by the client", entries, seconds), seconds))
}

fn rate(name: &'static str, entries: usize, seconds: f64) -> Figure {
    let detail = format!("{entries} entries in {seconds:.2} s");
    Figure { name, value: entries as f64 / seconds, unit: "entries/s", detail }
}

async fn all(mut tasks: JoinSet<Result<(), CtrlError>>) -> Result<(), CtrlError> {
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| CtrlError::Ended(error.to_string()))??;
    }
    Ok(())
}
