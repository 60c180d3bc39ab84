//! A switch's program and entities before an installation, and the entities that come from the program's text.

use crate::carry::given;
use crate::client::Client;
use crate::error::CtrlError;
use crate::normal::{Key, key, normal};
use crate::readback::{self, SwitchContents, is_initial_default};
use crate::reconcile::is_written;
use p4rack_p4::{Compiled, Options, preprocess};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig};
use p4rack_p4rt::schema::Schema;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A program's name in errors, which are not shown: the switch has accepted it.
const NAME: &str = "program.p4";

/// Entries that a program's text gives its tables.
#[derive(Debug)]
pub struct Own {
    schema: Schema,
    /// Entries that controllers may change, in normal form.
    entries: BTreeMap<Key, Entity>,
    /// Constant entries.
    constants: BTreeMap<Key, Entity>,
}

impl Own {
    /// The entries of a program. A text that is missing, or neither P4 nor BMv2's JSON, gives none.
    pub fn of(config: &ForwardingPipelineConfig, schema: &Schema) -> Own {
        let none = |schema| Own { schema, entries: BTreeMap::new(), constants: BTreeMap::new() };
        let tables = &schema.info().tables;
        let p4info_has_all = tables.iter().all(|table| {
            table.initial_default_action.is_some() && !table.is_const_table && !table.has_initial_entries
        });
        if p4info_has_all {
            return none(schema.clone());
        }
        let Some(compiled) = compile(config, schema.info()) else { return none(schema.clone()) };
        let (mut entries, mut constants) = (BTreeMap::new(), BTreeMap::new());
        for entry in compiled.initial_entries() {
            let all = if entry.is_const { &mut constants } else { &mut entries };
            let entity = normal(Entity { entity: Some(EntityKind::TableEntry(entry)) });
            all.insert(key(&entity), entity);
        }
        Own { schema: Schema::new(compiled.p4info).unwrap_or_else(|_| schema.clone()), entries, constants }
    }

    /// All entries that controllers may change.
    pub fn entries(&self) -> impl Iterator<Item = &Entity> {
        self.entries.values()
    }

    /// All others, by their keys.
    pub fn constants(&self) -> &BTreeMap<Key, Entity> {
        &self.constants
    }

    /// Whether the text gives exactly this entry.
    fn gives(&self, entity: &Entity) -> bool {
        given(&self.entries, entity) == Some(true)
    }

    /// Whether a switch with this program holds an entity before anything is written.
    pub fn has(&self, entity: &Entity) -> bool {
        let is_default =
            matches!(&entity.entity, Some(EntityKind::TableEntry(entry)) if entry.is_default_action);
        match is_default {
            true => is_initial_default(&self.schema, entity) == Some(true),
            false => given(&self.constants, entity) == Some(true),
        }
    }

    /// Everything that a switch with this program holds besides constant entries, default entries of the text, and cells of the
    /// data plane.
    pub async fn read(&self, client: &mut Client, schema: &Schema) -> Result<SwitchContents, CtrlError> {
        let mut found = readback::read_all(client, schema).await?;
        let is_default = |entity: &Entity| is_initial_default(&self.schema, entity) == Some(true);
        // Not every switch says which entries are constant.
        let is_constant = |entity: &Entity| given(&self.constants, entity).is_some();
        found.entities.retain(|entity| is_written(entity) && !is_default(entity) && !is_constant(entity));
        Ok(found)
    }
}

fn compile(config: &ForwardingPipelineConfig, info: &P4Info) -> Option<Compiled> {
    let text = std::str::from_utf8(&config.p4_device_config).ok().filter(|text| !text.is_empty())?;
    if p4rack_bmv2::is_json(text) {
        return p4rack_bmv2::read(text, NAME, Some(info)).ok();
    }
    // The text comes from the network, so it may not include files of this machine.
    let no_files = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
    preprocess::run_with(text, NAME, &Options::default(), &no_files).ok()?;
    p4rack_p4::compile(text, NAME, &Options::default()).ok()
}

/// A running program and its entities.
#[derive(Debug)]
pub struct Before {
    /// The program.
    pub config: ForwardingPipelineConfig,
    /// Its names.
    pub schema: Schema,
    /// What controllers have written.
    pub entities: Vec<Entity>,
    /// Entries of its text that nothing has changed.
    pub own: Vec<Entity>,
    /// What its text gives its tables.
    pub text: Own,
    /// Kinds of entities that the switch can't read.
    pub unreadable: Vec<&'static str>,
}

impl Before {
    /// Reads it; `None` if the switch has no program.
    pub async fn read(client: &mut Client) -> Result<Option<Before>, CtrlError> {
        let Some(config) = client.pipeline().await? else { return Ok(None) };
        let Some(info) = config.p4info.clone() else { return Ok(None) };
        let schema = Schema::new(info).map_err(|error| CtrlError::Program(error.to_string()))?;
        let text = Own::of(&config, &schema);
        let SwitchContents { entities, unreadable } = text.read(client, &schema).await?;
        let (own, entities) = entities.into_iter().partition(|entity| text.gives(entity));
        Ok(Some(Before { config, schema, entities, own, text, unreadable }))
    }

    /// Everything that it holds.
    pub fn all(&self) -> Vec<Entity> {
        [self.entities.as_slice(), &self.own].concat()
    }
}
