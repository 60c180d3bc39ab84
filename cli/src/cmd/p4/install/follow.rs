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

/// What to install after saves on a switch that this process runs.
pub struct Watched {
    job: Job,
    /// The files as they are before the switch reads them: a save in between counts.
    files: Files,
    /// What the switch gets by them.
    last: Option<Desired>,
}

impl Watched {
    /// Reads the files.
    pub fn of(job: Job) -> Watched {
        let files = Files::of(job.files());
        // The switch itself says what is wrong with them.
        let last = job.desired().ok();
        Watched { job, files, last }
    }

    /// Installs after each save, as a controller of the switch, on a thread of its own.
    pub fn follow(self) {
        let Watched { job, files, last } = self;
        let followed = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let state = State { last, ..State::default() };
            connect::block_on(on(&job, state, files, Events::new(false)));
        });
        if let Err(error) = followed {
            eprintln!("warning: --watch: starting a thread: {error}");
        }
    }
}

/// Installs after each save, forever.
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

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_codegen::rack::Target;
    use p4rack_ctrl::ConnectOptions;
    use p4rack_p4::Options;

    /// The switch reads the files after this: what is saved in between is neither missed nor taken for what it had.
    #[tokio::test]
    async fn a_save_while_the_switch_starts_is_seen_and_compared_with_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let route = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pod/route.p4");
        let program = write("route.p4", &std::fs::read_to_string(route).unwrap());
        let line = |n| format!("routes dst=10.0.{n}.0/24 --action to next_hop=02:00:00:00:00:0{n} port=1\n");
        let entries = write("t.entries", &format!("{}{}", line(1), line(2)));
        let mut watched = Watched::of(Job {
            program,
            options: Options::default(),
            p4info: None,
            entries: Some(entries),
            to: Some(Target::Embedded),
            clear: false,
            target: ConnectOptions::new("127.0.0.1:9559", 1),
            target_words: Vec::new(),
            takes_over: true,
        });
        write("t.entries", &line(1));
        assert_eq!(watched.last.map(|last| last.entities.len()), Some(2));
        tokio::time::timeout(Duration::from_secs(60), watched.files.saved()).await.expect("the save");
    }
}
