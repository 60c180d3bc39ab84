//! Header types and instances, stacks, unions, intrinsic fields.

use super::{Cursor, Reader, Result};
use crate::names::{FIELDS, PADDING, SCALARS, STANDARD, VALID};
use p4rack_p4::ir::{Header, HeaderField, HeaderId, IntrinsicVar, Stack, StackId, Ty, VarId};
use std::collections::HashMap;

/// Width of a field in bits.
const WIDTH_MAX: u64 = 2048;
/// Length of a header in bytes.
const LENGTH_MAX: u64 = 1 << 16;

/// Fields of all instances of headers.
const FIELDS_MAX: usize = 1 << 18;

impl<'j> Reader<'j> {
    /// Reads all instances.
    pub(super) fn read_headers(&mut self) -> Result<()> {
        let mut types: HashMap<&str, Vec<(&str, Ty)>> = HashMap::new();
        for ty in self.root.get("header_types")?.list()? {
            types.insert(ty.text_of("name")?, fields(&ty)?);
        }
        for instance in self.root.get("headers")?.list()? {
            let name = instance.text_of("name")?;
            let type_node = instance.get("header_type")?;
            let type_name = type_node.text()?;
            let Some(fields) = types.get(type_name) else {
                return type_node.wrong(format!("there is no header type `{type_name}`"));
            };
            if self.program.vars.len() + fields.len() > FIELDS_MAX {
                return instance.wrong(format!("more than {FIELDS_MAX} fields up to here"));
            }
            if instance.flag_of("metadata")? {
                self.metadata(name, fields);
                continue;
            }
            let id = self.header(name, type_name, fields);
            self.header_ids.insert(instance.get("id")?.number()?, id);
        }
        self.read_unions()?;
        for stack in self.root.list_of("header_stacks")? {
            let name = stack.text_of("name")?;
            let mut elements = Vec::new();
            for element in stack.get("header_ids")?.list()? {
                elements.push(self.header_by_id(&element)?);
            }
            if elements.is_empty() {
                return stack.wrong("a stack without elements");
            }
            let next = self.new_var(format!("{name}.$next$"), Ty::Bit(32));
            let id = self.add_stack(name, elements, next);
            self.stacks.insert(name.to_owned(), id);
        }
        Ok(())
    }

    fn add_stack(&mut self, name: &str, elements: Vec<HeaderId>, next: VarId) -> StackId {
        self.program.stacks.push(Stack { name: name.to_owned(), elements, next });
        StackId(self.program.stacks.len() as u32 - 1)
    }

    fn header_by_id(&self, node: &Cursor<'_>) -> Result<HeaderId> {
        match self.header_ids.get(&node.number()?) {
            Some(id) => Ok(*id),
            None => node.wrong(format!("there is no header with the id {}", node.number()?)),
        }
    }

    /// Metadata are variables without a header.
    fn metadata(&mut self, name: &str, fields: &[(&str, Ty)]) {
        for (field, ty) in fields.iter().filter(|(field, _)| !field.starts_with(PADDING)) {
            let full = if name == SCALARS { (*field).to_owned() } else { format!("{name}.{field}") };
            let var = self.new_var(full, *ty);
            self.fields.insert((name.to_owned(), (*field).to_owned()), var);
        }
    }

    fn header(&mut self, name: &str, type_name: &str, fields: &[(&str, Ty)]) -> HeaderId {
        let valid = self.new_var(format!("{name}.{VALID}"), Ty::Bool);
        self.fields.insert((name.to_owned(), VALID.to_owned()), valid);
        let mut list = Vec::new();
        for (field, ty) in fields {
            let var = self.new_var(format!("{name}.{field}"), *ty);
            self.fields.insert((name.to_owned(), (*field).to_owned()), var);
            list.push(HeaderField { name: (*field).to_owned(), var });
        }
        self.program.headers.push(Header {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            valid,
            fields: list,
            union_siblings: Vec::new(),
        });
        let id = HeaderId(self.program.headers.len() as u32 - 1);
        self.headers.insert(name.to_owned(), id);
        id
    }

    fn read_unions(&mut self) -> Result<()> {
        let mut members: HashMap<&str, Vec<String>> = HashMap::new();
        for ty in self.root.list_of("header_union_types")? {
            let mut names = Vec::new();
            for header in ty.get("headers")?.list()? {
                names.push(header.at(0)?.text()?.to_owned());
            }
            members.insert(ty.text_of("name")?, names);
        }
        let mut by_id: HashMap<u64, Vec<HeaderId>> = HashMap::new();
        for union in self.root.list_of("header_unions")? {
            let mut headers = Vec::new();
            for header in union.get("header_ids")?.list()? {
                headers.push(self.header_by_id(&header)?);
            }
            // Each member knows the others.
            self.count(&union, headers.len().saturating_mul(headers.len()))?;
            for header in &headers {
                let siblings = headers.iter().filter(|other| *other != header).copied().collect();
                self.program.headers[header.0 as usize].union_siblings = siblings;
            }
            by_id.insert(union.get("id")?.number()?, headers.clone());
            self.unions.insert(union.text_of("name")?.to_owned(), headers);
        }
        for stack in self.root.list_of("header_union_stacks")? {
            let name = stack.text_of("name")?;
            let type_node = stack.get("union_type")?;
            let Some(names) = members.get(type_node.text()?) else {
                return type_node.wrong("there is no such union type");
            };
            let mut elements: Vec<Vec<HeaderId>> = vec![Vec::new(); names.len()];
            for union in stack.get("header_union_ids")?.list()? {
                let Some(headers) = by_id.get(&union.number()?) else {
                    return union.wrong("there is no union with this id");
                };
                if headers.len() != names.len() {
                    return union.wrong("a union with other members than its type has");
                }
                for (stack, header) in elements.iter_mut().zip(headers) {
                    stack.push(*header);
                }
            }
            if elements.iter().any(Vec::is_empty) {
                return stack.wrong("a stack without elements");
            }
            let next = self.new_var(format!("{name}.$next$"), Ty::Bit(32));
            let mut stacks = Vec::new();
            for (member, elements) in names.iter().zip(elements) {
                let id = self.add_stack(&format!("{name}.{member}"), elements, next);
                stacks.push((member.clone(), id));
            }
            self.union_stacks.insert(name.to_owned(), stacks);
        }
        Ok(())
    }

    /// Finds the fields that the switch knows: by their alias, else by their name.
    pub(super) fn intrinsics(&mut self) -> Result<()> {
        let mut aliases: HashMap<String, VarId> = HashMap::new();
        for alias in self.root.list_of("field_aliases")? {
            let var = self.field_var(&alias.at(1)?)?;
            aliases.insert(alias.at(0)?.text()?.to_owned(), var);
        }
        for field in &FIELDS {
            let places = [field.alias, Some(STANDARD)].into_iter().flatten();
            let found = places.clone().find_map(|place| {
                let alias = aliases.get(&format!("{place}.{}", field.name)).copied();
                alias.or_else(|| self.fields.get(&(place.to_owned(), field.name.to_owned())).copied())
            });
            let var = match found {
                Some(var) => var,
                None => self.new_var(format!("{STANDARD}.{}", field.name), Ty::Bit(field.width)),
            };
            if field.role == p4rack_p4::ir::Intrinsic::ParserError {
                self.parser_error = Some(var);
            }
            self.program.intrinsics.push(IntrinsicVar { pipeline: 0, role: field.role, var });
        }
        Ok(())
    }

    /// The variable that a pair of instance and field names.
    pub(super) fn field_var(&self, node: &Cursor<'_>) -> Result<VarId> {
        let (instance, field) = (node.at(0)?.text()?, node.at(1)?.text()?);
        match self.fields.get(&(instance.to_owned(), field.to_owned())) {
            Some(var) => Ok(*var),
            None => node.wrong(format!("there is no field `{field}` of `{instance}`")),
        }
    }

    /// The header with a name.
    pub(super) fn header_named(&self, node: &Cursor<'_>) -> Result<HeaderId> {
        match self.headers.get(node.text()?) {
            Some(id) => Ok(*id),
            None => node.wrong(format!("there is no header `{}`", node.text()?)),
        }
    }

    /// The stack with a name.
    pub(super) fn stack_named(&self, node: &Cursor<'_>) -> Result<StackId> {
        match self.stacks.get(node.text()?) {
            Some(id) => Ok(*id),
            None => node.wrong(format!("there is no header stack `{}`", node.text()?)),
        }
    }
}

/// Names and types of a header type's fields.
fn fields<'j>(ty: &Cursor<'j>) -> Result<Vec<(&'j str, Ty)>> {
    let mut fields = Vec::new();
    let mut bits = 0;
    let mut variable = None;
    for (at, field) in ty.get("fields")?.list()?.iter().enumerate() {
        let (name, width) = (field.at(0)?.text()?, field.at(1)?);
        if width.is_text() {
            if width.text()? != "*" || variable.replace(at).is_some() {
                return width.wrong("expected a width in bits, or `*` for the only field of variable length");
            }
            fields.push((name, Ty::Varbit(0)));
            continue;
        }
        let width = width.within(1, WIDTH_MAX)? as u32;
        bits += u64::from(width);
        let is_signed = field.at(2).is_ok_and(|flag| flag.flag().unwrap_or(false));
        fields.push((name, if is_signed { Ty::Int(width) } else { Ty::Bit(width) }));
    }
    if let Some(at) = variable {
        // Files of older compilers have no length; the switch's own limit is the same.
        let most = match ty.find("max_length") {
            Some(bytes) => bytes.within(0, LENGTH_MAX)? * 8,
            None => WIDTH_MAX,
        };
        let variable = most.saturating_sub(bits).min(16384);
        fields[at].1 = Ty::Varbit(variable as u32);
    }
    if bits % 8 > 0 {
        fields.push((PADDING, Ty::Bit((8 - bits % 8) as u32)));
    }
    Ok(fields)
}
