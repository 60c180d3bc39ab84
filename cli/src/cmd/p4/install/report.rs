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
    text_of(job, &done.installed)
}

fn text_of(job: &Job, installed: &Installed) -> String {
    let Installed { how, declined, dropped, unreadable, gap, .. } = installed;
    let mut text = format!("{}: {}\n", job.name(), summary(installed));
    if let Some(why) = declined.as_ref().filter(|_| *how == How::Replaced) {
        let gap = gap.map_or_else(String::new, |gap| format!("; entries were missing for {} ms", ms(gap)));
        text += &format!("  not between two packets: {why}{gap}\n");
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

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_ctrl::ConnectOptions;
    use p4rack_p4::Options;

    #[test]
    fn a_gap_that_was_not_measured_is_not_mentioned() {
        let job = Job {
            program: "t.p4".into(),
            options: Options::default(),
            p4info: None,
            entries: None,
            to: None,
            clear: false,
            target: ConnectOptions::new("127.0.0.1:1", 1),
            target_words: Vec::new(),
            takes_over: false,
        };
        let said = |gap| {
            let installed = Installed {
                how: How::Replaced,
                declined: Some("it is another one".into()),
                kept: 3,
                dropped: Vec::new(),
                changed: [0; 3],
                unreadable: Vec::new(),
                gap,
            };
            text_of(&job, &installed)
        };
        let measured = said(Some(Duration::from_micros(1840)));
        assert!(
            measured.contains("not between two packets: it is another one; entries were missing for 1.84 ms")
        );
        let unknown = said(None);
        assert!(unknown.contains("not between two packets: it is another one\n"), "{unknown}");
    }
}
