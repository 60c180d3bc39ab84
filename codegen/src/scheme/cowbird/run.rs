//! Schemes that `p4rack up` runs with a log store, whose older records are in remote memory: Cowbird and the alternatives.

use super::{Cowbird, Scheme};
use crate::rack::{Log, Rack, Run};
use p4rack_fabric::remote::Way;
use std::str::FromStr;

/// Reason why a run is impossible.
const NO_LOG: &str = "needs a log store: add [workload.log] to a workload of kind \"store\"";

impl Run {
    /// A log store's run.
    pub const fn by(way: Way) -> Run {
        let scheme = if matches!(way, Way::CowbirdP4) { Scheme::COWBIRD } else { Scheme::L2 };
        Run { scheme, way: Some(way) }
    }
}

impl FromStr for Run {
    type Err = String;
    fn from_str(text: &str) -> Result<Run, String> {
        if let Ok(way) = text.parse() {
            return Ok(Run::by(way));
        }
        let scheme = text.parse::<Scheme>();
        scheme.map(Run::from).map_err(|error| format!("{error}; for a log store {}", names_of_ways()))
    }
}

fn names_of_ways() -> String {
    Way::ALL.map(Way::name).join(", ")
}

impl Rack {
    /// Parameters of the workload's log store, if it has one.
    pub fn log(&self) -> Option<&Log> {
        self.workload.as_ref()?.store.as_ref()?.log.as_ref()
    }

    /// The runs of a workload that lists none.
    pub(crate) fn own_runs(&self) -> Vec<Run> {
        let Some(log) = self.log() else {
            let mut own = vec![Scheme::L2, self.scheme()];
            own.dedup();
            return own.into_iter().map(Run::from).collect();
        };
        let has = |way: &Way| match way {
            Way::CowbirdSpot => log.engine.is_some(),
            Way::CowbirdP4 => self.protocol::<Cowbird>().is_some(),
            _ => true,
        };
        Way::ALL.into_iter().filter(has).map(Run::by).collect()
    }

    /// The same rack as it is during a run. Errors: the reason why it can't run, and the remedy; continues a sentence that
    /// starts with the run's name.
    pub fn during(&self, run: Run) -> Result<Rack, String> {
        let rack = self.under(run.scheme).map_err(|error| error.problem)?;
        match (run.way, self.log()) {
            (None, None) => Ok(rack),
            (Some(_), None) => Err(NO_LOG.to_owned()),
            (None, Some(_)) => Err(format!(
                "is no way to the older records of a log store: write one of {}, or remove [workload.log]",
                names_of_ways()
            )),
            (Some(Way::CowbirdSpot), Some(Log { engine: None, .. })) => {
                Err("needs a spare host: add engine, the name of one, to [workload.log]".to_owned())
            }
            (Some(_), Some(_)) => ends_may(&rack).map(|()| rack),
        }
    }
}

/// Whether Cowbird's engine in the switch may serve the store's client and use its server's memory, if there is one.
fn ends_may(rack: &Rack) -> Result<(), String> {
    let Some((cowbird, workload)) = rack.protocol::<Cowbird>().zip(rack.workload.as_ref()) else {
        return Ok(());
    };
    let ends =
        [("pool", &workload.receivers, &cowbird.pool), ("compute", &workload.senders, &cowbird.compute)];
    for (field, hosts, may) in ends {
        if let Some(host) = hosts.iter().find(|host| !may.contains(host)) {
            return Err(format!("needs {host} among the hosts of cowbird.{field}"));
        }
    }
    Ok(())
}
