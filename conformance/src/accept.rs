//! Sample programs that must be accepted.

use crate::{Failure, Outcome, Sample, Suite, first_error, guarded};
use p4rack_p4::Accepted;
use p4rack_switch::Pipeline;

/// How far a program gets.
enum Reach {
    /// The switch runs the program.
    Runs,
    /// The switch rejects the program, with this reason.
    Stays(String),
    /// It is not a program for `V1Switch`, so there is nothing to run.
    NothingToRun,
}

impl Suite {
    pub(crate) fn accept(&self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new("accept");
        for sample in self.programs("p4_16_samples")?.iter().filter(|s| s.includes("v1model.p4")) {
            let reach = self.try_one(sample);
            match &reach {
                Ok(Reach::Runs) => outcome.count("taken by the switch"),
                Ok(Reach::Stays(why)) => {
                    outcome.count("accepted, but not taken by the switch");
                    outcome.notes.push(Failure { file: sample.name.clone(), why: why.clone() });
                }
                Ok(Reach::NothingToRun) => outcome.count("without a V1Switch"),
                Err(_) => {}
            }
            outcome.enter(&sample.name, reach.map(|_| ()));
        }
        outcome.required = outcome.tried;
        Ok(outcome)
    }

    fn try_one(&self, sample: &Sample) -> Result<Reach, String> {
        let name = sample.path.to_string_lossy();
        let options = self.options(&sample.path);
        match guarded(|| p4rack_p4::check(&sample.text, &name, &options))? {
            Err(diagnostics) => Err(first_error(&diagnostics)),
            Ok(Accepted::Types(_)) => Ok(Reach::NothingToRun),
            Ok(Accepted::Whole(compiled)) => match guarded(|| Pipeline::compile(&compiled.program))? {
                Ok(_) => Ok(Reach::Runs),
                Err(why) => Ok(Reach::Stays(why.to_string())),
            },
        }
    }
}
