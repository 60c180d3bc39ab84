//! Outputs of a process's counters: a file, written at exit and on SIGUSR1, and a page for Prometheus.

use crate::metrics::Page;
use p4rack_netdev::exporter::Exposition;
use p4rack_netdev::file;
use p4rack_wire::Nanos;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why counters can't be reported.
#[derive(Debug, thiserror::Error)]
pub enum OutletError {
    /// The metrics cannot be served.
    #[error("serving metrics at {0}: {1}")]
    Metrics(SocketAddr, io::Error),
    /// The statistics cannot be written.
    #[error("--stats: {file}: {1}", file = .0.display())]
    Stats(PathBuf, io::Error),
}

/// Outputs of a process's counters.
#[derive(Debug)]
pub struct Outlet {
    file: Option<PathBuf>,
    page: Option<Page>,
}

impl Outlet {
    /// Serves the page, if there is an address.
    pub fn open(file: Option<PathBuf>, metrics_addr: Option<SocketAddr>) -> Result<Outlet, OutletError> {
        let serve = |addr| Page::serve(addr).map_err(|error| OutletError::Metrics(addr, error));
        Ok(Outlet { file, page: metrics_addr.map(serve).transpose()? })
    }

    /// When the page is to be rendered again.
    pub fn due(&self) -> Option<Nanos> {
        self.page.as_ref().map(Page::due)
    }

    /// Renders the page if it is due.
    pub fn update(&mut self, now: Nanos, render: impl FnOnce() -> String) {
        if let Some(page) = &mut self.page {
            page.update(now, render);
        }
    }

    /// Writes the file, if there is one.
    pub fn write<T: Serialize>(&self, report: impl FnOnce() -> T) -> Result<(), OutletError> {
        let Some(path) = &self.file else { return Ok(()) };
        file::write_json(path, &report()).map_err(|error| OutletError::Stats(path.clone(), error))
    }
}

/// Counters of a process's parts: for each part its name and its counts by name, zeros too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<(&'static str, Vec<(&'static str, u64)>)>);

impl Counts {
    /// Adds a part.
    #[must_use]
    pub fn of(mut self, part: &'static str, counts: impl IntoIterator<Item = (&'static str, u64)>) -> Counts {
        self.0.push((part, counts.into_iter().collect()));
        self
    }

    /// A page for Prometheus: `p4rack_PART_events_total`.
    pub fn exposition(&self, process: &str) -> String {
        let mut text = Exposition::default();
        for (part, counts) in &self.0 {
            let (process, part) = (process.replace('-', "_"), part.replace('-', "_"));
            let name = format!("p4rack_{process}_{part}_events_total");
            text.family(&name, "Events, dropped frames and refusals too", "counter");
            for (event, count) in counts {
                text.sample(&name, &[("event", event)], *count as f64);
            }
        }
        text.into_string()
    }
}

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_name = |counts: &Vec<(&'static str, u64)>| counts.iter().copied().collect::<BTreeMap<_, _>>();
        serializer.collect_map(self.0.iter().map(|(part, counts)| (part, by_name(counts))))
    }
}

/// In words, without zeros.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (part, counts) in &self.0 {
            let shown = counts.iter().filter(|(_, count)| *count > 0);
            let shown: Vec<String> = shown.map(|(event, count)| format!("{event} {count}")).collect();
            parts.extend((!shown.is_empty()).then(|| format!("{part}: {}", shown.join(", "))));
        }
        f.write_str(&if parts.is_empty() { "nothing counted".to_owned() } else { parts.join("; ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_by_part_and_name() {
        let counts =
            Counts::default().of("adapter", [("frames_in", 3), ("bad_icrc", 0)]).of("port", [("lost_in", 0)]);
        assert_eq!(counts.to_string(), "adapter: frames_in 3");
        assert_eq!(Counts::default().to_string(), "nothing counted");
        let json = serde_json::to_string(&counts).unwrap_or_default();
        assert_eq!(json, r#"{"adapter":{"bad_icrc":0,"frames_in":3},"port":{"lost_in":0}}"#);
        let page = counts.exposition("roce");
        assert!(page.contains("p4rack_roce_adapter_events_total{event=\"bad_icrc\"} 0\n"), "{page}");
    }
}
