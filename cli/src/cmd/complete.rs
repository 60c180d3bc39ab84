//! Names for shell completion: from the P4Info file in P4RACK_P4INFO, else from the switch at the command's
//! --grpc-addr.

use super::connect::block_on;
use clap_complete::engine::CompletionCandidate;
use p4rack_ctrl::{Client, ConnectOptions};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::schema::{Schema, name_of};
use p4rack_p4rt::text;
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit for the switch, because the shell waits.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

fn schema() -> Option<Schema> {
    if let Some(path) = std::env::var_os("P4RACK_P4INFO") {
        let info: P4Info = text::parse(&std::fs::read_to_string(path).ok()?).ok()?;
        return Schema::new(info).ok();
    }
    let asked = async {
        let mut client =
            Client::connect(ConnectOptions::new(option("--grpc-addr")?, device_id())).await.ok()?;
        client.schema().await.ok()
    };
    block_on(async { tokio::time::timeout(PATIENCE, asked).await.ok().flatten() })
}

/// Value of an option on the line being completed.
pub(super) fn option(name: &str) -> Option<String> {
    let words: Vec<String> = std::env::args().collect();
    let after = words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned();
    let joined = words.iter().find_map(|word| word.strip_prefix(&format!("{name}=")).map(str::to_owned));
    let default = match name {
        "--grpc-addr" => Some("127.0.0.1:9559"),
        "--board" => Some("127.0.0.1:9563"),
        _ => None,
    };
    after.or(joined).or(default.map(str::to_owned))
}

fn device_id() -> u64 {
    option("--device-id").and_then(|id| id.parse().ok()).unwrap_or(1)
}

/// Candidates for the current word among names, by their beginning or that of their last part.
pub(super) fn matching(current: &OsStr, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fits = |name: &String| {
        name.starts_with(&*current) || name.rsplit('.').next().is_some_and(|last| last.starts_with(&*current))
    };
    names.filter(fits).map(CompletionCandidate::new).collect()
}

macro_rules! completers {
    ($($function:ident: $($list:ident),+;)*) => { $(
        /// Names of the program's objects of this kind that match the current word.
        pub fn $function(current: &OsStr) -> Vec<CompletionCandidate> {
            let Some(schema) = schema() else { return Vec::new() };
            let mut names = Vec::new();
            $( names.extend(
                schema.info().$list.iter().map(|object| name_of(object.preamble.as_ref()).to_owned()),
            ); )+
            matching(current, names.into_iter())
        }
    )* };
}

completers! {
    tables: tables;
    actions: actions;
    counters: counters;
    meters: meters;
    registers: registers;
    digests: digests;
    profiles: action_profiles;
}

/// `KEY=` for the keys of the table that the line names.
pub fn keys(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(schema) = schema() else { return Vec::new() };
    let words: Vec<String> = std::env::args().collect();
    let table = words.iter().rev().find_map(|word| schema.table(word).ok());
    let fields = table.map_or(&[][..], |table| &table.match_fields);
    matching(current, fields.iter().map(|field| format!("{}=", field.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_completed_from_its_start_or_its_last_part() {
        let names = || ["ingress.acl", "ingress.route", "egress.acl"].map(String::from).into_iter();
        let found = |text: &str| matching(OsStr::new(text), names()).len();
        assert_eq!((found("ing"), found("acl"), found("x"), found("")), (2, 2, 0, 3));
    }
}
