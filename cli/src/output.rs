//! Output: standard output, and the files and folders that options name.
//!
//! `print!` and `println!` of this crate end the command when the output can no longer be written: the
//! requested result is lost, so the command has failed. They unwind up to [`finish`], so that files are
//! completed and processes ended on the way, and the reason is printed. `eprint!` and `eprintln!` go on. Files and folders are opened before
//! the work whose results they take.

use serde::Serialize;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::NamedTempFile;

/// Exit code of a process ended by SIGPIPE, as shells report it. The signal itself stays ignored, because it
/// would also be raised when a server hangs up.
const READER_GONE: u8 = 141;

/// Whether log lines are JSON, and with them the lines in which daemons report events.
static JSON_LINES: AtomicBool = AtomicBool::new(false);

/// Says whether log lines are JSON.
pub fn set_json_lines(json: bool) {
    JSON_LINES.store(json, Ordering::Relaxed);
}

/// Whether log lines are JSON. A daemon's other lines on standard output and standard error are then JSON, too.
pub fn json_lines() -> bool {
    JSON_LINES.load(Ordering::Relaxed)
}

/// Why standard output could not be written.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Like `std`'s, but see [`write`].
macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

/// Like `std`'s, but see [`write`].
macro_rules! println {
    () => { $crate::output::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($text)*))) };
}

/// Like `std`'s, but goes on if standard error is closed: its reader may have seen enough.
macro_rules! eprintln {
    () => { $crate::output::write_error(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::write_error(format_args!("{}\n", format_args!($($text)*))) };
}

/// Like `eprintln!`, without an end of line.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::write_error(format_args!($($text)*)) };
}

/// Writes to standard error. What can't be written there can't be reported anywhere else.
pub fn write_error(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Writes to standard output. If that fails, the command ends.
pub fn write(text: fmt::Arguments<'_>) {
    written(io::stdout().write_fmt(text));
}

/// A text of others for the terminal: without characters that instruct it.
pub fn plain(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one }).collect()
}

/// Writes bytes to standard output.
pub fn write_bytes(bytes: &[u8]) {
    written(io::stdout().write_all(bytes));
}

/// Flushes standard output.
pub fn flush() {
    written(io::stdout().flush());
}

fn written(done: io::Result<()>) {
    if let Err(error) = done {
        let _ = LOST.set(error);
        // Not a panic, so neither message nor hook; `main` catches it.
        std::panic::resume_unwind(Box::new("standard output"));
    }
}

/// Prints a line for the process that started a daemon. The daemon continues if that fails, because its output isn't
/// its purpose.
pub fn announce(line: &str) {
    let mut output = io::stdout();
    match writeln!(output, "{line}").and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("warning: standard output: {}", reason(&error));
        }
        _ => {}
    }
}

/// How a long-running command reports events: a line of text for each event, or a JSON object.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    json: bool,
}

impl Events {
    /// JSON if the command's `--json` asks for it, or if log lines are JSON.
    pub fn new(json: bool) -> Events {
        Events { json: json || json_lines() }
    }

    /// Reports an event: as `text`, or as an object with `event` and these fields, which serialise as an object themselves.
    /// See [`announce`].
    pub fn report(self, event: &str, fields: impl Serialize, text: impl fmt::Display) {
        match self.json {
            true => announce(&event_line(event, fields)),
            false => announce(&text.to_string()),
        }
    }
}

/// An event as one line of JSON. `fields` serialises as an object.
pub fn event_line(event: &str, fields: impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'a str,
        #[serde(flatten)]
        fields: T,
    }
    serde_json::to_string(&Line { event, fields }).expect("numbers and names are JSON")
}

/// The exit code of a command that ended with `code`; replaced if its output was lost.
pub fn finish(code: ExitCode) -> ExitCode {
    if let Err(error) = io::stdout().flush() {
        let _ = LOST.set(error);
    }
    match LOST.get() {
        None => code,
        Some(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
        Some(error) => {
            eprintln!("error: standard output: {}", reason(error));
            ExitCode::FAILURE
        }
    }
}

/// Prints help or an error of the command-line parser, and exits.
pub fn usage(error: &clap::Error) -> ExitCode {
    if let Err(why) = error.print() {
        let _ = LOST.set(why);
    }
    finish(ExitCode::from(error.exit_code() as u8))
}

/// The system's error message without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// A file that an option names, opened before the work whose results it takes. Its previous contents stay
/// until the new ones are written; if it did not exist, nothing remains if it is never written.
#[derive(Debug)]
pub struct OutputFile {
    option: &'static str,
    path: PathBuf,
    target: Sink,
}

#[derive(Debug)]
enum Sink {
    /// Replaces the file when complete.
    File(NamedTempFile),
    /// A device or a pipe.
    Stream(File),
}

impl OutputFile {
    /// Opens the file. An error names the option.
    pub fn open(option: &'static str, path: &Path) -> Result<OutputFile, String> {
        let opened = open(path);
        let target = opened.map_err(|error| named(option, path, &error))?;
        Ok(OutputFile { option, path: path.to_owned(), target })
    }

    /// Writes all of it.
    pub fn write(self, bytes: &[u8]) -> Result<(), String> {
        let done = match self.target {
            Sink::Stream(mut stream) => stream.write_all(bytes),
            Sink::File(mut file) => file.write_all(bytes).and_then(|()| {
                let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
                file.persist(path).map(drop).map_err(|error| error.error)
            }),
        };
        done.map_err(|error| named(self.option, &self.path, &error))
    }
}

fn open(path: &Path) -> io::Result<Sink> {
    let there = match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(meta) => Some((OpenOptions::new().write(true).open(path)?, meta)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let permissions = match there {
        Some((stream, meta)) if !meta.is_file() => return Ok(Sink::Stream(stream)),
        Some((_, meta)) => meta.permissions(),
        // Permissions that the user's mask leaves.
        None => Permissions::from_mode(0o666),
    };
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = whole.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().permissions(permissions).tempfile_in(folder).map(Sink::File)
}

/// Creates the folder that an option names and checks that files can be written there. An error names the
/// option.
pub fn folder(option: &'static str, path: &Path) -> Result<(), String> {
    let made = match fs::metadata(path) {
        Ok(meta) if !meta.is_dir() => {
            Err(io::Error::new(ErrorKind::NotADirectory, "exists and is not a folder"))
        }
        _ => fs::create_dir_all(path),
    };
    let done = made.and_then(|()| tempfile::tempfile_in(path).map(drop));
    done.map_err(|error| named(option, path, &error))
}

fn named(option: &str, path: &Path, error: &io::Error) -> String {
    format!("{option}: {}: {}", path.display(), reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_with_its_name_first() {
        let line = event_line("ready", serde_json::json!({ "address": "10.0.0.1:7004", "bytes": 64 }));
        assert_eq!(line, r#"{"event":"ready","address":"10.0.0.1:7004","bytes":64}"#);
    }

    #[test]
    fn a_file_takes_its_place_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        drop(OutputFile::open("--json", &path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays of work that failed");
        OutputFile::open("--json", &path).unwrap().write(b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let second = OutputFile::open("--json", &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one", "the old one stays until the new one is written");
        second.write(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_told_at_once_and_by_its_option() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [Path::new("/nonexistent/x.json"), folder.path(), &file.join("x.json")] {
            let error = OutputFile::open("--json", path).unwrap_err();
            assert!(error.starts_with(&format!("--json: {}: ", path.display())), "{error}");
        }
        let error = self::folder("--out-dir", &file).unwrap_err();
        assert_eq!(error, format!("--out-dir: {}: exists and is not a folder", file.display()));
        assert!(self::folder("--pcap", &file.join("sub")).unwrap_err().starts_with("--pcap: "));
        self::folder("--pcap", &folder.path().join("a/b")).unwrap();
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 0);
    }

    #[test]
    fn devices_are_written_to_and_links_followed() {
        OutputFile::open("-o", Path::new("/dev/null")).unwrap().write(b"x").unwrap();
        let error = OutputFile::open("-o", Path::new("/dev/full")).unwrap().write(b"x").unwrap_err();
        assert_eq!(error, "-o: /dev/full: No space left on device");
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        OutputFile::open("-o", &link).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
