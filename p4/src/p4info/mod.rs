//! P4Info: the interface of a program for the control plane.

mod entries;
mod ids;
mod names;
mod objects;
mod types;

pub use entries::field_match;
pub use ids::{Ids, jenkins_hash};

use crate::ir::{Annotation, AnnotationValue, Named, Program, Structured};
use ids::Symbols;
use p4rack_p4rt::p4::config::v1 as pb;
use types::Types;

/// Builds the P4Info of a program and the ids of the IR's objects.
pub fn generate(program: &Program) -> (pb::P4Info, Ids) {
    let symbols = Symbols::new(program);
    let mut info = pb::P4Info { pkg_info: Some(pkg_info(program)), ..pb::P4Info::default() };
    let mut types = Types::new(program);
    objects::tables(program, &symbols, &mut types, &mut info);
    objects::actions(program, &symbols, &mut types, &mut info);
    objects::instances(program, &symbols, &mut types, &mut info);
    objects::controller_headers(program, &symbols, &mut types, &mut info);
    objects::value_sets(program, &symbols, &mut info);
    objects::digests(program, &symbols, &mut types, &mut info);
    info.type_info = types.finish();
    (info, symbols.ids)
}

fn pkg_info(program: &Program) -> pb::PkgInfo {
    let mut info = pb::PkgInfo { arch: program.arch.clone(), ..pb::PkgInfo::default() };
    for annotation in &program.pkginfo {
        let Some(Structured::KeyValues(pairs)) = &annotation.structured else { continue };
        for (key, value) in pairs {
            match (annotation.name.as_str(), key.as_str(), value) {
                ("pkginfo", "name", AnnotationValue::Str(s)) => info.name.clone_from(s),
                ("pkginfo", "version", AnnotationValue::Str(s)) => info.version.clone_from(s),
                ("pkginfo", "organization", AnnotationValue::Str(s)) => info.organization.clone_from(s),
                ("pkginfo", "contact", AnnotationValue::Str(s)) => info.contact.clone_from(s),
                ("pkginfo", "url", AnnotationValue::Str(s)) => info.url.clone_from(s),
                ("pkginfo", "arch", AnnotationValue::Str(s)) => info.arch.clone_from(s),
                ("platform_property", key, AnnotationValue::Int(n)) => {
                    let properties = info.platform_properties.get_or_insert_default();
                    let n = i32::try_from(*n).unwrap_or(i32::MAX);
                    match key {
                        "multicast_group_table_size" => properties.multicast_group_table_size = n,
                        "multicast_group_table_total_replicas" => {
                            properties.multicast_group_table_total_replicas = n;
                        }
                        "multicast_group_table_max_replicas_per_entry" => {
                            properties.multicast_group_table_max_replicas_per_entry = n;
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
    // Those written in square brackets are shown verbatim as well.
    let fields =
        |a: &Annotation| !a.body.is_empty() && matches!(a.name.as_str(), "pkginfo" | "platform_property");
    let others: Vec<Annotation> = program.pkginfo.iter().filter(|a| !fields(a)).cloned().collect();
    let shown = annotations(&others, &[]);
    info.structured_annotations = shown.structured;
    info.annotations = shown.plain;
    info.doc = documentation(&program.pkginfo);
    info
}

/// Annotations in their two forms, plain and structured.
pub(crate) struct Shown {
    pub plain: Vec<String>,
    pub structured: Vec<pb::StructuredAnnotation>,
}

/// Annotations as P4Info shows them, without the `hidden` names.
pub(crate) fn annotations(list: &[Annotation], hidden: &[&str]) -> Shown {
    let mut shown = Shown { plain: Vec::new(), structured: Vec::new() };
    for annotation in list {
        match &annotation.structured {
            Some(body) => shown.structured.push(structured(&annotation.name, body)),
            None if matches!(annotation.name.as_str(), "brief" | "description" | "name" | "id") => {}
            None if hidden.contains(&annotation.name.as_str()) => {}
            None if annotation.body.is_empty() => shown.plain.push(format!("@{}", annotation.name)),
            None => shown.plain.push(format!("@{}({})", annotation.name, annotation.body)),
        }
    }
    shown
}

fn structured(name: &str, body: &Structured) -> pb::StructuredAnnotation {
    use pb::structured_annotation::Body;
    let expression = |value: &AnnotationValue| pb::Expression {
        value: Some(match value {
            AnnotationValue::Str(s) => pb::expression::Value::StringValue(s.clone()),
            AnnotationValue::Int(i) => pb::expression::Value::Int64Value(*i),
            AnnotationValue::Bool(b) => pb::expression::Value::BoolValue(*b),
        }),
    };
    let body = match body {
        // `@x[]` does not say which form it has.
        Structured::List(items) if items.is_empty() => None,
        Structured::List(items) => Some(Body::ExpressionList(pb::ExpressionList {
            expressions: items.iter().map(expression).collect(),
        })),
        Structured::KeyValues(items) => {
            let pair = |(key, value): &(String, _)| pb::KeyValuePair {
                key: key.clone(),
                value: Some(expression(value)),
            };
            Some(Body::KvPairList(pb::KeyValuePairList { kv_pairs: items.iter().map(pair).collect() }))
        }
    };
    pb::StructuredAnnotation { name: name.to_owned(), body, ..pb::StructuredAnnotation::default() }
}

/// `@brief` and `@description`.
fn documentation(list: &[Annotation]) -> Option<pb::Documentation> {
    let text = |name: &str| {
        let found = list.iter().find(|a| a.name == name)?;
        Some(found.body.trim_matches('"').to_owned())
    };
    let (brief, description) = (text("brief"), text("description"));
    if brief.is_none() && description.is_none() {
        return None;
    }
    Some(pb::Documentation { brief: brief.unwrap_or_default(), description: description.unwrap_or_default() })
}

fn preamble(named: &Named, id: u32, alias: String, hidden: &[&str]) -> Option<pb::Preamble> {
    let shown = annotations(&named.annotations, hidden);
    Some(pb::Preamble {
        id,
        name: named.name.clone(),
        alias,
        annotations: shown.plain,
        structured_annotations: shown.structured,
        doc: documentation(&named.annotations),
        ..pb::Preamble::default()
    })
}
