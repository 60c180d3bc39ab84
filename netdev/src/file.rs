//! Statistics as JSON files that others read while they are written anew.

use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes `value` as JSON so that a reader sees the old or the new file, never half of one. The path
/// `-` is one line on standard output.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    if path == Path::new("-") {
        return writeln!(io::stdout(), "{}", serde_json::to_string(value)?);
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    fs::write(&temporary, serde_json::to_string_pretty(value)? + "\n")?;
    fs::rename(&temporary, path)
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
}
