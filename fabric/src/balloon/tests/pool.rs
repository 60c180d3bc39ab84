//! An RDMA pool behind a node, with peers that have attached to all that it has granted.

use super::store::{Store, overlap};
use super::*;
use crate::roce::{self, Regions, RegisteredMemory as _, Reservation, Reservations, Token};
use std::collections::BTreeMap;

/// A pool, and its driver.
pub struct Pool {
    units: u64,
    instance: u64,
    regions: Regions,
    reservations: Reservations,
    extents: PoolExtents,
    tokens: u64,
    /// Place of each granted region, by key, until its bytes are dropped.
    places: BTreeMap<u32, Extent>,
    /// How often it is asked until an extent is zeroed, and how often it was.
    slow: u32,
    asked: u32,
    problem: Option<String>,
}

/// A holder's access: its queue pair is in the domain, at this instance of the pool.
#[derive(Clone, Copy)]
struct Attached {
    instance: u64,
    place: roce::RemoteAddress,
    units: u64,
}

fn access(token: &Token, reservation: &Reservation) -> Option<Access> {
    let [offer] = reservation.offers[..] else { return None };
    let numbers = [reservation.domain.into(), offer.key.into(), offer.address, offer.bytes];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Access::new(&[token.bytes(), &bytes].concat())
}

fn attached(access: &Access) -> Attached {
    let number = |nth: usize| u64::from_le_bytes(access.bytes()[8 * nth..8 * nth + 8].try_into().unwrap());
    let place = roce::RemoteAddress { domain: number(2) as u32, key: number(3) as u32, address: number(4) };
    Attached { instance: number(0), place, units: number(5) / UNIT }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its bytes are many.
        f.debug_struct("Pool").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Pool {
    fn run<T>(&mut self, work: impl FnOnce(&mut OnPool<'_>) -> T) -> T {
        self.tokens += 1;
        let number = u128::from(self.tokens) << 64 | u128::from(self.instance);
        let token = Token::new(number.to_le_bytes());
        let Pool { regions, reservations, extents, .. } = self;
        work(&mut OnPool { regions, reservations, extents, token: Some(token), access })
    }

    fn at(attached: &Attached, nth: u64) -> roce::RemoteAddress {
        let roce::RemoteAddress { domain, key, address } = attached.place;
        roce::RemoteAddress { domain, key, address: address + nth % attached.units * UNIT }
    }
}

impl Memory for Pool {
    fn grant(&mut self, extent: &Extent) -> Option<Access> {
        let bounds = (extent.place.start, extent.place.start + extent.bytes);
        let former = self.places.iter().find(|(_, former)| overlap(former, bounds));
        if let Some((key, _)) = former {
            let has_key = self.regions.get(*key).is_some();
            let what = if has_key { "has two owners" } else { Pool::UNCLEAN };
            self.problem = Some(format!("{extent:?} {what}"));
        }
        let access = self.run(|pool| pool.grant(extent))?;
        self.places.insert(attached(&access).place.key, *extent);
        Some(access)
    }

    fn revoke(&mut self, extent: &Extent) {
        self.run(|pool| pool.revoke(extent));
    }

    fn zero(&mut self, extent: &Extent) -> bool {
        let bounds = (extent.place.start, extent.place.start + extent.bytes);
        if self.reached().contains(&bounds) {
            self.problem = Some(format!("{extent:?} is zeroed although it has a key"));
        }
        self.asked += 1;
        if self.asked > self.slow {
            self.asked = 0;
            while let Some((start, regions)) = self.extents.next_withdrawn() {
                self.places.retain(|key, _| !regions.iter().any(|region| region.key == *key));
                self.extents.zeroed(start, &mut self.reservations);
            }
        }
        self.run(|pool| pool.zero(extent))
    }
}

impl Store for Pool {
    /// The system gives and takes the bytes of its extents, which takes longer.
    const WORLDS: u64 = 40;
    const UNCLEAN: &'static str = "is lent before it is zeroed";

    fn new(units: u64, slow: u32, instance: u64) -> Pool {
        Pool {
            units,
            instance,
            regions: Regions::default(),
            reservations: Reservations::new(units * UNIT, 0, instance as u32),
            extents: PoolExtents::default(),
            tokens: 0,
            places: BTreeMap::new(),
            slow,
            asked: 0,
            problem: None,
        }
    }

    fn write(&mut self, access: &Access, nth: u64, word: u64) -> bool {
        let attached = attached(access);
        let written = self.regions.write(Pool::at(&attached, nth), &word.to_le_bytes());
        attached.instance == self.instance && written.is_ok()
    }

    fn read(&self, access: &Access) -> Option<Vec<u64>> {
        let attached = attached(access);
        let word = |nth| {
            let mut bytes = [0; 8];
            self.regions.read(Pool::at(&attached, nth), &mut bytes).ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        // A queue pair of an earlier instance is not known.
        (attached.instance == self.instance).then(|| (0..attached.units).map(word).collect())?
    }

    fn reached(&self) -> Vec<(u64, u64)> {
        let place =
            |key| self.places.get(&key).map(|of: &Extent| (of.place.start, of.place.start + of.bytes));
        self.regions.keys().filter_map(place).collect()
    }

    fn is_clean(&self) -> bool {
        let is_whole = self.reservations.left_bytes() == self.units * UNIT;
        is_whole && self.regions.keys().next().is_none() && self.places.is_empty()
    }

    fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}

fn extent(start: u64, units: u64, number: u64) -> Extent {
    let epoch = Epoch { term: term(1), number };
    Extent { place: Place { node: 0, start: start * UNIT }, bytes: units * UNIT, epoch }
}

#[test]
fn an_extent_of_a_pool_has_a_key_of_its_own_until_it_is_revoked() {
    let mut pool = Pool::new(4, 0, 9);
    let [first, second] = [0, 2].map(|start| pool.grant(&extent(start, 2, 1)).expect("there is room"));
    assert_eq!(pool.grant(&extent(4, 1, 2)), None, "peers share the same bytes");
    assert!(pool.write(&first, 0, 7) && pool.write(&second, 1, 8));
    assert_eq!((pool.read(&first), pool.read(&second)), (Some(vec![7, 0]), Some(vec![0, 8])));
    let token = Token::of(&first.bytes()[..16]).unwrap();
    assert!(pool.reservations.get(&token).is_some(), "peers attach with it");
    pool.revoke(&extent(0, 2, 1));
    assert!(!pool.write(&first, 0, 9) && pool.read(&first).is_none());
    assert!(pool.reservations.get(&token).is_none(), "no peer attaches any more");
    assert_eq!(pool.reservations.left_bytes(), 0, "its bytes are there until they are zeroed");
    assert!(pool.zero(&extent(0, 2, 2)));
    let again = pool.grant(&extent(0, 2, 3)).expect("there is room again");
    assert_eq!((pool.read(&again), pool.read(&second)), (Some(vec![0, 0]), Some(vec![0, 8])));
    assert!(!pool.write(&first, 0, 9), "the former key is not the next one");
    assert_eq!(pool.problem(), None);
}

#[test]
fn an_extent_is_zeroed_when_the_driver_has_dropped_its_bytes() {
    let mut pool = Pool::new(2, 2, 9);
    pool.grant(&extent(0, 2, 1)).unwrap();
    pool.revoke(&extent(0, 2, 1));
    assert_eq!([(); 3].map(|()| pool.zero(&extent(0, 2, 2))), [false, false, true]);
    assert!(pool.is_clean());
    // Revoking an extent that isn't lent changes nothing.
    pool.revoke(&extent(0, 2, 3));
    assert!(pool.is_clean() && pool.zero(&extent(0, 2, 3)));
}

#[test]
fn a_grant_whose_region_is_refused_leaves_nothing() {
    let mut pool = Pool::new(2, 0, 9);
    pool.reservations = Reservations::new(2 * UNIT, 0, 40);
    let taken = roce::Region { domain: 0, key: 41, start: 0, bytes: vec![0; 8], rights: roce::Rights::ALL };
    pool.regions.register(taken).unwrap();
    assert_eq!(pool.grant(&extent(0, 2, 1)), None);
    assert_eq!((pool.reservations.left_bytes(), pool.regions.keys().count()), (2 * UNIT, 1));
    assert!(pool.grant(&extent(0, 2, 2)).is_some());
}
