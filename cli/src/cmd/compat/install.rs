//! `p4rack compat install`: small scripts that call this binary under other names.

use p4rack_codegen::shell::quoted;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Names of the commands.
const NAMES: [&str; 5] = ["p4c", "p4c-bm2-ss", "simple_switch", "simple_switch_grpc", "simple_switch_CLI"];
/// Second line of every script: only files with it are replaced or removed.
const MARK: &str = "# Written by `p4rack compat install`, which also replaces and removes this file.";

/// Arguments of `p4rack compat install`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder for the commands; made if it is missing
    dir: PathBuf,
    /// Remove the commands that this command has put there
    #[arg(long)]
    uninstall: bool,
}

/// The file at a command's path.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A script of ours.
    Ours,
    /// Another file.
    Foreign,
}

fn look(path: &Path) -> io::Result<Found> {
    // A link may lead to a file of ours elsewhere, and is not ours itself.
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
        Ok(meta) if !meta.is_file() => return Ok(Found::Foreign),
        Ok(_) => {}
    }
    let bytes = fs::read(path)?;
    let ours = bytes.split(|byte| *byte == b'\n').nth(1) == Some(MARK.as_bytes());
    Ok(if ours { Found::Ours } else { Found::Foreign })
}

/// The script of a command.
fn script(binary: &Path, name: &str) -> String {
    let binary = quoted(&binary.display().to_string());
    format!("#!/bin/sh\n{MARK}\nexec {binary} compat {name} \"$@\"\n")
}

fn in_file(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// Writes a script, whole: another process may start the old one in the meantime.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".new-{}", std::process::id()));
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o755).open(&new).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            fs::rename(&new, path)
        });
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

fn places(dir: &Path) -> Result<Vec<(&'static str, PathBuf, Found)>, String> {
    let place = |name: &'static str| {
        let path = dir.join(name);
        let found = look(&path).map_err(in_file(&path))?;
        Ok((name, path, found))
    };
    NAMES.into_iter().map(place).collect()
}

fn install(dir: &Path) -> Result<String, String> {
    fs::create_dir_all(dir).map_err(in_file(dir))?;
    let dir = dir.canonicalize().map_err(in_file(dir))?;
    let places = places(&dir)?;
    let foreign: Vec<String> = places
        .iter()
        .filter(|(.., found)| *found == Found::Foreign)
        .map(|(_, path, _)| path.display().to_string())
        .collect();
    if !foreign.is_empty() {
        return Err(format!(
            "{}: not written by p4rack, so nothing is replaced; remove it, or give another folder",
            foreign.join(", ")
        ));
    }
    let binary = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let mut said = String::new();
    for (name, path, _) in &places {
        put(path, &script(&binary, name)).map_err(in_file(path))?;
        said += &format!("wrote {}\n", path.display());
    }
    said += &format!("export PATH={}:\"$PATH\"\n", quoted(&dir.display().to_string()));
    Ok(said)
}

fn uninstall(dir: &Path) -> Result<String, String> {
    let mut said = String::new();
    for (_, path, found) in places(dir)? {
        match found {
            Found::Nothing => {}
            Found::Ours => {
                fs::remove_file(&path).map_err(in_file(&path))?;
                said += &format!("removed {}\n", path.display());
            }
            Found::Foreign => said += &format!("kept {}: not written by p4rack\n", path.display()),
        }
    }
    if said.is_empty() {
        said = format!("{}: has none of the commands\n", dir.display());
    }
    Ok(said)
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    let done = if args.uninstall { uninstall(&args.dir) } else { install(&args.dir) };
    match done {
        Ok(said) => {
            print!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => crate::cmd::refused(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn files_of_others_are_neither_replaced_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let foreign = dir.path().join("p4c");
        fs::write(&foreign, "#!/bin/sh\necho mine\n").unwrap();
        let refused = install(dir.path()).unwrap_err();
        assert!(refused.contains("p4c: not written by p4rack"), "{refused}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is installed by half");
        let kept = uninstall(dir.path()).unwrap();
        assert!(kept.starts_with("kept ") && foreign.exists(), "{kept}");
        fs::remove_file(&foreign).unwrap();
        symlink("/bin/true", &foreign).unwrap();
        assert!(install(dir.path()).is_err(), "a link is no script of ours");
    }

    #[test]
    fn what_was_written_is_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("a 'b");
        let said = install(&bin).unwrap();
        assert_eq!(said, install(&bin).unwrap());
        assert_eq!(said.lines().filter(|line| line.starts_with("wrote ")).count(), NAMES.len());
        assert!(said.ends_with("a '\\''b':\"$PATH\"\n"), "{said}");
        let script = bin.join("simple_switch_CLI");
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o111, 0o111);
        assert!(fs::read_to_string(&script).unwrap().ends_with("compat simple_switch_CLI \"$@\"\n"));
        assert_eq!(uninstall(&bin).unwrap().lines().count(), NAMES.len());
        assert_eq!(fs::read_dir(&bin).unwrap().count(), 0);
        assert!(uninstall(&bin).unwrap().contains("has none"));
    }
}
