//! Digests as lists of one kind and pipe, which may wait for more.

use super::DEVICE;
use super::loaded::Loaded;
use p4rack_bfrt::Kind;
use p4rack_entities::Program;
use p4rack_p4rt::bfrt_proto::{DataField, DigestList, TableData, TargetDevice, data_field};
use p4rack_switch::DigestMessage;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The longest that a digest waits for others.
const MOST_WAIT: Duration = Duration::from_secs(10);
/// Maximum digests of a list.
const DIGESTS: usize = 64;
/// Maximum lists that wait: kinds in pipes. The oldest is sent for another one.
const LISTS: usize = 64;

/// A list that waits for more.
#[derive(Debug)]
pub struct Waiting {
    pub program: Arc<Program>,
    pub list: DigestList,
    due: Instant,
}

impl Waiting {
    /// A list that may wait for so long.
    pub fn new(program: Arc<Program>, list: DigestList, wait: Duration) -> Waiting {
        Waiting { program, list, due: Instant::now() + wait.min(MOST_WAIT) }
    }

    fn is_like(&self, other: &Waiting) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
            && (self.list.digest_id, self.list.target) == (other.list.digest_id, other.list.target)
    }
}

/// Lists that wait, in the order in which they began.
#[derive(Debug, Default)]
pub struct Lists {
    waiting: Vec<Waiting>,
    /// Whether a task sends those that are due.
    pub is_timed: bool,
}

impl Lists {
    /// Adds digests. Returns a list that is to be sent, because it is full or there are too many, and whether a new one
    /// waits.
    pub fn add(&mut self, more: Waiting) -> (Option<Waiting>, bool) {
        let Some(at) = self.waiting.iter().position(|own| own.is_like(&more)) else {
            let oldest = if self.waiting.len() < LISTS { None } else { Some(self.waiting.remove(0)) };
            self.waiting.push(more);
            return (oldest, true);
        };
        let all = &mut self.waiting[at].list.data;
        all.extend(more.list.data);
        let is_full = all.len() >= DIGESTS;
        (is_full.then(|| self.waiting.remove(at)), false)
    }

    /// Takes all of them.
    pub fn take(&mut self) -> Vec<Waiting> {
        std::mem::take(&mut self.waiting)
    }

    /// Takes those that are due.
    pub fn take_due(&mut self) -> Vec<Waiting> {
        let now = Instant::now();
        self.waiting.extract_if(.., |list| list.due <= now).collect()
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Instant> {
        self.waiting.iter().map(|list| list.due).min()
    }
}

/// A pipe of the device, or all.
pub fn target(pipe_id: u32) -> Option<TargetDevice> {
    Some(TargetDevice { device_id: DEVICE, pipe_id, direction: 0xff, prsr_id: 0xff })
}

impl Loaded {
    /// A digest as a list of one.
    pub fn digest(&self, message: &DigestMessage) -> Option<DigestList> {
        let described = self.program.ir.digests.get(message.digest as usize)?;
        let name = &described.named.name;
        let is_it = |own: &str| own == name || own.split_once('.').is_some_and(|(_, rest)| rest == name);
        let learn = self.schema.learns().iter().find(|learn| is_it(&learn.name))?;
        let one = |(field, value): (&p4rack_bfrt::Field, &num_bigint::BigUint)| {
            let bytes = value.to_bytes_be();
            let value = match field.kind {
                Kind::Bits(width) => {
                    let length = width.div_ceil(8) as usize;
                    let kept = bytes.len().min(length);
                    let mut fixed = vec![0; length];
                    fixed[length - kept..].copy_from_slice(&bytes[bytes.len() - kept..]);
                    data_field::Value::Stream(fixed)
                }
                Kind::Bool => data_field::Value::BoolVal(bytes != [0]),
                _ => return None,
            };
            Some(DataField { field_id: field.id, value: Some(value) })
        };
        let fields = learn.fields.iter().zip(&message.values).map(one).collect::<Option<_>>()?;
        let data = vec![TableData { action_id: 0, fields }];
        let pipe = u32::try_from(message.pipe).unwrap_or(0);
        Some(DigestList { digest_id: learn.id, list_id: 0, data, target: target(pipe) })
    }
}
