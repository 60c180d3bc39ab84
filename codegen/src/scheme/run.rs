//! Runs of `p4rack up` with a store in remote memory: their ways to it, and their requirements on the rack.

use super::PROTOCOLS;
use crate::rack::{KvServer, Log, Rack, Run, Scheme, Workload};
use p4rack_fabric::remote::{Engine, Way};
use std::str::FromStr;

/// Problem of a way without a workload.
const NO_STORE: &str = "is a way to a store's memory: write a workload of kind \"store\"";
/// Problem of a server without one.
const NO_RECORDS: &str =
    "serves the records of a store: write a workload of kind \"store\", without [workload.log]";

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
    /// Parameters of the workload's log store, if it has one.
    pub fn log(&self) -> Option<&Log> {
        self.workload.as_ref()?.store.as_ref()?.log.as_ref()
    }

    fn has_store(&self) -> bool {
        self.workload.as_ref().is_some_and(|workload| workload.store.is_some())
    }

    /// The runs of a workload that lists none.
    pub(crate) fn own_runs(&self) -> Vec<Run> {
        let Some(log) = self.log() else {
            let mut own = vec![Scheme::L2, self.scheme()];
            own.dedup();
            return own.into_iter().map(Run::from).collect();
        };
        let has_engine = |way: &Way| way.definition().engine != Some(Engine::Host) || log.engine.is_some();
        // Ways for tests run only if requested.
        let ways = Way::ALL.iter().copied().filter(|way| *way != Way::DELAYED);
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
        if run.server.is_some() && (!self.has_store() || self.log().is_some()) {
            return Err(NO_RECORDS.to_owned());
        }
        match (run.way, self.log()) {
            (None, None) => Ok(rack),
            (Some(_), None) if !self.has_store() => Err(NO_STORE.to_owned()),
            (Some(_), None) => ends_may(&rack).map(|()| rack),
            (None, Some(_)) => Err(format!(
                "is no way to the older records of a log store: write one of {}, or remove [workload.log]",
                Way::names()
            )),
            (Some(way), Some(log))
                if way.definition().engine == Some(Engine::Host) && log.engine.is_none() =>
            {
                Err("needs a spare host: add engine, the name of one, to [workload.log]".to_owned())
            }
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
