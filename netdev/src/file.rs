//! JSON files with statistics that others read while they are being rewritten.

use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `value` as JSON such that a reader sees either the old or the new file, never part of one. The path
/// `-` means one line on standard output.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    if path == Path::new("-") {
        return writeln!(io::stdout(), "{}", serde_json::to_string(value)?);
    }
    let text = serde_json::to_string_pretty(value)? + "\n";
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        // Devices and pipes are written to directly: a file must not replace them.
        return OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes());
    }
    let (temporary, mut file) = create_beside(path)?;
    let written = file.write_all(text.as_bytes());
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        // No file is better than half of one.
        let _ = fs::remove_file(&temporary);
    })
}

/// Creates a new file beside `path`. Its name is unpredictable, and an existing file of that name is neither
/// opened nor followed, because others may be able to write to the folder.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{:016x}.tmp", RandomState::new().hash_one(std::process::id())));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (temporary.into(), file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_takes_the_olds_place_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.json");
        for value in [vec![1, 2, 3], vec![4]] {
            write_json(&path, &value).unwrap();
            assert_eq!(serde_json::from_slice::<Vec<i32>>(&fs::read(&path).unwrap()).unwrap(), value);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_json(&folder.path().join("no/such/folder"), &0).is_err());
    }

    #[test]
    fn a_device_stays_one() {
        write_json(Path::new("/dev/null"), &7).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert!(write_json(Path::new("/dev/full"), &7).is_err());
    }

    #[test]
    fn planted_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("stats.json"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        for name in ["stats.json", "stats.json.tmp"] {
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        write_json(&path, &7).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&path).unwrap(), "7\n");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }
}
