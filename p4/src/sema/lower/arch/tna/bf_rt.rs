//! `bf-rt.json`: a program's interface in the form that clients of BFRuntime read, made from its P4Info.

mod hashes;

use crate::Compiled;
use crate::ir::{
    DataTy, Instance, InstanceId, InstanceKind, Intrinsic, IntrinsicVar, Role, TableId, Task, Ty, Var,
};
use crate::p4info::jenkins_hash;
use num_traits::ToPrimitive;
use p4rack_p4rt::p4::config::v1 as pb;
use serde_json::{Value, json};

/// Version of the form.
const SCHEMA_VERSION: &str = "1.0.0";
/// Ports of a device.
const PORTS: i64 = 288;

/// Numbers of fields that programs do not declare; a program's own fields have smaller ones.
mod field {
    pub const MATCH_PRIORITY: u32 = 65537;
    pub const ACTION_MEMBER_ID: u32 = 65539;
    pub const SELECTOR_GROUP_ID: u32 = 65540;
    pub const ENTRY_TTL: u32 = 65543;
    pub const ENTRY_HIT_STATE: u32 = 65544;
    pub const METER_KBPS: u32 = 65545;
    pub const METER_PPS: u32 = 65549;
    pub const COUNTER_BYTES: u32 = 65553;
    pub const COUNTER_PACKETS: u32 = 65554;
    pub const METER_INDEX: u32 = 65555;
    pub const COUNTER_INDEX: u32 = 65556;
    pub const REGISTER_INDEX: u32 = 65557;
    pub const LPF_INDEX: u32 = 65558;
    pub const WRED_INDEX: u32 = 65559;
    pub const LPF: u32 = 65566;
    pub const WRED: u32 = 65570;
    pub const ACTION_MEMBER_STATUS: u32 = 65564;
    pub const PORT_METADATA_PORT: u32 = 65574;
    pub const PORT_METADATA_DEFAULT: u32 = 65575;
    pub const MAX_GROUP_SIZE: u32 = 65565;
    pub const HASH_VALUE: u32 = 65576;
    /// The first of a direct register's fields.
    pub const ELEMENT: u32 = 66_000;
}

/// First byte of the ids of objects that are tables of their own.
mod prefix {
    pub const TABLE: u32 = 0x02;
    pub const ACTION: u32 = 0x81;
    pub const SELECTOR: u32 = 0x82;
    pub const COUNTER: u32 = 0x83;
    pub const METER: u32 = 0x85;
    pub const WRED: u32 = 0x87;
    pub const LPF: u32 = 0x89;
    pub const REGISTER: u32 = 0x8b;
    pub const REGISTER_PARAM: u32 = 0x8d;
    pub const SELECTED: u32 = 0x9a;
    pub const DIGEST: u32 = 0x8e;
    pub const PORT_METADATA: u32 = 0x90;
    pub const VALUE_SET: u32 = 0xfe;
}

/// Context of the whole text.
struct Schema<'a> {
    info: &'a pb::P4Info,
    compiled: &'a Compiled,
    /// In front of names that do not begin with a pipeline's.
    pipeline: &'a str,
}

/// The interface as JSON.
pub(super) fn schema(compiled: &Compiled) -> Value {
    let pipelines = &compiled.program.pipelines;
    let pipeline = match &pipelines[..] {
        [only] => only,
        // Names have it already.
        _ => "",
    };
    let schema = Schema { info: &compiled.p4info, compiled, pipeline };
    let info = &compiled.p4info;
    let mut tables: Vec<Value> = info.tables.iter().map(|t| schema.table(t)).collect();
    for profile in &info.action_profiles {
        tables.extend(schema.profile(profile));
    }
    tables.extend(info.counters.iter().map(|c| schema.counter(c)));
    tables.extend(info.meters.iter().map(|m| schema.meter(m)));
    tables.extend(info.registers.iter().map(|r| schema.register(r)));
    tables.extend(compiled.program.instances.iter().filter_map(|instance| schema.hidden(instance)));
    tables.extend(compiled.program.instances.iter().flat_map(|instance| schema.hash(instance)));
    tables.extend(info.value_sets.iter().map(|v| schema.value_set(v)));
    tables.extend((0..pipelines.len() as u32).filter_map(|pipeline| schema.port_metadata(pipeline)));
    let learn_filters: Vec<Value> = info.digests.iter().map(|d| schema.digest(d)).collect();
    json!({ "schema_version": SCHEMA_VERSION, "tables": tables, "learn_filters": learn_filters })
}

impl Schema<'_> {
    fn name(&self, preamble: &Option<pb::Preamble>) -> String {
        let name = preamble.as_ref().map_or("", |p| &p.name);
        if self.pipeline.is_empty() { name.to_owned() } else { format!("{}.{name}", self.pipeline) }
    }

    /// A table without its key and data.
    fn object(&self, preamble: &Option<pb::Preamble>, prefix: u32, kind: &str, size: i64) -> Value {
        let name = self.name(preamble);
        json!({
            "name": name,
            "id": own_id(prefix, &name),
            "table_type": kind,
            "size": size,
            "annotations": annotations(preamble.as_ref().map_or(&[], |p| &p.annotations)),
            "depends_on": [],
            "supported_operations": [],
            "attributes": [],
        })
    }

    fn table(&self, table: &pb::Table) -> Value {
        let profile =
            self.info.action_profiles.iter().find(|p| id_of(&p.preamble) == table.implementation_id);
        let kind = match profile {
            None => "MatchAction_Direct",
            Some(profile) if profile.with_selector => "MatchAction_Indirect_Selector",
            Some(_) => "MatchAction_Indirect",
        };
        let mut out = self.object(&table.preamble, prefix::TABLE, kind, table.size);
        let mut keys: Vec<Value> = table.match_fields.iter().map(match_field).collect();
        if table.match_fields.iter().any(|f| !matches!(match_name(f), "Exact" | "LPM")) {
            keys.push(key(field::MATCH_PRIORITY, "$MATCH_PRIORITY", false, "Exact", number("uint32")));
        }
        let (mut data, mut operations, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
        let member = || common(field::ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number("uint32"), false);
        match profile {
            None => out["action_specs"] = json!(self.actions(&table.action_refs)),
            Some(profile) => {
                let members_id = self.members(profile).0;
                out["depends_on"] = json!([members_id]);
                if profile.with_selector {
                    let groups_id = own_id(prefix::SELECTOR, &self.name(&profile.preamble));
                    out["depends_on"] = json!([groups_id, members_id]);
                    let group =
                        common(field::SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", number("uint32"), false);
                    data.push(json!({ "mandatory": true, "read_only": false, "oneof": [member(), group] }));
                } else {
                    data.push(singleton(member(), true));
                }
            }
        }
        for id in &table.direct_resource_ids {
            if let Some(counter) = self.info.direct_counters.iter().find(|c| id_of(&c.preamble) == *id) {
                data.extend(counter_fields(&counter.spec));
                operations.push("SyncCounters");
            } else if let Some(meter) = self.info.direct_meters.iter().find(|m| id_of(&m.preamble) == *id) {
                data.extend(meter_fields(&meter.spec));
                attributes.push("MeterByteCountAdjust");
            }
        }
        data.extend(self.filter_of(table));
        let elements = self.elements_of(table);
        if !elements.is_empty() {
            operations.push("SyncRegisters");
        }
        data.extend(elements);
        attributes.push("EntryScope");
        let listed = table.preamble.as_ref().map_or(&[][..], |p| &p.annotations);
        if listed.iter().any(|a| a == "@dynamic_table_key_masks(1)") {
            attributes.push("DynamicKeyMask");
        }
        if table.is_const_table {
            attributes.push("ConstTable");
        }
        if table.idle_timeout_behavior != 0 {
            operations.push("UpdateHitState");
            attributes.push("IdleTimeout");
            let state = json!({ "type": "string", "choices": ["ENTRY_IDLE", "ENTRY_ACTIVE"] });
            data.push(singleton(common(field::ENTRY_HIT_STATE, "$ENTRY_HIT_STATE", state, false), false));
            if !listed.iter().any(|a| a == "@idletime_precision(1)") {
                let ttl = json!({ "type": "uint32", "default_value": 0 });
                data.push(singleton(common(field::ENTRY_TTL, "$ENTRY_TTL", ttl, false), false));
            }
        }
        out["has_const_default_action"] = json!(table.const_default_action_id != 0);
        out["key"] = json!(keys);
        out["data"] = json!(data);
        out["supported_operations"] = json!(operations);
        out["attributes"] = json!(attributes);
        out
    }

    fn actions(&self, refs: &[pb::ActionRef]) -> Vec<Value> {
        use pb::action_ref::Scope;
        let spec = |listed: &pb::ActionRef| {
            let action = self.info.actions.iter().find(|a| id_of(&a.preamble) == listed.id)?;
            let scope = match Scope::try_from(listed.scope) {
                Ok(Scope::TableOnly) => "TableOnly",
                Ok(Scope::DefaultOnly) => "DefaultOnly",
                _ => "TableAndDefault",
            };
            let parameter = |param: &pb::action::Param| {
                let mut data = common(param.id, &param.name, bytes(param.bitwidth), false);
                data["annotations"] = annotations(&param.annotations);
                data["mandatory"] = json!(true);
                data["read_only"] = json!(false);
                data
            };
            Some(json!({
                "id": listed.id,
                "name": action.preamble.as_ref().map_or("", |p| &p.name),
                "action_scope": scope,
                "annotations": annotations(&listed.annotations),
                "data": action.params.iter().map(parameter).collect::<Vec<_>>(),
            }))
        };
        refs.iter().filter_map(spec).collect()
    }

    /// A profile's members, and the groups of its selector.
    fn profile(&self, profile: &pb::ActionProfile) -> Vec<Value> {
        let member =
            |repeated| common(field::ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number("uint32"), repeated);
        let (members_id, members_name, own) = self.members(profile);
        let mut members = self.object(&profile.preamble, prefix::ACTION, "Action", profile.size);
        members["id"] = json!(members_id);
        members["name"] = json!(members_name);
        let user = self.users(profile).next();
        members["key"] =
            json!([key(field::ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", true, "Exact", number("uint32"))]);
        members["action_specs"] = json!(user.map(|t| self.actions(&t.action_refs)).unwrap_or_default());
        members["data"] = json!([]);
        if !profile.with_selector {
            return vec![members];
        }
        let count = match self.selector(profile) {
            Some((_, groups)) if groups > 0 => i64::try_from(groups).unwrap_or(i64::MAX),
            _ => profile.size,
        };
        let mut groups = self.object(&profile.preamble, prefix::SELECTOR, "Selector", count);
        groups["depends_on"] = json!([members_id]);
        groups["key"] =
            json!([key(field::SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", true, "Exact", number("uint32"))]);
        let status =
            common(field::ACTION_MEMBER_STATUS, "$ACTION_MEMBER_STATUS", json!({ "type": "bool" }), true);
        let largest = json!({ "type": "uint32", "default_value": profile.max_group_size });
        groups["data"] = json!([
            singleton(member(true), false),
            singleton(status, false),
            singleton(common(field::MAX_GROUP_SIZE, "$MAX_GROUP_SIZE", largest, false), false),
        ]);
        let mut selected = self.object(&profile.preamble, prefix::SELECTED, "SelectorGetMember", 1);
        selected["name"] = json!(format!("{}_get_member", self.name(&profile.preamble)));
        selected["depends_on"] = json!([groups["id"]]);
        selected["key"] = json!([
            key(field::SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", true, "Exact", number("uint64")),
            key(field::HASH_VALUE, "hash_value", true, "Exact", number("uint64")),
        ]);
        let chosen = common(field::ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number("uint64"), false);
        selected["data"] = json!([singleton(chosen, false)]);
        // Members of a profile that is an object of its own belong to that object.
        if own { vec![members, groups, selected] } else { vec![groups, selected] }
    }

    /// The profile of a selector, if that is an object of its own, and the number of its groups.
    fn selector(&self, profile: &pb::ActionProfile) -> Option<(Option<InstanceId>, u64)> {
        let instance = self.compiled.ids.instance(id_of(&profile.preamble))?;
        match &self.compiled.program.instances.get(instance.0 as usize)?.kind {
            InstanceKind::ActionSelector { profile, groups, .. } => Some((*profile, *groups)),
            _ => None,
        }
    }

    /// Id and name of the object with the members of a profile or selector, and whether that is made for it.
    fn members(&self, profile: &pb::ActionProfile) -> (u32, String, bool) {
        let separate = self.selector(profile).and_then(|(separate, _)| separate);
        let found = separate.and_then(|instance| self.compiled.ids.instances.get(instance.0 as usize));
        let found = found.and_then(|id| self.info.action_profiles.iter().find(|p| id_of(&p.preamble) == *id));
        let name = match found {
            Some(other) => self.name(&other.preamble),
            None if profile.with_selector => format!("{}_ap", self.name(&profile.preamble)),
            None => self.name(&profile.preamble),
        };
        (own_id(prefix::ACTION, &name), name, found.is_none())
    }

    /// Tables that use a profile, or a selector of it.
    fn users(&self, profile: &pb::ActionProfile) -> impl Iterator<Item = &pb::Table> {
        let name = self.members(profile).1;
        let same = move |id: u32| {
            let of = self.info.action_profiles.iter().find(|p| id_of(&p.preamble) == id);
            of.is_some_and(|p| self.members(p).1 == name)
        };
        self.info.tables.iter().filter(move |t| same(t.implementation_id))
    }

    /// Data that the control plane puts in front of the packets of a port, in the fields of the type that the parser
    /// gives it.
    fn port_metadata(&self, pipeline: u32) -> Option<Value> {
        let program = &self.compiled.program;
        let parser = program.block(pipeline, Role::ingress(Task::Parse))?;
        // The fields of the type that the parser gives it, of the first of several calls.
        let typed =
            |var: &Var| super::functions::port_data(&var.name, &parser.name).map(|(call, _)| call.to_owned());
        let call = program.vars.iter().find_map(typed);
        let fields = program.vars.iter().filter_map(|var| {
            let (of, name) = super::functions::port_data(&var.name, &parser.name)?;
            // The validity of a header is no field of it.
            (Some(of) == call.as_deref() && !name.ends_with("$valid$")).then_some((name, var.ty.width()))
        });
        let fields: Vec<(&str, u32)> = fields.collect();
        let port = |field: &&IntrinsicVar| field.pipeline == pipeline && field.role == Intrinsic::IngressPort;
        let port = program.vars.get(program.intrinsics.iter().find(port)?.var.0 as usize)?;
        let named =
            Some(pb::Preamble { name: format!("{}.$PORT_METADATA", parser.name), ..Default::default() });
        let width = if program.arch == super::FIRST.name { 64 } else { 128 };
        let mut out = self.object(&named, prefix::PORT_METADATA, "PortMetadata", PORTS);
        out["key"] =
            json!([key(field::PORT_METADATA_PORT, &port.name, true, "Exact", bytes(port.ty.width() as i32))]);
        let whole =
            [singleton(common(field::PORT_METADATA_DEFAULT, "$DEFAULT_FIELD", bytes(width), false), false)];
        let field = |(id, (name, width)): (u32, &(&str, u32))| {
            singleton(common(id, name, bytes(*width as i32), false), false)
        };
        out["data"] = match &fields[..] {
            [] | [("", _)] => json!(whole),
            fields => json!((1..).zip(fields).map(field).collect::<Vec<_>>()),
        };
        Some(out)
    }

    /// Parts that P4Info lacks: filters and parameters of registers.
    fn hidden(&self, instance: &Instance) -> Option<Value> {
        let named = Some(pb::Preamble { name: instance.named.name.clone(), ..Default::default() });
        let cells = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        match &instance.kind {
            InstanceKind::Smoother { size, drops } => {
                let (prefix, kind, index, name) = match drops {
                    false => (prefix::LPF, "Lpf", field::LPF_INDEX, "$LPF_INDEX"),
                    true => (prefix::WRED, "Wred", field::WRED_INDEX, "$WRED_INDEX"),
                };
                let mut out = self.object(&named, prefix, kind, cells(*size));
                out["key"] = json!([key(index, name, true, "Exact", number("uint32"))]);
                out["data"] = json!(filter_fields(*drops));
                Some(out)
            }
            InstanceKind::Register { size: 1, ty, initial, .. } if instance.named.hidden => {
                let mut out = self.object(&named, prefix::REGISTER_PARAM, "RegisterParam", 1);
                let mut ty = bytes(ty.width() as i32);
                ty["default_value"] = json!(initial.to_u64());
                out["key"] = json!([]);
                out["data"] = json!([singleton(common(1, "value", ty, false), true)]);
                Some(out)
            }
            _ => None,
        }
    }

    /// Data of the filter that the entries of a table have.
    fn filter_of(&self, table: &pb::Table) -> Vec<Value> {
        let program = &self.compiled.program;
        let name = table.preamble.as_ref().map_or("", |preamble| &preamble.name);
        let is_it = |id: &TableId| program.tables.get(id.0 as usize).is_some_and(|t| t.named.name == name);
        let found = program.instances.iter().find_map(|instance| match &instance.kind {
            InstanceKind::DirectSmoother { table, drops } if table.as_ref().is_some_and(is_it) => {
                Some(*drops)
            }
            _ => None,
        });
        found.map(filter_fields).unwrap_or_default()
    }

    /// Data of the direct register that a table has: the parts of an element.
    fn elements_of(&self, table: &pb::Table) -> Vec<Value> {
        let program = &self.compiled.program;
        let name = table.preamble.as_ref().map_or("", |preamble| &preamble.name);
        let is_it = |id: &TableId| program.tables.get(id.0 as usize).is_some_and(|t| t.named.name == name);
        let found = program.instances.iter().find_map(|instance| match &instance.kind {
            InstanceKind::DirectRegister { table, ty, data, .. } if table.as_ref().is_some_and(is_it) => {
                Some((&instance.named.name, ty, data))
            }
            _ => None,
        });
        let Some((owner, ty, data)) = found else { return Vec::new() };
        let parts: Vec<(String, Value)> = match data {
            DataTy::Struct(name) => {
                let found = program.data_structs.iter().find(|found| found.name == *name);
                let fields = found.map_or(&[][..], |found| &found.fields);
                let part = |(name, ty): &(String, DataTy)| (name.clone(), self.scalar(ty));
                fields.iter().map(part).collect()
            }
            DataTy::Scalar(Ty::Bool) => vec![("f1".into(), json!({ "type": "bool" }))],
            _ => vec![("f1".into(), bytes(ty.width() as i32))],
        };
        let field = |(id, (name, ty)): (u32, (String, Value))| {
            let mut data = common(id, &format!("{owner}.{name}"), ty, false);
            data["annotations"] = json!([{ "name": "$bfrt_field_class", "value": "register_data" }]);
            singleton(data, false)
        };
        (field::ELEMENT..).zip(parts).map(field).collect()
    }

    /// Type of a part of a register's element.
    fn scalar(&self, ty: &DataTy) -> Value {
        let program = &self.compiled.program;
        match ty {
            DataTy::Scalar(Ty::Bool) => json!({ "type": "bool" }),
            DataTy::Scalar(ty) => bytes(ty.width() as i32),
            DataTy::NewType(name) => {
                let found = program.new_types.iter().find(|found| found.name == *name);
                found.map_or_else(|| bytes(0), |found| self.scalar(&found.inner))
            }
            DataTy::SerEnum(name) => {
                let found = program.ser_enums.iter().find(|found| found.name == *name);
                bytes(found.map_or(0, |found| found.width as i32))
            }
            _ => bytes(0),
        }
    }

    fn counter(&self, counter: &pb::Counter) -> Value {
        let mut out = self.object(&counter.preamble, prefix::COUNTER, "Counter", counter.size);
        out["key"] = json!([key(field::COUNTER_INDEX, "$COUNTER_INDEX", true, "Exact", number("uint32"))]);
        out["data"] = json!(counter_fields(&counter.spec));
        out["supported_operations"] = json!(["Sync"]);
        out
    }

    fn meter(&self, meter: &pb::Meter) -> Value {
        let mut out = self.object(&meter.preamble, prefix::METER, "Meter", meter.size);
        out["key"] = json!([key(field::METER_INDEX, "$METER_INDEX", true, "Exact", number("uint32"))]);
        out["data"] = json!(meter_fields(&meter.spec));
        out["attributes"] = json!(["MeterByteCountAdjust"]);
        out
    }

    fn register(&self, register: &pb::Register) -> Value {
        let size = i64::from(register.size);
        let mut out = self.object(&register.preamble, prefix::REGISTER, "Register", size);
        out["key"] = json!([key(field::REGISTER_INDEX, "$REGISTER_INDEX", true, "Exact", number("uint32"))]);
        let owner = register.preamble.as_ref().map_or("", |p| &p.name);
        let data = self.fields(&register.type_spec).into_iter().map(|(id, name, ty)| {
            let mut data = common(id, &format!("{owner}.{name}"), ty, false);
            data["annotations"] = json!([{ "name": "$bfrt_field_class", "value": "register_data" }]);
            singleton(data, true)
        });
        out["data"] = data.collect();
        out["supported_operations"] = json!(["Sync"]);
        out
    }

    fn value_set(&self, set: &pb::ValueSet) -> Value {
        let size = i64::from(set.size);
        let mut out = self.object(&set.preamble, prefix::VALUE_SET, "ParserValueSet", size);
        let keys = set.r#match.iter().map(|f| {
            let name = if f.name.is_empty() { "f1" } else { &f.name };
            key(f.id, name, false, "Ternary", bytes(f.bitwidth))
        });
        out["key"] = keys.collect();
        out["data"] = json!([]);
        out["attributes"] = json!(["EntryScope"]);
        out
    }

    fn digest(&self, digest: &pb::Digest) -> Value {
        let fields =
            self.fields(&digest.type_spec).into_iter().map(|(id, name, ty)| common(id, &name, ty, false));
        json!({
            "name": self.name(&digest.preamble),
            "id": own_id(prefix::DIGEST, &self.name(&digest.preamble)),
            "annotations": annotations(digest.preamble.as_ref().map_or(&[], |p| &p.annotations)),
            "fields": fields.collect::<Vec<_>>(),
        })
    }

    /// Numbers, names and types of a type's parts; a scalar's field is called `f1`.
    fn fields(&self, spec: &Option<pb::P4DataTypeSpec>) -> Vec<(u32, String, Value)> {
        let mut leaves = Vec::new();
        if let Some(spec) = spec {
            self.leaves(spec, "", &mut leaves);
        }
        (1..).zip(leaves).map(|(id, (name, ty))| (id, name, ty)).collect()
    }

    fn leaves(&self, spec: &pb::P4DataTypeSpec, name: &str, out: &mut Vec<(String, Value)>) {
        use pb::p4_data_type_spec::TypeSpec;
        let types = self.info.type_info.as_ref();
        let inner = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
        let leaf = |ty: Value| (if name.is_empty() { "f1".to_owned() } else { name.to_owned() }, ty);
        match &spec.type_spec {
            Some(TypeSpec::Bitstring(bits)) => out.push(leaf(bytes(bitstring_width(bits)))),
            Some(TypeSpec::Bool(_)) => out.push(leaf(json!({ "type": "bool" }))),
            Some(TypeSpec::Tuple(tuple)) => {
                for (at, member) in tuple.members.iter().enumerate() {
                    self.leaves(member, &inner(&format!("f{}", at + 1)), out);
                }
            }
            Some(TypeSpec::Struct(named)) => {
                for member in types.and_then(|t| t.structs.get(&named.name)).map_or(&[][..], |s| &s.members) {
                    if let Some(spec) = &member.type_spec {
                        self.leaves(spec, &inner(&member.name), out);
                    }
                }
            }
            Some(TypeSpec::Header(named)) => {
                for member in types.and_then(|t| t.headers.get(&named.name)).map_or(&[][..], |h| &h.members) {
                    let width = member.type_spec.as_ref().map_or(0, bitstring_width);
                    out.push((inner(&member.name), bytes(width)));
                }
            }
            Some(TypeSpec::SerializableEnum(named)) => {
                let found = types.and_then(|t| t.serializable_enums.get(&named.name));
                let width = found.and_then(|e| e.underlying_type.as_ref()).map_or(0, |bits| bits.bitwidth);
                out.push(leaf(bytes(width)));
            }
            Some(TypeSpec::NewType(named)) => {
                use pb::p4_new_type_spec::Representation;
                let found = types.and_then(|t| t.new_types.get(&named.name));
                if let Some(Representation::OriginalType(spec)) =
                    found.and_then(|n| n.representation.as_ref())
                {
                    self.leaves(spec, name, out);
                }
            }
            _ => {}
        }
    }
}

fn id_of(preamble: &Option<pb::Preamble>) -> u32 {
    preamble.as_ref().map_or(0, |p| p.id)
}

/// The id of an object: its kind, then a hash of its name with the pipeline's.
fn own_id(prefix: u32, name: &str) -> u32 {
    prefix << 24 | jenkins_hash(name.as_bytes()) & 0x00ff_ffff
}

fn bytes(width: i32) -> Value {
    json!({ "type": "bytes", "width": width })
}

fn number(ty: &str) -> Value {
    json!({ "type": ty })
}

fn bitstring_width(bits: &pb::P4BitstringLikeTypeSpec) -> i32 {
    use pb::p4_bitstring_like_type_spec::TypeSpec;
    match &bits.type_spec {
        Some(TypeSpec::Bit(bit)) => bit.bitwidth,
        Some(TypeSpec::Int(int)) => int.bitwidth,
        Some(TypeSpec::Varbit(varbit)) => varbit.max_bitwidth,
        None => 0,
    }
}

fn common(id: u32, name: &str, ty: Value, repeated: bool) -> Value {
    json!({ "id": id, "name": name, "repeated": repeated, "annotations": [], "type": ty })
}

fn singleton(field: Value, mandatory: bool) -> Value {
    json!({ "mandatory": mandatory, "read_only": false, "singleton": field })
}

fn key(id: u32, name: &str, mandatory: bool, match_type: &str, ty: Value) -> Value {
    let mut key = common(id, name, ty, false);
    key["mandatory"] = json!(mandatory);
    key["match_type"] = json!(match_type);
    key
}

fn match_name(field: &pb::MatchField) -> &'static str {
    use pb::match_field::{Match, MatchType};
    match field.r#match {
        Some(Match::MatchType(kind)) => match MatchType::try_from(kind) {
            Ok(MatchType::Lpm) => "LPM",
            Ok(MatchType::Ternary) => "Ternary",
            Ok(MatchType::Range) => "Range",
            Ok(MatchType::Optional) => "Optional",
            _ => "Exact",
        },
        _ => "Exact",
    }
}

fn match_field(field: &pb::MatchField) -> Value {
    // Validity has another name here than in P4Info.
    let name = field.name.strip_suffix("$valid$").map(|of| format!("{of}$valid"));
    let name = name.as_deref().unwrap_or(&field.name);
    let mut key = key(field.id, name, false, match_name(field), bytes(field.bitwidth));
    key["annotations"] = annotations(&field.annotations);
    key
}

fn counter_fields(spec: &Option<pb::CounterSpec>) -> Vec<Value> {
    use pb::counter_spec::Unit;
    let unit = spec.as_ref().and_then(|s| Unit::try_from(s.unit).ok());
    let field =
        |id, name| singleton(common(id, name, json!({ "type": "uint64", "default_value": 0 }), false), false);
    let mut fields = Vec::new();
    if matches!(unit, Some(Unit::Bytes | Unit::Both)) {
        fields.push(field(field::COUNTER_BYTES, "$COUNTER_SPEC_BYTES"));
    }
    if matches!(unit, Some(Unit::Packets | Unit::Both)) {
        fields.push(field(field::COUNTER_PACKETS, "$COUNTER_SPEC_PKTS"));
    }
    fields
}

fn meter_fields(spec: &Option<pb::MeterSpec>) -> Vec<Value> {
    use pb::meter_spec::Unit;
    let packets = spec.as_ref().is_some_and(|s| Unit::try_from(s.unit) == Ok(Unit::Packets));
    let (first, names) = match packets {
        true => (field::METER_PPS, ["CIR_PPS", "PIR_PPS", "CBS_PKTS", "PBS_PKTS"]),
        false => (field::METER_KBPS, ["CIR_KBPS", "PIR_KBPS", "CBS_KBITS", "PBS_KBITS"]),
    };
    let all = || json!({ "type": "uint64", "default_value": u64::MAX });
    let field = |(id, name)| singleton(common(id, &format!("$METER_SPEC_{name}"), all(), false), false);
    (first..).zip(names).map(field).collect()
}

/// Configuration of a filter, or of one that decides on drops.
fn filter_fields(drops: bool) -> Vec<Value> {
    let (first, names) = match drops {
        false => {
            (field::LPF, ["TYPE", "GAIN_TIME_CONSTANT_NS", "DECAY_TIME_CONSTANT_NS", "OUT_SCALE_DOWN_FACTOR"])
        }
        true => {
            (field::WRED, ["TIME_CONSTANT_NS", "MIN_THRESH_CELLS", "MAX_THRESH_CELLS", "MAX_PROBABILITY"])
        }
    };
    let field = |(id, name): (u32, &str)| {
        let ty = match name {
            "TYPE" => json!({ "type": "string", "choices": ["RATE", "SAMPLE"] }),
            "OUT_SCALE_DOWN_FACTOR" | "MIN_THRESH_CELLS" | "MAX_THRESH_CELLS" => number("uint32"),
            _ => number("float"),
        };
        let name = format!("${}_SPEC_{name}", if drops { "WRED" } else { "LPF" });
        singleton(common(id, &name, ty, false), false)
    };
    (first..).zip(names).map(field).collect()
}

/// `@name` and `@name(value)`.
fn annotations(list: &[String]) -> Value {
    let one = |text: &String| match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        Some((name, value)) if !value.is_empty() => json!({ "name": name, "value": value.trim_matches('"') }),
        Some((name, _)) => json!({ "name": name }),
        None => json!({ "name": text }),
    };
    list.iter().map(one).collect()
}
