//! A soak test: exercises all client operations for a long time and checks that memory does not grow and
//! nothing fails that should not.

use super::load::Load;
use super::{Run, resident_of};
use crate::client::Client;
use crate::connect::ConnectOptions;
use crate::error::CtrlError;
use crate::session::Session;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{
    Entity, ForwardingPipelineConfig, PacketMetadata, PacketOut, TableEntry, Update, update,
};
use p4rack_p4rt::schema::Schema;
use p4rack_wire::SplitMix;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Entries that are inserted and deleted.
const ENTRIES: u64 = 20_000;
/// Maximum updates per write.
const UPDATES: u64 = 200;
/// Number of samples over the whole run.
const SAMPLES: u32 = 20;
/// Growth from the second quarter of the run to the last that is tolerated, because allocators retain memory.
const SLACK: f64 = 1.10;

/// Parameters of the soak test.
#[derive(Clone, Debug)]
pub struct Soak {
    /// The switch. Its state is cleared.
    pub target: ConnectOptions,
    /// The program to install.
    pub config: ForwardingPipelineConfig,
    /// Process id of the server on this machine.
    pub pid: Option<u32>,
    /// Duration.
    pub span: Duration,
    /// Seed of the random operations.
    pub seed: u64,
}

/// State at one point in time.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Sample {
    /// Seconds since the start.
    pub seconds: f64,
    /// The server's resident memory in MB; 0 if unknown.
    pub resident_mb: f64,
    /// Updates accepted.
    pub updates: u64,
    /// Updates rejected that had to be rejected.
    pub refused: u64,
    /// Entries read so far.
    pub read: u64,
    /// Sessions opened and closed.
    pub sessions: u64,
    /// Packets that came back.
    pub packets: u64,
    /// Failures that should not have happened.
    pub errors: u64,
}

#[derive(Debug, Default)]
struct Counts {
    updates: AtomicU64,
    refused: AtomicU64,
    read: AtomicU64,
    sessions: AtomicU64,
    packets: AtomicU64,
    errors: AtomicU64,
    ended: AtomicBool,
}

impl Counts {
    fn sample(&self, started: Instant, pid: Option<u32>) -> Sample {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sample {
            seconds: started.elapsed().as_secs_f64(),
            resident_mb: pid.and_then(resident_of).map_or(0.0, |bytes| bytes as f64 / 1e6),
            updates: of(&self.updates),
            refused: of(&self.refused),
            read: of(&self.read),
            sessions: of(&self.sessions),
            packets: of(&self.packets),
            errors: of(&self.errors),
        }
    }

    fn add(&self, count: &AtomicU64, number: usize) {
        count.fetch_add(number as u64, Ordering::Relaxed);
    }

    /// Records a failure.
    fn failed(&self, what: &str, why: &dyn std::fmt::Display) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        tracing::error!("{what}: {why}");
    }

    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }
}

/// Runs the soak test and passes samples to `done`.
pub fn run<'a>(soak: &'a Soak, done: &'a mut dyn FnMut(&Sample)) -> Run<'a, Vec<Sample>> {
    Box::pin(sample(soak, done))
}

async fn sample(soak: &Soak, done: &mut dyn FnMut(&Sample)) -> Result<Vec<Sample>, CtrlError> {
    let fault =
        |error: &dyn std::fmt::Display| CtrlError::Program(format!("the benchmark's P4Info: {error}"));
    let schema =
        Schema::new(soak.config.p4info.clone().unwrap_or_default()).map_err(|error| fault(&error))?;
    let load = Load::new(&schema, &soak.target).map_err(|error| fault(&error))?;
    let mut session = Session::connect(soak.target.clone()).await?;
    session.set_pipeline(soak.config.clone()).await?;
    let counts = Arc::new(Counts::default());
    let started = Instant::now();
    let header = schema.header_fields("packet_out").first().map_or(1, |field| field.id);
    let tasks = [
        tokio::spawn(write(session, schema, load.clone(), header, SplitMix(soak.seed), counts.clone())),
        tokio::spawn(read(soak.target.clone(), load, counts.clone())),
        tokio::spawn(reconnect(soak.target.clone(), counts.clone())),
    ];
    let mut samples = Vec::new();
    for number in 1..=SAMPLES {
        tokio::time::sleep_until((started + soak.span * number / SAMPLES).into()).await;
        samples.push(counts.sample(started, soak.pid));
        samples.last().into_iter().for_each(&mut *done);
    }
    counts.ended.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.map_err(|error| CtrlError::Ended(error.to_string()))?;
    }
    Ok(samples)
}

/// Whether memory grew, with its maximum in the second and in the last quarter of the run, in MB.
pub fn growth(samples: &[Sample]) -> (bool, f64, f64) {
    let largest = |part: &[Sample]| part.iter().map(|sample| sample.resident_mb).fold(0.0, f64::max);
    let quarter = samples.len() / 4;
    let before = samples.get(quarter..2 * quarter).map_or(0.0, largest);
    let after = samples.get(3 * quarter..).map_or(0.0, largest);
    (after > before * SLACK, before, after)
}

/// Writes valid and invalid updates, sends packets and receives those that return.
async fn write(
    mut session: Session,
    schema: Schema,
    load: Load,
    header: u32,
    mut random: SplitMix,
    counts: Arc<Counts>,
) {
    let mut there: HashSet<u64> = HashSet::new();
    while counts.goes_on() {
        let (mut updates, mut wrong) = (Vec::new(), HashSet::new());
        let mut touched = HashSet::new();
        for _ in 0..=random.below(UPDATES) {
            let number = random.below(ENTRIES);
            // Updates of one write are unordered, so each entry occurs once.
            if !touched.insert(number) {
                continue;
            }
            let kind = match (there.contains(&number), random.below(20)) {
                (is, 0) => {
                    wrong.insert(updates.len());
                    if is { update::Type::Insert } else { update::Type::Delete }
                }
                (true, 1..=9) => update::Type::Delete,
                (true, _) => update::Type::Modify,
                (false, _) => update::Type::Insert,
            };
            if !wrong.contains(&updates.len()) {
                match kind {
                    update::Type::Insert => there.insert(number),
                    update::Type::Delete => there.remove(&number),
                    _ => false,
                };
            }
            updates.push(Update { r#type: kind as i32, ..load.update(number as usize) });
        }
        let refused: HashSet<usize> = match session.write(&schema, &updates).await {
            Ok(()) => HashSet::new(),
            Err(CtrlError::Updates { failures }) => {
                let meant = [Code::NotFound, Code::AlreadyExists];
                for failure in failures.iter().filter(|failure| !meant.contains(&failure.error.code)) {
                    counts.failed("write", &failure.error);
                }
                failures.iter().map(|failure| failure.number - 1).collect()
            }
            Err(error) => {
                counts.failed("write", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if refused != wrong {
            counts.failed("write", &"other updates were refused than had to be");
        }
        counts.add(&counts.updates, updates.len() - refused.len());
        counts.add(&counts.refused, refused.len());
        for token in 0..random.below(8) {
            let metadata = vec![PacketMetadata { metadata_id: header, value: vec![token as u8] }];
            if let Err(error) = session.packet_out(PacketOut { payload: vec![0; 60], metadata }).await {
                counts.failed("packet-out", &error);
            }
        }
        let until = tokio::time::Instant::now() + Duration::from_millis(1);
        loop {
            match session.packet_in(until).await {
                Ok(Some(_)) => counts.add(&counts.packets, 1),
                Ok(None) => break,
                Err(error) => {
                    counts.failed("packet-in", &error);
                    break;
                }
            }
        }
    }
}

/// Reads the table over connections of its own.
async fn read(target: ConnectOptions, load: Load, counts: Arc<Counts>) {
    let wildcard = TableEntry { table_id: load.table_id(), ..Default::default() };
    let all = Entity { entity: Some(EntityKind::TableEntry(wildcard)) };
    while counts.goes_on() {
        let mut client = match Client::connect(target.clone()).await {
            Ok(client) => client,
            Err(error) => {
                counts.failed("connecting to read", &error);
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        for _ in 0..20 {
            match client.read(vec![all.clone()]).await {
                Ok(found) => counts.add(&counts.read, found.len()),
                Err(error) => counts.failed("read", &error),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Controllers of another role that connect and disconnect.
async fn reconnect(target: ConnectOptions, counts: Arc<Counts>) {
    let mut number = 0;
    while counts.goes_on() {
        number += 1;
        let target = ConnectOptions { role: "soak".into(), election_id: number, ..target.clone() };
        match Session::connect(target).await {
            Ok(_) => counts.add(&counts.sessions, 1),
            Err(error) => counts.failed("connecting", &error),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_from_what_comes_first() {
        let run = |megabytes: fn(f64) -> f64| -> Vec<Sample> {
            (1..=20).map(|at| Sample { resident_mb: megabytes(f64::from(at)), ..Sample::default() }).collect()
        };
        assert!(!growth(&run(|at| 100.0 + 20.0 * at.min(4.0))).0, "filled at the start");
        assert!(growth(&run(|at| 100.0 + 3.0 * at)).0);
        assert!(!growth(&[]).0);
    }
}
