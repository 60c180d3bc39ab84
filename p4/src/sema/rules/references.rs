//! `@refers_to(table, key)` and `@referenced_by(table, key)`.
//!
//! All references from one thing to another belong together: the values must exist in one entry there. A reference to
//! something that the program does not have is not checked, which a warning says.

use crate::ast::AnnotationToken;
use crate::diag::Diagnostic;
use crate::ir::{
    ActionId, Annotation, MatchKind, Named, Program, REPLICA_INSTANCE, REPLICA_PORT, Reference, Referent,
    Referrer, Table, TableId,
};

/// The name of multicast groups in annotations.
const GROUPS: &str = "builtin::multicast_group_table";

pub(super) fn find(program: &Program, diagnostics: &mut Vec<Diagnostic>) -> Vec<Reference> {
    let mut found = Found { program, references: Vec::new(), diagnostics };
    for (number, table) in program.tables.iter().enumerate() {
        let number = TableId(number as u32);
        for (at, key) in keys(table).enumerate() {
            found.from(Referrer::Table(number), at, key);
            found.to(Referent::Table(number), at, key);
        }
    }
    for (number, action) in program.actions.iter().enumerate() {
        for (at, param) in action.params.iter().enumerate() {
            found.from(Referrer::Action(ActionId(number as u32)), at, &param.named);
        }
    }
    found.references
}

/// The keys that the control plane sees.
fn keys(table: &Table) -> impl Iterator<Item = &Named> {
    table.keys.iter().filter(|key| key.kind != MatchKind::Selector).map(|key| &key.named)
}

struct Found<'a> {
    program: &'a Program,
    references: Vec<Reference>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Found<'_> {
    /// References of a key or parameter.
    fn from(&mut self, from: Referrer, at: usize, named: &Named) {
        for annotation in named.annotations.iter().filter(|annotation| annotation.name == "refers_to") {
            match target(self.program, annotation) {
                Ok((to, position)) => self.add(from, to, (at, position)),
                Err(why) => self.unchecked(annotation, &why),
            }
        }
    }

    /// References to a key.
    fn to(&mut self, to: Referent, at: usize, named: &Named) {
        for annotation in named.annotations.iter().filter(|annotation| annotation.name == "referenced_by") {
            match source(self.program, annotation) {
                Ok((from, position)) => self.add(from, to, (position, at)),
                Err(why) => self.unchecked(annotation, &why),
            }
        }
    }

    fn add(&mut self, from: Referrer, to: Referent, pair: (usize, usize)) {
        let known = self.references.iter_mut().find(|known| (known.from, known.to) == (from, to));
        match known {
            Some(known) if known.fields.contains(&pair) => {}
            Some(known) => known.fields.push(pair),
            None => self.references.push(Reference { from, to, fields: vec![pair] }),
        }
    }

    fn unchecked(&mut self, annotation: &Annotation, why: &str) {
        let message = format!("`@{}` is not checked: {why}", annotation.name);
        let diagnostic = Diagnostic::warning(annotation.span, message);
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }
}

/// The table and the field that an annotation names.
fn words(annotation: &Annotation) -> Result<(String, String), String> {
    let text = |tokens: &[AnnotationToken]| tokens.iter().map(|token| &*token.text).collect::<String>();
    match annotation.tokens.split(|token| token.text == "," && !token.is_string).collect::<Vec<_>>()[..] {
        [table, field] if !table.is_empty() && !field.is_empty() => Ok((text(table), text(field))),
        _ => Err("expected a table and a key, separated by a comma".to_owned()),
    }
}

/// Target that `@refers_to` names.
fn target(program: &Program, annotation: &Annotation) -> Result<(Referent, usize), String> {
    let (table, field) = words(annotation)?;
    if table == GROUPS {
        return match field.as_str() {
            "multicast_group_id" => Ok((Referent::Groups, 0)),
            _ => Err(format!("{GROUPS} has no `{field}`; it has `multicast_group_id`")),
        };
    }
    let (number, table) = table_named(program, &table)?;
    let at = key_named(table, &field)?;
    match keys_of(table).nth(at) {
        Some(MatchKind::Exact | MatchKind::Optional) => Ok((Referent::Table(number), at)),
        _ => Err(format!("key `{field}` of {} is not matched exactly", table.named.name)),
    }
}

fn keys_of(table: &Table) -> impl Iterator<Item = MatchKind> {
    table.keys.iter().map(|key| key.kind).filter(|kind| *kind != MatchKind::Selector)
}

/// Source that `@referenced_by` names.
fn source(program: &Program, annotation: &Annotation) -> Result<(Referrer, usize), String> {
    let (table, field) = words(annotation)?;
    if table == GROUPS {
        return match field.as_str() {
            "replica.port" => Ok((Referrer::Replicas, REPLICA_PORT)),
            "replica.instance" => Ok((Referrer::Replicas, REPLICA_INSTANCE)),
            _ => Err(format!("{GROUPS} has no `{field}`; it has `replica.port` and `replica.instance`")),
        };
    }
    let (number, table) = table_named(program, &table)?;
    Ok((Referrer::Table(number), key_named(table, &field)?))
}

/// The table of a full name, or of the end of one.
fn table_named<'a>(program: &'a Program, name: &str) -> Result<(TableId, &'a Table), String> {
    let ending = format!(".{name}");
    let fits = |table: &Table| table.named.name == name || table.named.name.ends_with(&ending);
    let mut fitting = program.tables.iter().enumerate().filter(|(_, table)| fits(table));
    match (fitting.next(), fitting.next()) {
        (Some((number, table)), None) => Ok((TableId(number as u32), table)),
        (Some(_), Some(_)) => Err(format!("there are several tables `{name}`; give the full name")),
        (None, _) => Err(format!("no table `{name}` is applied")),
    }
}

fn key_named(table: &Table, name: &str) -> Result<usize, String> {
    keys(table).position(|key| key.name == name).ok_or_else(|| {
        let known: Vec<&str> = keys(table).map(|key| &*key.name).collect();
        format!("{} has no key `{name}`; it has: {}", table.named.name, known.join(", "))
    })
}
