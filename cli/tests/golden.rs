//! `docs/commands.md` lists the commands that the binary has. `cargo xtask bless` rewrites the page.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{p4rack, repo};

#[test]
fn the_page_of_commands_is_current() {
    let printed = p4rack().arg("commands").output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let page = repo("docs/commands.md");
    if std::env::var_os("P4RACK_BLESS").is_some() {
        std::fs::write(&page, &printed.stdout).unwrap();
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        kept == printed,
        "docs/commands.md differs from the commands: run `cargo xtask bless` and read the diff"
    );
}
