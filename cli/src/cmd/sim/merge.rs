//! `p4rack sim merge`: results as one CSV table.

use super::files::{check_folder, results};
use super::kinds;
use crate::output::OutputFile;
use serde_json::Value;
use std::path::PathBuf;

/// Arguments of `p4rack sim merge`.
#[derive(clap::Args, Debug)]
pub struct MergeArgs {
    /// Folder of results
    dir: PathBuf,
    /// CSV file to write [default: DIR/results.csv]
    #[arg(long, value_name = "CSV")]
    csv: Option<PathBuf>,
}

/// Merges all results into one table.
pub fn merge(args: &MergeArgs) -> Result<bool, String> {
    check_folder(&args.dir)?;
    let path = args.csv.clone().unwrap_or_else(|| args.dir.join("results.csv"));
    let output = OutputFile::open("--csv", &path)?;
    let results = results(&args.dir)?;
    let mut keys: Vec<String> = Vec::new();
    for result in &results {
        for key in result["settings"].as_object().into_iter().flat_map(|settings| settings.keys()) {
            if key != "seed" && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
    }
    // Those of all kinds among the results; cells that a kind lacks are empty.
    let kinds = results.iter().map(kinds::of_result).collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in kinds.iter().flat_map(|kind| kind.merged) {
        if !columns.contains(name) {
            columns.push(name);
        }
    }
    let value = |nth: usize, name: &str| {
        let column = kinds[nth].merged.iter().find(|(column, _)| *column == name);
        text(column.and_then(|(_, path)| results[nth].pointer(path)))
    };
    // A setting that the results repeat under its name is no second column.
    let setting = |nth: usize, key: &str| text(results[nth]["settings"].get(key));
    keys.retain(|key| {
        let repeats = |nth: usize| value(nth, key) == setting(nth, key);
        !columns.contains(&key.as_str()) || !(0..results.len()).all(repeats)
    });
    let name = |key: &String| match columns.contains(&key.as_str()) {
        true => cell(&format!("settings.{key}")),
        false => cell(key),
    };
    let names = columns.iter().map(|name| (*name).to_owned()).chain(keys.iter().map(name));
    let mut csv = names.collect::<Vec<_>>().join(",") + "\n";
    for nth in 0..results.len() {
        let row = columns.iter().map(|name| value(nth, name)).chain(keys.iter().map(|key| setting(nth, key)));
        csv += &row.collect::<Vec<_>>().join(",");
        csv.push('\n');
    }
    output.write(csv.as_bytes())?;
    println!("{}: {} results", path.display(), results.len());
    Ok(true)
}

/// A value as a cell.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => cell(text),
        Some(Value::Array(items)) => {
            cell(&items.iter().map(|item| item.as_str().unwrap_or_default()).collect::<Vec<_>>().join("; "))
        }
        Some(other) if !other.is_null() => other.to_string(),
        _ => String::new(),
    }
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
