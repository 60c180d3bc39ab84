//! Which programs the switches of a `topology.json` run.

use p4rack_codegen::kind::Kind;
use p4rack_codegen::text;
use p4rack_codegen::topology::Exercise;
use std::path::{Path, PathBuf};

/// Options that choose an exercise's programs.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Choice {
    /// With a topology.json: run the exercise's solution; files in its folder solution/ take precedence
    #[arg(long)]
    pub solution: bool,
    /// With a topology.json: program of a switch, or of all, instead of the one that it names; may be repeated
    #[arg(long, value_name = "[SWITCH=]FILE.p4", value_parser = program)]
    pub program: Vec<(Option<String>, PathBuf)>,
}

fn program(text: &str) -> Result<(Option<String>, PathBuf), String> {
    match text.split_once('=') {
        Some(("", _)) | Some((_, "")) => Err(format!("`{text}` is not SWITCH=FILE.p4")),
        Some((switch, file)) => Ok((Some(switch.to_owned()), file.into())),
        None => Ok((None, text.into())),
    }
}

impl Choice {
    /// The choice for a file. Errors: it is no topology.json, and names the program of each switch itself.
    pub fn of(&self, file: &Path) -> Result<Exercise, String> {
        if let Some(option) = self.given()
            && let Some(Kind::Topology | Kind::Rack) =
                Kind::of_file(&text::read(file).unwrap_or_default(), file)
        {
            return Err(format!(
                "{}: {option} is for a topology.json of the P4 tutorials; change what the switch runs in this file instead",
                file.display()
            ));
        }
        Ok(Exercise { solution: self.solution, programs: self.program.clone() })
    }

    /// The first of its options that is given.
    fn given(&self) -> Option<&'static str> {
        match (self.solution, self.program.is_empty()) {
            (true, _) => Some("--solution"),
            (_, false) => Some("--program"),
            _ => None,
        }
    }

    /// The same choice, as arguments of another command.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.solution.then(|| "--solution".to_owned()).into_iter().collect();
        for (switch, file) in &self.program {
            let of = switch.as_ref().map_or(String::new(), |switch| format!("{switch}="));
            words.extend(["--program".to_owned(), format!("{of}{}", file.display())]);
        }
        words
    }
}
