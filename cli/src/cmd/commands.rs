//! `docs/commands.md`: all commands with their arguments, from clap's own definitions.

use clap::Command;
use std::fmt::Write as _;

/// Pages that explain a command, by its first word.
const PAGES: &[(&str, &str)] = &[
    ("balloon", "balloon.md"),
    ("bench", "performance.md"),
    ("cache", "unimem.md"),
    ("clio", "clio.md"),
    ("commands", "commands.md"),
    ("compat", "compat.md"),
    ("completions", "commands.md"),
    ("counter", "control.md"),
    ("cowbird", "cowbird.md"),
    ("deploy", "control.md"),
    ("digest", "control.md"),
    ("doctor", "operator.md"),
    ("down", "up.md"),
    ("exec", "up.md"),
    ("far", "far.md"),
    ("gateway", "bfruntime.md"),
    ("generate", "rack.md"),
    ("generator", "p4.md"),
    ("group", "control.md"),
    ("host", "operator.md"),
    ("lab", "topology.md"),
    ("memory", "memory.md"),
    ("meter", "control.md"),
    ("mininet", "mininet.md"),
    ("p4", "p4.md"),
    ("packet", "control.md"),
    ("pl2", "control.md"),
    ("queue", "bfruntime.md"),
    ("rack", "rack.md"),
    ("register", "control.md"),
    ("roce", "roce.md"),
    ("sim", "sim.md"),
    ("switch", "p4runtime.md"),
    ("table", "control.md"),
    ("top", "operator.md"),
    ("trace", "traces.md"),
    ("up", "up.md"),
];

/// The page as Markdown.
pub fn markdown(mut root: Command) -> String {
    // Without it, subcommands do not know their full names.
    root.build();
    let mut page = String::from(
        "# Commands\n\n\
         Every command has `--help` with all of its options; `p4rack completions bash` prints shell completions.\n\n\
         | command | what it does | page |\n|---|---|---|\n",
    );
    rows(&mut page, &root);
    page.push_str("\n`p4rack commands` prints this page; `cargo xtask bless` writes it.\n");
    page
}

/// A row for each command below `command` that has no subcommands itself.
fn rows(page: &mut String, command: &Command) {
    for one in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
        if one.has_subcommands() {
            rows(page, one);
            continue;
        }
        let name = one.get_bin_name().unwrap_or_else(|| one.get_name());
        let arguments = one.get_positionals().filter(|argument| !argument.is_hide_set());
        let arguments: String = arguments.map(|argument| format!(" {argument}")).collect();
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        let first = name.split(' ').nth(1).unwrap_or_default();
        let page_of = PAGES.iter().find(|(word, _)| *word == first);
        let link = page_of.map(|(_, file)| format!("[{file}]({file})")).unwrap_or_default();
        // A bar would end the cell.
        let cells = [format!("`{name}{arguments}`"), about, link].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(page, "| {} |", cells.join(" | ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, arg};

    #[test]
    fn every_command_has_a_page() {
        let root = <crate::Cli as clap::CommandFactory>::command();
        let words =
            root.get_subcommands().filter(|one| !one.is_hide_set()).map(|one| one.get_name().to_owned());
        let without: Vec<String> = words.filter(|word| PAGES.iter().all(|(page, _)| page != word)).collect();
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn leaves_have_rows_with_arguments() {
        let inner =
            Command::new("read").about("Reads a|b").arg(arg!(<NAME> "x")).arg(Arg::new("o").long("o"));
        let hidden = Command::new("secret").hide(true);
        let page = markdown(
            Command::new("p4rack").subcommand(Command::new("table").subcommand(inner)).subcommand(hidden),
        );
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(rows, ["| `p4rack table read <NAME>` | Reads a\\|b | [control.md](control.md) |"]);
    }
}
