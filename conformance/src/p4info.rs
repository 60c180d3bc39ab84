//! Compares P4Info with the expected one.

use crate::{Outcome, Sample, Suite, first_error, guarded};
use p4rack_p4rt::p4::config::v1::P4Info;

impl Suite {
    pub(crate) fn p4info(&self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new("p4info");
        let outputs = self.testdata.join("p4_16_samples_outputs");
        for sample in self.programs("p4_16_samples")?.iter().filter(|s| s.includes("v1model.p4")) {
            let expected = outputs.join(format!("{}.p4info.txtpb", sample.name));
            let Ok(expected) = std::fs::read_to_string(&expected) else { continue };
            outcome.enter(&sample.name, self.compare(sample, &expected));
        }
        outcome.required = outcome.tried;
        Ok(outcome)
    }

    fn compare(&self, sample: &Sample, expected: &str) -> Result<(), String> {
        let expected = p4rack_p4rt::text::parse::<P4Info>(expected)
            .map_err(|e| format!("the expected P4Info does not parse: {e}"))?;
        let name = sample.path.to_string_lossy();
        let options = self.options(&sample.path);
        let accepted = guarded(|| p4rack_p4::check(&sample.text, &name, &options))?
            .map_err(|diagnostics| first_error(&diagnostics))?;
        difference(expected, accepted.into_p4info()).map_or(Ok(()), Err)
    }
}

/// The first line that differs. The order of objects of one kind does not matter.
fn difference(expected: P4Info, found: P4Info) -> Option<String> {
    let (expected, found) = (normal(expected), normal(found));
    if expected == found {
        return None;
    }
    let (expected, found) = (p4rack_p4rt::text::print(&expected), p4rack_p4rt::text::print(&found));
    let (mut left, mut right) = (expected.lines(), found.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Some("the messages differ, though their texts do not".to_owned()),
            (l, r) if l == r => {}
            (l, r) => {
                let line =
                    |text: Option<&str>| text.map_or("the end".to_owned(), |t| format!("`{}`", t.trim()));
                return Some(format!("expected {}, found {}", line(l), line(r)));
            }
        }
    }
}

/// Sorts the objects of each kind by id.
fn normal(mut info: P4Info) -> P4Info {
    macro_rules! sort {
        ($($field:ident),*) => {$( info.$field.sort_by_key(|o| o.preamble.as_ref().map_or(0, |p| p.id)); )*};
    }
    sort!(tables, actions, action_profiles, counters, direct_counters, meters, direct_meters);
    sort!(controller_packet_metadata, value_sets, registers, digests);
    info
}
