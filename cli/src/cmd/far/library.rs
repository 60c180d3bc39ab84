//! Where the library is that is loaded with programs.

use p4rack_memory::far::LIBRARY;
use std::path::{Path, PathBuf};

/// Environment variable with the library's path.
const VARIABLE: &str = "P4RACK_FAR_LIBRARY";

/// The library's path: the variable's, or beside this executable, or in the folder of libraries beside its folder.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return match Path::new(&named).canonicalize() {
            Ok(path) => loadable(path),
            Err(error) => Err(format!("{VARIABLE}: {}: {error}", named.display())),
        };
    }
    let own = std::env::current_exe().map_err(|error| format!("this executable's path: {error}"))?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    found.map_or_else(
        || {
            Err(format!(
                "{LIBRARY} is neither in {} nor in ../lib from there: build it by `cargo build --release -p p4rack-far`, or name \
                 it in {VARIABLE}",
                folder.display()
            ))
        },
        loadable,
    )
}

/// The dynamic linker's list of libraries has blanks and colons between them.
fn loadable(path: PathBuf) -> Result<PathBuf, String> {
    let is_plain = path.to_str().is_some_and(|path| !path.contains([' ', ':']));
    match is_plain {
        true => Ok(path),
        false => Err(format!("{}: LD_PRELOAD takes no path with blanks or colons: move it", path.display())),
    }
}
