//! Header types and instances, stacks, unions, extern objects, lists.

use super::places::{Place, VARBIT_FIELD, shape, unions};
use super::{Refused, Result, Writer};
use crate::names::{FIELDS, PADDING, SCALARS, STANDARD};
use p4rack_p4::ast::Span;
use p4rack_p4::ir::{HeaderId, InstanceKind, Stack, Ty, Unit};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The id of the field list without fields.
pub(super) const EMPTY_LIST: u32 = 1;

impl Writer {
    /// The parts of the JSON that describe headers.
    pub(super) fn headers(&self) -> Result<Map<String, Value>> {
        let mut types = vec![self.scalars_type()?, standard_type()];
        let mut headers = vec![
            json!({ "name": SCALARS, "id": 0, "header_type": SCALARS, "metadata": true, "pi_omit": true }),
            json!({ "name": STANDARD, "id": 1, "header_type": STANDARD, "metadata": true, "pi_omit": true }),
        ];
        let first = headers.len();
        let mut known = BTreeSet::new();
        for (at, header) in self.program.headers.iter().enumerate() {
            let type_name = &self.places.types[at];
            if known.insert(type_name) {
                types.push(header_type(type_name, types.len(), &shape(&self.program, header))?);
            }
            headers.push(json!({
                "name": self.places.headers[at],
                "id": first + at,
                "header_type": type_name,
                "metadata": false,
                "pi_omit": true,
            }));
        }
        for (name, width) in &self.places.varbits {
            // No name in a program has this sign.
            let type_name = format!("struct$varbit{width}");
            let is_known = types.iter().any(|one| one["name"] == *type_name);
            if !is_known {
                let fields = [(VARBIT_FIELD.to_owned(), Ty::Varbit(*width))];
                types.push(header_type(&type_name, types.len(), &fields)?);
            }
            headers.push(json!({
                "name": name,
                "id": headers.len(),
                "header_type": type_name,
                "metadata": true,
                "pi_omit": true,
            }));
        }
        let id = |header: &HeaderId| first + header.0 as usize;
        let ids = |list: &[HeaderId]| list.iter().map(id).collect::<Vec<usize>>();
        let mut stacks = Vec::new();
        let mut union_stacks = Vec::new();
        let mut union_types: Vec<Value> = Vec::new();
        let mut union_shapes: Vec<Value> = Vec::new();
        let mut all_unions: Vec<Value> = Vec::new();
        let unions = unions(&self.program);
        for ((name, members), same) in self.places.unions.iter().zip(&unions) {
            debug_assert_eq!(members, same);
            let member = |header: &HeaderId| {
                let header_name = &self.places.headers[header.0 as usize];
                let own = header_name.rsplit('.').next().unwrap_or_default();
                json!([own, self.places.types[header.0 as usize]])
            };
            let shape: Value = members.iter().map(member).collect();
            let at = union_shapes.iter().position(|other| *other == shape).unwrap_or(union_shapes.len());
            let type_name = format!("union_{at}");
            if at == union_shapes.len() {
                union_types.push(json!({ "name": type_name, "id": at, "headers": shape }));
                union_shapes.push(shape);
            }
            all_unions.push(json!({
                "name": name,
                "id": all_unions.len(),
                "union_type": type_name,
                "header_ids": ids(members),
                "pi_omit": true,
            }));
        }
        for (at, stack) in self.program.stacks.iter().enumerate() {
            let name = &self.places.stacks[at];
            let type_of =
                |stack: &Stack| stack.elements.first().map(|first| &self.places.types[first.0 as usize]);
            if !self.is_union_stack(p4rack_p4::ir::StackId(at as u32)) {
                stacks.push(json!({
                    "name": name,
                    "id": stacks.len(),
                    "header_type": type_of(stack),
                    "size": stack.elements.len(),
                    "header_ids": ids(&stack.elements),
                }));
                continue;
            }
            if self.member(p4rack_p4::ir::StackId(at as u32)) > 0 {
                continue;
            }
            let of = |element: &HeaderId| unions.iter().position(|members| members.contains(element));
            let union_ids: Vec<usize> = stack.elements.iter().filter_map(of).collect();
            let union_type = union_ids.first().and_then(|first| all_unions.get(*first));
            union_stacks.push(json!({
                "name": name,
                "id": union_stacks.len(),
                "union_type": union_type.map(|union| union["union_type"].clone()),
                "size": union_ids.len(),
                "header_union_ids": union_ids,
            }));
        }
        let mut parts = Map::new();
        for (key, value) in [
            ("header_types", types),
            ("headers", headers),
            ("header_stacks", stacks),
            ("header_union_types", union_types),
            ("header_unions", all_unions),
            ("header_union_stacks", union_stacks),
        ] {
            parts.insert(key.to_owned(), Value::Array(value));
        }
        Ok(parts)
    }

    fn scalars_type(&self) -> Result<Value> {
        let fields: Vec<(String, Ty)> =
            self.places.scalars.iter().map(|scalar| (scalar.name.clone(), scalar.ty)).collect();
        header_type(SCALARS, 0, &fields)
    }

    /// Counters, meters and registers.
    pub(super) fn arrays(&mut self) -> Result<[Vec<Value>; 3]> {
        let [mut counters, mut meters, mut registers] = [Vec::new(), Vec::new(), Vec::new()];
        let instances = self.program.instances.clone();
        for (at, instance) in instances.iter().enumerate() {
            let name = &instance.named.name;
            let table_name = |table: &Option<p4rack_p4::ir::TableId>| {
                table.map(|table| self.program.tables[table.0 as usize].named.name.clone())
            };
            match &instance.kind {
                InstanceKind::Counter { size, .. } => counters.push(json!({
                    "name": name, "id": counters.len(), "size": size, "is_direct": false,
                })),
                InstanceKind::DirectCounter { table, .. } => {
                    if let Some(binding) = table_name(table) {
                        counters.push(json!({
                            "name": name, "id": counters.len(), "is_direct": true, "binding": binding,
                        }));
                    }
                }
                InstanceKind::Meter { size, unit, .. } => meters.push(json!({
                    "name": name, "id": meters.len(), "is_direct": false, "size": size, "rate_count": 2,
                    "type": meter_type(*unit),
                })),
                InstanceKind::DirectMeter { table, unit, .. } => {
                    let Some(binding) = table_name(table) else { continue };
                    let size = table.map(|table| self.program.tables[table.0 as usize].size);
                    let colour = self.colours.get(&p4rack_p4::ir::InstanceId(at as u32)).copied();
                    let colour = colour.unwrap_or_else(|| self.temp("colour_", Ty::Bit(2)));
                    let target = match self.places.of(&self.program, colour, Span::default())? {
                        Place::Field(instance, field) => json!([instance, field]),
                        Place::Next(_) => Value::Null,
                    };
                    meters.push(json!({
                        "name": name, "id": meters.len(), "is_direct": true, "rate_count": 2,
                        "type": meter_type(*unit), "size": size, "binding": binding, "result_target": target,
                    }));
                }
                InstanceKind::Register { size, ty, .. } => registers.push(json!({
                    "name": name, "id": registers.len(), "size": size, "bitwidth": ty.width(),
                })),
                InstanceKind::ActionProfile { .. } | InstanceKind::ActionSelector { .. } => {}
                _ => return self.refuse(format!("extern such as `{name}`")),
            }
        }
        Ok([counters, meters, registers])
    }

    /// Field lists: first the empty one, then the program's.
    pub(super) fn field_lists(&mut self) -> Result<Vec<Value>> {
        let mut lists = vec![json!({ "id": EMPTY_LIST, "name": "empty", "elements": [] })];
        for (index, vars) in self.program.field_lists.clone() {
            let mut elements = Vec::new();
            for var in vars {
                elements.push(match self.places.of(&self.program, var, Span::default())? {
                    Place::Field(instance, field) => json!({ "type": "field", "value": [instance, field] }),
                    Place::Next(_) => {
                        return self.refuse("field list with a stack's next index");
                    }
                });
            }
            let id = EMPTY_LIST + lists.len() as u32;
            self.lists.push(id);
            lists.push(json!({ "id": id, "name": format!("field_list{index}"), "elements": elements }));
        }
        Ok(lists)
    }

    pub(super) fn value_sets(&self) -> Vec<Value> {
        let set = |(at, set): (usize, &p4rack_p4::ir::ValueSet)| {
            let width: u32 = set.fields.iter().map(|(_, ty, _)| ty.width()).sum();
            json!({ "name": set.named.name, "id": at, "compressed_bitwidth": width, "max_size": set.size })
        };
        self.program.value_sets.iter().enumerate().map(set).collect()
    }
}

fn meter_type(unit: Unit) -> &'static str {
    if unit == Unit::Packets { "packets" } else { "bytes" }
}

/// A type with these fields, filled up to whole bytes.
fn header_type(name: &str, id: usize, fields: &[(String, Ty)]) -> Result<Value> {
    let mut list = Vec::new();
    let (mut fixed, mut variable) = (0, None);
    for (field, ty) in fields.iter().filter(|(_, ty)| ty.width() > 0) {
        match ty {
            Ty::Varbit(most) => {
                variable = Some(*most);
                list.push(json!([field, "*"]));
            }
            Ty::Int(1) => {
                return Err(Refused::new(Span::default(), format!("`int<1>`, `{name}.{field}`")));
            }
            ty => {
                fixed += ty.width();
                list.push(json!([field, ty.width(), matches!(ty, Ty::Int(_))]));
            }
        }
    }
    if fixed % 8 > 0 {
        list.push(json!([PADDING, 8 - fixed % 8, false]));
    }
    let mut out = json!({ "name": name, "id": id, "fields": list });
    if let Some(most) = variable {
        out["max_length"] = json!((fixed + most).div_ceil(8));
    }
    Ok(out)
}

fn standard_type() -> Value {
    let mut fields: Vec<Value> = FIELDS.iter().map(|field| json!([field.name, field.width, false])).collect();
    let width: u32 = FIELDS.iter().map(|field| field.width).sum();
    if !width.is_multiple_of(8) {
        fields.push(json!([PADDING, 8 - width % 8, false]));
    }
    json!({ "name": STANDARD, "id": 1, "fields": fields })
}

/// Where the switch finds the intrinsic fields that it looks for elsewhere.
pub(super) fn aliases() -> Vec<Value> {
    let alias = |field: &crate::names::Field| {
        let instance = field.alias?;
        Some(json!([format!("{instance}.{}", field.name), [STANDARD, field.name]]))
    };
    FIELDS.iter().filter_map(alias).collect()
}
