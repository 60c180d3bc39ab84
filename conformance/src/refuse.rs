//! Sample programs that must be rejected.

use crate::{Outcome, Sample, Suite, guarded};
use p4rack_p4::Severity;

/// Percentage of erroneous programs that must be rejected on the reference compiler's line.
const REQUIRED_PERCENT: usize = 80;

impl Suite {
    pub(crate) fn refuse(&self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new("refuse");
        for sample in self.programs("p4_16_errors")? {
            let expected = self.testdata.join("p4_16_errors_outputs").join(format!("{}-stderr", sample.name));
            let expected = std::fs::read_to_string(expected).ok();
            let file = sample.path.file_name().unwrap_or_default().to_string_lossy();
            let expected = expected.as_deref().and_then(|text| first_place(text, &file));
            let errors = match guarded(|| self.errors(&sample)) {
                Ok(errors) => errors,
                Err(why) => {
                    outcome.enter(&sample.name, Err(why));
                    continue;
                }
            };
            let result = match (errors.first(), expected) {
                (None, _) => Err("accepted".to_owned()),
                (Some(_), None) => {
                    outcome.count("refused");
                    outcome.count("refused, but no line to compare with");
                    Err("refused, but no line to compare with".to_owned())
                }
                (Some((line, why)), Some(expected)) => {
                    outcome.count("refused");
                    if errors.iter().any(|(line, _)| *line == expected) {
                        if *line == expected {
                            outcome.count("at the line with the first error told");
                        }
                        Ok(())
                    } else {
                        Err(format!("refused at line {line} rather than {expected}: {why}"))
                    }
                }
            };
            outcome.enter(&sample.name, result);
        }
        outcome.required = (outcome.tried * REQUIRED_PERCENT).div_ceil(100);
        Ok(outcome)
    }

    /// Lines and messages of errors; the line is 0 for errors in included files.
    fn errors(&self, sample: &Sample) -> Vec<(u32, String)> {
        let name = sample.path.to_string_lossy();
        let Err(diagnostics) = p4rack_p4::check(&sample.text, &name, &self.options(&sample.path)) else {
            return Vec::new();
        };
        let errors = diagnostics.items.iter().filter(|d| d.severity == Severity::Error);
        let place = |d: &p4rack_p4::Diagnostic| {
            let at = diagnostics.sources().locate(d.span);
            if at.file == name { at.line } else { 0 }
        };
        errors.map(|d| (place(d), d.message.clone())).collect()
    }
}

/// The line of the first error in a reference compiler's output: `FILE(LINE): … error: …` or
/// `FILE(LINE):syntax error, …`.
fn first_place(text: &str, file: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let (place, message) = line.strip_prefix(file)?.strip_prefix('(')?.split_once("):")?;
        let is_error = message.contains("error") && !message.contains("warning:");
        is_error.then(|| place.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::first_place;

    #[test]
    fn warnings_and_continuations_are_passed_over() {
        let text = "a.p4(9): [--Wwarn=unused] warning: 'p' is unused\ncontrol p()\n        ^\n\
                    a.p4(23): [--Werror=type-error] error: no array\n        c = a[2];\na.p4(3)\n";
        assert_eq!(first_place(text, "a.p4"), Some(23));
        assert_eq!(first_place("a.p4(1):syntax error, unexpected X\n", "a.p4"), Some(1));
        assert_eq!(first_place("[--Werror=overlimit] error: 1 errors\n", "a.p4"), None);
    }
}
