//! Installs a program again after each save.

use super::job::{Done, Job};
use super::report;
use crate::cmd::connect;
use crate::cmd::p4::source::tell;
use crate::cmd::saved::Files;
use crate::output::Events;
use p4rack_ctrl::deploy::Desired;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Delay before a switch that did not answer, or has another primary, is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Installs now and after each save, until SIGINT or SIGTERM.
pub async fn until_the_end(job: Job, events: Events) -> ExitCode {
    let mut files = Files::of(job.files());
    connect::until_signalled(async {
        let mut last = None;
        attempt(&job, &mut last, &mut files, None, events).await;
        follow(job, last, files, events).await;
    })
    .await
}

/// Installs after each save, forever. `last` is what the switch has.
pub async fn follow(job: Job, mut last: Option<Desired>, mut files: Files, events: Events) {
    loop {
        let saved = files.saved().await;
        attempt(&job, &mut last, &mut files, Some(saved), events).await;
    }
}

/// Installs what the files say now. A switch that doesn't answer is tried again, until it does or the next save.
async fn attempt(
    job: &Job,
    last: &mut Option<Desired>,
    files: &mut Files,
    mut saved: Option<SystemTime>,
    events: Events,
) {
    let mut said = None;
    loop {
        files.follow(job.files());
        match job.install(last.as_ref()).await {
            Ok(done) => {
                installed(job, &done, saved, events);
                *last = Some(done.desired);
                return;
            }
            Err(error) => {
                let text = error.to_string();
                if said.as_ref() != Some(&text) {
                    events.report(
                        "refused",
                        json!({ "program": job.name(), "error": text }),
                        format_args!("error: {text}"),
                    );
                }
                said = Some(text);
                if !error.may_pass() {
                    return;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            again = files.saved() => saved = Some(again),
        }
    }
}

fn installed(job: &Job, done: &Done, saved: Option<SystemTime>, events: Events) {
    tell(&done.warnings);
    let since = saved.map(|saved| saved.elapsed().unwrap_or_default().as_secs_f64() * 1e3);
    let mut fields: Map<String, Value> = report::fields(job, done);
    fields.insert("saved_to_installed_ms".into(), json!(since.map(|ms| (ms * 100.0).round() / 100.0)));
    let after = since.map_or(String::new(), |ms| format!("  {ms:.0} ms after the save\n"));
    let text = report::text(job, done) + &after;
    events.report("installed", fields, text.trim_end());
}
