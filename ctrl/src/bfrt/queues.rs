//! Queues of ports, over the tables of the traffic manager (`tm.*`).
//!
//! ```text
//!  tm.port.cfg ─▶ the group of a port, and the numbers of its queues in the group
//!  tm.queue.sched_cfg, tm.queue.sched_shaping, tm.queue.buffer, tm.counter.queue   by these
//!  tm.port.sched_cfg, tm.port.sched_shaping                                        by port
//! ```

use super::Link;
use super::device::{number, pipe, pipe_of, text, truth};
use crate::error::CtrlError;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use std::collections::BTreeSet;

/// Initial weight of a queue.
const WEIGHT: u16 = 1023;
/// The highest priority of a queue.
const FIRST: u32 = 7;

/// A rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Rate in kbit/s, and burst in bytes.
    Kilobits(u32, u32),
    /// Rate in frames per second, and burst in frames.
    Frames(u32, u32),
}

/// A queue of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its number at the port.
    pub number: u32,
    /// Whether it is served.
    pub serves: bool,
    /// Priority: 0 to 7, the highest first.
    pub priority: String,
    /// Share among queues of the same priority.
    pub weight: u64,
    /// The most that it sends, if it has a limit.
    pub rate: Option<Rate>,
    /// Cells that it may hold.
    pub limit_cells: u64,
    /// Cells that it holds.
    pub cells: u64,
    /// The most cells that it has held.
    pub most_cells: u64,
    /// Frames that found no room.
    pub drops: u64,
}

/// Changes of a queue; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueChange {
    /// Whether it is served.
    pub serves: Option<bool>,
    /// Priority: 0 to 7.
    pub priority: Option<u8>,
    /// Share among queues of the same priority: 1 to 1023.
    pub weight: Option<u16>,
    /// The most that it sends.
    pub rate: Option<Rate>,
    /// Cells that it may hold.
    pub limit_cells: Option<u32>,
}

/// Location of a port's queues.
struct Places {
    group: u128,
    queues: Vec<u32>,
}

fn rate_of(entry: &Entry) -> Result<Rate, CtrlError> {
    let most = |field| Ok::<u32, CtrlError>(u32::try_from(number(entry, field)?).unwrap_or(u32::MAX));
    let (rate, burst) = (most("max_rate")?, most("max_burst_size")?);
    Ok(if text(entry, "unit")? == "PPS" { Rate::Frames(rate, burst) } else { Rate::Kilobits(rate, burst) })
}

fn with_rate(entry: Entry, rate: Rate) -> Entry {
    let (unit, rate, burst) = match rate {
        Rate::Kilobits(rate, burst) => ("BPS", rate, burst),
        Rate::Frames(rate, burst) => ("PPS", rate, burst),
    };
    entry.data("unit", unit).data("max_rate", rate).data("max_burst_size", burst)
}

/// Priority of a queue unless it was given another one.
fn rank(queue: u32) -> u32 {
    queue.min(FIRST)
}

fn of_port(table: &str, port: u32) -> Entry {
    Entry::of(table).exact("dev_port", port.into())
}

impl Places {
    fn queue(&self, table: &str, queue: u32) -> Result<Entry, CtrlError> {
        let missing = || CtrlError::Program(format!("the port has {} queues, no {queue}", self.queues.len()));
        let own = self.queues.get(queue as usize).ok_or_else(missing)?;
        Ok(Entry::of(table).exact("pg_id", self.group).exact("pg_queue", (*own).into()))
    }
}

impl Link {
    /// The entry with a key, in the pipe of a port.
    async fn look_up(&mut self, port: u32, wanted: Entry) -> Result<Entry, CtrlError> {
        self.entry(pipe_of(port), wanted).await
    }

    async fn places(&mut self, port: u32) -> Result<Places, CtrlError> {
        let found = self.look_up(port, of_port("tm.port.cfg", port)).await?;
        // The driver's list repeats the queues until it has one for each class of the chip.
        let count = number(&found, "port_queues_count")?;
        let queues = match found.get("egress_qid_queues") {
            Some(Value::Numbers(numbers)) => (0..count).zip(numbers).map(|(_, queue)| *queue).collect(),
            _ => {
                return Err(CtrlError::Program(format!(
                    "the switch does not say which queues port {port} has"
                )));
            }
        };
        Ok(Places { group: number(&found, "pg_id")?.into(), queues })
    }

    /// The queues of a port. Errors: the switch has no such port, or no traffic manager's tables.
    pub async fn queues(&mut self, port: u32) -> Result<Vec<Queue>, CtrlError> {
        let places = self.places(port).await?;
        let mut queues = Vec::with_capacity(places.queues.len());
        for number in (0..).take(places.queues.len()) {
            let mut of = async |table| self.look_up(port, places.queue(table, number)?).await;
            let served = of("tm.queue.sched_cfg").await?;
            let shaping = of("tm.queue.sched_shaping").await?;
            let (buffer, counted) = (of("tm.queue.buffer").await?, of("tm.counter.queue").await?);
            queues.push(Queue {
                number,
                serves: truth(&served, "scheduling_enable")?,
                priority: text(&served, "max_priority")?.to_owned(),
                weight: self::number(&served, "dwrr_weight")?,
                rate: truth(&served, "max_rate_enable")?.then(|| rate_of(&shaping)).transpose()?,
                limit_cells: self::number(&buffer, "pool_max_cells")?,
                cells: self::number(&counted, "usage_cells")?,
                most_cells: self::number(&counted, "watermark_cells")?,
                drops: self::number(&counted, "drop_count_packets")?,
            });
        }
        Ok(queues)
    }

    /// The most that a port sends, if it has a limit beside its wire.
    pub async fn port_rate(&mut self, port: u32) -> Result<Option<Rate>, CtrlError> {
        let is_limited = self.look_up(port, of_port("tm.port.sched_cfg", port)).await?;
        let shaping = self.look_up(port, of_port("tm.port.sched_shaping", port)).await?;
        truth(&is_limited, "max_rate_enable")?.then(|| rate_of(&shaping)).transpose()
    }

    /// Changes a queue, all of it or nothing.
    pub async fn set_queue(&mut self, port: u32, queue: u32, change: &QueueChange) -> Result<(), CtrlError> {
        let places = self.places(port).await?;
        let mut entries = Vec::new();
        if let Some(rate) = change.rate {
            entries.push(with_rate(places.queue("tm.queue.sched_shaping", queue)?, rate));
        }
        if let Some(cells) = change.limit_cells {
            let buffer = places.queue("tm.queue.buffer", queue)?.action("shared_pool");
            let buffer = buffer.data("pool_id", "EG_APP_POOL_0").data("dynamic_baf", "DISABLE");
            entries.push(buffer.data("pool_max_cells", cells));
        }
        let mut served = places.queue("tm.queue.sched_cfg", queue)?;
        if let Some(serves) = change.serves {
            served = served.data("scheduling_enable", serves);
        }
        if let Some(priority) = change.priority {
            served = served.data("max_priority", &*priority.to_string());
        }
        if let Some(weight) = change.weight {
            served = served.data("dwrr_weight", weight);
        }
        if change.rate.is_some() {
            served = served.data("max_rate_enable", true);
        }
        if served != places.queue("tm.queue.sched_cfg", queue)? {
            entries.push(served);
        }
        self.modify(port, entries).await
    }

    /// Limits a port's rate, in addition to its wire's.
    pub async fn set_port_rate(&mut self, port: u32, rate: Rate) -> Result<(), CtrlError> {
        let entries = vec![
            with_rate(of_port("tm.port.sched_shaping", port), rate),
            of_port("tm.port.sched_cfg", port).data("max_rate_enable", true),
        ];
        self.modify(port, entries).await
    }

    /// Resets a port and its queues: no rates but the wire's, equal weights, the higher queue first, and the device's own limits.
    pub async fn reset_queues(&mut self, port: u32) -> Result<(), CtrlError> {
        let places = self.places(port).await?;
        // Only these tables know their defaults, and a driver resets no single row.
        let buffer = self.default_entry(pipe_of(port), "tm.queue.buffer").await?;
        let mut entries = vec![of_port("tm.port.sched_cfg", port).data("max_rate_enable", false)];
        for queue in (0..).take(places.queues.len()) {
            let served = places.queue("tm.queue.sched_cfg", queue)?;
            let priority = &*rank(queue).to_string();
            entries.push(
                served
                    .data("scheduling_enable", true)
                    .data("min_rate_enable", false)
                    .data("min_priority", priority)
                    .data("max_rate_enable", false)
                    .data("max_priority", priority)
                    .data("dwrr_weight", WEIGHT),
            );
            entries.push(places.queue("tm.queue.buffer", queue)?.updated(&buffer));
        }
        self.modify(port, entries).await
    }

    /// Lets the higher queue of each of these ports go first, as programs expect. On a chip all queues of a port have the same
    /// priority when a program starts.
    pub(super) async fn rank_queues(&mut self, ports: &[u32]) -> Result<(), CtrlError> {
        let pipes: BTreeSet<u32> = ports.iter().map(|port| pipe_of(*port).pipe_id).collect();
        for pipe_id in pipes {
            let target = pipe(pipe_id);
            let served = self.entries(target, "tm.queue.sched_cfg").await?;
            for port in ports.iter().filter(|port| pipe_of(**port) == target) {
                let places = self.places(*port).await?;
                let mut changes = Vec::new();
                for queue in (0..).take(places.queues.len()) {
                    let key = places.queue("tm.queue.sched_cfg", queue)?;
                    let is_it = |entry: &&Entry| {
                        ["pg_id", "pg_queue"].iter().all(|name| entry.matched(name) == key.matched(name))
                    };
                    let there = served.iter().find(is_it);
                    let ranked = key.clone().data("max_priority", &*rank(queue).to_string());
                    if there.is_none_or(|own| own.get("max_priority") != ranked.get("max_priority")) {
                        changes.push((Type::Modify, ranked));
                    }
                }
                self.change("ranking queues", target, changes).await?;
            }
        }
        Ok(())
    }

    /// Changes rows, all of them or none: a driver's transactions don't cover these tables, so what was changed before an
    /// error is changed back.
    async fn modify(&mut self, port: u32, entries: Vec<Entry>) -> Result<(), CtrlError> {
        const CALL: &str = "writing queues";
        let (target, mut undo) = (pipe_of(port), Vec::new());
        for entry in entries {
            let before = entry.fields_of(&self.entry(target, entry.clone()).await?);
            if let Err(error) = self.change(CALL, target, vec![(Type::Modify, entry)]).await {
                undo.reverse();
                self.change(CALL, target, undo).await?;
                return Err(error);
            }
            undo.push((Type::Modify, before));
        }
        Ok(())
    }
}
