//! Unsupported options of p4c and BMv2: the parser's errors, worded for the program that a command replaces.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Whether a command has an option with this name, such as `--pcap` or `-i`.
pub(super) fn has(command: &Command, option: &str) -> bool {
    let option = option.split('=').next().unwrap_or(option);
    command.get_arguments().any(|known| match option.strip_prefix("--") {
        Some(long) => known.get_long() == Some(long),
        None => option
            .strip_prefix('-')
            .is_some_and(|short| known.get_short().is_some_and(|known| short.starts_with(known))),
    })
}

/// The parser's error with this tip in place of its own. The parser advises to write the option behind `--`, which is wrong here:
/// options of BMv2's target follow it.
pub(super) fn with_tip(mut error: clap::Error, tip: impl FnOnce(&str) -> Option<String>) -> clap::Error {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.clone(),
        _ => return error,
    };
    if error.kind() != clap::error::ErrorKind::UnknownArgument || !option.starts_with('-') {
        return error;
    }
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip(&option) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn options_are_known_by_their_names() {
        let command =
            Command::new("x").args([Arg::new("pcap").long("pcap"), Arg::new("interface").short('i')]);
        for option in ["--pcap", "--pcap=/tmp", "-i", "-i1@veth"] {
            assert!(has(&command, option), "{option}");
        }
        for option in ["--pca", "--cpu-port", "-x", "--", "-"] {
            assert!(!has(&command, option), "{option}");
        }
    }
}
