//! The store's part: keys of a process against a map.

use super::{Plan, Verified, VerifyError};
use crate::clio::Patience;
use crate::clio::kv::{Kv, KvError, KvOutcome, KvRefused, KvRequest, KvShape};
use crate::roce::setup::Server;
use p4rack_netdev::clock;
use p4rack_wire::SplitMix;
use p4rack_wire::clio::Status;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

/// Keys of a process, and bytes of the longest value.
const KEYS: u64 = 64;
const VALUE_BYTES: u32 = 3_000;
/// Requests to the store under way. Each has a key of its own: they have no order.
const KV_UNDER_WAY: u16 = 8;
/// Requests to the store with keys of this process, which are removed at the end.
pub(super) fn run(
    server: &Server,
    plan: Plan,
    pid: u32,
    is_over: &AtomicBool,
    done: &mut Verified,
) -> Result<(), VerifyError> {
    let shape =
        KvShape { value_bytes_max: VALUE_BYTES, written_bytes_max: VALUE_BYTES, under_way_max: KV_UNDER_WAY };
    let mut kv = Kv::open(server, shape, Patience::default())?;
    let mut random = SplitMix(plan.seed ^ 0x6b76);
    let key = |nth: u64| format!("verify {pid} {:x} {nth}", plan.seed).into_bytes();
    let mut map = BTreeMap::<u64, Vec<u8>>::new();
    // Expected result of each key's request under way.
    let mut busy = HashMap::<u64, PendingCall>::new();
    let (mut asked, mut silent_at) = (0, clock::now() + plan.patience);
    loop {
        let may_submit = asked < plan.requests && !is_over.load(Ordering::Relaxed);
        if may_submit && busy.len() < KV_UNDER_WAY.into() {
            let nth = random.between(0, KEYS - 1);
            if let Entry::Vacant(free) = busy.entry(nth) {
                asked += 1;
                free.insert(ask(&mut kv, &mut random, nth, &key(nth), &mut map)?);
            }
            continue;
        }
        if busy.is_empty() {
            break;
        }
        let (mut any, mut result) = (false, Ok(()));
        kv.poll(silent_at, &mut |nth, outcome| {
            any = true;
            let Some(asked) = busy.remove(&nth) else { return };
            done.requests += 1;
            let compared = asked.check(nth, outcome);
            if result.is_ok() {
                result = compared;
            }
        })?;
        result?;
        if any {
            silent_at = clock::now() + plan.patience;
        } else if clock::now() >= silent_at {
            return Err(VerifyError::Silence(plan.patience, busy.len()));
        }
    }
    for (nth, wanted) in map {
        let found = kv.get(&key(nth))?;
        PendingCall::Get(Some(wanted))
            .check(nth, found.as_deref().map_or(KvOutcome::NotFound, KvOutcome::Value))?;
        kv.delete(&key(nth))?;
        done.requests += 2;
    }
    Ok(())
}

/// A request under way, with its expected result.
enum PendingCall {
    Get(Option<Vec<u8>>),
    Put,
    Create(bool),
    Delete(bool),
}

fn ask(
    kv: &mut Kv,
    random: &mut SplitMix,
    nth: u64,
    key: &[u8],
    map: &mut BTreeMap<u64, Vec<u8>>,
) -> Result<PendingCall, VerifyError> {
    let mut fill = SplitMix(random.next());
    let bytes = random.between(0, VALUE_BYTES.into()) as usize;
    let value: Vec<u8> = std::iter::repeat_with(|| fill.next() as u8).take(bytes).collect();
    let refused = |refused: KvRefused| KvError::from(refused);
    Ok(match random.between(0, 9) {
        0..=3 => {
            kv.submit(nth, KvRequest::Get(key)).map_err(refused)?;
            PendingCall::Get(map.get(&nth).cloned())
        }
        4..=6 => {
            kv.submit(nth, KvRequest::Put(key, &value)).map_err(refused)?;
            map.insert(nth, value);
            PendingCall::Put
        }
        7 => {
            kv.submit(nth, KvRequest::Create(key, &value)).map_err(refused)?;
            let is_new = !map.contains_key(&nth);
            map.entry(nth).or_insert(value);
            PendingCall::Create(is_new)
        }
        _ => {
            kv.submit(nth, KvRequest::Delete(key)).map_err(refused)?;
            PendingCall::Delete(map.remove(&nth).is_some())
        }
    })
}

impl PendingCall {
    fn check(self, nth: u64, outcome: KvOutcome<'_>) -> Result<(), VerifyError> {
        let is_right = match (&self, outcome) {
            (PendingCall::Get(Some(wanted)), KvOutcome::Value(found)) => found == wanted,
            (PendingCall::Get(None) | PendingCall::Delete(false), KvOutcome::NotFound)
            | (PendingCall::Put | PendingCall::Create(true) | PendingCall::Delete(true), KvOutcome::Done)
            | (PendingCall::Create(false), KvOutcome::Exists) => true,
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        let what = format!("key {nth}");
        let bytes = |value: &[u8]| format!("a value of {} bytes", value.len());
        let found = match outcome {
            KvOutcome::Failed(Status::NoSuchOffload) => return Err(VerifyError::NoStore),
            KvOutcome::Failed(status) => return Err(ended(what, status)),
            KvOutcome::Unknown => {
                return Err(VerifyError::Ended { what, status: "no answer to any attempt".to_owned() });
            }
            KvOutcome::Value(found) | KvOutcome::Versioned(_, found) => bytes(found),
            KvOutcome::Done => "done".to_owned(),
            KvOutcome::NotFound => "not found".to_owned(),
            KvOutcome::Exists => "exists".to_owned(),
        };
        let wanted = match self {
            PendingCall::Get(Some(wanted)) => bytes(&wanted) + ", another one",
            PendingCall::Get(None) | PendingCall::Delete(false) => "not found".to_owned(),
            PendingCall::Put | PendingCall::Create(true) | PendingCall::Delete(true) => "done".to_owned(),
            PendingCall::Create(false) => "exists".to_owned(),
        };
        Err(VerifyError::Wrong { what, found, wanted })
    }
}

fn ended(what: String, status: Status) -> VerifyError {
    VerifyError::Ended { what, status: status.name().replace('_', " ") }
}
