//! `p4rack counter`, `p4rack meter`, `p4rack register`.

use super::pairs::pairs;
use super::{Options, Verb, connect, print_rows, report, show};
use crate::cmd::complete;
use clap_complete::engine::ArgValueCompleter;
use p4rack_ctrl::CtrlError;
use p4rack_ctrl::items::{
    Colors, CounterItem, Counts, Item, MeterItem, MeterUnit, Rates, RegisterItem, TableItem,
};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::schema::{Schema, name_of};
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `p4rack counter`.
#[derive(clap::Args, Debug)]
pub struct CounterArgs {
    #[command(subcommand)]
    command: CounterCommand,
}

#[derive(clap::Subcommand, Debug)]
enum CounterCommand {
    /// List the program's counters
    List(Options),
    /// Read the counts of all cells or one
    Read {
        #[command(flatten)]
        counter: Counter,
        #[command(flatten)]
        options: Options,
    },
    /// Read repeatedly
    Watch {
        #[command(flatten)]
        counter: Counter,
        /// Interval in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
        every: f64,
        #[command(flatten)]
        options: Options,
    },
    /// Set a cell, by default to zero
    Write {
        #[command(flatten)]
        counter: Counter,
        /// Packet count
        #[arg(long, default_value_t = 0, value_parser = crate::numbers::number::<i64>)]
        packets: i64,
        /// Byte count
        #[arg(long, default_value_t = 0, value_parser = crate::numbers::number::<i64>)]
        bytes: i64,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(clap::Args, Debug)]
struct Counter {
    /// The counter; for direct counters, the table
    #[arg(add = ArgValueCompleter::new(complete::counters))]
    name: String,
    /// Index of the cell [default: all]
    #[arg(long, value_parser = crate::numbers::number::<i64>)]
    index: Option<i64>,
    /// For a direct counter: keys of the entry
    #[arg(value_name = "KEY=VALUE")]
    keys: Vec<String>,
}

impl Counter {
    fn item(&self, schema: &Schema, counts: Option<Counts>) -> Result<Item, CtrlError> {
        let direct = schema.direct_counter(&self.name).ok().map(|direct| direct.direct_table_id);
        let entry = direct_entry(schema, &self.name, &self.keys, schema.counter(&self.name).is_ok(), direct)?;
        Ok(Item::Counter(CounterItem { counter: self.name.clone(), index: self.index, entry, counts }))
    }
}

/// The entry whose direct object is meant, if the name is that of a table or of a direct object.
fn direct_entry(
    schema: &Schema,
    name: &str,
    keys: &[String],
    is_array: bool,
    table_of_direct: Option<u32>,
) -> Result<Option<TableItem>, CtrlError> {
    let table = match table_of_direct {
        _ if is_array => return Ok(None),
        Some(id) => schema.table_by_id(id).ok(),
        None => schema.table(name).ok(),
    };
    let Some(table) = table else { return Ok(None) };
    let table = name_of(table.preamble.as_ref()).into();
    Ok(Some(TableItem { table, keys: pairs(keys)?, ..Default::default() }))
}

/// Runs `p4rack counter`.
pub fn counter(args: CounterArgs) -> ExitCode {
    connect::block_on(async {
        match args.command {
            CounterCommand::List(options) => list(&options, "counter").await,
            CounterCommand::Read { counter, options } => {
                let found = options.read(async |schema| Ok(vec![counter.item(schema, None)?])).await;
                show(found, &options, rows)
            }
            CounterCommand::Watch { counter, every, options } => {
                options.watch(every, |schema| Ok(vec![counter.item(schema, None)?]), rows).await
            }
            CounterCommand::Write { counter, packets, bytes, options } => {
                let counts = Some(Counts { packets, bytes });
                write(&options, |schema| counter.item(schema, counts)).await
            }
        }
    })
}

/// Writes one item, built with the program's schema.
async fn write(options: &Options, make: impl Fn(&Schema) -> Result<Item, CtrlError>) -> ExitCode {
    let done = async {
        let (_, schema) = options.client().await?;
        options.write(Verb::Modify, &[make(&schema)?]).await
    };
    report(done.await, options)
}

/// Arguments of `p4rack meter`.
#[derive(clap::Args, Debug)]
pub struct MeterArgs {
    #[command(subcommand)]
    command: MeterCommand,
}

#[derive(clap::Subcommand, Debug)]
enum MeterCommand {
    /// List the program's meters
    List(Options),
    /// Read rates and bursts of all cells or one
    Read {
        #[command(flatten)]
        meter: Meter,
        /// Also show counts by colour
        #[arg(long)]
        colors: bool,
        #[command(flatten)]
        options: Options,
    },
    /// Read repeatedly
    Watch {
        #[command(flatten)]
        meter: Meter,
        /// Also show counts by colour
        #[arg(long)]
        colors: bool,
        /// Interval in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
        every: f64,
        #[command(flatten)]
        options: Options,
    },
    /// Set rates (packets or bytes per second, as the program declares) and bursts of a cell
    Write {
        #[command(flatten)]
        meter: Meter,
        /// Committed rate, units per second
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        cir: i64,
        /// Committed burst, units
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        cburst: i64,
        /// Peak rate [default: the committed rate]
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        pir: Option<i64>,
        /// Peak burst [default: the committed burst]
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        pburst: Option<i64>,
        #[command(flatten)]
        options: Options,
    },
    /// Reset a cell: everything is green
    Delete {
        #[command(flatten)]
        meter: Meter,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(clap::Args, Debug)]
struct Meter {
    /// The meter; for direct meters, the table
    #[arg(add = ArgValueCompleter::new(complete::meters))]
    name: String,
    /// Index of the cell [default: all]
    #[arg(long, value_parser = crate::numbers::number::<i64>)]
    index: Option<i64>,
    /// For a direct meter: keys of the entry
    #[arg(value_name = "KEY=VALUE")]
    keys: Vec<String>,
}

impl Meter {
    fn item(&self, schema: &Schema, rates: Option<Rates>, colors: bool) -> Result<Item, CtrlError> {
        let direct = schema.direct_meter(&self.name).ok().map(|direct| direct.direct_table_id);
        let entry = direct_entry(schema, &self.name, &self.keys, schema.meter(&self.name).is_ok(), direct)?;
        let colors = colors.then(Colors::default);
        Ok(Item::Meter(MeterItem { meter: self.name.clone(), index: self.index, entry, rates, colors }))
    }
}

/// Runs `p4rack meter`.
pub fn meter(args: MeterArgs) -> ExitCode {
    connect::block_on(async {
        match args.command {
            MeterCommand::List(options) => list(&options, "meter").await,
            MeterCommand::Read { meter, colors, options } => {
                let found = options.read(async |schema| Ok(vec![meter.item(schema, None, colors)?])).await;
                show(found, &options, rows)
            }
            MeterCommand::Watch { meter, colors, every, options } => {
                options.watch(every, |schema| Ok(vec![meter.item(schema, None, colors)?]), rows).await
            }
            MeterCommand::Write { meter, cir, cburst, pir, pburst, options } => {
                let rates = Rates {
                    cir,
                    cburst,
                    pir: pir.unwrap_or(cir),
                    pburst: pburst.unwrap_or(cburst),
                    unit: None,
                };
                write(&options, |schema| meter.item(schema, Some(rates), false)).await
            }
            MeterCommand::Delete { meter, options } => {
                write(&options, |schema| meter.item(schema, None, false)).await
            }
        }
    })
}

/// Arguments of `p4rack register`.
#[derive(clap::Args, Debug)]
pub struct RegisterArgs {
    #[command(subcommand)]
    command: RegisterCommand,
}

#[derive(clap::Subcommand, Debug)]
enum RegisterCommand {
    /// List the program's registers
    List(Options),
    /// Read the values of all cells or one
    Read {
        /// Name of the register
        #[arg(add = ArgValueCompleter::new(complete::registers))]
        name: String,
        /// Index of the cell [default: all]
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        index: Option<i64>,
        #[command(flatten)]
        options: Options,
    },
    /// Read repeatedly
    Watch {
        /// Name of the register
        #[arg(add = ArgValueCompleter::new(complete::registers))]
        name: String,
        /// Index of the cell [default: all]
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        index: Option<i64>,
        /// Interval in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
        every: f64,
        #[command(flatten)]
        options: Options,
    },
    /// Set one cell or all
    Write {
        /// Name of the register
        #[arg(add = ArgValueCompleter::new(complete::registers))]
        name: String,
        /// Value: 17, 0x11, 02:00:00:00:00:01, …
        value: String,
        /// Index of the cell [default: all]
        #[arg(long, value_parser = crate::numbers::number::<i64>)]
        index: Option<i64>,
        #[command(flatten)]
        options: Options,
    },
}

/// Runs `p4rack register`.
pub fn register(args: RegisterArgs) -> ExitCode {
    let item = |register: String, index, value| Item::Register(RegisterItem { register, index, value });
    connect::block_on(async {
        match args.command {
            RegisterCommand::List(options) => list(&options, "register").await,
            RegisterCommand::Read { name, index, options } => {
                let wanted = item(name, index, None);
                let found = options.read(async |_| Ok(vec![wanted.clone()])).await;
                show(found, &options, rows)
            }
            RegisterCommand::Watch { name, index, every, options } => {
                options.watch(every, |_| Ok(vec![item(name, index, None)]), rows).await
            }
            RegisterCommand::Write { name, value, index, options } => {
                let item = item(name, index, Some(value));
                write(&options, |_| Ok(item.clone())).await
            }
        }
    })
}

fn rows(items: &[Item]) -> Rows {
    let mut rows = match items.first() {
        Some(Item::Meter(MeterItem { colors: Some(_), .. })) => {
            Rows::new(&["meter", "cell", "unit", "cir", "cburst", "pir", "pburst", "green", "yellow", "red"])
        }
        Some(Item::Meter(_)) => Rows::new(&["meter", "cell", "unit", "cir", "cburst", "pir", "pburst"]),
        Some(Item::Register(_)) => Rows::new(&["register", "cell", "value"]),
        _ => Rows::new(&["counter", "cell", "packets", "bytes"]),
    };
    let cell = |index: Option<i64>, entry: Option<&TableItem>| match (index, entry) {
        (_, Some(entry)) => {
            entry.keys.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        }
        (index, None) => index.map_or(String::new(), |index| index.to_string()),
    };
    for item in items {
        rows.push(match item {
            Item::Counter(counter) => {
                let counts = counter.counts.unwrap_or_default();
                let cell = cell(counter.index, counter.entry.as_ref());
                vec![counter.counter.clone(), cell, counts.packets.to_string(), counts.bytes.to_string()]
            }
            Item::Meter(meter) => {
                let mut row = vec![meter.meter.clone(), cell(meter.index, meter.entry.as_ref())];
                match meter.rates {
                    Some(Rates { cir, cburst, pir, pburst, unit }) => {
                        row.push(unit.map_or("", MeterUnit::name).to_owned());
                        row.extend([cir, cburst, pir, pburst].map(|number| number.to_string()));
                    }
                    None => row.extend(["", "green", "", "", ""].map(str::to_owned)),
                }
                if let Some(Colors { green, yellow, red }) = meter.colors {
                    row.extend(
                        [green, yellow, red].map(|seen| format!("{} ({} B)", seen.packets, seen.bytes)),
                    );
                }
                row
            }
            Item::Register(register) => {
                let value = register.value.clone().unwrap_or_default();
                vec![register.register.clone(), cell(register.index, None), value]
            }
            other => vec![other.to_string()],
        });
    }
    rows
}

async fn list(options: &Options, kind: &str) -> ExitCode {
    let schema = match options.client().await {
        Ok((_, schema)) => schema,
        Err(error) => return connect::fail(&error, options.json),
    };
    let info = schema.info();
    let table = |id| schema.table_by_id(id).map_or("?", |table| name_of(table.preamble.as_ref()));
    let mut found: Vec<(String, String)> = Vec::new();
    macro_rules! arrays {
        ($list:ident) => {
            found.extend(
                info.$list.iter().map(|array| {
                    (name_of(array.preamble.as_ref()).to_owned(), format!("{} cells", array.size))
                }),
            )
        };
    }
    macro_rules! direct {
        ($list:ident) => {
            found.extend(info.$list.iter().map(|direct| {
                let table = table(direct.direct_table_id);
                (name_of(direct.preamble.as_ref()).to_owned(), format!("one per entry of table {table}"))
            }))
        };
    }
    match kind {
        "counter" => {
            arrays!(counters);
            direct!(direct_counters);
        }
        "meter" => {
            arrays!(meters);
            direct!(direct_meters);
        }
        _ => {
            found.extend(info.registers.iter().map(|register| {
                (name_of(register.preamble.as_ref()).to_owned(), format!("{} cells", register.size))
            }));
        }
    }
    if options.json {
        let row = |(name, size): &(String, String)| json!({ "name": name, "size": size });
        super::print_json(&found.iter().map(row).collect::<Vec<_>>());
    } else {
        let mut rows = Rows::new(&[kind, "size"]);
        found.into_iter().for_each(|(name, size)| rows.push(vec![name, size]));
        print_rows(&rows);
    }
    ExitCode::SUCCESS
}
