//! The embedded switch's core, driven by P4Runtime messages.

use super::known::{self, Reason};
use super::{Fate, Frames};
use p4rack_conformance::random::{Case, with_unset_values};
use p4rack_entities::{Candidate, Program, accepted, write};
use p4rack_p4::Compiled;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Update, WriteRequest};
use p4rack_stf::Player;
use p4rack_switch::{Config, Pipeline, PortConfig, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Number of ports; 511 is the drop port.
const PORTS: u16 = 511;

/// Number of runs with different values for variables that the program never sets: it may compare with one
/// of few values.
const UNSET_TRIES: u64 = 64;

/// How the packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Normally.
    Usual,
    /// With random values, from this seed, for variables that the program never sets.
    Unset(u64),
    /// At another time, with larger gaps between packets.
    Later,
    /// With other random numbers.
    OtherSeed,
}

/// A program on this switch.
pub struct Ours {
    compiled: Compiled,
    text: String,
    /// Applies updates one by one.
    trial: Option<(Switch, Arc<Program>)>,
}

impl Ours {
    /// Loads a program. The error says why the switch rejects it.
    pub fn new(compiled: &Compiled, text: &str) -> Result<Ours, String> {
        let mut ours = Ours { compiled: compiled.clone(), text: text.to_owned(), trial: None };
        ours.trial = Some(ours.load(Way::Usual)?);
        Ok(ours)
    }

    fn load(&self, way: Way) -> Result<(Switch, Arc<Program>), String> {
        let candidate = Candidate::new(&self.text, self.compiled.clone())?;
        let pipeline = match way {
            Way::Unset(seed) => {
                let program = with_unset_values(&self.compiled.program, seed);
                Some(Pipeline::compile(&program).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        // Like BMv2, which counts in microseconds.
        let mut switch = Switch::new(Config {
            ports: (0..PORTS).map(|port| PortConfig::new(port, 0)).collect(),
            cpu_port: None,
            time_unit_ns: 1000,
            max_frame_bytes: 16 * 1024,
            buffer_bytes: 16 << 20,
            samples: 0,
            seed: if way == Way::OtherSeed { 2 } else { 1 },
            ..Config::default()
        });
        let program = candidate.load(pipeline, &mut switch);
        Ok((switch, program))
    }

    /// Applies an update after the earlier ones. The error says why it is rejected.
    pub fn take(&mut self, update: &Update) -> Result<(), String> {
        let Some((switch, program)) = &mut self.trial else { return Err("the program is not loaded".into()) };
        let request = WriteRequest { updates: vec![update.clone()], ..WriteRequest::default() };
        accepted(write(program, &request, switch, Nanos::ZERO))
    }

    /// Discards all updates except these.
    pub fn keep(&mut self, updates: &[Update]) -> Result<(), String> {
        self.trial = Some(self.load(Way::Usual)?);
        updates.iter().try_for_each(|update| self.take(update))
    }

    /// Returns the fate of each packet.
    pub fn play(&self, case: &Case, way: Way) -> Result<Vec<Fate>, String> {
        let (mut switch, program) = self.load(way)?;
        let request = WriteRequest { updates: case.updates.clone(), ..WriteRequest::default() };
        accepted(write(&program, &request, &mut switch, Nanos::ZERO))?;
        let (start, gap) = match way {
            Way::Later => (Nanos::from_secs(77), Nanos(7_654_321)),
            _ => (Nanos::from_secs(1), Nanos::from_millis(1)),
        };
        let mut player = Player::new(switch, start);
        let mut fates = Vec::new();
        let mut before = player.switch.stats(player.now()).drops;
        for packet in &case.packets {
            player.skip(gap);
            let fate =
                player.send(packet.port, &packet.frame, player.now()).map_err(|error| error.to_string())?;
            let mut frames: Frames =
                fate.sent.into_iter().filter_map(|sent| Some((sent.port?, sent.frame))).collect();
            frames.sort();
            let after = player.switch.stats(player.now()).drops;
            let more = after.iter().filter(|drop| !before.contains(drop));
            let drops = more.map(|(why, _)| why.name()).collect();
            before = after;
            fates.push(Fate { frames, drops });
        }
        Ok(fates)
    }

    /// Why the packet's fate is undefined: the undefined value that it depends on, if any.
    pub fn undefined(&self, case: &Case, at: usize, usual: &[Fate]) -> Option<Reason> {
        let ways = [(Way::OtherSeed, known::RANDOM), (Way::Later, known::TIME)];
        let unset = (1..=UNSET_TRIES).map(|seed| (Way::Unset(seed), known::UNSET));
        ways.into_iter().chain(unset).find_map(|(way, reason)| {
            let other = self.play(case, way).ok()?;
            // State left by an earlier packet counts too.
            (other[..=at] != usual[..=at]).then_some(reason)
        })
    }
}

/// Whether an update concerns an object of the program rather than a group or session.
pub fn is_entry(update: &Update) -> bool {
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    !matches!(entity, Some(EntityKind::PacketReplicationEngineEntry(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4::Options;
    use std::path::Path;

    fn compiled(text: &str) -> Compiled {
        p4rack_p4::compile(text, "t.p4", &Options::default()).unwrap_or_else(|_| panic!("refused"))
    }

    #[test]
    fn what_is_made_from_p4info_is_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stf");
        let (mut programs, mut entries) = (0, 0);
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "p4") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let compiled = compiled(&text);
            let ours = Ours::new(&compiled, &text).unwrap();
            for seed in 0..3 {
                let case = Case::new(&compiled.program, &compiled.p4info, seed, 3);
                let fates =
                    ours.play(&case, Way::Usual).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
                assert_eq!(fates.len(), 3);
                entries += case.updates.iter().filter(|update| is_entry(update)).count();
            }
            programs += 1;
        }
        assert!(programs > 40 && entries > 100, "{programs} programs, {entries} entries");
    }

    #[test]
    fn a_fate_is_undefined_only_where_something_unset_is_read() {
        let program = |read: &str| {
            format!(
                "#include <core.p4>\n#include <v1model.p4>\nheader h_t {{ bit<8> a; }} struct hdr_t {{ h_t h; h_t other; }}
                struct meta_t {{ bit<8> m; }}
                parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
                    state start {{ pkt.extract(hdr.h); transition accept; }}
                }}
                control V(inout hdr_t hdr, inout meta_t meta) {{ apply {{ }} }}
                control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
                    apply {{ hdr.h.a = {read}; sm.egress_spec = 1; }}
                }}
                control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
                control C(inout hdr_t hdr, inout meta_t meta) {{ apply {{ }} }}
                control D(packet_out pkt, in hdr_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
                V1Switch(P(), V(), I(), E(), C(), D()) main;"
            )
        };
        let reason = |read: &str| {
            let text = program(read);
            let compiled = compiled(&text);
            let ours = Ours::new(&compiled, &text).unwrap();
            let case = Case::new(&compiled.program, &compiled.p4info, 1, 4);
            let usual = ours.play(&case, Way::Usual).unwrap();
            ours.undefined(&case, 3, &usual)
        };
        assert_eq!(reason("hdr.h.a + 1"), None);
        assert_eq!(reason("meta.m"), None);
        assert_eq!(reason("hdr.other.a"), Some(known::UNSET));
        assert_eq!(reason("(bit<8>)sm.ingress_global_timestamp"), Some(known::TIME));
    }
}
