//! Shared parts of commands on a switch's entities.
//!
//! ```text
//!  table      entries
//!  cells      counters, meters, registers
//!  group      action profiles, multicast groups, clone sessions, value sets
//!  stream     digests, packets
//! ```

pub mod cells;
pub mod group;
mod pairs;
pub mod stream;
pub mod table;

use super::connect;
use crate::output;
use p4rack_ctrl::client::name;
use p4rack_ctrl::items::Item;
use p4rack_ctrl::reconcile::key_of;
use p4rack_ctrl::{ConnectOptions, CtrlError, Link, Protocol};
use p4rack_lab::rows::Rows;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::{Entity, Update, update::Type};
use p4rack_p4rt::schema::Schema;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// Options of all these commands.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "entity-options")]
pub struct Options {
    #[command(flatten)]
    pub target: connect::Either,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print values of fields, parameters and registers in hexadecimal, instead of by their types
    #[arg(long)]
    pub raw: bool,
}

impl Options {
    /// Options of a P4Runtime connection, for entities that BFRuntime lacks. Errors: another protocol is asked for,
    /// which gives `reason`.
    pub fn p4runtime(&self, reason: &str) -> Result<ConnectOptions, CtrlError> {
        let target = self.target.for_switch(None);
        match target.protocol {
            Protocol::P4Runtime => Ok(target),
            Protocol::BfRuntime => Err(CtrlError::Input(reason.into())),
        }
    }
}

/// A write's requirement on the existing entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It must not exist.
    Insert,
    /// It must exist.
    Modify,
    /// It may exist.
    Write,
    /// It must exist, and is removed.
    Delete,
}

impl Options {
    async fn client(&self) -> Result<(Link, Schema), CtrlError> {
        let mut client = Link::to_read(self.target.for_switch(None)).await?;
        let schema = self.shown(client.schema().await?)?;
        Ok((client, schema))
    }

    /// The schema as these options want values shown.
    fn shown(&self, schema: Schema) -> Result<Schema, CtrlError> {
        match self.raw {
            true => Ok(Schema::new(in_hex(schema.info().clone()))?),
            false => Ok(schema),
        }
    }

    /// Reads what the items name. Does not require being primary.
    async fn read(
        &self,
        make: impl AsyncFn(&Schema) -> Result<Vec<Item>, CtrlError>,
    ) -> Result<Vec<Item>, CtrlError> {
        let (mut client, schema) = self.client().await?;
        let items = make(&schema).await?;
        read(&mut client, &schema, &items).await
    }

    /// Shows the named objects repeatedly: in place on a terminal, as one line of JSON each time otherwise. Ends
    /// with the first error or Ctrl-C.
    async fn watch(
        &self,
        seconds: f64,
        make: impl FnOnce(&Schema) -> Result<Vec<Item>, CtrlError>,
        rows: impl Fn(&[Item]) -> Rows,
    ) -> ExitCode {
        let in_place = !self.json && std::io::stdout().is_terminal();
        let pause = Duration::from_secs_f64(seconds.clamp(0.05, 3600.0));
        let watched = async {
            let (mut client, schema) = self.client().await?;
            let items = make(&schema)?;
            loop {
                let found = read(&mut client, &schema, &items).await?;
                if in_place {
                    print!("\x1b[2J\x1b[H");
                }
                match self.json {
                    true => println!("{}", serde_json::json!(found)),
                    false => println!("{}", rows(&found).text()),
                }
                output::flush();
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = tokio::signal::ctrl_c() => return Ok(()),
                }
            }
        };
        match watched.await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => connect::fail(&error, self.json),
        }
    }

    /// Writes items as primary.
    async fn write(&self, verb: Verb, items: &[Item]) -> Result<Vec<String>, CtrlError> {
        let mut session = Link::to_write(self.target.for_switch(None)).await?;
        let schema = self.shown(session.schema().await?)?;
        let mut updates = Vec::with_capacity(items.len());
        for item in items {
            let entity = item.entity(&schema)?;
            let kind = match verb {
                Verb::Insert => Type::Insert,
                Verb::Modify => Type::Modify,
                Verb::Delete => Type::Delete,
                Verb::Write => either(&mut session, &entity).await?,
            };
            updates.push(Update { r#type: kind as i32, entity: Some(entity) });
        }
        session.write(&schema, &updates).await?;
        let said = updates.iter().zip(items).map(|(update, item)| {
            let done = match update.r#type() {
                Type::Insert => "inserted",
                Type::Delete => "deleted",
                _ => "modified",
            };
            // As it is read, whatever way it was entered.
            let read = update.entity.as_ref().and_then(|entity| Item::of(&schema, entity).ok());
            format!("{done} {}", read.as_ref().unwrap_or(item))
        });
        Ok(said.collect())
    }
}

/// The P4Info of a program that asks for hexadecimal everywhere.
fn in_hex(mut info: P4Info) -> P4Info {
    let hex = || vec!["@format(HEX_STR)".to_owned()];
    let keys = info.tables.iter_mut().flat_map(|table| &mut table.match_fields);
    keys.chain(info.value_sets.iter_mut().flat_map(|set| &mut set.r#match))
        .for_each(|key| key.annotations = hex());
    info.actions.iter_mut().flat_map(|action| &mut action.params).for_each(|param| param.annotations = hex());
    let headers = info.controller_packet_metadata.iter_mut();
    headers.flat_map(|header| &mut header.metadata).for_each(|field| field.annotations = hex());
    let registers = info.registers.iter_mut().filter_map(|register| register.preamble.as_mut());
    registers.for_each(|preamble| preamble.annotations = hex());
    info
}

/// Reads what the items name. If there are several, omits and reports those that the switch cannot read.
async fn read(client: &mut Link, schema: &Schema, items: &[Item]) -> Result<Vec<Item>, CtrlError> {
    let request = |item: &Item| item.entity(schema);
    let mut found = client.read(items.iter().map(request).collect::<Result<_, _>>()?).await;
    if items.len() > 1 && found.as_ref().is_err_and(CtrlError::is_unimplemented) {
        let mut readable = Vec::new();
        for item in items {
            let entity = request(item)?;
            let what = name(schema, &entity);
            match client.read(vec![entity]).await {
                Ok(more) => readable.extend(more),
                Err(error) if error.is_unimplemented() => eprintln!("left out: {what}: {error}"),
                Err(error) => return Err(error),
            }
        }
        found = Ok(readable);
    }
    found?.iter().map(|entity| Item::of(schema, entity)).collect()
}

/// INSERT if the entity does not exist, otherwise MODIFY.
async fn either(session: &mut Link, entity: &Entity) -> Result<Type, CtrlError> {
    let stays = matches!(
        &entity.entity,
        Some(
            EntityKind::CounterEntry(_)
                | EntityKind::MeterEntry(_)
                | EntityKind::RegisterEntry(_)
                | EntityKind::ValueSetEntry(_)
                | EntityKind::DirectCounterEntry(_)
                | EntityKind::DirectMeterEntry(_)
        )
    );
    if stays || matches!(&entity.entity, Some(EntityKind::TableEntry(entry)) if entry.is_default_action) {
        return Ok(Type::Modify);
    }
    let found = session.read(vec![key_of(entity)]).await?;
    Ok(if found.is_empty() { Type::Insert } else { Type::Modify })
}

/// Prints the items read, or the error.
fn show(found: Result<Vec<Item>, CtrlError>, options: &Options, rows: impl Fn(&[Item]) -> Rows) -> ExitCode {
    match found {
        Ok(items) => {
            if options.json {
                print_json(&items);
            } else {
                print_rows(&rows(&items));
            }
            ExitCode::SUCCESS
        }
        Err(error) => connect::fail(&error, options.json),
    }
}

/// Prints the changes, or the error.
fn report(done: Result<Vec<String>, CtrlError>, options: &Options) -> ExitCode {
    match done {
        Ok(said) => {
            if options.json {
                println!("{:#}", serde_json::json!({ "done": said }));
            } else {
                said.iter().for_each(|line| println!("{line}"));
            }
            ExitCode::SUCCESS
        }
        Err(error) => connect::fail(&error, options.json),
    }
}

fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("structs of numbers and names are JSON");
    println!("{text}");
}

/// Prints a table, or that it is empty.
fn print_rows(rows: &Rows) {
    match rows.is_empty() {
        true => println!("nothing"),
        false => print!("{}", rows.text()),
    }
}
