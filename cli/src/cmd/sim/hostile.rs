//! Compares each attack of a sweep with the same host behaving.

use super::files::{read_json, result_path};
use crate::cmd::hostile::{times, verdict};
use p4rack_lab::rows::Rows;
use p4rack_sim::{ExperimentKind, NO_ATTACK, OthersOutcome, Sweep, Task};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Setting of a task that names the attack.
const ATTACK: &str = "hostile.0.attack";

/// The available results of a sweep over attacks, beside the same host behaving.
pub struct Compared {
    /// Whether all promises were kept.
    pub kept: bool,
    /// A table for each group of tasks that differ only in the attack.
    pub text: String,
    /// The same.
    pub json: Vec<Value>,
}

/// Compares the available results of a sweep; there is nothing to compare if it does not vary the attack.
pub fn compare<E: ExperimentKind>(sweep: &Sweep<E>, dir: &Path) -> Result<Compared, String> {
    // Results by attack, grouped by the tasks' other settings.
    let mut groups: BTreeMap<String, Vec<(&str, OthersOutcome)>> = BTreeMap::new();
    for task in &sweep.tasks {
        let Some(attack) = task.settings.get(ATTACK) else { continue };
        let path = result_path(dir, &task.id);
        // Not chosen, or left to another machine.
        if !path.exists() {
            continue;
        }
        let result = read_json(&path)?;
        let others = serde_json::from_value(result["outcome"]["others"].clone()).map_err(|error| {
            format!("{}: outcome.others: {error}; delete the file and run it again", path.display())
        })?;
        groups.entry(but_attack(task)).or_default().push((attack, others));
    }
    let has_measure =
        sweep.tasks.iter().any(|task| task.settings.get(ATTACK).is_some_and(|attack| attack == NO_ATTACK));
    let (mut kept, mut text, mut json) = (true, String::new(), Vec::new());
    for (group, results) in &groups {
        let Some((_, honest)) = results.iter().find(|(attack, _)| *attack == NO_ATTACK) else {
            text += &format!(
                "\n{group}: not compared: there is no result of the attack \"{NO_ATTACK}\", the host behaving\n"
            );
            kept &= has_measure;
            continue;
        };
        let mut rows = Rows::new(&["attack", ">others' goodput", ">frames lost", ">p99", "promises"]);
        for (attack, others) in results.iter().filter(|(attack, _)| *attack != NO_ATTACK) {
            let fared = honest.compare(others);
            kept &= fared.broken().is_empty();
            json.push(json!({ "others": group, "attack": attack, "fared": fared, "broken": fared.broken() }));
            rows.push(vec![
                (*attack).to_owned(),
                format!("{:.1} %", 100.0 * fared.goodput_share),
                fared.frames_lost.to_string(),
                times(fared.p99_times),
                verdict(&fared),
            ]);
        }
        text += &format!("\n{group}: beside the same host behaving\n\n{}\n", rows.text());
    }
    Ok(Compared { kept, text, json })
}

fn but_attack<E>(task: &Task<E>) -> String {
    let others = task.settings.iter().filter(|(key, _)| *key != ATTACK);
    others.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}
