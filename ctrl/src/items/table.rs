//! Table entries and actions.

use super::data::{Counts, MeterUnit, Rates};
use super::{by_name, pairs};
use crate::error::CtrlError;
use crate::values::{Format, parse, parse_match, show_match};
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileAction, ActionProfileActionSet, CounterData, FieldMatch, TableAction, TableEntry,
    action, action_profile_action::WatchKind, action_profile_action_set::ActionSelectionMode,
    action_profile_action_set::SizeSemantics, table_action,
};
use p4rack_p4rt::schema::{Schema, id_of, name_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// The action of an entry or member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ActionItem {
    /// An action with arguments.
    Call {
        /// Name of the action.
        action: String,
        /// Arguments, by parameter name.
        #[serde(default)]
        params: BTreeMap<String, String>,
    },
    /// A member of the table's action profile.
    Member {
        /// Id of the member.
        member: u32,
    },
    /// A group of the table's action profile.
    Group {
        /// Id of the group.
        group: u32,
    },
    /// A one-shot set of actions, one of which is chosen by weight.
    Set {
        /// Weight, port that has to be up, action.
        set: Vec<(i32, Option<u32>, ActionItem)>,
        /// How an action is chosen.
        #[serde(default, skip_serializing_if = "is_zero")]
        mode: Mode,
        /// Measure of the set's size.
        #[serde(default, skip_serializing_if = "is_zero")]
        size: SizeOf,
    },
}

/// How an action of a set is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As the selector defines.
    #[default]
    Selector,
    /// By a hash.
    Hash,
    /// At random for each packet.
    Random,
}

/// Measure of a set's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeOf {
    /// As the selector defines.
    #[default]
    Selector,
    /// The sum of the weights.
    Weights,
    /// The number of actions.
    Members,
}

/// A table entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableItem {
    /// Name of the table.
    pub table: String,
    /// Keys by name, in the syntax of [`parse_match`]. Missing ones are "don't care".
    #[serde(default)]
    pub keys: BTreeMap<String, String>,
    /// Priority, the larger one wins; 0 if the table needs none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// The entry's action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionItem>,
    /// Whether it is the table's default entry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
    /// Whether it is part of the program and cannot be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_const: bool,
    /// Idle timeout in ns, after which the controller is notified; 0 is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub idle_timeout_ns: i64,
    /// Time since the last hit, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_last_hit_ns: Option<i64>,
    /// Counts of its direct counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<Counts>,
    /// Rates of its direct meter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<Rates>,
}

fn is_zero<T: PartialEq + Default>(number: &T) -> bool {
    *number == T::default()
}

impl TableItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<TableEntry, CtrlError> {
        let table = schema.table(&self.table)?;
        let name = name_of(table.preamble.as_ref());
        let mut keys = Vec::with_capacity(self.keys.len());
        for (key, value) in &self.keys {
            let what = format!("table {name}");
            let field = by_name(&what, key, &table.match_fields, |field| &field.name)?;
            let parsed = parse_match(value, field)
                .map_err(|why| CtrlError::Input(format!("table {name} key {}: {why}", field.name)))?;
            if let Some(field_match_type) = parsed {
                keys.push(FieldMatch { field_id: field.id, field_match_type: Some(field_match_type) });
            }
        }
        keys.sort_by_key(|key| key.field_id);
        let action = self.action.as_ref().map(|action| action.message(schema)).transpose()?;
        let table_id = id_of(table.preamble.as_ref());
        let unit = MeterUnit::of_table(schema, table_id);
        let meter_config = self.meter.as_ref().map(|rates| rates.config(unit, name)).transpose()?;
        Ok(TableEntry {
            table_id,
            r#match: keys,
            action,
            priority: self.priority,
            is_default_action: self.is_default,
            idle_timeout_ns: self.idle_timeout_ns,
            counter_data: self.counter.as_ref().map(CounterData::from),
            meter_config,
            ..Default::default()
        })
    }

    /// The item for an entry read from a switch.
    pub fn of(schema: &Schema, entry: &TableEntry) -> Result<TableItem, CtrlError> {
        let table = schema.table_by_id(entry.table_id)?;
        let value = |field: &p4rack_p4rt::p4::config::v1::MatchField| {
            let key = entry.r#match.iter().find(|key| key.field_id == field.id);
            show_match(key.and_then(|key| key.field_match_type.as_ref()), field)
        };
        let fields = table.match_fields.iter().filter(|_| !entry.is_default_action);
        let action = entry.action.as_ref().and_then(|action| action.r#type.as_ref());
        Ok(TableItem {
            table: name_of(table.preamble.as_ref()).into(),
            keys: fields.map(|field| (field.name.clone(), value(field))).collect(),
            priority: entry.priority,
            action: action.map(|action| ActionItem::of(schema, action)).transpose()?,
            is_default: entry.is_default_action,
            is_const: entry.is_const,
            idle_timeout_ns: entry.idle_timeout_ns,
            since_last_hit_ns: entry.time_since_last_hit.map(|hit| hit.elapsed_ns),
            counter: entry.counter_data.as_ref().map(Counts::from),
            meter: entry
                .meter_config
                .as_ref()
                .map(|config| Rates::of(config, MeterUnit::of_table(schema, entry.table_id))),
        })
    }
}

impl ActionItem {
    /// Parses an action with `name=value` arguments.
    pub fn call(words: &[String]) -> Result<ActionItem, CtrlError> {
        let Some((action, params)) = words.split_first() else {
            return Err(CtrlError::Input("an action has a name".into()));
        };
        let split = |word: &String| {
            let (name, value) = word.split_once('=').ok_or_else(|| {
                CtrlError::Input(format!("`{word}` is not PARAMETER=VALUE of action {action}"))
            })?;
            Ok((name.to_owned(), value.to_owned()))
        };
        let params = params.iter().map(split).collect::<Result<_, CtrlError>>()?;
        Ok(ActionItem::Call { action: action.clone(), params })
    }

    pub(super) fn message(&self, schema: &Schema) -> Result<TableAction, CtrlError> {
        use table_action::Type;
        let kind = match self {
            ActionItem::Call { action, params } => Type::Action(build(schema, action, params)?),
            ActionItem::Member { member } => Type::ActionProfileMemberId(*member),
            ActionItem::Group { group } => Type::ActionProfileGroupId(*group),
            ActionItem::Set { set, mode, size } => {
                let actions = set.iter().map(|(weight, port, action)| {
                    let watch_kind =
                        port.map(|port| WatchKind::WatchPort(p4rack_p4rt::bytes::from_u128(port.into())));
                    let action = Some(action.called(schema)?);
                    Ok(ActionProfileAction { action, weight: *weight, watch_kind })
                });
                let actions = actions.collect::<Result<_, CtrlError>>()?;
                let mode = match mode {
                    Mode::Selector => ActionSelectionMode::DefaultModeDeterminedByActionSelector,
                    Mode::Hash => ActionSelectionMode::Hash,
                    Mode::Random => ActionSelectionMode::Random,
                };
                let size = match size {
                    SizeOf::Selector => SizeSemantics::DefaultSizeDeterminedByActionSelector,
                    SizeOf::Weights => SizeSemantics::SumOfWeights,
                    SizeOf::Members => SizeSemantics::SumOfMembers,
                };
                Type::ActionProfileActionSet(ActionProfileActionSet {
                    action_profile_actions: actions,
                    action_selection_mode: mode as i32,
                    size_semantics: size as i32,
                    group_action: None,
                })
            }
        };
        Ok(TableAction { r#type: Some(kind) })
    }

    /// The call, if this has to be one.
    pub(super) fn called(&self, schema: &Schema) -> Result<Action, CtrlError> {
        match self {
            ActionItem::Call { action, params } => build(schema, action, params),
            other => Err(CtrlError::Input(format!("an action is needed here, not {other}"))),
        }
    }

    fn of(schema: &Schema, action: &table_action::Type) -> Result<ActionItem, CtrlError> {
        use table_action::Type;
        Ok(match action {
            Type::Action(action) => ActionItem::of_action(schema, action)?,
            Type::ActionProfileMemberId(member) => ActionItem::Member { member: *member },
            Type::ActionProfileGroupId(group) => ActionItem::Group { group: *group },
            Type::ActionProfileActionSet(set) if set.group_action.is_some() => {
                let message =
                    "an action set has a group_action, of P4Runtime 1.6, which p4rack does not show";
                return Err(CtrlError::Input(message.into()));
            }
            Type::ActionProfileActionSet(set) => {
                let item = |item: &ActionProfileAction| {
                    let action = ActionItem::of_action(schema, &item.action.clone().unwrap_or_default())?;
                    let port = match &item.watch_kind {
                        Some(WatchKind::WatchPort(port)) => {
                            p4rack_p4rt::bytes::to_u128(port).and_then(|port| u32::try_from(port).ok())
                        }
                        _ => None,
                    };
                    Ok((item.weight, port, action))
                };
                let mode = match set.action_selection_mode() {
                    ActionSelectionMode::DefaultModeDeterminedByActionSelector => Mode::Selector,
                    ActionSelectionMode::Hash => Mode::Hash,
                    ActionSelectionMode::Random => Mode::Random,
                };
                let size = match set.size_semantics() {
                    SizeSemantics::DefaultSizeDeterminedByActionSelector => SizeOf::Selector,
                    SizeSemantics::SumOfWeights => SizeOf::Weights,
                    SizeSemantics::SumOfMembers => SizeOf::Members,
                };
                let set = set.action_profile_actions.iter().map(item).collect::<Result<_, CtrlError>>()?;
                ActionItem::Set { set, mode, size }
            }
        })
    }

    pub(super) fn of_action(schema: &Schema, call: &Action) -> Result<ActionItem, CtrlError> {
        let action = schema.action_by_id(call.action_id)?;
        let mut params = BTreeMap::new();
        for param in &call.params {
            let described = action.params.iter().find(|described| described.id == param.param_id);
            let (name, format) = match described {
                Some(p) => (p.name.clone(), Format::of(p)),
                None => (format!("#{}", param.param_id), Format::Hex),
            };
            params.insert(name, format.show(&param.value));
        }
        Ok(ActionItem::Call { action: name_of(action.preamble.as_ref()).into(), params })
    }
}

fn build(schema: &Schema, name: &str, params: &BTreeMap<String, String>) -> Result<Action, CtrlError> {
    let action = schema.action(name)?;
    let full = name_of(action.preamble.as_ref());
    let mut built = Vec::with_capacity(params.len());
    for (name, value) in params {
        let param = by_name(&format!("action {full}"), name, &action.params, |param| &param.name)?;
        let value = parse(value, param.bitwidth)
            .map_err(|why| CtrlError::Input(format!("action {full} parameter {}: {why}", param.name)))?;
        built.push(action::Param { param_id: param.id, value });
    }
    built.sort_by_key(|param| param.param_id);
    if let Some(missing) = action.params.iter().find(|p| built.iter().all(|built| built.param_id != p.id)) {
        let message =
            format!("action {full} needs a value for `{}`, of {} bits", missing.name, missing.bitwidth);
        return Err(CtrlError::Input(message));
    }
    Ok(Action { action_id: id_of(action.preamble.as_ref()), params: built })
}

impl Display for ActionItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            ActionItem::Call { action, params } => write!(f, "{action}{}", pairs(params)),
            ActionItem::Member { member } => write!(f, "member {member}"),
            ActionItem::Group { group } => write!(f, "group {group}"),
            ActionItem::Set { set, mode, size } => {
                let parts: Vec<String> = set
                    .iter()
                    .map(|(weight, port, action)| {
                        let port = port.map_or_else(String::new, |port| format!(" watching {port}"));
                        format!("{weight}×({action}{port})")
                    })
                    .collect();
                f.write_str(&parts.join(" "))?;
                f.write_str(match mode {
                    Mode::Selector => "",
                    Mode::Hash => " by hash",
                    Mode::Random => " at random",
                })?;
                f.write_str(match size {
                    SizeOf::Selector => "",
                    SizeOf::Weights => ", sized by weights",
                    SizeOf::Members => ", sized by members",
                })
            }
        }
    }
}

impl Display for TableItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let keys = if self.is_default { " default entry".into() } else { pairs(&self.keys) };
        write!(f, "table {}{keys}", self.table)?;
        if self.priority != 0 {
            write!(f, " priority {}", self.priority)?;
        }
        match &self.action {
            Some(action) => write!(f, " -> {action}"),
            None => Ok(()),
        }
    }
}
