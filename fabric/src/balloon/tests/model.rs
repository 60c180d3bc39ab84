//! The service with nodes that answer without delay, and a naive model: an array of owners for each node.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const NODES: [u64; 3] = [4, 16, 7];
const HOLDERS: u32 = 3;
const LEASE: Nanos = Nanos::from_secs(10);
/// Units that are kept for holder 0, and its limit.
const KEPT: u64 = 5;
const LIMIT: u64 = 12;

#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve(u32, u32),
    Online(usize, bool),
    Return(usize),
    Renew(u32),
    Restart(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let holder = 0..HOLDERS;
    prop_oneof![
        8 => (holder.clone(), 0u32..5).prop_map(|(holder, power)| Step::Reserve(holder, power)),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(nth, is_online)| Step::Online(nth, is_online)),
        6 => any::<usize>().prop_map(Step::Return),
        4 => holder.clone().prop_map(Step::Renew),
        1 => holder.prop_map(Step::Restart),
        2 => (0u64..6).prop_map(Step::Wait),
    ]
}

#[derive(Default)]
struct Model {
    /// Owner's holder of each unit, by node.
    units: [Vec<Option<u32>>; 3],
    /// Instance and end of the sessions.
    sessions: BTreeMap<u32, (u64, Nanos)>,
    lent: Vec<(u32, Lent)>,
}

impl Model {
    fn held(&self, holder: u32) -> u64 {
        self.units.iter().flatten().filter(|owner| **owner == Some(holder)).count() as u64
    }

    fn place(&self, holder: u32, units: u64) -> Result<(u16, u64), Refusal> {
        if holder == 0 && self.held(0) + units > LIMIT {
            return Err(Refusal::Quota);
        }
        let free = self.units.iter().flatten().filter(|owner| owner.is_none()).count() as u64;
        let kept = if holder == 0 { 0 } else { KEPT.saturating_sub(self.held(0)) };
        if kept > 0 && free < units + kept {
            return Err(Refusal::NoRoom);
        }
        for (node, owners) in self.units.iter().enumerate() {
            let fits = |start: &usize| owners[*start..*start + units as usize].iter().all(Option::is_none);
            let last = owners.len().checked_sub(units as usize);
            if let Some(start) = last.and_then(|last| (0..=last).find(fits)) {
                return Ok((node as u16, start as u64));
            }
        }
        Err(Refusal::NoRoom)
    }

    fn set(&mut self, extent: &Extent, owner: Option<u32>) {
        let start = (extent.place.start / UNIT) as usize;
        let owners = &mut self.units[usize::from(extent.place.node)];
        owners[start..start + (extent.bytes / UNIT) as usize].fill(owner);
    }

    fn end(&mut self, holder: u32) {
        self.sessions.remove(&holder);
        self.units
            .iter_mut()
            .flatten()
            .filter(|owner| **owner == Some(holder))
            .for_each(|owner| *owner = None);
        self.lent.retain(|(of, _)| *of != holder);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_agrees_with_arrays_of_owners(steps in prop::collection::vec(step(), 0..80)) {
        let quota = Quota { reserved_bytes: KEPT * UNIT, limit_bytes: LIMIT * UNIT };
        let config = Config { quotas: [(0, quota)].into(), ..Config::new(3) };
        let mut rig = Rig::new(config, &NODES);
        let mut model = Model { units: NODES.map(|units| vec![None; units as usize]), ..Model::default() };
        let (mut number, mut instance) = (0, 0);
        for step in steps {
            let of = |model: &Model, holder| session(holder, model.sessions.get(&holder).map_or(0, |of| of.0));
            match step {
                Step::Restart(holder) => {
                    instance += 1;
                    model.end(holder);
                    model.sessions.insert(holder, (instance, rig.now + LEASE));
                    prop_assert_eq!(rig.ask(session(holder, instance), Ask::Open), Reply::Opened(LEASE));
                }
                Step::Reserve(holder, power) => {
                    number += 1;
                    let units = 1u64 << power;
                    let reply = rig.ask(of(&model, holder), Ask::Reserve { number, bytes: units * UNIT });
                    let is_open = model.sessions.contains_key(&holder);
                    match is_open.then(|| model.place(holder, units)) {
                        None => prop_assert!(matches!(reply, Reply::Refused(_))),
                        Some(Err(refusal)) => prop_assert_eq!(reply, Reply::Refused(refusal)),
                        Some(Ok((node, start))) => {
                            let Reply::Reserved(lent) = reply else { panic!("{reply:?}") };
                            prop_assert_eq!(lent.extent.place, Place { node, start: start * UNIT });
                            model.set(&lent.extent, Some(holder));
                            let words = rig.nodes[usize::from(node)].1.read(&lent.access).unwrap();
                            prop_assert!(words.iter().all(|word| *word == 0), "bytes of a former owner");
                            for nth in 0..units {
                                rig.nodes[usize::from(node)].1.write(&lent.access, nth, number);
                            }
                            model.lent.push((holder, lent));
                        }
                    }
                }
                Step::Online(nth, is_online) if !model.lent.is_empty() => {
                    let nth = nth % model.lent.len();
                    let (holder, extent) = (model.lent[nth].0, model.lent[nth].1.extent);
                    let ask = if is_online { Ask::Online(extent) } else { Ask::Offline(extent) };
                    prop_assert_eq!(rig.ask(of(&model, holder), ask), Reply::Done);
                    model.lent[nth].1.is_online = is_online;
                }
                Step::Return(nth) if !model.lent.is_empty() => {
                    let nth = nth % model.lent.len();
                    let (holder, lent) = model.lent[nth].clone();
                    let reply = rig.ask(of(&model, holder), Ask::Return(lent.extent));
                    if lent.is_online {
                        prop_assert_eq!(reply, Reply::Refused(Refusal::Online));
                    } else {
                        prop_assert_eq!(reply, Reply::Done);
                        model.set(&lent.extent, None);
                        model.lent.remove(nth);
                    }
                }
                Step::Online(..) | Step::Return(_) => {}
                Step::Renew(holder) => {
                    let reply = rig.ask(of(&model, holder), Ask::Renew);
                    if let Some(entry) = model.sessions.get_mut(&holder) {
                        entry.1 = rig.now + LEASE;
                        let mut lent: Vec<Lent> =
                            model.lent.iter().filter(|(of, _)| *of == holder).map(|of| of.1.clone()).collect();
                        lent.sort_by_key(|lent| lent.extent.place);
                        prop_assert_eq!(reply, Reply::Renewed(LEASE, lent));
                    } else {
                        prop_assert!(matches!(reply, Reply::Refused(_)));
                    }
                }
                Step::Wait(seconds) => {
                    rig.wait(Nanos::from_secs(seconds));
                    let now = rig.now;
                    let ended = model.sessions.iter().filter(|(_, of)| of.1 <= now).map(|(holder, _)| *holder);
                    ended.collect::<Vec<_>>().into_iter().for_each(|holder| model.end(holder));
                }
            }
            let free = model.units.iter().flatten().filter(|owner| owner.is_none()).count() as u64;
            prop_assert_eq!(rig.free_bytes(), free * UNIT);
            for (node, owners) in model.units.iter().enumerate() {
                let longest = owners.chunk_by(|a, b| a.is_none() == b.is_none()).filter(|run| run[0].is_none());
                let longest = longest.map(<[_]>::len).max().unwrap_or(0) as u64;
                prop_assert_eq!(rig.memory(node).longest_bytes, longest * UNIT);
            }
        }
    }
}
