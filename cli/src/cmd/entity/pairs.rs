//! Parses `NAME=VALUE` arguments.

use p4rack_ctrl::CtrlError;
use std::collections::BTreeMap;

/// Splits each word at its first `=`.
pub(super) fn pairs(words: &[String]) -> Result<BTreeMap<String, String>, CtrlError> {
    let split = |word: &String| {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| CtrlError::Input(format!("`{word}` is not NAME=VALUE, such as dstAddr=0x11")))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    words.iter().map(split).collect()
}
