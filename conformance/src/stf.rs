//! Sample programs that come with packets and their expected results.

use crate::{Outcome, Sample, Suite, first_error, guarded};
use p4rack_p4::Accepted;
use p4rack_switch::Pipeline;

/// Programs that need a user-defined extern, written in C++.
const FOREIGN: &[&str] = &["extern-funcs-bmv2.p4"];

impl Suite {
    pub(crate) fn stf(&self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new("stf");
        for sample in self.programs("p4_16_samples")?.iter().filter(|s| s.includes("v1model.p4")) {
            let Ok(text) = std::fs::read_to_string(sample.path.with_extension("stf")) else {
                continue;
            };
            if FOREIGN.contains(&sample.name.as_str()) {
                outcome.count("left out: they need an extern in C++");
                continue;
            }
            outcome.enter(&sample.name, self.stf_one(sample, &text));
        }
        outcome.required = outcome.tried;
        Ok(outcome)
    }

    fn stf_one(&self, sample: &Sample, text: &str) -> Result<(), String> {
        let name = sample.path.to_string_lossy();
        let options = self.options(&sample.path);
        let compiled = match guarded(|| p4rack_p4::check(&sample.text, &name, &options))? {
            Err(diagnostics) => return Err(first_error(&diagnostics)),
            Ok(Accepted::Types { .. }) => return Err("is no program for V1Switch".into()),
            Ok(Accepted::Whole(compiled)) => compiled,
        };
        guarded(|| {
            let pipeline =
                Pipeline::compile(&compiled.program).map_err(|why| format!("the switch: {why}"))?;
            let outcome = p4rack_stf::parse(text)
                .and_then(|statements| p4rack_stf::run(&compiled.program, pipeline, &statements))
                .map_err(|error| error.to_string())?;
            match outcome.failures.first() {
                None => Ok(()),
                Some(first) => {
                    let more = outcome.failures.len() - 1;
                    let tail = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                    let what = first.what.lines().next().unwrap_or_default();
                    Err(format!("line {}: {what}{tail}", first.line))
                }
            }
        })?
    }
}
