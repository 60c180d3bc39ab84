//! Runs of `p4rack up` with a store in remote memory: their ways to it, and their requirements on the rack.

use super::PROTOCOLS;
use crate::rack::{Cache, KvServer, Log, Rack, Run, Scheme, StoreParameters, Workload};
use p4rack_fabric::remote::{Engine, Link, Way};
use std::str::FromStr;

/// Problem of a way without a workload.
const NO_STORE: &str = "is a way to a store's memory: write a workload of kind \"store\"";
/// Problem of a server without one.
const NO_RECORDS: &str = "serves the records of a store: write a workload of kind \"store\", without [workload.log] or [workload.cache]";

impl Run {
    /// The run of a store by a way, on a rack that describes no protocol of the way's name; see [`Rack::by`].
    pub fn by(way: Way) -> Run {
        // A test checks that the scheme of each way exists.
        let scheme = way.definition().scheme.parse().unwrap_or(Scheme::L2);
        Run { way: Some(way), ..scheme.into() }
    }

    /// The run of a store with this server, over plain switching.
    pub fn served_by(server: KvServer) -> Run {
        Run { server: Some(server), ..Scheme::L2.into() }
    }
}

impl Scheme {
    /// The way to remote memory that one of its protocols provides, the first of them in [`PROTOCOLS`].
    pub fn way(&self) -> Option<Way> {
        let mut known = PROTOCOLS.iter().flat_map(|protocol| protocol.variants());
        known.find_map(|known| self.variants().find(|own| own == known)?.parse().ok())
    }
}

impl FromStr for Run {
    type Err = String;
    fn from_str(text: &str) -> Result<Run, String> {
        // A name may be a scheme and a way; the workload decides.
        let of_store = || text.parse().map(Run::by).or_else(|_: String| text.parse().map(Run::served_by));
        text.parse::<Scheme>().map(Run::from).or_else(|error| {
            of_store().map_err(|_: String| {
                let (ways, servers) = (Way::names(), KvServer::names());
                format!("{error}; for a store's memory {ways}, as its server {servers}")
            })
        })
    }
}

impl Rack {
    fn store(&self) -> Option<&StoreParameters> {
        self.workload.as_ref()?.store.as_ref()
    }

    /// Parameters of the workload's log store, if it has one.
    pub fn log(&self) -> Option<&Log> {
        self.store()?.log.as_ref()
    }

    /// Parameters of the cached regions with the workload's stores, if it has such.
    pub fn cache(&self) -> Option<&Cache> {
        self.store()?.cache.as_ref()
    }

    /// Name of the spare host for an offload engine, if the workload's store names one.
    pub fn engine(&self) -> Option<&str> {
        let of_log = || self.log()?.engine.as_deref();
        self.cache().and_then(|cache| cache.engine.as_deref()).or_else(of_log)
    }

    fn has_store(&self) -> bool {
        self.store().is_some()
    }

    /// The table of a store whose clients alone use their memory, if it is such.
    fn owned(&self) -> Option<&'static str> {
        let log = self.log().map(|_| "workload.log");
        log.or_else(|| self.cache().map(|_| "workload.cache"))
    }

    /// Whether a way has as many requests under way as the workload's store needs.
    fn is_wide_enough(&self, way: Way) -> bool {
        self.cache().is_none() || !way.definition().one_by_one
    }

    /// The runs of a workload that lists none.
    pub(crate) fn own_runs(&self) -> Vec<Run> {
        if self.owned().is_none() {
            let mut own = vec![Scheme::L2, self.scheme()];
            own.dedup();
            return own.into_iter().map(Run::from).collect();
        }
        let has_engine = |way: &Way| way.definition().engine != Some(Engine::Host) || self.engine().is_some();
        // Ways for tests run only if requested.
        let ways = Way::ALL.iter().copied().filter(|way| *way != Way::DELAYED && self.is_wide_enough(*way));
        let all = ways.filter(has_engine).map(|way| self.by(way));
        all.filter(|run| self.under(run.scheme).is_ok()).collect()
    }

    /// The run of a store by a way: under the protocol of the way's name, if the description has that.
    pub fn by(&self, way: Way) -> Run {
        match self.protocols.iter().any(|protocol| protocol.as_variant(way.name()).is_some()) {
            true => Run { way: Some(way), ..Scheme::one(way.name()).into() },
            false => Run::by(way),
        }
    }

    /// The same run, with the way to a store's remote memory that its scheme provides, if any. A way that needs no protocol
    /// runs without that of its name where the description does not have it.
    pub fn meant(&self, run: Run) -> Run {
        let named = || run.scheme.way().filter(|_| self.has_store());
        let Some(way) = run.way.or_else(named) else { return run };
        let is_alone = [Scheme::one(way.name()), Run::by(way).scheme].contains(&run.scheme);
        if is_alone { self.by(way) } else { Run { way: Some(way), ..run } }
    }

    /// The rack during a run. Errors: why the run is impossible, and the remedy; continues a sentence that starts with the run's
    /// name.
    pub fn during(&self, run: Run) -> Result<Rack, String> {
        let run = self.meant(run);
        let rack = self.under(run.scheme).map_err(|error| error.problem)?;
        if run.server.is_some() && (!self.has_store() || self.owned().is_some()) {
            return Err(NO_RECORDS.to_owned());
        }
        if let Some(way) =
            run.way.filter(|way| rack.switch.tors > 1 && way.definition().link == Link::Adapter)
        {
            return Err(format!(
                "has one link for a host's adapter, and switch.tors says 2: leave {way} out"
            ));
        }
        match (run.way, self.owned()) {
            (None, None) => Ok(rack),
            (Some(_), None) if !self.has_store() => Err(NO_STORE.to_owned()),
            (Some(_), None) => ends_may(&rack).map(|()| rack),
            (None, Some(table)) => Err(format!(
                "is no way to the store's remote memory: write one of {}, or remove [{table}]",
                Way::names()
            )),
            (Some(way), Some(table))
                if way.definition().engine == Some(Engine::Host) && self.engine().is_none() =>
            {
                Err(format!("needs a spare host: add engine, the name of one, to [{table}]"))
            }
            (Some(way), Some(_)) if !self.is_wide_enough(way) => Err(format!(
                "has one request under way, and a cached region has several: write {}, or remove [workload.cache]",
                Way::RDMA
            )),
            (Some(_), Some(_)) => ends_may(&rack).map(|()| rack),
        }
    }
}

/// Whether all protocols let the store's clients use its server's memory.
fn ends_may(rack: &Rack) -> Result<(), String> {
    let refuses = |workload: &Workload| {
        let mut protocols = rack.protocols.iter();
        protocols.find_map(|protocol| protocol.refuses_ends(&workload.receivers, &workload.senders))
    };
    rack.workload.as_ref().and_then(refuses).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_a_scheme_and_a_scheme_with_a_ways_name_is_a_scheme_first() {
        for way in Way::ALL {
            let run = Run::by(*way);
            assert_eq!((run.scheme.name().as_str(), run.way), (way.definition().scheme, Some(*way)));
        }
        for variant in PROTOCOLS.iter().flat_map(|protocol| protocol.variants()) {
            assert_eq!(variant.parse::<Run>().unwrap().way, None, "{variant}");
        }
        assert_eq!("rdma-async".parse::<Run>().unwrap(), Run::by(Way::RDMA));
        for server in KvServer::ALL {
            assert_eq!(server.name().parse::<Run>().unwrap(), Run::served_by(server));
            assert_eq!(Run::served_by(server).name(), server.name());
        }
        assert!("reddis".parse::<Run>().unwrap_err().ends_with("as its server redis, memcached"));
    }
}
