//! An experiment: the file's fields, and the network that they name.

use super::KIND;
use super::check::{FLOWS_MAX, Unfit, check, check_hosts, unfit};
use super::network::Network;
use super::spec::TopologySpec;
use crate::experiment::{Check, ExperimentError, parse_toml, without_lines};
use p4rack_codegen::setting::Setting;
use p4rack_codegen::text::read_bytes;
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::hash::{fnv1a, further};
use p4rack_wire::pcap::Reader;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a capture at most, and of its frames.
const CAPTURE_MAX: u64 = 256 << 20;
const FRAME_MAX: usize = 9_216;
/// Bytes of a frame that distinguish it from others: with headers and tag.
const HASHED: usize = 64;

/// Frames of a capture that a host replays: times since the first one, and bytes.
pub type Capture = Arc<Vec<(u64, Vec<u8>)>>;

/// An experiment with a topology.
#[derive(Clone, Debug)]
pub struct TopologyExperiment {
    /// The file's fields.
    pub spec: TopologySpec,
    /// The network that it names, once it has been read.
    pub(super) network: Option<Arc<Network>>,
    /// The capture of each traffic that replays one.
    pub(super) captures: Vec<Option<Capture>>,
    source: Source,
}

/// Origin of an experiment, for mistakes that only show once other files have been read.
#[derive(Clone, Debug)]
struct Source {
    text: Arc<str>,
    file: Arc<str>,
    /// Settings that have changed the text.
    settings: Vec<Setting>,
    /// The text is that of [`TopologyExperiment::of_pings`].
    is_of_pings: bool,
}

impl TopologyExperiment {
    /// Reads and checks an experiment; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<TopologyExperiment, ExperimentError> {
        let spec: TopologySpec = parse_toml(text, file, "docs/sim.md lists the fields")?;
        let mut found = Check { text, file, problems: Vec::new() };
        check(&mut found, &spec);
        if !found.problems.is_empty() {
            return Err(ExperimentError(found.problems));
        }
        let captures = vec![None; spec.traffic.len()];
        let source =
            Source { text: text.into(), file: file.into(), settings: Vec::new(), is_of_pings: false };
        Ok(TopologyExperiment { spec, network: None, captures, source })
    }

    /// The same, whose text these settings have changed.
    pub(crate) fn with_settings(mut self, settings: &[Setting]) -> TopologyExperiment {
        self.source.settings = settings.to_vec();
        self
    }

    /// An experiment that tries a topology: each host sends three requests to each other one. `path` is the topology's, `name`
    /// names the experiment.
    pub fn of_pings(name: &str, path: &str) -> Result<TopologyExperiment, ExperimentError> {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let text = format!(
            "name = {}\nkind = \"{KIND}\"\ntopology = {}\nduration_us = 30000000\ndrain_us = 20000000\n\
             [[traffic]]\nname = \"pings\"\nsend = \"request-response\"\nsize = 56\nanswer_size = 56\nmessages = 3\n\
             timeout_us = 40000000\n",
            quoted(name),
            quoted(path)
        );
        let mut made = TopologyExperiment::parse(&text, path)?;
        made.source.is_of_pings = true;
        Ok(made)
    }

    /// The same with its network. Errors name hosts and switches that the topology does not have, and what can't be simulated.
    pub fn on(mut self, network: Arc<Network>) -> Result<TopologyExperiment, ExperimentError> {
        let Source { text, file, is_of_pings, .. } = &self.source;
        let hosts = network.topology.hosts.len();
        let pairs = hosts * hosts.saturating_sub(1);
        if *is_of_pings && pairs > FLOWS_MAX {
            return Err(ExperimentError(vec![format!(
                "{file}: has {hosts} hosts, which are {pairs} pairs; at most {FLOWS_MAX} are tried without an experiment: write one \
                 with kind = \"topology\" that names senders or receivers (docs/sim.md)"
            )]));
        }
        let unfit = unfit(&network.topology);
        if *is_of_pings && !unfit.is_empty() {
            let place = |unfit: Unfit| unfit.place.unwrap_or_else(|| format!("{file}: {}", unfit.what));
            return Err(ExperimentError(unfit.into_iter().map(place).collect()));
        }
        let mut found = Check { text, file, problems: Vec::new() };
        unfit.iter().for_each(|unfit| found.problem("", 0, "topology", &unfit.what));
        check_hosts(&mut found, &self.spec, &network.topology);
        if !found.problems.is_empty() {
            let problems = ExperimentError(found.problems);
            return Err(self.placed(problems));
        }
        self.network = Some(network);
        Ok(self)
    }

    /// A mistake of one of its keys that shows when other files have been read.
    pub fn mistake(&self, key: &str, message: &str) -> ExperimentError {
        let mut found = Check { text: &self.source.text, file: &self.source.file, problems: Vec::new() };
        found.problem("", 0, key, message);
        self.placed(ExperimentError(found.problems))
    }

    /// Mistakes, without lines if settings have changed the text.
    fn placed(&self, problems: ExperimentError) -> ExperimentError {
        let Source { text, file, settings, .. } = &self.source;
        match settings.is_empty() {
            true => problems,
            false => without_lines(problems, text, file, settings),
        }
    }

    /// The same with the captures that its senders replay; `read` returns that of a file which the experiment names.
    pub fn read_captures(
        mut self,
        read: &mut dyn FnMut(&str) -> Result<Capture, String>,
    ) -> Result<TopologyExperiment, String> {
        for (traffic, capture) in self.spec.traffic.iter().zip(&mut self.captures) {
            *capture = traffic.file.as_deref().map(&mut *read).transpose()?;
        }
        Ok(self)
    }

    /// The network, if it has been read.
    pub fn network(&self) -> Option<&Arc<Network>> {
        self.network.as_ref()
    }

    /// A hash of its traffic, captures included.
    pub(super) fn hash(&self) -> u64 {
        // Numbers and names are JSON.
        let spec = fnv1a(serde_json::to_vec(&self.spec).unwrap_or_default());
        let frames = self.captures.iter().flatten().flat_map(|capture| capture.iter());
        frames.fold(spec, |hash, (_, frame)| further(hash, frame.iter().take(HASHED).copied()))
    }
}

/// Reads a capture. Errors name the file, and the frame that can't be replayed.
pub fn read_capture(path: &Path) -> Result<Capture, String> {
    let frames = frames_of(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Arc::new(frames))
}

/// Frames of a capture, with times since the first one.
fn frames_of(path: &Path) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let bytes = read_bytes(path, CAPTURE_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            format!("has more than {CAPTURE_MAX} bytes, the most of a capture that is replayed: cut it")
        }
        _ => format!("can't be read: {error}"),
    })?;
    let reader = Reader::new(&bytes).map_err(|error| error.to_string())?;
    let (mut frames, mut first) = (Vec::new(), None);
    for (nth, record) in reader.enumerate() {
        let record = record.map_err(|error| format!("frame {}: {error}", nth + 1))?;
        let since = record.time.saturating_sub(*first.get_or_insert(record.time)).0;
        if frames.last().is_some_and(|(before, _)| *before > since) {
            return Err(format!(
                "frame {} is earlier than the one before it; sort the capture by time",
                nth + 1
            ));
        }
        if !(Ethernet::BYTES..=FRAME_MAX).contains(&record.frame.len()) {
            let length = record.frame.len();
            return Err(format!(
                "frame {} has {length} bytes; a frame has {} to {FRAME_MAX}",
                nth + 1,
                Ethernet::BYTES
            ));
        }
        frames.push((since, record.frame.to_vec()));
    }
    match frames.is_empty() {
        true => Err("has no frames".to_owned()),
        false => Ok(frames),
    }
}
