//! What an installation has done, or would do.

use super::job::{Done, Job};
use crate::cmd::p4::source::tell;
use crate::output;
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::install::{Dropped, How, Installed, Preview};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Maximum entries listed individually.
const SHOWN: usize = 50;

/// Prints a completed installation.
pub fn installed(job: &Job, done: &Done, as_json: bool) {
    match as_json {
        true => println!("{:#}", Value::Object(fields(job, done))),
        false => {
            tell(&done.warnings);
            output::write(format_args!("{}", text(job, done)));
        }
    }
}

/// Lines about an installation.
pub fn text(job: &Job, done: &Done) -> String {
    let Installed { how, declined, dropped, unreadable, gap, .. } = &done.installed;
    let mut text = format!("{}: {}\n", job.name(), summary(&done.installed));
    if let Some(why) = declined.as_ref().filter(|_| *how == How::Replaced) {
        let gap_ms = gap.unwrap_or_default().as_secs_f64() * 1e3;
        text += &format!("  not between two packets: {why}; entries were missing for {gap_ms:.1} ms\n");
    }
    if !unreadable.is_empty() {
        text += &format!("  not kept, because the switch can't read them: {}\n", unreadable.join(", "));
    }
    text + &lost(dropped)
}

/// `installed between two packets, 12 entries kept, 1 inserted`
fn summary(installed: &Installed) -> String {
    let [inserted, modified, deleted] = installed.changed;
    let mut parts = vec![
        match installed.how {
            How::Same if installed.changed == [0; 3] => "runs already, nothing to change",
            How::Same => "runs already",
            How::First => "installed",
            How::Reconciled => "installed between two packets",
            How::Replaced => "installed",
        }
        .to_owned(),
    ];
    let counted = [
        (installed.kept, "entries kept"),
        (inserted, "inserted"),
        (modified, "modified"),
        (deleted, "deleted"),
    ];
    parts.extend(
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    if !installed.dropped.is_empty() {
        parts.push(format!("{} dropped", installed.dropped.len()));
    }
    parts.join(", ")
}

fn lost(dropped: &[Dropped]) -> String {
    let line = |dropped: &Dropped| format!("  dropped {}: {}\n", dropped.what, dropped.why);
    let mut text: String = dropped.iter().take(SHOWN).map(line).collect();
    if dropped.len() > SHOWN {
        text += &format!("  and {} more; --json lists all\n", dropped.len() - SHOWN);
    }
    text
}

fn rows(dropped: &[Dropped]) -> Vec<Value> {
    dropped.iter().map(|dropped| json!({ "entry": dropped.what, "why": dropped.why })).collect()
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 100.0
}

/// An installation as JSON.
pub fn fields(job: &Job, done: &Done) -> Map<String, Value> {
    let Installed { how, declined, kept, dropped, changed: [inserted, modified, deleted], unreadable, gap } =
        &done.installed;
    let how = match how {
        How::Same => "same program",
        How::First => "first program",
        How::Reconciled => "between two packets",
        How::Replaced => "replaced",
    };
    let fields = json!({
        "program": job.name(), "installed": how, "declined": declined, "kept": kept, "dropped": rows(dropped),
        "inserted": inserted, "modified": modified, "deleted": deleted, "unreadable": unreadable,
        "compiled_ms": ms(done.compiled_in), "installed_ms": ms(done.installed_in), "gap_ms": gap.map(ms),
        "warnings": done.warnings.items.len(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Prints what would be done. The exit code is 1 if anything would change.
pub fn previewed(job: &Job, (desired, preview): &(Desired, Preview), as_json: bool) -> ExitCode {
    let Preview { is_same, kept, dropped, changes } = preview;
    let described = crate::cmd::deploy::described(&desired.schema, changes);
    let program = if *is_same { "runs already" } else { "would be installed" };
    if as_json {
        let changes: Vec<Value> =
            described.iter().map(|(sign, what)| json!({ "change": sign, "what": what })).collect();
        let report = json!({
            "program": job.name(), "same_program": is_same, "kept": kept, "dropped": rows(dropped), "changes": changes,
        });
        println!("{report:#}");
    } else {
        println!("{}: {program}, {kept} entries stay", job.name());
        print!("{}", lost(dropped));
        for (sign, what) in described.iter().take(SHOWN) {
            println!("  {sign} {what}");
        }
        if described.len() > SHOWN {
            println!("  and {} more", described.len() - SHOWN);
        }
    }
    ExitCode::from(u8::from(!is_same || !dropped.is_empty() || !changes.is_empty()))
}
