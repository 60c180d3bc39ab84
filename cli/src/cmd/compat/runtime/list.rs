//! The commands of simple_switch_CLI.

use super::words::wrong_number;
use super::{Call, Done, mistake};

/// What the first argument of a command names, for completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No name of the program's.
    Nothing,
    /// A table.
    Table,
    /// A table and one of its actions.
    TableAction,
    /// An action profile.
    Profile,
    /// An action profile and an action.
    ProfileAction,
    /// A counter.
    Counter,
    /// A meter.
    Meter,
    /// A register.
    Register,
    /// A parser value set.
    ValueSet,
    /// Another command.
    Command,
}

/// How many arguments a command has, as BMv2 counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// This number.
    Exactly(usize),
    /// This number or more, which the command checks.
    AtLeast(usize),
}

use Count::{AtLeast, Exactly};

impl Count {
    /// Errors, in BMv2's words: there are others.
    fn check(self, args: &[&str]) -> Done {
        match self {
            Exactly(count) if args.len() != count => wrong_number(count, args.len()),
            AtLeast(count) if args.len() < count => mistake("Insufficient number of args"),
            _ => Ok(()),
        }
    }
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its first word.
    pub name: &'static str,
    /// Its arguments.
    pub usage: &'static str,
    /// Their number.
    pub count: Count,
    /// What it does.
    pub about: &'static str,
    /// What its first argument names.
    pub takes: Takes,
}

const fn command(
    name: &'static str,
    usage: &'static str,
    count: Count,
    takes: Takes,
    about: &'static str,
) -> Command {
    Command { name, usage, count, about, takes }
}

/// All commands, by name.
pub const COMMANDS: &[Command] = &[
    command(
        "act_prof_add_member_to_group",
        "PROFILE MEMBER GROUP",
        Exactly(3),
        Takes::Profile,
        "adds a member to a group",
    ),
    command("act_prof_create_group", "PROFILE", Exactly(1), Takes::Profile, "creates an empty group"),
    command(
        "act_prof_create_member",
        "PROFILE ACTION [PARAMETER…]",
        AtLeast(2),
        Takes::ProfileAction,
        "creates a member",
    ),
    command("act_prof_delete_group", "PROFILE GROUP", Exactly(2), Takes::Profile, "deletes a group"),
    command("act_prof_delete_member", "PROFILE MEMBER", Exactly(2), Takes::Profile, "deletes a member"),
    command("act_prof_dump", "PROFILE", Exactly(1), Takes::Profile, "shows members and groups"),
    command("act_prof_dump_group", "PROFILE GROUP", Exactly(2), Takes::Profile, "shows a group"),
    command("act_prof_dump_member", "PROFILE MEMBER", Exactly(2), Takes::Profile, "shows a member"),
    command(
        "act_prof_modify_member",
        "PROFILE ACTION MEMBER [PARAMETER…]",
        AtLeast(3),
        Takes::ProfileAction,
        "changes a member",
    ),
    command(
        "act_prof_remove_member_from_group",
        "PROFILE MEMBER GROUP",
        Exactly(3),
        Takes::Profile,
        "takes a member out of a group",
    ),
    command(
        "counter_read",
        "COUNTER INDEX",
        Exactly(2),
        Takes::Counter,
        "shows a cell; of a direct counter, an entry's",
    ),
    command("counter_reset", "COUNTER", Exactly(1), Takes::Counter, "sets all cells to 0"),
    command("counter_write", "COUNTER INDEX PACKETS BYTES", Exactly(4), Takes::Counter, "sets a cell"),
    command("exit", "", Exactly(0), Takes::Nothing, "ends; so does the end of the input"),
    command("get_time_elapsed", "", Exactly(0), Takes::Nothing, "microseconds since the switch was started"),
    command("get_time_since_epoch", "", Exactly(0), Takes::Nothing, "the same"),
    command("help", "[COMMAND]", AtLeast(0), Takes::Command, "lists commands, or shows one's arguments"),
    command(
        "load_new_config_file",
        "FILE",
        Exactly(1),
        Takes::Nothing,
        "checks a program that swap_configs installs",
    ),
    command("mc_dump", "", Exactly(0), Takes::Nothing, "shows multicast groups and their nodes"),
    command("mc_mgrp_create", "GROUP", Exactly(1), Takes::Nothing, "creates a multicast group, from 1 on"),
    command("mc_mgrp_destroy", "GROUP", Exactly(1), Takes::Nothing, "destroys a multicast group"),
    command("mc_node_associate", "GROUP NODE", Exactly(2), Takes::Nothing, "adds a node to a group"),
    command("mc_node_create", "RID [PORT…]", AtLeast(1), Takes::Nothing, "creates a node"),
    command(
        "mc_node_destroy",
        "NODE",
        Exactly(1),
        Takes::Nothing,
        "destroys a node, and takes it out of groups",
    ),
    command("mc_node_dissociate", "GROUP NODE", Exactly(2), Takes::Nothing, "takes a node out of a group"),
    command("mc_node_update", "NODE PORT…", AtLeast(2), Takes::Nothing, "gives a node other ports"),
    command(
        "meter_array_set_rates",
        "METER RATE:BURST RATE:BURST",
        AtLeast(1),
        Takes::Meter,
        "sets all cells of a meter",
    ),
    command(
        "meter_get_rates",
        "METER INDEX",
        Exactly(2),
        Takes::Meter,
        "shows a cell's rates; of a direct meter, an entry's",
    ),
    command(
        "meter_set_rates",
        "METER INDEX RATE:BURST RATE:BURST",
        AtLeast(2),
        Takes::Meter,
        "sets a cell; units per microsecond",
    ),
    command(
        "mirroring_add",
        "SESSION PORT",
        Exactly(2),
        Takes::Nothing,
        "makes a clone session, from 1 on, or changes it",
    ),
    command("mirroring_delete", "SESSION", Exactly(1), Takes::Nothing, "deletes a clone session"),
    command("mirroring_get", "SESSION", Exactly(1), Takes::Nothing, "shows a clone session"),
    command("pvs_add", "SET VALUE", Exactly(2), Takes::ValueSet, "adds a value to a parser value set"),
    command("pvs_clear", "SET", Exactly(1), Takes::ValueSet, "removes all values"),
    command("pvs_get", "SET", Exactly(1), Takes::ValueSet, "shows all values"),
    command("pvs_remove", "SET VALUE", Exactly(2), Takes::ValueSet, "removes a value"),
    command("register_read", "REGISTER [INDEX]", AtLeast(1), Takes::Register, "shows a cell, or all"),
    command("register_reset", "REGISTER", Exactly(1), Takes::Register, "sets all cells to 0"),
    command("register_write", "REGISTER INDEX VALUE", Exactly(3), Takes::Register, "sets a cell"),
    command("reset_state", "", Exactly(0), Takes::Nothing, "installs the program anew, without entries"),
    command(
        "set_queue_depth",
        "FRAMES [PORT [PRIORITY]]",
        AtLeast(1),
        Takes::Nothing,
        "limits queues, in full frames of 1522 bytes",
    ),
    command(
        "set_queue_rate",
        "FRAMES_PER_S [PORT [PRIORITY]]",
        AtLeast(1),
        Takes::Nothing,
        "limits the rate of queues",
    ),
    command("shell", "COMMAND", Exactly(1), Takes::Nothing, "runs a command in a shell, here"),
    command("show_actions", "", Exactly(0), Takes::Nothing, "lists actions and their parameters"),
    command("show_ports", "", Exactly(0), Takes::Nothing, "lists ports and their interfaces"),
    command("show_pvs", "", Exactly(0), Takes::Nothing, "lists parser value sets"),
    command("show_tables", "", Exactly(0), Takes::Nothing, "lists tables and their keys"),
    command("swap_configs", "", Exactly(0), Takes::Nothing, "installs the program of load_new_config_file"),
    command("switch_info", "", Exactly(0), Takes::Nothing, "shows the switch's device id and ports"),
    command(
        "table_add",
        "TABLE ACTION KEY… => [PARAMETER…] [PRIORITY]",
        AtLeast(3),
        Takes::TableAction,
        "adds an entry",
    ),
    command("table_clear", "TABLE", Exactly(1), Takes::Table, "deletes all entries"),
    command("table_delete", "TABLE ENTRY", Exactly(2), Takes::Table, "deletes an entry"),
    command("table_dump", "TABLE", Exactly(1), Takes::Table, "shows all entries"),
    command("table_dump_entry", "TABLE ENTRY", Exactly(2), Takes::Table, "shows an entry"),
    command(
        "table_dump_entry_from_key",
        "TABLE KEY… [PRIORITY]",
        AtLeast(1),
        Takes::Table,
        "shows the entry with these keys",
    ),
    command(
        "table_dump_group",
        "TABLE GROUP",
        Exactly(2),
        Takes::Table,
        "shows a group of its action profile",
    ),
    command(
        "table_dump_member",
        "TABLE MEMBER",
        Exactly(2),
        Takes::Table,
        "shows a member of its action profile",
    ),
    command(
        "table_indirect_add",
        "TABLE KEY… => MEMBER [PRIORITY]",
        AtLeast(2),
        Takes::Table,
        "adds an entry with a member",
    ),
    command(
        "table_indirect_add_with_group",
        "TABLE KEY… => GROUP [PRIORITY]",
        AtLeast(2),
        Takes::Table,
        "adds an entry with a group",
    ),
    command("table_indirect_delete", "TABLE ENTRY", Exactly(2), Takes::Table, "deletes an entry"),
    command(
        "table_indirect_reset_default",
        "TABLE",
        Exactly(1),
        Takes::Table,
        "takes the default action of the program again",
    ),
    command("table_info", "TABLE", Exactly(1), Takes::Table, "shows keys and actions"),
    command(
        "table_modify",
        "TABLE ACTION ENTRY [PARAMETER…]",
        AtLeast(3),
        Takes::TableAction,
        "gives an entry another action",
    ),
    command("table_num_entries", "TABLE", Exactly(1), Takes::Table, "counts the entries"),
    command(
        "table_reset_default",
        "TABLE",
        Exactly(1),
        Takes::Table,
        "takes the default action of the program again",
    ),
    command(
        "table_set_default",
        "TABLE ACTION [PARAMETER…]",
        AtLeast(2),
        Takes::TableAction,
        "sets the default action",
    ),
    command(
        "table_set_timeout",
        "TABLE ENTRY MILLISECONDS",
        Exactly(3),
        Takes::Table,
        "sets an entry's idle timeout",
    ),
    command("table_show_actions", "TABLE", Exactly(1), Takes::Table, "lists the table's actions"),
    command(
        "write_config_to_file",
        "FILE",
        Exactly(1),
        Takes::Nothing,
        "writes the running program to a file",
    ),
];

/// Unsupported commands of BMv2, with the reason.
const MISSING: &[(&str, &str)] = &[
    ("mc_set_lag_membership", "there are no LAGs; give nodes their ports"),
    ("mirroring_add_mc", "a clone session has ports, no multicast group; take mirroring_add"),
    ("port_add", "ports are those of -i; start the switch with another one"),
    ("port_remove", "ports are those of -i; take the interface down instead"),
    ("serialize_state", "entries can be read over P4Runtime"),
    ("set_crc16_parameters", "the polynomial is part of the program"),
    ("set_crc32_parameters", "the polynomial is part of the program"),
    ("set_toeplitz_hash_key", "there is no Toeplitz hash"),
    ("table_indirect_set_default", "a table's default entry takes an action: table_set_default"),
    ("table_indirect_set_default_with_group", "a table's default entry takes an action: table_set_default"),
];

/// Commands that BMv2 keeps under an older name: the same on a table's action profile.
const OLDER: &[(&str, &str)] = &[
    ("table_indirect_add_member_to_group", "act_prof_add_member_to_group"),
    ("table_indirect_create_group", "act_prof_create_group"),
    ("table_indirect_create_member", "act_prof_create_member"),
    ("table_indirect_delete_group", "act_prof_delete_group"),
    ("table_indirect_delete_member", "act_prof_delete_member"),
    ("table_indirect_modify_member", "act_prof_modify_member"),
    ("table_indirect_remove_member_from_group", "act_prof_remove_member_from_group"),
    ("table_dump_group", "act_prof_dump_group"),
    ("table_dump_member", "act_prof_dump_member"),
];

/// The command with this name.
pub fn named(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

impl Call<'_> {
    /// Carries out a line.
    pub(super) async fn run(&mut self, line: &str) -> Done {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((name, args)) = words.split_first() else { return Ok(()) };
        let older = OLDER.iter().find(|(older, _)| older == name);
        if let Some(command) = named(older.map_or(name, |(_, newer)| newer)) {
            command.count.check(args)?;
        }
        if let Some((_, newer)) = older {
            let profile = self.profile_of(args)?;
            let rest = args.get(1..).unwrap_or_default();
            return self.member_command(newer, &[&[profile.as_str()][..], rest].concat()).await;
        }
        match *name {
            "help" | "?" => self.help(args),
            name if name.starts_with("act_prof_") => self.member_command(name, args).await,
            name if name.starts_with("table_") || matches!(name, "show_tables" | "show_actions") => {
                self.table_command(name, args).await
            }
            name if ["counter_", "meter_", "register_"].iter().any(|kind| name.starts_with(kind)) => {
                self.cell_command(name, args).await
            }
            name if ["mc_", "mirroring_", "pvs_"].iter().any(|kind| name.starts_with(kind))
                || name == "show_pvs" =>
            {
                self.replication_command(name, args).await
            }
            name => self.device_command(name, args).await,
        }
    }

    /// A command that no group of commands has.
    pub(super) fn unknown(&self, name: &str) -> Done {
        match MISSING.iter().find(|(missing, _)| *missing == name) {
            Some((_, why)) => mistake(format!("{name} is not supported: {why}")),
            None => {
                let near = p4rack_p4rt::nearest::nearest(name, COMMANDS.iter().map(|command| command.name));
                let help = near
                    .map_or("; `help` lists commands".to_owned(), |near| format!("; did you mean {near}?"));
                Err(super::Failure(format!("*** Unknown syntax: {name}{help}")))
            }
        }
    }

    fn help(&mut self, args: &[&str]) -> Done {
        match args {
            [] => {
                for Command { name, usage, about, .. } in COMMANDS {
                    self.say(format!("{name} {usage}\n    {about}"));
                }
                Ok(())
            }
            [name, ..] => match named(name) {
                Some(Command { name, usage, about, .. }) => {
                    self.say(format!("{name} {usage}\n    {about}"));
                    Ok(())
                }
                None if MISSING.iter().any(|(missing, _)| missing == name) => self.unknown(name),
                None => Err(super::Failure(format!("*** No help on {name}; `help` lists commands"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_order_and_there_once() {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        assert!(MISSING.iter().all(|(name, _)| named(name).is_none()));
    }
}
