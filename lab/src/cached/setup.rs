//! Parameters of the stores, from a description: size and place of each client's region.

use super::store::Layout;
use crate::error::LabError;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{Cache, Mix, StoreParameters};
use p4rack_fabric::remote::{Service, Way};
use p4rack_hosts::region::RegionConfig;
use p4rack_hosts::remote::{Shape, UnderWay};
use p4rack_wire::Nanos;

/// Requests of a region under way over rings, and bytes of the longest: the defaults of an engine in a switch.
const UNDER_WAY: UnderWay = UnderWay::of(24, 4_096);

/// Parameters of all clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup<'a> {
    pub store: &'a StoreParameters,
    pub cache: &'a Cache,
    pub layout: Layout,
}

/// Place of a client's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The memory node.
    pub server: &'a str,
    /// Number of its region at that node.
    pub nth: u64,
}

impl<'a> Setup<'a> {
    /// Those of a description. Errors: its workload has no cached regions.
    pub fn of(rack: &'a Rack) -> Result<Setup<'a>, LabError> {
        let store = rack.workload.as_ref().and_then(|workload| workload.store.as_ref());
        let Some((store, cache)) = store.zip(rack.cache()) else {
            let why = format!("{}: its workload has no [workload.cache]", rack.name);
            return Err(LabError::Unfit(why));
        };
        let layout = Layout { records: store.records, value_bytes: store.value_bytes as usize };
        Ok(Setup { store, cache, layout })
    }

    /// The region with a share of local memory.
    pub fn region(&self, percent: u32) -> RegionConfig {
        RegionConfig {
            policy: self.cache.policy.clone(),
            block_bytes: self.cache.block_bytes,
            ..RegionConfig::new(self.layout.region_bytes() * u64::from(percent) / 100)
        }
    }

    /// The regions one after the other.
    pub fn regions(&self) -> impl Iterator<Item = (u32, RegionConfig)> {
        self.cache.local_percent.iter().map(|percent| (*percent, self.region(*percent)))
    }

    /// Mixes with each percentage.
    pub fn mixes(&self) -> &'a [Mix] {
        &self.store.mixes
    }

    /// Time of each mix with each percentage, of all together.
    pub fn each(&self, window: Nanos) -> Nanos {
        let parts = self.store.mixes.len() * self.cache.local_percent.len();
        Nanos(window.0 / parts.max(1) as u64)
    }

    /// Place of the region of the client with this number. An engine of Cowbird serves one pool, so all regions are at
    /// the first node then.
    pub fn place(&self, way: Way, client: usize) -> Place<'a> {
        let memory = &self.cache.pool.memory;
        let nodes = if way.definition().engine.is_some() { 1 } else { memory.len().max(1) };
        let server = memory.get(client % nodes).map_or("", String::as_str);
        Place { server, nth: (client / nodes) as u64 }
    }

    /// Regions at a memory node, if there are this many clients.
    pub fn regions_at(&self, way: Way, server: &str, clients: usize) -> u64 {
        (0..clients).filter(|client| self.place(way, *client).server == server).count() as u64
    }

    /// A client's requirements on its way: for `regions` regions if clients share the memory node's region, else for
    /// one.
    pub fn shape(&self, way: Way, regions: u64) -> Shape {
        let is_shared = matches!(way.definition().service, Service::Node | Service::Bytes);
        let regions = if is_shared { regions } else { 1 };
        Shape { region_bytes: regions * self.layout.region_bytes(), reads: UNDER_WAY, writes: UNDER_WAY }
    }

    /// Extents of a client's region.
    pub fn extents(&self) -> u64 {
        self.layout.region_bytes().div_ceil(self.cache.pool.extent_bytes)
    }

    /// Bytes of each board, so that all together have room for the extents of `clients` clients, and for no more than a board's rest.
    pub fn board_bytes(&self, clients: usize) -> u64 {
        let boards = self.cache.pool.memory.len().max(1) as u64;
        (self.extents() * clients as u64).div_ceil(boards) * self.cache.pool.extent_bytes
    }

    /// Extents of the whole pool.
    pub fn pool_extents(&self, clients: usize) -> u64 {
        let boards = self.cache.pool.memory.len() as u64;
        boards * (self.board_bytes(clients) / self.cache.pool.extent_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_codegen::rack::Pool;

    fn with(memory: &[&str], test: impl FnOnce(Setup<'_>)) {
        let pool = Pool {
            memory: memory.iter().map(|name| (*name).to_owned()).collect(),
            extent_bytes: 2 << 20,
            lease_s: 2,
        };
        let cache = Cache {
            local_percent: vec![50, 10],
            policy: "runs".to_owned(),
            block_bytes: None,
            engine: None,
            pool,
        };
        let store = StoreParameters {
            records: 4_000,
            value_bytes: 1_000,
            mixes: vec![Mix::B, Mix::C],
            depth: 1,
            bulk: None,
            log: None,
            cache: Some(cache.clone()),
        };
        let layout = Layout { records: 4_000, value_bytes: 1_000 };
        test(Setup { store: &store, cache: &cache, layout });
    }

    #[test]
    fn regions_lie_in_turns_at_memory_nodes_and_do_not_overlap() {
        with(&["m1", "m2"], |setup| {
            let at = |way, client| setup.place(way, client);
            assert_eq!(at(Way::RDMA, 0), Place { server: "m1", nth: 0 });
            assert_eq!(at(Way::RDMA, 1), Place { server: "m2", nth: 0 });
            assert_eq!(at(Way::EDM_TIMED_DST, 2), Place { server: "m1", nth: 1 });
            assert_eq!(at(Way::COWBIRD_P4, 1), Place { server: "m1", nth: 1 });
            assert_eq!(setup.regions_at(Way::RDMA, "m1", 3), 2);
            assert_eq!(setup.regions_at(Way::COWBIRD_SPOT, "m2", 3), 0);
            let one = setup.layout.region_bytes();
            assert_eq!(setup.shape(Way::EDM_TIMED_DST, 2).region_bytes, 2 * one);
            assert_eq!(setup.shape(Way::RDMA, 2).region_bytes, one);
        });
    }

    #[test]
    fn the_pool_has_as_many_extents_as_the_clients_need() {
        with(&["m1", "m2"], |setup| {
            // 4,000 slots of 1 KiB and 64 KiB of index.
            assert_eq!((setup.layout.region_bytes(), setup.extents()), (4_000 * 1_024 + 65_536, 2));
            assert_eq!((setup.board_bytes(2), setup.pool_extents(2)), (4 << 20, 4));
            assert_eq!(setup.each(Nanos::from_secs(4)), Nanos::from_secs(1));
            assert_eq!(setup.region(10).local_bytes, setup.layout.region_bytes() / 10);
        });
        // The rest of a board is lent, too.
        with(&["m1", "m2", "m3"], |setup| {
            assert_eq!((setup.board_bytes(2), setup.pool_extents(2)), (4 << 20, 6));
        });
    }
}
