//! Differences between two schemas.

use crate::schema::{Field, Schema, Table};

/// The properties of a field that matter to clients.
fn same_field(one: &Field, other: &Field) -> bool {
    (one.id, &one.name, &one.kind) == (other.id, &other.name, &other.kind)
}

fn same_fields(one: &[Field], other: &[Field]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_field(one, other))
}

/// The first difference between two tables of the same name.
fn difference(own: &Table, given: &Table) -> Option<String> {
    let name = &own.name;
    if own.id != given.id {
        return Some(format!("table `{name}` has id 0x{:08x}, given is 0x{:08x}", own.id, given.id));
    }
    if own.table_type != given.table_type {
        return Some(format!("table `{name}` is a {}, given is a {}", own.table_type, given.table_type));
    }
    for key in &own.keys {
        let same = given.keys.iter().any(|other| {
            (other.id, &other.name, other.match_type, &other.kind)
                == (key.id, &key.name, key.match_type, &key.kind)
        });
        if !same {
            return Some(format!("table `{name}`: key `{}` is not given, or is another", key.name));
        }
    }
    if own.keys.len() != given.keys.len() {
        return Some(format!("table `{name}` has {} keys, given are {}", own.keys.len(), given.keys.len()));
    }
    for action in &own.actions {
        let same = given.actions.iter().any(|other| {
            (other.id, &other.name) == (action.id, &action.name) && same_fields(&action.fields, &other.fields)
        });
        if !same {
            return Some(format!("table `{name}`: action `{}` is not given, or is another", action.name));
        }
    }
    if own.actions.len() != given.actions.len() {
        return Some(format!(
            "table `{name}` has {} actions, given are {}",
            own.actions.len(),
            given.actions.len()
        ));
    }
    let other = own.fields.iter().find(|field| !given.fields.iter().any(|other| same_field(field, other)));
    if let Some(field) = other {
        return Some(format!("table `{name}`: field `{}` is not given, or is another", field.name));
    }
    (own.fields.len() != given.fields.len())
        .then(|| format!("table `{name}` has {} fields, given are {}", own.fields.len(), given.fields.len()))
}

impl Schema {
    /// Differences of the `given` schema from this one, one sentence per table.
    pub fn differences(&self, given: &Schema) -> Vec<String> {
        let named = |schema: &Schema, name: &str| schema.tables().iter().position(|table| table.name == name);
        let own = self.tables().iter().filter_map(|table| match named(given, &table.name) {
            Some(place) => difference(table, &given.tables()[place]),
            None => Some(format!("table `{}` is not given", table.name)),
        });
        let others = given.tables().iter().filter(|table| named(self, &table.name).is_none());
        let others = others.map(|table| format!("the program has no table `{}`", table.name));
        own.chain(others).collect()
    }
}
