//! `p4rack table`.

use super::pairs::pairs;
use super::{Options, Verb, connect, print_rows, report, show};
use crate::cmd::complete;
use clap_complete::engine::ArgValueCompleter;
use p4rack_ctrl::items::{ActionItem, Counts, Item, TableItem};
use p4rack_ctrl::session::Event;
use p4rack_ctrl::{CtrlError, Link, Session};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_p4rt::schema::{Schema, id_of, match_type, name_of};
use p4rack_p4rt::text;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack table`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List the program's tables: keys, actions, sizes
    List(Options),
    /// Read the entries of one table or all
    Read {
        /// Name or alias of the table
        #[arg(add = ArgValueCompleter::new(complete::tables))]
        table: Option<String>,
        /// Read default entries instead
        #[arg(long)]
        default: bool,
        /// Also read direct counters
        #[arg(long)]
        counters: bool,
        #[command(flatten)]
        options: Options,
    },
    /// Read the entries of a table repeatedly
    Watch {
        /// Name or alias of the table
        #[arg(add = ArgValueCompleter::new(complete::tables))]
        table: String,
        /// Interval in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
        every: f64,
        /// Instead, print entries whose idle timeout expires, as the switch reports them
        #[arg(long, conflicts_with = "every")]
        idle: bool,
        /// With --idle: end after this many
        #[arg(long, requires = "idle", value_parser = crate::numbers::number::<u64>)]
        count: Option<u64>,
        #[command(flatten)]
        options: Options,
    },
    /// Add an entry
    Insert(Entry),
    /// Change the action of an entry
    Modify(Entry),
    /// Add an entry, or change its action if it exists
    Write(Entry),
    /// Remove an entry
    Delete(Entry),
    /// Apply a text-format WriteRequest, such as `p4rack generate` writes
    Apply {
        /// File with the request, NAME.entries.txtpb
        file: PathBuf,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(clap::Args, Debug)]
struct Entry {
    /// Name or alias of the table
    #[arg(add = ArgValueCompleter::new(complete::tables))]
    table: String,
    /// Keys: V exact or optional, V/PREFIX lpm, V&MASK ternary, LOW..HIGH range; V is 17, 0x11,
    /// 02:00:00:00:00:01, 10.0.0.1, fe80::1; an omitted key is "don't care"
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::keys))]
    keys: Vec<String>,
    /// Priority, the larger one wins; for tables with ternary, range or optional keys
    #[arg(long, default_value_t = 0, value_parser = crate::numbers::number::<i32>)]
    priority: i32,
    /// Action with arguments
    #[arg(long, num_args = 1.., value_names = ["ACTION", "PARAM=VALUE"], add = ArgValueCompleter::new(complete::actions))]
    action: Vec<String>,
    /// Member of the table's action profile, instead of an action
    #[arg(long, conflicts_with_all = ["action", "group"], value_parser = crate::numbers::number::<u32>)]
    member: Option<u32>,
    /// Group of the table's action profile, instead of an action
    #[arg(long, conflicts_with = "action", value_parser = crate::numbers::number::<u32>)]
    group: Option<u32>,
    /// The table's default entry; `modify --default` without an action resets it
    #[arg(long)]
    default: bool,
    /// Idle timeout after which the controller is notified
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = crate::numbers::number::<i64>)]
    idle_timeout_ms: i64,
    #[command(flatten)]
    options: Options,
}

impl Entry {
    fn item(&self) -> Result<Item, CtrlError> {
        if let Some(at) = self.keys.iter().position(|word| !word.contains('=')) {
            let (word, rest) = (&self.keys[at], self.keys[at..].join(" "));
            return Err(CtrlError::Input(format!(
                "`{word}` is not KEY=VALUE; if it is an action, write it and its parameters after --action: --action {rest}"
            )));
        }
        let action = match (self.member, self.group) {
            (Some(member), _) => Some(ActionItem::Member { member }),
            (_, Some(group)) => Some(ActionItem::Group { group }),
            _ if self.action.is_empty() => None,
            _ => Some(ActionItem::call(&self.action)?),
        };
        Ok(Item::TableEntry(TableItem {
            table: self.table.clone(),
            keys: pairs(&self.keys)?,
            priority: self.priority,
            action,
            is_default: self.default,
            idle_timeout_ns: self.idle_timeout_ms.saturating_mul(1_000_000),
            ..Default::default()
        }))
    }
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    connect::block_on(async {
        match args.command {
            Command::List(options) => list(&options).await,
            Command::Read { table, default, counters, options } => {
                let found =
                    options.read(async |schema| wanted(schema, table.as_deref(), default, counters)).await;
                show(found, &options, rows)
            }
            Command::Watch { table, idle: true, count, options, .. } => {
                report(watch_idle(&table, count, &options).await.map(|()| Vec::new()), &options)
            }
            Command::Watch { table, every: seconds, options, .. } => {
                options.watch(seconds, |schema| wanted(schema, Some(&table), false, true), rows).await
            }
            Command::Insert(entry) => write(Verb::Insert, &entry).await,
            Command::Modify(entry) => write(Verb::Modify, &entry).await,
            Command::Write(entry) => write(Verb::Write, &entry).await,
            Command::Delete(entry) => write(Verb::Delete, &entry).await,
            Command::Apply { file, options } => report(apply(&file, &options).await, &options),
        }
    })
}

async fn write(verb: Verb, entry: &Entry) -> ExitCode {
    let done = match entry.item() {
        Ok(item) => entry.options.write(verb, &[item]).await,
        Err(error) => Err(error),
    };
    report(done, &entry.options)
}

async fn apply(file: &PathBuf, options: &Options) -> Result<Vec<String>, CtrlError> {
    let fault = |why: String| CtrlError::Input(format!("{}:{why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| fault(format!(" {error}")))?;
    let request: WriteRequest = text::parse(&text).map_err(|error| fault(error.to_string()))?;
    let mut session = Link::to_write(options.target.for_switch(None)).await?;
    let schema = session.schema().await?;
    session.write(&schema, &request.updates).await?;
    Ok(vec![format!("applied {} updates", request.updates.len())])
}

const IDLE: &str = "idle entries are told over P4Runtime alone: give --grpc-addr instead of --bfrt-addr";

/// Prints entries that the switch reports as idle, until Ctrl-C.
async fn watch_idle(table: &str, count: Option<u64>, options: &Options) -> Result<(), CtrlError> {
    let mut session = Session::connect(options.p4runtime(IDLE)?).await?;
    let schema = options.shown(session.schema().await?)?;
    let table_id = id_of(schema.table(table)?.preamble.as_ref());
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let Some(event) = super::stream::next(&mut session).await? else { return Ok(()) };
        let Event::Idle(idle) = event else { continue };
        for entry in idle.table_entry.iter().filter(|entry| entry.table_id == table_id) {
            if left > 0 {
                let item = Item::TableEntry(TableItem::of(&schema, entry)?);
                let timeout_ms = entry.idle_timeout_ns as f64 / 1e6;
                match options.json {
                    true => println!("{}", json!({ "idle": item, "timestamp_ns": idle.timestamp })),
                    false => println!("{item} idle for {timeout_ms} ms"),
                }
                left -= 1;
            }
        }
    }
    Ok(())
}

/// The tables that a read asks for.
fn wanted(
    schema: &Schema,
    table: Option<&str>,
    is_default: bool,
    counters: bool,
) -> Result<Vec<Item>, CtrlError> {
    let mut tables = Vec::new();
    match table {
        Some(table) => tables.push(schema.table(table)?),
        None => tables.extend(&schema.info().tables),
    }
    let item = |table: &p4rack_p4rt::p4::config::v1::Table| {
        let direct = |id: &u32| schema.direct_counter_by_id(*id).is_ok();
        let counter = counters && table.direct_resource_ids.iter().any(direct);
        Item::TableEntry(TableItem {
            table: name_of(table.preamble.as_ref()).into(),
            is_default,
            counter: counter.then(Counts::default),
            ..Default::default()
        })
    };
    Ok(tables.into_iter().map(item).collect())
}

fn rows(items: &[Item]) -> Rows {
    let mut rows = Rows::new(&["table", "key", "priority", "action", "packets", "bytes"]);
    for item in items {
        let Item::TableEntry(entry) = item else { continue };
        let keys: Vec<String> = entry.keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let count = |value: fn(&Counts) -> i64| {
            entry.counter.as_ref().map_or(String::new(), |c| value(c).to_string())
        };
        rows.push(vec![
            entry.table.clone(),
            if entry.is_default { "(default)".into() } else { keys.join(" ") },
            if entry.priority == 0 { String::new() } else { entry.priority.to_string() },
            entry.action.as_ref().map_or(String::new(), ToString::to_string),
            count(|counts| counts.packets),
            count(|counts| counts.bytes),
        ]);
    }
    rows
}

async fn list(options: &Options) -> ExitCode {
    let schema = match options.client().await {
        Ok((_, schema)) => schema,
        Err(error) => return connect::fail(&error, options.json),
    };
    let mut rows = Rows::new(&["table", "id", "size", "keys", "actions"]);
    let mut tables = Vec::new();
    for table in &schema.info().tables {
        let name = name_of(table.preamble.as_ref());
        let keys: Vec<String> = table
            .match_fields
            .iter()
            .map(|key| {
                let kind = match_type(key).as_str_name().to_lowercase();
                format!("{}:{} {kind}", key.name, key.bitwidth)
            })
            .collect();
        let action = |id| schema.action_by_id(id).map_or("?", |action| name_of(action.preamble.as_ref()));
        let actions: Vec<&str> = table.action_refs.iter().map(|reference| action(reference.id)).collect();
        let id = id_of(table.preamble.as_ref());
        rows.push(vec![
            name.into(),
            format!("0x{id:08x}"),
            table.size.to_string(),
            keys.join(", "),
            actions.join(", "),
        ]);
        tables.push(json!({
            "table": name, "id": id, "size": table.size, "keys": keys, "actions": actions,
            "is_const": table.is_const_table,
        }));
    }
    if options.json {
        super::print_json(&tables);
    } else {
        print_rows(&rows);
    }
    ExitCode::SUCCESS
}
