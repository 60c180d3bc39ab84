//! The schema of a program or of the fixed tables (bf-rt.json): maps names to ids.
//!
//! Leading parts of a name may be left out if the rest is unique: `dmac` for `pipe.ingress.dmac`.

use crate::value::Kind;
use p4rack_p4rt::nearest::nearest;
use serde::Deserialize;
use std::collections::HashMap;
use thiserror::Error;

/// Why a schema can't be read, or a name can't be resolved.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// The text is not a schema.
    #[error("not a BFRuntime schema: {0}")]
    Json(#[from] serde_json::Error),
    /// Two tables have the same name or id.
    #[error("the schema has two tables `{0}`")]
    Twice(String),
    /// A field has an unknown type.
    #[error("field `{field}` of `{table}` has a type that no field has: {kind}")]
    Kind {
        /// The table or learn filter.
        table: String,
        /// The field.
        field: String,
        /// Its type.
        kind: String,
    },
    /// Nothing has this name.
    #[error("there is no {what} `{name}`{}", hint(.nearest))]
    Unknown {
        /// Kind of object that was looked for.
        what: String,
        /// The name.
        name: String,
        /// A similar name, if there is one.
        nearest: Option<String>,
    },
    /// Several objects have this name.
    #[error("{what} `{name}` may be {}", .candidates.join(" or "))]
    Ambiguous {
        /// Kind of object that was looked for.
        what: String,
        /// The name.
        name: String,
        /// Full names that end in it.
        candidates: Vec<String>,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// Match kind of a key field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MatchType {
    /// Exact.
    Exact,
    /// Ternary: value and mask.
    Ternary,
    /// Longest prefix.
    #[serde(rename = "LPM")]
    Lpm,
    /// Range: two ends, both inclusive.
    Range,
    /// Exact, or anything.
    Optional,
}

/// A field of a key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Match kind.
    pub match_type: MatchType,
    /// Type.
    pub kind: Kind,
    /// Whether every entry must have it.
    pub mandatory: bool,
}

/// A field of an entry's data.
#[derive(Clone, Debug)]
pub struct Field {
    /// Id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Type.
    pub kind: Kind,
    /// Whether every entry must have it.
    pub mandatory: bool,
    /// Whether it can only be read.
    pub read_only: bool,
    /// Fields of a group, if it holds groups.
    pub group: Vec<Field>,
}

/// An action of a table.
#[derive(Clone, Debug)]
pub struct Action {
    /// Id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Its parameters, and fields that only entries with this action have.
    pub fields: Vec<Field>,
    /// Whether entries may have it; otherwise it is only for the default entry.
    pub in_entries: bool,
    /// Whether it may be the default action.
    pub as_default: bool,
}

/// A table of the program, an object with cells, or a fixed table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Its type as in the schema: `MatchAction_Direct`, `Register`, `PortConfigure`, …
    pub table_type: String,
    /// Maximum entries; 0 if the schema doesn't say.
    pub size: u64,
    /// Key fields.
    pub keys: Vec<Key>,
    /// Actions, if it has any.
    pub actions: Vec<Action>,
    /// Fields that all entries have.
    pub fields: Vec<Field>,
    /// Attributes that can be set.
    pub attributes: Vec<String>,
    /// Operations that it supports.
    pub operations: Vec<String>,
    /// Whether its default action can't be changed.
    pub has_const_default_action: bool,
    /// Numbers of the tables that its entries refer to.
    pub depends_on: Vec<u32>,
}

/// A digest.
#[derive(Clone, Debug)]
pub struct Learn {
    /// Id.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Fields.
    pub fields: Vec<Field>,
}

/// Tables by name and id.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    tables: Vec<Table>,
    learns: Vec<Learn>,
    by_name: HashMap<String, usize>,
    by_id: HashMap<u32, usize>,
}

impl Schema {
    /// Reads a schema.
    pub fn parse(json: &[u8]) -> Result<Schema, SchemaError> {
        let mut schema = Schema::default();
        schema.add(json)?;
        Ok(schema)
    }

    /// Adds another schema: a switch has that of the fixed tables in addition to its program's.
    pub fn add(&mut self, json: &[u8]) -> Result<(), SchemaError> {
        let file: json::File = serde_json::from_slice(json)?;
        for table in file.tables {
            let table = table.resolve()?;
            let place = self.tables.len();
            let id_taken = self.by_id.insert(table.id, place).is_some();
            if self.by_name.insert(table.name.clone(), place).is_some() || id_taken {
                return Err(SchemaError::Twice(table.name));
            }
            self.tables.push(table);
        }
        for learn in file.learn_filters {
            let fields = json::fields(&learn.name, learn.fields)?;
            self.learns.push(Learn { id: learn.id, name: learn.name, fields });
        }
        Ok(())
    }

    /// All tables, in the schema's order.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// All digests.
    pub fn learns(&self) -> &[Learn] {
        &self.learns
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Result<&Table, SchemaError> {
        if let Some(place) = self.by_name.get(name) {
            return Ok(&self.tables[*place]);
        }
        by_suffix("table", name, &self.tables, |table| &table.name)
    }

    /// The table with this id.
    pub fn table_by_id(&self, id: u32) -> Option<&Table> {
        self.by_id.get(&id).map(|place| &self.tables[*place])
    }
}

impl Table {
    /// Whether an object of the program has this name. The table's may begin with the pipeline's.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.name.split_once('.').is_some_and(|(_, inner)| inner == name)
    }

    /// The key field with this name.
    pub fn key(&self, name: &str) -> Result<&Key, SchemaError> {
        by_suffix(&format!("key of table `{}`:", self.name), name, &self.keys, |key| &key.name)
    }

    /// The action with this name.
    pub fn action(&self, name: &str) -> Result<&Action, SchemaError> {
        by_suffix(&format!("action of table `{}`:", self.name), name, &self.actions, |action| &action.name)
    }

    /// The action with this id.
    pub fn action_by_id(&self, id: u32) -> Option<&Action> {
        self.actions.iter().find(|action| action.id == id)
    }

    /// Data fields of entries with this action, or without one.
    pub fn fields_of<'a>(&'a self, action: Option<&'a Action>) -> impl Iterator<Item = &'a Field> {
        action.into_iter().flat_map(|action| &action.fields).chain(&self.fields)
    }

    /// A data field of entries with this action, by name.
    pub fn field<'a>(&'a self, action: Option<&'a Action>, name: &str) -> Result<&'a Field, SchemaError> {
        let fields: Vec<&Field> = self.fields_of(action).collect();
        let what = match action {
            Some(action) => format!("field of action `{}`:", action.name),
            None => format!("field of table `{}`:", self.name),
        };
        by_suffix(&what, name, &fields, |field| &field.name).copied()
    }
}

/// The only object with this name, or whose name ends in it after a dot.
fn by_suffix<'a, T>(
    what: &str,
    name: &str,
    all: &'a [T],
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, SchemaError> {
    if let Some(exact) = all.iter().find(|one| name_of(one) == name) {
        return Ok(exact);
    }
    let ends = |whole: &str| whole.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    let candidates: Vec<&T> = all.iter().filter(|one| ends(name_of(one))).collect();
    match candidates[..] {
        [one] => Ok(one),
        [] => {
            // Compares with full names and with their last parts.
            let names = all.iter().map(|one| name_of(one).as_str());
            let last = names.clone().filter_map(|name| name.rsplit('.').next());
            let nearest = nearest(name, names.chain(last));
            Err(SchemaError::Unknown { what: what.to_owned(), name: name.to_owned(), nearest })
        }
        _ => {
            let candidates = candidates.into_iter().map(|one| name_of(one).clone()).collect();
            Err(SchemaError::Ambiguous { what: what.to_owned(), name: name.to_owned(), candidates })
        }
    }
}

/// The structure of the file.
mod json {
    use super::{Action, Field, Key, Kind, MatchType, SchemaError, Table};
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct File {
        pub tables: Vec<FileTable>,
        #[serde(default)]
        pub learn_filters: Vec<FileLearn>,
    }

    #[derive(Deserialize)]
    pub(super) struct FileTable {
        id: u32,
        name: String,
        table_type: String,
        #[serde(default)]
        size: u64,
        key: Vec<FileKey>,
        #[serde(default)]
        action_specs: Vec<FileAction>,
        #[serde(default)]
        data: Vec<FileData>,
        #[serde(default)]
        attributes: Vec<String>,
        #[serde(default)]
        supported_operations: Vec<String>,
        #[serde(default)]
        has_const_default_action: bool,
        #[serde(default)]
        depends_on: Vec<u32>,
    }

    #[derive(Deserialize)]
    pub(super) struct FileLearn {
        pub id: u32,
        pub name: String,
        pub fields: Vec<FileField>,
    }

    #[derive(Deserialize)]
    struct FileKey {
        id: u32,
        name: String,
        match_type: MatchType,
        #[serde(rename = "type")]
        kind: FileKind,
        #[serde(default)]
        mandatory: bool,
    }

    #[derive(Deserialize)]
    struct FileAction {
        id: u32,
        name: String,
        #[serde(default)]
        data: Vec<FileParameter>,
        #[serde(default)]
        action_scope: Option<String>,
    }

    /// A parameter, or in fixed tables a data field.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum FileParameter {
        Plain(FileField),
        Wrapped(FileData),
    }

    /// A field, or several alternatives.
    #[derive(Deserialize)]
    struct FileData {
        #[serde(default)]
        singleton: Option<FileField>,
        #[serde(default)]
        oneof: Vec<FileField>,
        #[serde(default)]
        mandatory: bool,
        #[serde(default)]
        read_only: bool,
    }

    #[derive(Deserialize)]
    pub(super) struct FileField {
        id: u32,
        name: String,
        #[serde(default)]
        repeated: bool,
        #[serde(default)]
        mandatory: bool,
        #[serde(default)]
        read_only: bool,
        #[serde(rename = "type", default)]
        kind: Option<FileKind>,
        #[serde(default)]
        container: Vec<FileData>,
    }

    #[derive(Deserialize)]
    struct FileKind {
        #[serde(rename = "type")]
        name: String,
        #[serde(default)]
        width: u32,
        #[serde(default)]
        choices: Vec<String>,
    }

    /// Maximum width of a field in bits, far more than any device matches.
    const WIDTH_MAX: u32 = 1 << 16;

    impl FileKind {
        fn resolve(self, repeated: bool) -> Result<Kind, String> {
            Ok(match (self.name.as_str(), repeated) {
                ("bytes", false) if self.width <= WIDTH_MAX => Kind::Bits(self.width),
                ("bytes", false) => return Err(format!("bytes of {} bits", self.width)),
                ("uint8" | "int8", false) => Kind::Bits(8),
                ("uint16" | "int16", false) => Kind::Bits(16),
                ("uint32" | "int32", false) => Kind::Bits(32),
                ("uint64" | "int64", false) => Kind::Bits(64),
                ("bytes", true) if self.width == 8 => Kind::Octets,
                ("uint8" | "uint16" | "uint32" | "uint64" | "bytes", true) => Kind::Numbers,
                ("bool", false) => Kind::Bool,
                ("bool", true) => Kind::Bools,
                ("float", false) => Kind::Float,
                ("string", false) => Kind::Text(self.choices),
                ("string", true) => Kind::Texts,
                _ => return Err(self.name),
            })
        }
    }

    impl FileTable {
        pub(super) fn resolve(self) -> Result<Table, SchemaError> {
            let table = self.name;
            let unknown =
                |field: &str, kind| SchemaError::Kind { table: table.clone(), field: field.to_owned(), kind };
            let keys = self.key.into_iter().map(|key| {
                let kind = key.kind.resolve(false).map_err(|kind| unknown(&key.name, kind))?;
                let FileKey { id, name, match_type, mandatory, .. } = key;
                Ok(Key { id, name, match_type, kind, mandatory })
            });
            let keys: Vec<Key> = keys.collect::<Result<_, SchemaError>>()?;
            let actions = self.action_specs.into_iter().map(|action| {
                let scope = action.action_scope.as_deref();
                let mut fields = Vec::new();
                for parameter in action.data {
                    match parameter {
                        FileParameter::Plain(field) => fields.push(resolve(&table, field)?),
                        FileParameter::Wrapped(wrapped) => fields.extend(data(&table, vec![wrapped])?),
                    }
                }
                Ok(Action {
                    id: action.id,
                    fields,
                    name: action.name,
                    in_entries: scope != Some("DefaultOnly"),
                    as_default: scope != Some("TableOnly"),
                })
            });
            let actions: Vec<Action> = actions.collect::<Result<_, SchemaError>>()?;
            let fields = data(&table, self.data)?;
            Ok(Table {
                id: self.id,
                table_type: self.table_type,
                size: self.size,
                keys,
                actions,
                fields,
                attributes: self.attributes,
                operations: self.supported_operations,
                has_const_default_action: self.has_const_default_action,
                depends_on: self.depends_on,
                name: table,
            })
        }
    }

    pub(super) fn fields(table: &str, fields: Vec<FileField>) -> Result<Vec<Field>, SchemaError> {
        fields.into_iter().map(|field| resolve(table, field)).collect()
    }

    fn data(table: &str, data: Vec<FileData>) -> Result<Vec<Field>, SchemaError> {
        let mut fields = Vec::new();
        for one in data {
            for field in one.singleton.into_iter().chain(one.oneof) {
                let mandatory = field.mandatory || one.mandatory;
                let read_only = field.read_only || one.read_only;
                fields.push(Field { mandatory, read_only, ..resolve(table, field)? });
            }
        }
        Ok(fields)
    }

    fn resolve(table: &str, field: FileField) -> Result<Field, SchemaError> {
        let kind = match field.kind {
            Some(kind) => kind.resolve(field.repeated).map_err(|kind| SchemaError::Kind {
                table: table.to_owned(),
                field: field.name.clone(),
                kind,
            })?,
            None => Kind::Groups,
        };
        Ok(Field {
            id: field.id,
            name: field.name,
            kind,
            mandatory: field.mandatory,
            read_only: field.read_only,
            group: data(table, field.container)?,
        })
    }
}
