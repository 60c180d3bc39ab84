//! Installs a program again after each save.

use super::job::{Done, Job};
use super::lost::Lost;
use super::report;
use crate::cmd::connect;
use crate::cmd::p4::source::tell;
use crate::cmd::saved::Files;
use crate::output::Events;
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::install::How;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Delay before a switch that did not answer, or has another primary, is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Installs now and after each save, until SIGINT or SIGTERM.
pub async fn until_the_end(job: Job, events: Events) -> ExitCode {
    let mut files = Files::of(job.files());
    connect::until_signalled(async {
        let mut state = State::default();
        attempt(&job, &mut state, &mut files, None, events).await;
        on(&job, state, files, events).await;
    })
    .await
}

/// What has become of earlier installations.
#[derive(Default)]
struct State {
    /// What the switch has.
    last: Option<Desired>,
    /// What it lacks since a connection was lost.
    lost: Lost,
}

/// Installs after each save, forever. `last` is what the switch has.
pub async fn follow(job: Job, last: Option<Desired>, files: Files, events: Events) {
    on(&job, State { last, ..State::default() }, files, events).await;
}

async fn on(job: &Job, mut state: State, mut files: Files, events: Events) {
    loop {
        let saved = files.saved().await;
        attempt(job, &mut state, &mut files, Some(saved), events).await;
    }
}

/// Installs what the files say now. A switch that doesn't answer is tried again, until it does or the next save.
async fn attempt(
    job: &Job,
    state: &mut State,
    files: &mut Files,
    mut saved: Option<SystemTime>,
    events: Events,
) {
    let mut said = None;
    loop {
        files.follow(job.files());
        match job.install(state.last.as_ref(), &mut state.lost).await {
            Ok(done) => {
                // What others had written has gone with the program.
                let is_restarted = state.last.is_some() && done.installed.how == How::First;
                installed(job, &done, (saved, is_restarted), events);
                state.last = Some(done.desired);
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

fn installed(job: &Job, done: &Done, (saved, is_restarted): (Option<SystemTime>, bool), events: Events) {
    tell(&done.warnings);
    let since = saved.map(|saved| saved.elapsed().unwrap_or_default().as_secs_f64() * 1e3);
    let mut fields: Map<String, Value> = report::fields(job, done);
    fields.insert("saved_to_installed_ms".into(), json!(since.map(|ms| (ms * 100.0).round() / 100.0)));
    let after = since.map_or(String::new(), |ms| format!("  {ms:.0} ms after the save\n"));
    fields.insert("restarted".into(), json!(is_restarted));
    let restarted = match is_restarted {
        true => "  the switch had no program any more: what others had written is gone\n",
        false => "",
    };
    let text = report::text(job, done) + restarted + &after;
    events.report("installed", fields, text.trim_end());
}
