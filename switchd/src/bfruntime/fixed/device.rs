//! Properties of the device, and settings that outlive programs.

use super::{Fixed, Table, invalid, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_switch::Switch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Stages per pipe, by generation.
const STAGES: [u32; 2] = [12, 20];
/// Bits of a port's number within its pipe.
const LOCAL_BITS: u32 = 7;

const LEARN_INTERRUPTS: &str = "flow_learn_intr_mode";
const READ_TIMEOUT: &str = "lrt_dr_timeout_usec";
const LEARN_TIMEOUT: &str = "flow_learn_timeout_usec";
const INACTIVE_DELETE: &str = "inactive_node_delete";
const MEMBER_ORDER: &str = "selector_member_order";

/// Whether this is the device's table.
pub fn has(table: &str) -> bool {
    table.ends_with(".dev.device_configuration")
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    learns_by_interrupt: bool,
    read_timeout_us: u32,
    learn_timeout_us: u32,
    inactive_delete: bool,
    keeps_member_order: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            learns_by_interrupt: false,
            read_timeout_us: 0,
            learn_timeout_us: 500,
            inactive_delete: false,
            keeps_member_order: false,
        }
    }
}

/// Settings of the device.
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig(Arc<Mutex<Settings>>);

impl DeviceConfig {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        // Every change is a single assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether groups of selectors keep their members in the order in which they are given.
    pub fn selector_member_order(&self) -> bool {
        self.settings().keeps_member_order
    }

    /// Maximum time that a digest waits for others.
    pub fn learn_timeout(&self) -> Duration {
        Duration::from_micros(self.settings().learn_timeout_us.into())
    }
}

impl Fixed {
    pub(super) fn device_step(self: &Arc<Fixed>, kind: Type, entry: &Entry) -> Checked<Change> {
        if !entry.is_default() {
            return invalid(entry, "it has nothing but its default entry");
        }
        let resets = match kind {
            Type::Delete => true,
            Type::Modify => false,
            _ => return not_offered(entry, kind.as_str_name()),
        };
        let known = [LEARN_INTERRUPTS, READ_TIMEOUT, LEARN_TIMEOUT, INACTIVE_DELETE, MEMBER_ORDER];
        let table = self.schema.table(entry.table()).ok();
        let mut fields = table.iter().flat_map(|table| &table.fields);
        if let Some(field) =
            fields.find(|field| entry.get(&field.name).is_some() && !known.contains(&field.name.as_str()))
        {
            return invalid(entry, format!("`{}` can only be read", field.name));
        }
        let (config, entry) = (self.config.clone(), entry.clone());
        Ok(Box::new(move |_, _| {
            let mut settings = config.settings();
            if resets {
                *settings = Settings::default();
                return Ok(());
            }
            let truth = |field: &str, before| match entry.get(field) {
                Some(Value::Bool(truth)) => *truth,
                _ => before,
            };
            let number = |field: &str, before| {
                entry.get(field).and_then(Value::number).and_then(|n| u32::try_from(n).ok()).unwrap_or(before)
            };
            *settings = Settings {
                learns_by_interrupt: truth(LEARN_INTERRUPTS, settings.learns_by_interrupt),
                read_timeout_us: number(READ_TIMEOUT, settings.read_timeout_us),
                learn_timeout_us: number(LEARN_TIMEOUT, settings.learn_timeout_us),
                inactive_delete: truth(INACTIVE_DELETE, settings.inactive_delete),
                keeps_member_order: truth(MEMBER_ORDER, settings.keeps_member_order),
            };
            Ok(())
        }))
    }

    pub(super) fn device_lookup(&self, name: &str) -> Table {
        let (name, second) = (name.to_owned(), self.second);
        Box::new(move |fixed, switch, _| {
            let settings = *fixed.config.settings();
            let entry = device(&name, switch, second)
                .data(LEARN_INTERRUPTS, settings.learns_by_interrupt)
                .data(READ_TIMEOUT, settings.read_timeout_us)
                .data(LEARN_TIMEOUT, settings.learn_timeout_us)
                .data(INACTIVE_DELETE, settings.inactive_delete)
                .data(MEMBER_ORDER, settings.keeps_member_order);
            Ok((vec![entry], None))
        })
    }
}

fn device(table: &str, switch: &Switch, second: bool) -> Entry {
    let config = switch.config();
    let cpu: Vec<u32> = config.cpu_port.into_iter().map(u32::from).collect();
    let ports: Vec<u32> = config.ports.iter().map(|port| port.port.into()).collect();
    let is_internal = |port: &u32| config.internal_pipes.contains(&((port >> LOCAL_BITS) as usize));
    let all = 0..(switch.pipes() << LOCAL_BITS).min(1 << 16) as u16;
    let loops = all.filter(|port| switch.comes_back(*port)).map(u32::from);
    // Frames that leave through an internal port come back; the switch has no others in their pipes.
    let (internal, loops): (Vec<u32>, Vec<u32>) = loops.partition(is_internal);
    let count = u32::try_from(ports.len() + internal.len()).unwrap_or(u32::MAX);
    let front = u32::try_from(ports.len()).unwrap_or(u32::MAX);
    Entry::default_of(table)
        .data("sku", "UNKNOWN")
        .data("num_pipes", u32::try_from(switch.pipes()).unwrap_or(1))
        .data("num_stages", STAGES[usize::from(second)])
        .data("num_max_ports", count)
        .data("num_front_ports", front)
        .data("pcie_cpu_port", cpu.first().copied().unwrap_or(0))
        .data("eth_cpu_port_list", Value::Numbers(cpu))
        .data("internal_port_list", Value::Numbers(internal))
        .data("external_port_list", Value::Numbers(ports))
        .data("recirc_port_list", Value::Numbers(loops))
        .data("intr_based_link_monitoring", false)
}
