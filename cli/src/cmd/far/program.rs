//! The program to run: finds it, and checks that the library can be loaded into it.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Scripts whose interpreters are scripts, at most.
const SCRIPTS_MAX: usize = 4;
/// Bytes of a script's first line, at most: the kernel's limit.
const LINE_MAX: usize = 256;
/// Bytes of the ELF header, and of an entry of its table of segments.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
/// Segments, at most.
const SEGMENTS_MAX: usize = 1_024;
/// Segment that names the dynamic linker.
const INTERPRETER: u32 = 3;
/// Bits of a mode: its owner, its group, or others may execute; runs as the file's owner or group.
const EXECUTABLE: u32 = 0o111;
const SET_ID: u32 = 0o6000;

/// A program that can be started with the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// File that is executed.
    pub file: PathBuf,
    /// Its name for itself.
    pub name: OsString,
    /// Arguments before those of the command line: of a script, the interpreter's.
    pub first: Vec<OsString>,
}

impl Program {
    /// Name of the executed file.
    pub fn title(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Finds a program as a shell does. Errors: it is absent or not executable, or the library can't be loaded with it.
pub fn find(name: &OsStr) -> Result<Program, String> {
    let mut program = Program { file: in_path(name)?, name: name.to_owned(), first: Vec::new() };
    for _ in 0..SCRIPTS_MAX {
        let in_file = |why: String| format!("{}: {why}", program.file.display());
        let file = File::open(&program.file).map_err(|error| in_file(error.to_string()))?;
        let meta = file.metadata().map_err(|error| in_file(error.to_string()))?;
        may_execute(&meta).map_err(in_file)?;
        match kind(&file).map_err(in_file)? {
            Kind::Dynamic => return Ok(program),
            Kind::Script { interpreter, argument } => program = interpreted(program, &interpreter, argument)?,
        }
    }
    Err(format!("{}: more than {SCRIPTS_MAX} scripts interpret each other", name.display()))
}

fn in_path(name: &OsStr) -> Result<PathBuf, String> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_executable =
        |path: &PathBuf| path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & EXECUTABLE != 0);
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let found = files.find(is_executable);
    found.ok_or_else(|| format!("{}: no folder of PATH has such a program", name.display()))
}

fn may_execute(meta: &Metadata) -> Result<(), String> {
    if !meta.is_file() || meta.mode() & EXECUTABLE == 0 {
        return Err("not an executable file".to_owned());
    }
    match meta.mode() & SET_ID {
        0 => Ok(()),
        _ => Err("it is set-uid or set-gid, and the dynamic linker loads no library into such a program: run a copy \
                  without these bits"
            .to_owned()),
    }
}

/// The interpreter of a script in its place.
fn interpreted(script: Program, interpreter: &Path, argument: Option<OsString>) -> Result<Program, String> {
    let path = script.file.into_os_string();
    let (mut file, mut before) = (interpreter.to_owned(), Vec::from_iter(argument));
    if file.file_name().is_some_and(|name| name == "env") {
        // `env NAME` executes another program, which would be without the library.
        file = match before.pop() {
            Some(name) if is_plain(&name) => in_path(&name)?,
            _ => {
                return Err(format!(
                    "{}: a script whose first line gives options to env: start its interpreter with the script as argument",
                    path.display()
                ));
            }
        };
    }
    let name = file.clone().into_os_string();
    let first = before.into_iter().chain([path]).chain(script.first).collect();
    Ok(Program { file, name, first })
}

/// Whether a word is a program's name to `env`: neither an option nor a variable, nor several words.
fn is_plain(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.starts_with(b"-") && !name.iter().any(|byte| b"= ".contains(byte))
}

/// Kind of a file, as the kernel sees it.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A program for this machine that a dynamic linker loads.
    Dynamic,
    /// Text for an interpreter.
    Script { interpreter: PathBuf, argument: Option<OsString> },
}

fn kind(file: &File) -> Result<Kind, String> {
    let mut start = Vec::new();
    file.take(LINE_MAX as u64).read_to_end(&mut start).map_err(|error| error.to_string())?;
    if let Some(line) = start.strip_prefix(b"#!") {
        return script(line);
    }
    let header = start.first_chunk::<HEADER>().filter(|header| header.starts_with(b"\x7fELF"));
    let header = header.ok_or("neither an ELF program nor a script that begins with #!")?;
    elf(header, |into, at| file.read_exact_at(into, at)).map(|()| Kind::Dynamic)
}

/// The start of a script, without `#!`, as far as the kernel reads it.
fn script(start: &[u8]) -> Result<Kind, String> {
    let line = match start.iter().position(|byte| *byte == b'\n') {
        Some(end) => &start[..end],
        None if start.len() + 2 < LINE_MAX => start,
        None => {
            return Err(format!(
                "a script whose first line is longer than the kernel's limit, {LINE_MAX} bytes"
            ));
        }
    };
    let line = line.trim_ascii();
    let (interpreter, argument) = match line.iter().position(|byte| b" \t".contains(byte)) {
        Some(end) => (&line[..end], line[end..].trim_ascii()),
        None => (line, &line[line.len()..]),
    };
    if interpreter.is_empty() {
        return Err("a script whose first line names no interpreter".to_owned());
    }
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let argument = (!argument.is_empty()).then(|| text(argument));
    Ok(Kind::Script { interpreter: text(interpreter).into(), argument })
}

/// Checks that an ELF file is for this machine, and that a dynamic linker which knows `LD_PRELOAD` loads it.
fn elf(header: &[u8; HEADER], read: impl Fn(&mut [u8], u64) -> io::Result<()>) -> Result<(), String> {
    let number = |at: usize, bytes: usize| -> u64 {
        header[at..][..bytes].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    if number(4, 1) != 2 {
        return Err("a program of 32 bits; expected one of 64".to_owned());
    }
    let own = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if number(5, 1) != 1 || number(18, 2) != own {
        return Err(format!("a program for another processor; expected one for {}", std::env::consts::ARCH));
    }
    if !matches!(number(16, 2), 2 | 3) {
        return Err("an ELF file that is no program".to_owned());
    }
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    if size != SEGMENT as u64 || count > SEGMENTS_MAX as u64 {
        return Err("an ELF file whose table of segments is wrong".to_owned());
    }
    for nth in 0..count {
        let mut segment = [0; SEGMENT];
        let place = table.saturating_add(nth * size);
        read(&mut segment, place).map_err(|error| format!("its table of segments: {error}"))?;
        let word = |at: usize| -> u64 {
            segment[at..][..8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        if word(0) as u32 != INTERPRETER {
            continue;
        }
        let mut linker = vec![0; word(32).min(LINE_MAX as u64) as usize];
        read(&mut linker, word(8)).map_err(|error| format!("the name of its dynamic linker: {error}"))?;
        let linker = String::from_utf8_lossy(&linker).trim_end_matches('\0').to_owned();
        return match linker.contains("/ld-linux") {
            true => Ok(()),
            false => Err(format!(
                "its dynamic linker is {linker}; expected the GNU C library's, which the library is for"
            )),
        };
    }
    Err("statically linked: no library can be loaded with it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(change: impl Fn(&mut [u8; HEADER])) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[16] = 3;
        header[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        (header[32], header[54], header[56]) = (64, SEGMENT as u8, 1);
        change(&mut header);
        header
    }

    fn segment(kind: u8, linker: &[u8]) -> Vec<u8> {
        let mut file = vec![0; HEADER + SEGMENT];
        (file[HEADER], file[HEADER + 8], file[HEADER + 32]) =
            (kind, (HEADER + SEGMENT) as u8, linker.len() as u8);
        file.extend(linker);
        file
    }

    fn judged(header: &[u8; HEADER], file: &[u8]) -> Result<(), String> {
        elf(header, |into, at| {
            let from = usize::try_from(at).ok().and_then(|at| file.get(at..)?.get(..into.len()));
            from.map(|from| into.copy_from_slice(from)).ok_or(io::ErrorKind::UnexpectedEof.into())
        })
    }

    #[test]
    fn programs_that_no_library_can_enter_are_refused() {
        let linked = segment(3, b"/lib64/ld-linux-x86-64.so.2\0");
        assert_eq!(judged(&header(|_| {}), &linked), Ok(()));
        let refusal = |header, file: &[u8]| judged(&header, file).unwrap_err();
        assert!(refusal(header(|header| header[4] = 1), &linked).contains("32 bits"));
        assert!(refusal(header(|header| header[18] = 40), &linked).contains("another processor"));
        assert!(refusal(header(|header| header[16] = 1), &linked).contains("no program"));
        assert!(refusal(header(|header| header[54] = 32), &linked).contains("table of segments is wrong"));
        assert!(refusal(header(|_| {}), &segment(1, b"")).contains("statically linked"));
        assert!(refusal(header(|_| {}), &segment(3, b"/lib/ld-musl-x86_64.so.1\0")).contains("ld-musl"));
        assert!(refusal(header(|header| header[39] = 0x7f), &linked).contains("its table of segments: "));
        assert!(refusal(header(|_| {}), &linked[..HEADER + 8]).contains("its table of segments: "));
        assert!(refusal(header(|_| {}), &linked[..HEADER + SEGMENT]).contains("its dynamic linker: "));
    }

    #[test]
    fn a_scripts_interpreter_runs_in_its_place() {
        let of = |line: &str| script(line.as_bytes());
        let (interpreter, argument) = (PathBuf::from("/bin/sh"), Some("-e x".into()));
        assert_eq!(
            of(" /bin/sh  -e x \nmore").unwrap(),
            Kind::Script { interpreter: interpreter.clone(), argument }
        );
        assert_eq!(of("/bin/sh").unwrap(), Kind::Script { interpreter: interpreter.clone(), argument: None });
        assert!(of(" \n").is_err() && of("\u{0}").is_ok());
        let long = format!("/bin/sh {}", "x".repeat(LINE_MAX));
        assert!(of(&long[..LINE_MAX - 2]).unwrap_err().contains("longer than the kernel's limit, 256 bytes"));
        assert!(of(&long[..LINE_MAX - 3]).is_ok(), "a file that ends there");
        let program = || Program { file: "a".into(), name: "a".into(), first: Vec::new() };
        let found = interpreted(program(), Path::new("/usr/bin/env"), Some("sh".into())).unwrap();
        assert!(found.file.ends_with("sh") && found.first == ["a"], "{found:?}");
        let refused = interpreted(program(), Path::new("/usr/bin/env"), Some("-S sh -e".into()));
        assert!(refused.unwrap_err().contains("options to env"));
        let found = interpreted(program(), Path::new("/bin/awk"), Some("-f".into())).unwrap();
        assert_eq!(found.first, ["-f", "a"]);
    }
}
