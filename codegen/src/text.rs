//! Texts that users name: descriptions, programs, entries.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Largest text that is read. Files such as `/dev/zero` have no end.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a text from a file, or from what a command writes. Errors: as of files, `InvalidData` if it is no text, and
/// `FileTooLarge`.
pub fn read(path: &Path) -> io::Result<String> {
    read_at_most(path, MOST_BYTES)
}

fn read_at_most(path: &Path, most_bytes: u64) -> io::Result<String> {
    let file = File::open(path)?;
    let mut text = String::new();
    file.take(most_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {most_bytes} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read_at_most(&path, 8).unwrap(), "12345678");
        let endless = read_at_most(Path::new("/dev/zero"), 8).unwrap_err();
        assert_eq!(
            (endless.kind(), endless.to_string().as_str()),
            (io::ErrorKind::FileTooLarge, "larger than 8 bytes")
        );
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
