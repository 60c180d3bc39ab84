//! Sample programs that must be accepted.

use crate::{Failure, Outcome, Sample, Suite, first_error, guarded, whole_below};
use p4rack_p4::Accepted;
use p4rack_switch::Pipeline;

/// Folder of programs that are to be accepted.
const SAMPLES: &str = "p4_16_samples";
/// Share of programs of any architecture that must be accepted.
const REQUIRED_PERCENT: usize = 97;

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
        for sample in self.programs(SAMPLES)?.iter().filter(|s| s.includes("v1model.p4")) {
            let reach = self.try_one(sample);
            match &reach {
                Ok(Reach::Runs) => outcome.count("taken by the switch"),
                Ok(Reach::Stays(why)) => {
                    outcome.count("accepted by the compiler, but not by the switch");
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

    /// Type-checks programs of any architecture: those of `p4_16_samples`, or where that is missing, those of the folder
    /// itself and below that instantiate `main`.
    pub(crate) fn types(&self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new("types");
        for sample in &self.any_programs()? {
            let (name, options) = (sample.path.to_string_lossy(), self.options(&sample.path));
            let accepted = match guarded(|| p4rack_p4::check(&sample.text, &name, &options)) {
                Err(fault) => Err(fault),
                Ok(Err(diagnostics)) => Err(first_error(&diagnostics)),
                Ok(Ok(accepted)) => Ok(accepted),
            };
            match &accepted {
                Ok(Accepted::Whole(_)) => outcome.count("elaborated"),
                Ok(Accepted::Types { main: Some(_), .. }) => outcome.count("of another architecture"),
                Ok(Accepted::Types { main: None, .. }) => outcome.count("without a main"),
                Err(_) => {}
            }
            outcome.enter(&sample.name, accepted.map(|_| ()));
        }
        outcome.required = outcome.tried * REQUIRED_PERCENT / 100;
        Ok(outcome)
    }

    /// Programs of `p4_16_samples`, or where that is missing, those of the folder itself and below that instantiate
    /// `main`.
    pub fn any_programs(&self) -> Result<Vec<Sample>, String> {
        if self.testdata.join(SAMPLES).is_dir() {
            return self.programs(SAMPLES);
        }
        whole_below(&self.testdata)
    }

    fn try_one(&self, sample: &Sample) -> Result<Reach, String> {
        let name = sample.path.to_string_lossy();
        let options = self.options(&sample.path);
        match guarded(|| p4rack_p4::check(&sample.text, &name, &options))? {
            Err(diagnostics) => Err(first_error(&diagnostics)),
            Ok(Accepted::Types { .. }) => Ok(Reach::NothingToRun),
            Ok(Accepted::Whole(compiled)) => match guarded(|| Pipeline::compile(&compiled.program))? {
                Ok(_) => Ok(Reach::Runs),
                Err(why) => Ok(Reach::Stays(why.to_string())),
            },
        }
    }
}
