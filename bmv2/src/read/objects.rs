//! Extern objects, calculations, lists, value sets.

use super::{Calculation, Cursor, Reader, Result};
use crate::names::ALGORITHMS;
use num_bigint::BigUint;
use p4rack_p4::ir::{
    DataStruct, DataTy, Digest, Expr, HashAlgorithm, Instance, InstanceId, InstanceKind, MatchKind, Named,
    Ty, Unit, ValueSet, ValueSetId,
};

/// Cells of an array.
const CELLS_MAX: u64 = 1 << 24;
/// Members of a value set, where the file gives no number.
const SET_MEMBERS: u64 = 1024;

/// An object with this name.
pub(super) fn named(name: &str) -> Named {
    Named { name: name.to_owned(), ..Named::default() }
}

impl<'j> Reader<'j> {
    /// Reads everything that primitives name.
    pub(super) fn objects(&mut self) -> Result<()> {
        for counter in self.root.list_of("counter_arrays")? {
            let kind = if counter.flag_of("is_direct")? {
                InstanceKind::DirectCounter { table: None, unit: Unit::Both, on_call: false }
            } else {
                let size = counter.get("size")?.within(0, CELLS_MAX)?;
                InstanceKind::Counter { size, unit: Unit::Both, index_type: None }
            };
            self.add(&counter, kind)?;
        }
        for meter in self.root.list_of("meter_arrays")? {
            let ty = meter.get("type")?;
            let unit = match ty.text()? {
                "packets" => Unit::Packets,
                "bytes" => Unit::Bytes,
                other => return ty.wrong(format!("expected `packets` or `bytes`, not `{other}`")),
            };
            let kind = if meter.flag_of("is_direct")? {
                InstanceKind::DirectMeter { table: None, unit, on_call: false }
            } else {
                let size = meter.get("size")?.within(0, CELLS_MAX)?;
                InstanceKind::Meter { size, unit, index_type: None }
            };
            self.add(&meter, kind)?;
        }
        for register in self.root.list_of("register_arrays")? {
            let ty = Ty::Bit(register.get("bitwidth")?.within(1, 2048)? as u32);
            let size = register.get("size")?.within(0, CELLS_MAX)?;
            let data = DataTy::Scalar(ty);
            self.add(
                &register,
                InstanceKind::Register { size, ty, data, initial: BigUint::ZERO, index_type: None },
            )?;
        }
        for pipeline in self.root.get("pipelines")?.list()? {
            for profile in pipeline.list_of("action_profiles")? {
                let size = profile.get("max_size")?.within(0, CELLS_MAX)?;
                let kind = match profile.find("selector") {
                    None => InstanceKind::ActionProfile { size },
                    Some(selector) => selector_kind(size, &selector)?,
                };
                if !self.instances.contains_key(profile.text_of("name")?) {
                    self.add(&profile, kind)?;
                }
            }
        }
        self.old_profiles()?;
        self.read_calculations()?;
        self.lists()?;
        self.read_value_sets()
    }

    /// In files of the first compilers a profile is part of its table.
    fn old_profiles(&mut self) -> Result<()> {
        for pipeline in self.root.get("pipelines")?.list()? {
            for table in pipeline.list_of("tables")? {
                let Some(name) = table.find("act_prof_name") else { continue };
                let size = CELLS_MAX;
                let kind = match table.find("selector") {
                    None => InstanceKind::ActionProfile { size },
                    Some(selector) => selector_kind(size, &selector)?,
                };
                if !self.instances.contains_key(name.text()?) {
                    self.add_named(&name, name.text()?, kind)?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, node: &Cursor<'_>, kind: InstanceKind) -> Result<()> {
        self.add_named(node, node.text_of("name")?, kind)
    }

    fn add_named(&mut self, node: &Cursor<'_>, name: &str, kind: InstanceKind) -> Result<()> {
        self.program.instances.push(Instance { named: named(name), kind });
        let id = InstanceId(self.program.instances.len() as u32 - 1);
        if self.instances.insert(name.to_owned(), id).is_some() {
            return node.wrong(format!("a second object with the name `{name}`"));
        }
        Ok(())
    }

    fn read_calculations(&mut self) -> Result<()> {
        for calculation in self.root.list_of("calculations")? {
            let algorithm = algorithm(&calculation.get("algo")?)?;
            let (mut data, mut payload) = (Vec::new(), false);
            for input in calculation.get("input")?.list()? {
                match input.text_of("type")? {
                    "field" => {
                        let var = self.field_var(&input.get("value")?)?;
                        data.push((Expr::Var(var), self.program.vars[var.0 as usize].ty));
                    }
                    "hexstr" => {
                        let width = input.get("bitwidth")?.within(1, 2048)? as u32;
                        let value = input.get("value")?.natural()? & super::expr::ones(width);
                        data.push((Expr::Const { value, ty: Ty::Bit(width) }, Ty::Bit(width)));
                    }
                    "header" => {
                        let header = self.header_named(&input.get("value")?)?;
                        self.count(&input, self.program.headers[header.0 as usize].fields.len())?;
                        let fields = &self.program.headers[header.0 as usize].fields;
                        data.extend(
                            fields.iter().map(|field| {
                                (Expr::Var(field.var), self.program.vars[field.var.0 as usize].ty)
                            }),
                        );
                    }
                    "payload" => payload = true,
                    other => return input.wrong(format!("`{other}` is no input of a calculation")),
                }
            }
            let name = calculation.text_of("name")?.to_owned();
            self.calculations.insert(name, Calculation { algorithm, data, payload });
        }
        Ok(())
    }

    fn lists(&mut self) -> Result<()> {
        for list in self.root.list_of("field_lists")? {
            let id = list.get("id")?.within(0, u64::from(u32::MAX))? as u32;
            let mut vars = Vec::new();
            for element in list.get("elements")?.list()? {
                match element.text_of("type")? {
                    "field" => vars.push(self.field_var(&element.get("value")?)?),
                    // A constant is what it is anyway.
                    "hexstr" => {}
                    other => return element.wrong(format!("`{other}` is no element of a field list")),
                }
            }
            self.program.field_lists.push((id, vars));
        }
        for list in self.root.list_of("learn_lists")? {
            let (id, name) = (list.get("id")?.number()?, list.text_of("name")?);
            let mut data: Vec<(Expr, Ty)> = Vec::new();
            let mut fields: Vec<(String, Ty)> = Vec::new();
            for element in list.get("elements")?.list()? {
                let (value, ty) = self.exact(&element)?;
                let label = match element.find("value").and_then(|value| value.at(1).ok()) {
                    Some(field) if field.is_text() => field.text()?.to_owned(),
                    _ => format!("f{}", fields.len()),
                };
                let is_taken = fields.iter().any(|(other, _)| *other == label);
                fields.push((if is_taken { format!("{label}_{}", fields.len()) } else { label }, ty));
                data.push((value, ty));
            }
            // A struct that several calls send is one digest.
            let types = |fields: &[(String, Ty)]| fields.iter().map(|(_, ty)| *ty).collect::<Vec<Ty>>();
            let same = self
                .program
                .digests
                .iter()
                .position(|known| known.named.name == name && types(&known.fields) == types(&fields));
            let at = same.unwrap_or_else(|| {
                let struct_fields = fields.iter().map(|(name, ty)| (name.clone(), DataTy::Scalar(*ty)));
                let data = DataStruct { name: name.to_owned(), fields: struct_fields.collect() };
                self.program.data_structs.push(data);
                self.program.digests.push(Digest {
                    named: named(name),
                    type_name: name.to_owned(),
                    fields,
                    data: DataTy::Struct(name.to_owned()),
                });
                self.program.digests.len() - 1
            });
            self.learn_lists.insert(id, (at as u32, data));
        }
        Ok(())
    }

    fn read_value_sets(&mut self) -> Result<()> {
        for set in self.root.list_of("parse_vsets")? {
            let name = set.text_of("name")?;
            let width = set.get("compressed_bitwidth")?.within(1, 2048)? as u32;
            let size = set.find("max_size").map_or(Ok(SET_MEMBERS), |size| size.within(0, CELLS_MAX))?;
            let field = (named(name), Ty::Bit(width), MatchKind::Exact);
            self.program.value_sets.push(ValueSet { named: named(name), size, fields: vec![field] });
            let id = ValueSetId(self.program.value_sets.len() as u32 - 1);
            self.value_sets.insert(name.to_owned(), id);
        }
        Ok(())
    }

    /// The object that an argument names.
    pub(super) fn object(&self, node: &Cursor<'_>) -> Result<InstanceId> {
        let name = node.get("value")?;
        match self.instances.get(name.text()?) {
            Some(id) => Ok(*id),
            None => name.wrong(format!("there is no `{}`", name.text()?)),
        }
    }
}

fn selector_kind(size: u64, node: &Cursor<'_>) -> Result<InstanceKind> {
    Ok(InstanceKind::ActionSelector {
        size,
        algorithm: algorithm(&node.get("algo")?)?,
        output_width: 32,
        max_group_size: 0,
        profile: None,
        groups: 0,
    })
}

fn algorithm(node: &Cursor<'_>) -> Result<HashAlgorithm> {
    let name = node.text()?;
    match ALGORITHMS.iter().find(|(_, known)| *known == name) {
        Some((algorithm, _)) => Ok(*algorithm),
        None => {
            let known = ALGORITHMS.map(|(_, known)| known).join(", ");
            node.wrong(format!("the switch has no algorithm `{name}`, only {known}"))
        }
    }
}
