//! Progress of `up` on standard error: a spinner on a terminal, plain lines elsewhere.

use crate::error::LabError;
use crate::process::{Others, pause_until};
use crate::sys;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write as _};
use std::time::Duration;

/// Interval at which a wait looks at processes, and at which a watched one does.
const LOOK_NS: u64 = 100_000_000;
const WATCH_NS: u64 = 250_000_000;

/// Shows progress.
#[derive(Debug)]
pub struct Progress {
    show: Show,
}

#[derive(Debug)]
enum Show {
    Nothing,
    Lines,
    Terminal,
}

impl Progress {
    /// Shows nothing if `quiet`, otherwise what suits standard error.
    pub fn new(quiet: bool) -> Progress {
        let show = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Show::Nothing,
            (false, true) => Show::Terminal,
            (false, false) => Show::Lines,
        };
        Progress { show }
    }

    /// Runs a step. `done` turns its result into the line that remains.
    pub fn step<T>(
        &self,
        doing: &str,
        work: impl FnOnce() -> Result<T, LabError>,
        done: impl FnOnce(&T) -> String,
    ) -> Result<T, LabError> {
        let bar = self.spinner(doing);
        let result = work();
        bar.finish_and_clear();
        if let Ok(value) = &result {
            self.line(&format!("✓ {}", done(value)));
        } else {
            self.line(&format!("✗ {doing}"));
        }
        result
    }

    /// Waits until a time of the monotonic clock, as long as `others` are in order, and shows the time left.
    pub fn wait_until(&self, doing: &str, at_ns: u64, others: Others<'_>) -> Result<(), LabError> {
        let start_ns = sys::monotonic_ns();
        let bar = match self.show {
            Show::Terminal => ProgressBar::new(at_ns.saturating_sub(start_ns) / 1_000_000),
            _ => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("  {msg} {bar:32} {percent:>3} %") {
            bar.set_style(style);
        }
        bar.set_message(doing.to_owned());
        let result = loop {
            let now_ns = sys::monotonic_ns();
            bar.set_position(now_ns.saturating_sub(start_ns) / 1_000_000);
            if now_ns >= at_ns {
                break Ok(());
            }
            if let Err(error) = others().and_then(|()| pause_until(at_ns.min(now_ns + LOOK_NS))) {
                break Err(error);
            }
        };
        bar.finish_and_clear();
        result
    }

    /// Waits until a time of the monotonic clock, and shows on a terminal what `now` says in the meantime. Its error
    /// ends the wait.
    pub fn watch(
        &self,
        at_ns: u64,
        mut now: impl FnMut() -> Result<String, LabError>,
    ) -> Result<(), LabError> {
        let bar = self.spinner(&now()?);
        let result = loop {
            let now_ns = sys::monotonic_ns();
            if now_ns >= at_ns {
                break Ok(());
            }
            match pause_until(at_ns.min(now_ns + WATCH_NS)).and_then(|()| now()) {
                Ok(message) => bar.set_message(message),
                Err(error) => break Err(error),
            }
        };
        bar.finish_and_clear();
        result
    }

    /// Prints a line that remains.
    pub fn line(&self, text: &str) {
        if !matches!(self.show, Show::Nothing) {
            // Whether it is seen or not, the work goes on.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    fn spinner(&self, doing: &str) -> ProgressBar {
        let Show::Terminal = self.show else { return ProgressBar::hidden() };
        let bar = ProgressBar::new_spinner();
        bar.set_message(doing.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}
