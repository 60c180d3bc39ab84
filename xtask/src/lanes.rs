//! Steps beside each other.
//!
//! ```text
//!  lane: step ─ step ─ step ─┐
//!  lane: step ─ step ────────┴─▶ news: how each step has ended, and what it wrote ─▶ report
//! ```

use std::io::{self, BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A command under way. A thread takes its output from the start, since one whose pipe is full would block.
pub struct Started {
    name: String,
    lines: Receiver<Vec<u8>>,
    end: JoinHandle<End>,
}

/// How a command ended, and after how long.
pub struct End {
    /// Its status. Errors: it did not start, or its output can't be read.
    pub status: io::Result<ExitStatus>,
    /// Time from start to end.
    pub took: Duration,
}

/// A command that has ended.
pub struct Ended {
    /// Name of the step.
    pub name: String,
    /// Lines of both streams.
    pub lines: Vec<Vec<u8>>,
    /// How it ended.
    pub end: End,
}

impl Started {
    /// Starts it.
    pub fn new(name: &str, command: &mut Command) -> Started {
        let start = Instant::now();
        let piped = io::pipe().and_then(|(output, input)| {
            let child = command.stdout(input.try_clone()?).stderr(input).spawn();
            // Drop the command's own ends of the pipe, or it never ends.
            command.stdout(Stdio::null()).stderr(Stdio::null());
            Ok((child?, output))
        });
        let missing = format!("{command:?} did not start");
        let (sender, lines) = mpsc::channel();
        let end = thread::spawn(move || {
            let ended = piped.map_err(|error| io::Error::other(format!("{missing}: {error}")));
            let status = ended.and_then(|(mut child, output)| {
                for line in BufReader::new(output).split(b'\n') {
                    // A dropped receiver gets no more lines.
                    let _ = sender.send(line?);
                }
                child.wait()
            });
            End { status, took: start.elapsed() }
        });
        Started { name: name.to_owned(), lines, end }
    }

    /// Waits until it has ended.
    pub fn wait(self) -> Ended {
        let lost = || End {
            status: Err(io::Error::other("the thread that read its output panicked")),
            took: Duration::ZERO,
        };
        let end = self.end.join().unwrap_or_else(|_| lost());
        Ended { name: self.name, lines: self.lines.iter().collect(), end }
    }
}

/// Reports of lanes.
pub enum News {
    /// A step has ended.
    Ended(Ended),
    /// A step is left out: its name, and the missing requirement.
    Skipped(String, String),
    /// A step has ended with 0, and yet failed: its name, and why.
    Failed(String, String),
    /// A lane has panicked: its other steps are missing.
    Panicked,
}

/// Steps one after the other.
pub struct Lane(Sender<News>);

impl Lane {
    /// Runs a step. Returns whether it has ended with 0.
    pub fn run(&self, name: &str, command: &mut Command) -> bool {
        println!("     begins {name}");
        self.finish(Started::new(name, command))
    }

    /// Waits for a step that runs already. Returns whether it has ended with 0.
    pub fn finish(&self, started: Started) -> bool {
        self.report(started.wait())
    }

    /// Reports a step that has ended. Returns whether it has with 0.
    pub fn report(&self, ended: Ended) -> bool {
        let is_well = ended.end.status.as_ref().is_ok_and(ExitStatus::success);
        self.tell(News::Ended(ended));
        is_well
    }

    /// Leaves out a step whose requirements this machine lacks.
    pub fn skip(&self, name: &str, why: &str) {
        self.tell(News::Skipped(name.to_owned(), why.to_owned()));
    }

    /// Reports that a step failed although it has ended with 0.
    pub fn fail(&self, name: &str, why: &str) {
        self.tell(News::Failed(name.to_owned(), why.to_owned()));
    }

    fn tell(&self, news: News) {
        // The report listens until all lanes have ended.
        let _ = self.0.send(news);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell(News::Panicked);
        }
    }
}

/// Lanes under way.
pub struct Lanes {
    sender: Sender<News>,
    news: Receiver<News>,
}

impl Lanes {
    /// None yet.
    pub fn new() -> Lanes {
        let (sender, news) = mpsc::channel();
        Lanes { sender, news }
    }

    /// Starts a lane.
    pub fn start<T: Send + 'static>(&self, steps: impl FnOnce(&Lane) -> T + Send + 'static) -> JoinHandle<T> {
        let lane = Lane(self.sender.clone());
        thread::spawn(move || steps(&lane))
    }

    /// Reports of all lanes, until the last one has ended.
    pub fn news(self) -> Receiver<News> {
        self.news
    }
}

/// The same command, with the processors' time that others leave.
pub fn patient(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_run_beside_each_other_and_each_in_order() {
        let lanes = Lanes::new();
        let (sender, receiver) = mpsc::channel::<()>();
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        lanes.start(|_| panic!("a bug"));
        lanes.start(move |lane| {
            // Ends only when the other lane does its part.
            let _ = receiver.recv();
            lane.run("first", &mut sh("echo one; exit 3"))
        });
        let second = lanes.start(move |lane| {
            let _ = sender.send(());
            lane.skip("left out", "needs a network");
            lane.fail("idle", "did nothing");
            lane.run("second", &mut patient(sh("echo $A; exit $(nice)").env("A", "two")))
        });
        let mut said = Vec::new();
        for news in lanes.news() {
            said.push(match news {
                News::Skipped(name, why) | News::Failed(name, why) => format!("{name}: {why}"),
                News::Panicked => "panicked".to_owned(),
                News::Ended(Ended { name, lines, end }) => {
                    let lines: Vec<_> =
                        lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
                    format!("{name}: {} {:?}", lines.join(" "), end.status.unwrap().code())
                }
            });
        }
        said.sort();
        assert_eq!(
            said,
            [
                "first: one Some(3)",
                "idle: did nothing",
                "left out: needs a network",
                "panicked",
                "second: two Some(19)"
            ]
        );
        assert!(!second.join().unwrap());
        let lane = Lanes::new();
        assert!(lane.start(|lane| lane.run("well", &mut Command::new("true"))).join().unwrap());
    }
}
