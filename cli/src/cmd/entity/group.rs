//! `p4rack group`: action profiles, multicast groups, clone sessions, value sets.

use super::{Options, Verb, connect, report, show};
use crate::cmd::complete;
use clap_complete::engine::ArgValueCompleter;
use p4rack_ctrl::CtrlError;
use p4rack_ctrl::items::{
    ActionItem, CloneItem, GroupItem, GroupMember, Item, MemberItem, MulticastItem, ReplicaItem, ValueSetItem,
};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::schema::{Schema, name_of};
use std::process::ExitCode;

/// Arguments of `p4rack group`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show all groups, members and sessions on the switch
    #[command(visible_alias = "list")]
    Read(Options),
    /// Show them repeatedly
    Watch {
        /// Interval in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
        every: f64,
        #[command(flatten)]
        options: Options,
    },
    /// Add a group, member, session or value set
    Insert(One),
    /// Modify a group, member, session or value set
    Modify(One),
    /// Add a group, member, session or value set, or modify it if it exists
    Write(One),
    /// Remove a group, member, session or value set
    Delete(One),
}

#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("what").args(["multicast", "clone", "group", "member", "value_set"]).required(true)))]
struct One {
    /// Id of a multicast group
    #[arg(long, value_name = "ID", value_parser = crate::numbers::number::<u32>)]
    multicast: Option<u32>,
    /// Id of a clone session
    #[arg(long, value_name = "ID", value_parser = crate::numbers::number::<u32>)]
    clone: Option<u32>,
    /// Id of a group of --profile
    #[arg(long, value_name = "ID", requires = "profile", value_parser = crate::numbers::number::<u32>)]
    group: Option<u32>,
    /// Id of a member of --profile
    #[arg(long, value_name = "ID", requires = "profile", value_parser = crate::numbers::number::<u32>)]
    member: Option<u32>,
    /// Name of a parser value set
    #[arg(long, value_name = "NAME")]
    value_set: Option<String>,
    /// Name of the action profile or selector
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::profiles))]
    profile: Option<String>,
    /// Contents. Multicast, clone: PORT or PORT:INSTANCE, with backups after slashes that replace it while
    /// the preceding ports are down, as in 2:5/3/4. Group: MEMBER, MEMBER:WEIGHT or MEMBER:WEIGHT@PORT
    /// (chosen only while the port is up). Value set: V,V… per member
    #[arg(value_name = "MEMBER")]
    members: Vec<String>,
    /// For a member: its action with arguments
    #[arg(long, num_args = 1.., value_names = ["ACTION", "PARAM=VALUE"], add = ArgValueCompleter::new(complete::actions))]
    action: Vec<String>,
    /// For a group: maximum members [default: as many as the profile allows]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_parser = crate::numbers::number::<i32>)]
    max_size: i32,
    /// For a clone session: class of service
    #[arg(long, default_value_t = 0, value_parser = crate::numbers::number::<u32>)]
    class: u32,
    /// For a clone session: truncate copies to this length; 0 for none
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = crate::numbers::number::<i32>)]
    truncate: i32,
    #[command(flatten)]
    options: Options,
}

impl One {
    fn item(&self) -> Result<Item, CtrlError> {
        let replicas = || parse_all::<ReplicaItem>(&self.members);
        let profile = self.profile.clone().unwrap_or_default();
        if let Some(group) = self.multicast {
            return Ok(Item::Multicast(MulticastItem { group, replicas: replicas()? }));
        }
        if let Some(session) = self.clone {
            return Ok(Item::Clone(CloneItem {
                session,
                replicas: replicas()?,
                class_of_service: self.class,
                packet_length_bytes: self.truncate,
            }));
        }
        if let Some(group) = self.group {
            let members = parse_all::<GroupMember>(&self.members)?;
            return Ok(Item::Group(GroupItem { profile, group, members, max_size: self.max_size }));
        }
        if let Some(member) = self.member {
            let action = if self.action.is_empty() { None } else { Some(ActionItem::call(&self.action)?) };
            return Ok(Item::Member(MemberItem { profile, member, action }));
        }
        let split = |member: &String| member.split(',').map(str::to_owned).collect();
        Ok(Item::ValueSet(ValueSetItem {
            value_set: self.value_set.clone().unwrap_or_default(),
            members: self.members.iter().map(split).collect(),
        }))
    }
}

fn parse_all<T: std::str::FromStr<Err = String>>(words: &[String]) -> Result<Vec<T>, CtrlError> {
    words.iter().map(|word| word.parse().map_err(CtrlError::Input)).collect()
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let (verb, one) = match args.command {
        Command::Read(options) => {
            let found = connect::block_on(options.read(async |schema| Ok(all(schema))));
            return show(found, &options, rows);
        }
        Command::Watch { every, options } => {
            return connect::block_on(options.watch(every, |schema| Ok(all(schema)), rows));
        }
        Command::Insert(one) => (Verb::Insert, one),
        Command::Modify(one) => (Verb::Modify, one),
        Command::Write(one) => (Verb::Write, one),
        // A value set always exists; without members it matches nothing.
        Command::Delete(one) if one.value_set.is_some() => (Verb::Modify, One { members: Vec::new(), ..one }),
        Command::Delete(one) => (Verb::Delete, one),
    };
    let done = match one.item() {
        Ok(item) => connect::block_on(one.options.write(verb, &[item])),
        Err(error) => Err(error),
    };
    report(done, &one.options)
}

fn all(schema: &Schema) -> Vec<Item> {
    let mut wanted = vec![Item::Multicast(MulticastItem::default()), Item::Clone(CloneItem::default())];
    for profile in &schema.info().action_profiles {
        let name = name_of(profile.preamble.as_ref()).to_owned();
        wanted.push(Item::Member(MemberItem { profile: name.clone(), member: 0, action: None }));
        if profile.with_selector {
            wanted.push(Item::Group(GroupItem { profile: name, group: 0, members: Vec::new(), max_size: 0 }));
        }
    }
    for set in &schema.info().value_sets {
        let value_set = name_of(set.preamble.as_ref()).to_owned();
        wanted.push(Item::ValueSet(ValueSetItem { value_set, members: Vec::new() }));
    }
    wanted
}

fn rows(items: &[Item]) -> Rows {
    let mut rows = Rows::new(&["what", "number", "holds"]);
    let replicas =
        |replicas: &[ReplicaItem]| replicas.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    for item in items {
        rows.push(match item {
            Item::Multicast(group) => {
                vec!["multicast".into(), group.group.to_string(), replicas(&group.replicas)]
            }
            Item::Clone(session) => {
                vec!["clone".into(), session.session.to_string(), replicas(&session.replicas)]
            }
            Item::Member(member) => {
                let action = member.action.as_ref().map_or(String::new(), ToString::to_string);
                vec![format!("{} member", member.profile), member.member.to_string(), action]
            }
            Item::Group(group) => {
                let show = |m: &GroupMember| match m.watch_port {
                    Some(port) => format!("{}:{}@{port}", m.member, m.weight),
                    None => format!("{}:{}", m.member, m.weight),
                };
                let members: Vec<String> = group.members.iter().map(show).collect();
                vec![format!("{} group", group.profile), group.group.to_string(), members.join(" ")]
            }
            Item::ValueSet(set) => {
                let members: Vec<String> = set.members.iter().map(|member| member.join(",")).collect();
                vec![format!("value set {}", set.value_set), String::new(), members.join(" ")]
            }
            other => vec![other.to_string()],
        });
    }
    rows
}
