//! Files that users name: descriptions, programs, entries, captures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Largest text that is read. Some files have no end.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes that are looked at before the rest is read.
const BEGINNING: u64 = 64 << 10;

/// What commands have written to pipes, by device and inode: a pipe can be read only once, and a command may first look which kind
/// of file it has got.
static PIPED: Mutex<BTreeMap<(u64, u64), String>> = Mutex::new(BTreeMap::new());

/// Reads a text from a file, or what a command writes to a pipe. Errors: as of files, `InvalidData` if it is no text, and
/// `FileTooLarge`. [`fault`] words them.
pub fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.file_type().is_fifo() {
        return text_of(&file, MOST_BYTES);
    }
    let mut piped = PIPED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (meta.dev(), meta.ino());
    match piped.get(&key) {
        Some(known) => Ok(known.clone()),
        None => {
            let text = text_of(&file, MOST_BYTES)?;
            piped.insert(key, text.clone());
            Ok(text)
        }
    }
}

/// What is wrong with a text that can't be read; `wanted` is what to give in its place.
pub fn fault(error: &io::Error, wanted: &str) -> String {
    match error.kind() {
        ErrorKind::InvalidData => format!("is no text; give {wanted}"),
        _ => error.to_string(),
    }
}

/// The same of a description, whose errors end with advice.
pub(crate) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "is no text".to_owned(),
        _ => format!("can't be read: {error}"),
    }
}

/// Reads a file of any bytes, or what a command writes to a pipe. Errors: as of files, and `FileTooLarge`.
pub fn read_bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
    bounded(&bytes, most_bytes)?;
    Ok(bytes)
}

fn bounded(bytes: &[u8], most_bytes: u64) -> io::Result<()> {
    match bytes.len() as u64 > most_bytes {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("larger than {most_bytes} bytes"))),
        false => Ok(()),
    }
}

fn text_of(file: &File, most_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(BEGINNING.min(most_bytes + 1)).read_to_end(&mut bytes)?;
    bounded(&bytes, most_bytes)?;
    // Devices and binary files are refused before they fill the memory.
    let is_text = match std::str::from_utf8(&bytes) {
        Ok(_) => !bytes.contains(&0),
        Err(error) => error.error_len().is_none() && !bytes.contains(&0),
    };
    let no_text = || io::Error::new(ErrorKind::InvalidData, "is no text");
    if !is_text {
        return Err(no_text());
    }
    file.take(most_bytes + 1 - bytes.len() as u64).read_to_end(&mut bytes)?;
    bounded(&bytes, most_bytes)?;
    String::from_utf8(bytes).map_err(|_| no_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    fn read_at_most(path: &Path, most_bytes: u64) -> io::Result<String> {
        text_of(&File::open(path)?, most_bytes)
    }

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
        assert_eq!(read_bytes(&path, 1).unwrap(), [0xff]);
        assert_eq!(read_bytes(Path::new("/dev/zero"), 8).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    /// A character may stand across the end of what is looked at first.
    #[test]
    fn bytes_that_are_no_text_are_refused_at_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let long = format!("{}\u{20ac}{}", "x".repeat(BEGINNING as usize - 1), "y".repeat(100));
        std::fs::write(&path, &long).unwrap();
        assert_eq!(read(&path).unwrap(), long);
        for device in ["/dev/zero", "/dev/urandom"] {
            let error = read(Path::new(device)).unwrap_err();
            assert_eq!(fault(&error, "P4 text"), "is no text; give P4 text");
        }
        assert_eq!(fault(&io::Error::other("cold"), "P4 text"), "cold");
    }

    #[test]
    fn a_pipe_is_read_once() {
        let (pipe, mut writer) = io::pipe().unwrap();
        writer.write_all(b"text").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
        for _ in 0..2 {
            assert_eq!(read(Path::new(&path)).unwrap(), "text");
        }
    }
}
