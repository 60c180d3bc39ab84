//! Files that others read while they are written anew.

use std::fs;
use std::io;
use std::path::Path;

/// Writes a file so that a reader sees the old or the new one, never half of one.
pub fn replace(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    fs::write(&temporary, contents)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_file_takes_the_olds_place_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats.json");
        for text in ["old, and longer", "new"] {
            replace(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(&folder.path().join("no/such/folder"), "").is_err());
    }
}
