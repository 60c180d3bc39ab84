//! Entries of match-action tables.

pub(super) mod direct;

use super::cells::{CounterPlan, Largest, MeterPlan};
use super::{
    PRIORITIES, Translated, from_number, id_of, invalid, key_name, name_of, no_handles, number, number_field,
    refuse, sent, taken, to_number, u32_of,
};
use crate::schema::{Field, MatchType, Table};
use crate::value::{Kind, ones};
use p4rack_p4rt::bfrt_proto::key_field::{self, Exact, Lpm, MatchType as Sent, Optional, Range, Ternary};
use p4rack_p4rt::bfrt_proto::{
    DataField, KeyField, TableData, TableEntry, TableKey, data_field, table_entry,
};
use p4rack_p4rt::bytes;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{self as config, P4Info};
use p4rack_p4rt::p4::v1::field_match::{self, FieldMatchType};
use p4rack_p4rt::p4::v1::{
    self, Action, CounterData, FieldMatch, MeterConfig, TableAction, action, table_action,
};

/// Unit of `$ENTRY_TTL`, in nanoseconds.
const TTL_NS: u64 = 1_000_000;

/// A key field.
#[derive(Clone, Debug)]
struct KeyPlan {
    id: u32,
    p4_id: u32,
    name: String,
    match_type: MatchType,
    width: u32,
}

/// An action.
#[derive(Clone, Debug)]
pub(super) struct ActionPlan {
    id: u32,
    p4_id: u32,
    name: String,
    params: Vec<ParamPlan>,
}

#[derive(Clone, Debug)]
struct ParamPlan {
    id: u32,
    p4_id: u32,
    name: String,
    width: u32,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct TablePlan {
    name: String,
    p4_id: u32,
    keys: Vec<KeyPlan>,
    priority: Option<u32>,
    actions: Vec<ActionPlan>,
    counter: Option<CounterPlan>,
    meter: Option<MeterPlan>,
    member: Option<u32>,
    group: Option<u32>,
    ttl: Option<Field>,
    /// Fields that P4Runtime does not have: of filters and direct registers, and whether the entry was hit.
    others: Vec<u32>,
}

/// The actions of a table, by name.
pub(super) fn actions(table: &Table, info: &P4Info) -> Result<Vec<ActionPlan>, String> {
    let one = |action: &crate::schema::Action| {
        let wanted = info.actions.iter().find(|found| name_of(found.preamble.as_ref()) == action.name);
        let missing = || format!("table `{}`: the program has no action `{}`", table.name, action.name);
        let wanted = wanted.ok_or_else(missing)?;
        let param = |param: &config::action::Param| {
            let field = action.fields.iter().find(|field| field.name == param.name);
            let missing = || {
                format!(
                    "action `{}` of table `{}` has no parameter `{}`",
                    action.name, table.name, param.name
                )
            };
            let field = field.ok_or_else(missing)?;
            let width = match field.kind {
                Kind::Bits(width) if width == param.bitwidth as u32 => width,
                Kind::Bool if param.bitwidth == 1 => 1,
                ref other => {
                    return Err(format!(
                        "parameter `{}` of action `{}` of table `{}` has {} bits in the program, {other:?} in the schema",
                        param.name, action.name, table.name, param.bitwidth
                    ));
                }
            };
            Ok(ParamPlan { id: field.id, p4_id: param.id, name: param.name.clone(), width })
        };
        let params = wanted.params.iter().map(param).collect::<Result<_, String>>()?;
        Ok(ActionPlan {
            id: action.id,
            p4_id: id_of(wanted.preamble.as_ref()),
            name: action.name.clone(),
            params,
        })
    };
    table.actions.iter().map(one).collect()
}

impl ActionPlan {
    /// Converts an entry's data to P4Runtime's action; `of` names its owner in errors.
    fn action(&self, of: &str, fields: &[DataField]) -> Translated<Action> {
        let mut params = Vec::with_capacity(self.params.len());
        for plan in &self.params {
            let given = fields.iter().find(|field| field.field_id == plan.id);
            let value = match given.and_then(|field| field.value.as_ref()) {
                Some(data_field::Value::Stream(value)) => taken(of, &plan.name, value, plan.width)?,
                Some(data_field::Value::BoolVal(truth)) if plan.width == 1 => vec![u8::from(*truth)],
                Some(_) => return invalid(format!("{of}: parameter `{}` holds a number", plan.name)),
                // As in the driver, where data begins with zeros.
                None => vec![0],
            };
            params.push(action::Param { param_id: plan.p4_id, value });
        }
        Ok(Action { action_id: self.p4_id, params })
    }

    /// Whether this is the action with a number of the schema.
    pub(super) fn is(&self, id: u32) -> bool {
        self.id == id
    }

    pub(super) fn owns(&self, id: u32) -> bool {
        self.params.iter().any(|param| param.id == id)
    }

    fn data(&self, of: &str, action: &Action) -> Translated<Vec<DataField>> {
        let one = |plan: &ParamPlan| {
            let given = action.params.iter().find(|param| param.param_id == plan.p4_id);
            let Some(given) = given else {
                return invalid(format!("{of}: parameter `{}` is missing", plan.name));
            };
            let value = sent(of, &plan.name, &given.value, plan.width)?;
            Ok(DataField { field_id: plan.id, value: Some(data_field::Value::Stream(value)) })
        };
        self.params.iter().map(one).collect()
    }
}

/// Converts data of a table or of members to P4Runtime's action.
pub(super) fn to_action(of: &str, actions: &[ActionPlan], data: &TableData) -> Translated<Action> {
    let plan = actions.iter().find(|plan| plan.id == data.action_id);
    let Some(plan) = plan else {
        return invalid(format!("{of} has no action with id {}", data.action_id));
    };
    plan.action(of, &data.fields)
}

/// Converts P4Runtime's action to data.
pub(super) fn from_action(of: &str, actions: &[ActionPlan], action: &Action) -> Translated<TableData> {
    let plan = actions.iter().find(|plan| plan.p4_id == action.action_id);
    let Some(plan) = plan else {
        return invalid(format!("{of} has no action with P4Runtime's id {}", action.action_id));
    };
    Ok(TableData { action_id: plan.id, fields: plan.data(of, action)? })
}

impl TablePlan {
    pub(super) fn new(table: &Table, wanted: &config::Table, info: &P4Info) -> Result<TablePlan, String> {
        let (mut keys, mut priority) = (Vec::new(), None);
        for key in &table.keys {
            if key.name == "$MATCH_PRIORITY" {
                priority = Some(key.id);
                continue;
            }
            let name = key_name(&key.name);
            let field = wanted.match_fields.iter().find(|field| field.name == name);
            let Some(field) = field else {
                return Err(format!("table `{}`: the program has no key `{}`", table.name, key.name));
            };
            let width = match key.kind {
                Kind::Bits(width) => width,
                Kind::Bool => 1,
                _ => return Err(format!("key `{}` of table `{}` is no number", key.name, table.name)),
            };
            if width != field.bitwidth as u32 {
                return Err(format!(
                    "key `{}` of table `{}` has {} bits in the program, {width} in the schema",
                    key.name, table.name, field.bitwidth
                ));
            }
            let (id, p4_id, name, match_type) = (key.id, field.id, key.name.clone(), key.match_type);
            keys.push(KeyPlan { id, p4_id, name, match_type, width });
        }
        let lacks = |field: &&config::MatchField| !keys.iter().any(|key| key.p4_id == field.id);
        if let Some(field) = wanted.match_fields.iter().find(lacks) {
            return Err(format!("table `{}`: the schema has no key `{}`", table.name, field.name));
        }
        let find = |name: &str| table.fields.iter().find(|field| field.name == name);
        Ok(TablePlan {
            name: table.name.clone(),
            p4_id: id_of(wanted.preamble.as_ref()),
            keys,
            priority,
            actions: actions(table, info)?,
            counter: CounterPlan::of_entries(table),
            meter: MeterPlan::of_entries(table),
            member: find("$ACTION_MEMBER_ID").map(|field| field.id),
            group: find("$SELECTOR_GROUP_ID").map(|field| field.id),
            ttl: find("$ENTRY_TTL").cloned(),
            others: table.fields.iter().filter(|field| is_other(&field.name)).map(|field| field.id).collect(),
        })
    }

    pub(super) fn set_largest_meter(&mut self, most: &Largest) {
        if let Some(meter) = &mut self.meter {
            meter.set_most(most);
        }
    }

    fn of(&self) -> String {
        format!("table `{}`", self.name)
    }

    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<v1::TableEntry> {
        let mut made = self.keyed(entry)?;
        let nothing = TableData::default();
        let data = entry.data.as_ref().unwrap_or(&nothing);
        let of = self.of();
        made.action = if data.action_id != 0 {
            let action = to_action(&of, &self.actions, data)?;
            Some(TableAction { r#type: Some(table_action::Type::Action(action)) })
        } else {
            None
        };
        let chosen = self.actions.iter().find(|plan| plan.id == data.action_id);
        for field in &data.fields {
            let id = field.field_id;
            if chosen.is_some_and(|plan| plan.owns(id)) {
                continue;
            }
            let choice = |kind: fn(u32) -> table_action::Type| {
                let Some(data_field::Value::Stream(value)) = &field.value else {
                    return invalid(format!("{of}: field {id} holds a number"));
                };
                let number = to_number(&self.name, u32_of(&of, value)?)?;
                Ok(Some(TableAction { r#type: Some(kind(number)) }))
            };
            if Some(id) == self.member || Some(id) == self.group {
                if made.action.is_some() {
                    return invalid(format!("{of}: an entry has a member or a group, not both"));
                }
                made.action = if Some(id) == self.member {
                    choice(table_action::Type::ActionProfileMemberId)?
                } else {
                    choice(table_action::Type::ActionProfileGroupId)?
                };
            } else if let Some(ttl) = self.ttl.as_ref().filter(|ttl| ttl.id == id) {
                let ns = number(&self.name, ttl, field.value.as_ref())?.saturating_mul(TTL_NS);
                made.idle_timeout_ns = i64::try_from(ns).unwrap_or(i64::MAX);
            } else if self.others.contains(&id) {
                // The switch's own concern.
            } else if self.counter.as_ref().is_some_and(|plan| plan.owns(id)) {
                // Read as a whole below.
            } else if self.meter.as_ref().is_some_and(|plan| plan.owns(id)) {
                // The same.
            } else {
                let whose = chosen.map_or_else(String::new, |plan| format!(" with action `{}`", plan.name));
                return invalid(format!("{of}: its entries{whose} have no field with id {id}"));
            }
        }
        if let Some(plan) = &self.counter {
            made.counter_data = plan.data(&data.fields)?;
        }
        if let Some(plan) = &self.meter {
            made.meter_config = plan.config(&data.fields)?;
        }
        Ok(made)
    }

    pub(super) fn request(&self, entry: &TableEntry) -> Translated<v1::TableEntry> {
        let all = entry.value.is_none() && !entry.is_default_entry;
        let mut made = match all {
            true => v1::TableEntry { table_id: self.p4_id, ..Default::default() },
            false => self.keyed(entry)?,
        };
        made.counter_data = self.counter.as_ref().map(|_| CounterData::default());
        made.meter_config = self.meter.as_ref().map(|_| MeterConfig::default());
        let is_timed = self.ttl.is_some() && !entry.is_default_entry;
        made.time_since_last_hit = is_timed.then(v1::table_entry::IdleTimeout::default);
        Ok(made)
    }

    /// An entry with nothing but its key.
    fn keyed(&self, entry: &TableEntry) -> Translated<v1::TableEntry> {
        let mut made = v1::TableEntry { table_id: self.p4_id, ..Default::default() };
        let nothing: &[KeyField] = &[];
        let fields = match &entry.value {
            Some(table_entry::Value::Key(key)) => &key.fields[..],
            Some(table_entry::Value::HandleId(_)) => return no_handles(&self.name),
            None => nothing,
        };
        if entry.is_default_entry {
            if !fields.is_empty() {
                return invalid(format!("{}: the default entry has no key", self.of()));
            }
            made.is_default_action = true;
            return Ok(made);
        }
        if entry.value.is_none() {
            return invalid(format!("{}: the entry's key is not set", self.of()));
        }
        let mut smallest_wins = 0;
        for field in fields {
            if Some(field.field_id) == self.priority {
                let Some(Sent::Exact(exact)) = &field.match_type else {
                    return invalid(format!("{}: $MATCH_PRIORITY is an exact number", self.of()));
                };
                smallest_wins = u32_of(&self.name, &exact.value)?;
                continue;
            }
            if !self.keys.iter().any(|key| key.id == field.field_id) {
                return invalid(format!("{} has no key with id {}", self.of(), field.field_id));
            }
        }
        for key in &self.keys {
            let mut given = fields.iter().filter(|field| field.field_id == key.id);
            let matched = key.to_p4(&self.name, given.next())?;
            if given.next().is_some() {
                return invalid(format!("{}: key `{}` is given twice", self.of(), key.name));
            }
            if let Some(matched) = matched {
                made.r#match.push(FieldMatch { field_id: key.p4_id, field_match_type: Some(matched) });
            }
        }
        if self.priority.is_some() {
            if smallest_wins >= PRIORITIES {
                let most = PRIORITIES - 1;
                return invalid(format!("{}: $MATCH_PRIORITY {smallest_wins} is not 0 to {most}", self.of()));
            }
            made.priority = (PRIORITIES - smallest_wins) as i32;
        }
        Ok(made)
    }

    pub(super) fn entry(&self, entry: &v1::TableEntry) -> Translated<TableEntry> {
        let of = self.of();
        let mut fields = Vec::with_capacity(self.keys.len() + 1);
        if !entry.is_default_action {
            for key in &self.keys {
                let given = entry.r#match.iter().find(|found| found.field_id == key.p4_id);
                let matched =
                    key.to_bfrt(&self.name, given.and_then(|given| given.field_match_type.as_ref()))?;
                fields.push(KeyField { field_id: key.id, match_type: Some(matched) });
            }
            if let Some(id) = self.priority {
                let smallest_wins =
                    u32::try_from(entry.priority).ok().and_then(|given| PRIORITIES.checked_sub(given));
                let Some(smallest_wins) = smallest_wins.filter(|wins| *wins < PRIORITIES) else {
                    return invalid(format!("{of}: priority {} is not 1 to {PRIORITIES}", entry.priority));
                };
                let exact = Exact { value: smallest_wins.to_be_bytes().to_vec() };
                fields.push(KeyField { field_id: id, match_type: Some(Sent::Exact(exact)) });
            }
        }
        let mut data = match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            None => TableData::default(),
            // A table whose actions are its members' shows none on a miss.
            Some(table_action::Type::Action(_)) if entry.is_default_action && self.actions.is_empty() => {
                TableData::default()
            }
            Some(table_action::Type::Action(action)) => from_action(&of, &self.actions, action)?,
            Some(table_action::Type::ActionProfileMemberId(id)) => chosen(&of, self.member, *id)?,
            Some(table_action::Type::ActionProfileGroupId(id)) => chosen(&of, self.group, *id)?,
            Some(_) => {
                return refuse(Code::Unimplemented, format!("{of}: one-shot sets are P4Runtime's alone"));
            }
        };
        if let (Some(plan), Some(counter)) = (&self.counter, &entry.counter_data) {
            data.fields.extend(plan.fields(counter));
        }
        if let Some(plan) = &self.meter {
            data.fields.extend(plan.fields(entry.meter_config.as_ref()));
        }
        if self.ttl.is_none() && entry.idle_timeout_ns != 0 {
            return invalid(format!("{of}: its entries have no idle timeouts"));
        }
        if let Some(ttl) = self.ttl.as_ref().filter(|_| !entry.is_default_action) {
            // The remaining time, if the entry's last hit is known.
            let passed = entry.time_since_last_hit.as_ref().map_or(0, |passed| passed.elapsed_ns);
            let left = entry.idle_timeout_ns.saturating_sub(passed);
            let ns = u64::try_from(left).unwrap_or(0);
            data.fields.push(number_field(ttl, ns / TTL_NS));
        }
        Ok(TableEntry {
            value: (!entry.is_default_action).then_some(table_entry::Value::Key(TableKey { fields })),
            data: Some(data),
            is_default_entry: entry.is_default_action,
            ..Default::default()
        })
    }

    pub(super) fn zero_counters(&self) -> Vec<DataField> {
        self.counter.as_ref().map_or_else(Vec::new, |plan| plan.fields(&CounterData::default()))
    }

    pub(super) fn ttl_field(&self) -> Option<u32> {
        self.ttl.as_ref().map(|field| field.id)
    }

    pub(super) fn is_whole(&self, entry: &TableEntry) -> bool {
        let Some(data) = &entry.data else { return false };
        let given = |id: u32| data.fields.iter().any(|field| field.field_id == id);
        let chosen = match self.actions.iter().find(|plan| plan.id == data.action_id) {
            Some(plan) => plan.params.iter().all(|param| given(param.id)),
            None => self.member.is_some_and(given) || self.group.is_some_and(given),
        };
        // Fields that a change omits must stay, whereas P4Runtime would reset meter and timeout.
        chosen && self.meter.is_none() && self.ttl.as_ref().is_none_or(|ttl| given(ttl.id))
    }
}

/// Whether P4Runtime has no counterpart of a table's field. The parts of a direct register have the program's names.
fn is_other(name: &str) -> bool {
    let kinds = ["$LPF_SPEC_", "$WRED_SPEC_", "$ENTRY_HIT_STATE"];
    !name.starts_with('$') || kinds.iter().any(|kind| name.starts_with(kind))
}

fn chosen(of: &str, field: Option<u32>, id: u32) -> Translated<TableData> {
    let Some(field_id) = field else {
        return invalid(format!("{of} has no such action"));
    };
    let value = Some(data_field::Value::Stream(from_number(id).to_be_bytes().to_vec()));
    Ok(TableData { action_id: 0, fields: vec![DataField { field_id, value }] })
}

impl KeyPlan {
    /// P4Runtime's match; `None` if it matches anything.
    fn to_p4(&self, table: &str, given: Option<&KeyField>) -> Translated<Option<FieldMatchType>> {
        let given: Option<&key_field::MatchType> = given.and_then(|field| field.match_type.as_ref());
        let take = |value: &[u8]| taken(table, &self.name, value, self.width);
        Ok(match (self.match_type, given) {
            (MatchType::Exact, None) => Some(FieldMatchType::Exact(field_match::Exact { value: vec![0] })),
            (_, None) => None,
            (MatchType::Exact, Some(Sent::Exact(exact))) => {
                Some(FieldMatchType::Exact(field_match::Exact { value: take(&exact.value)? }))
            }
            (MatchType::Ternary, Some(Sent::Ternary(ternary))) => {
                let mask = take(&ternary.mask)?;
                let mut value = ternary.value.clone();
                take(&value)?;
                value.iter_mut().zip(&ternary.mask).for_each(|(byte, mask)| *byte &= mask);
                let ternary = field_match::Ternary { value: bytes::canonical(&value), mask };
                (ternary.mask != [0]).then_some(FieldMatchType::Ternary(ternary))
            }
            (MatchType::Lpm, Some(Sent::Lpm(lpm))) => {
                let prefix_len = u32::try_from(lpm.prefix_len).ok().filter(|length| *length <= self.width);
                let Some(prefix_len) = prefix_len else {
                    let (name, width) = (&self.name, self.width);
                    return invalid(format!(
                        "table `{table}`: key `{name}`: prefix of {} bits, but the key has {width}",
                        lpm.prefix_len
                    ));
                };
                take(&lpm.value)?;
                let mut value = lpm.value.clone();
                crate::entry::clear_behind(&mut value, self.width, prefix_len);
                let lpm = field_match::Lpm { value: bytes::canonical(&value), prefix_len: lpm.prefix_len };
                (prefix_len > 0).then_some(FieldMatchType::Lpm(lpm))
            }
            (MatchType::Range, Some(Sent::Range(range))) => {
                let (low, high) = (take(&range.low)?, take(&range.high)?);
                if range.low > range.high {
                    let name = &self.name;
                    return invalid(format!(
                        "table `{table}`: key `{name}`: the range ends before it begins"
                    ));
                }
                let is_all = low == [0] && ones(self.width) == high;
                (!is_all).then_some(FieldMatchType::Range(field_match::Range { low, high }))
            }
            (MatchType::Optional, Some(Sent::Optional(optional))) if optional.is_valid => {
                Some(FieldMatchType::Optional(field_match::Optional { value: take(&optional.value)? }))
            }
            (MatchType::Optional, Some(Sent::Optional(_))) => None,
            (kind, Some(_)) => {
                return invalid(format!("table `{table}`: key `{}` is matched {kind:?}", self.name));
            }
        })
    }

    fn to_bfrt(&self, table: &str, given: Option<&FieldMatchType>) -> Translated<Sent> {
        let fit = |value: &[u8]| sent(table, &self.name, value, self.width);
        Ok(match (self.match_type, given) {
            (MatchType::Exact, Some(FieldMatchType::Exact(exact))) => {
                Sent::Exact(Exact { value: fit(&exact.value)? })
            }
            (MatchType::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
                Sent::Ternary(Ternary { value: fit(&ternary.value)?, mask: fit(&ternary.mask)? })
            }
            (MatchType::Ternary, None) => Sent::Ternary(Ternary { value: fit(&[0])?, mask: fit(&[0])? }),
            (MatchType::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
                Sent::Lpm(Lpm { value: fit(&lpm.value)?, prefix_len: lpm.prefix_len })
            }
            (MatchType::Lpm, None) => Sent::Lpm(Lpm { value: fit(&[0])?, prefix_len: 0 }),
            (MatchType::Range, Some(FieldMatchType::Range(range))) => {
                Sent::Range(Range { low: fit(&range.low)?, high: fit(&range.high)? })
            }
            (MatchType::Range, None) => Sent::Range(Range { low: fit(&[0])?, high: ones(self.width) }),
            (MatchType::Optional, Some(FieldMatchType::Optional(optional))) => {
                Sent::Optional(Optional { value: fit(&optional.value)?, is_valid: true })
            }
            (MatchType::Optional, None) => Sent::Optional(Optional { value: fit(&[0])?, is_valid: false }),
            (kind, _) => return invalid(format!("table `{table}`: key `{}` is matched {kind:?}", self.name)),
        })
    }
}
