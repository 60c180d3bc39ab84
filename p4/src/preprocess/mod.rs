//! The C preprocessor.

use std::path::PathBuf;

/// What the command line gives the preprocessor.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Searched in order for included files, before the built-in ones.
    pub include_dirs: Vec<PathBuf>,
    /// `-D NAME=VALUE`.
    pub defines: Vec<(String, String)>,
}
