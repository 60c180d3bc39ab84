//! Tables that every device has: device configuration, ports, multicast, mirror sessions. The switch gets multicast groups
//! and clone sessions as P4Runtime's.

mod replication;

use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_entities::{Change, Checked, Program, Snapshot, refuse};
use p4rack_p4rt::bfrt_proto::{TableEntry, update};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{DropReason, Switch};
use replication::{Edit, Node, Replication, Session};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The schema of the first generation's tables.
const TEXT: &str = include_str!("fixed.json");
/// Stages per pipe, by generation.
const STAGES: [u32; 2] = [12, 20];

/// The schema of the tables for a program's architecture.
pub fn fixed_text(arch: &str) -> String {
    if is_second(arch) { TEXT.replace("\"tf1.", "\"tf2.") } else { TEXT.to_owned() }
}

/// Whether an architecture is the second generation's.
pub fn is_second(arch: &str) -> bool {
    arch.starts_with("t2")
}

/// Ports as configured by clients.
pub type Ports = Arc<Mutex<BTreeMap<u16, Entry>>>;

/// State of the tables while one program runs.
#[derive(Debug)]
pub struct Fixed {
    schema: Schema,
    ports: Ports,
    replication: Mutex<Replication>,
}

/// A prepared update: what to save for undoing it, and what to do.
pub struct Step {
    /// See [`p4rack_entities::snapshot`].
    pub snapshot: Option<Snapshot>,
    /// See [`p4rack_entities::change`].
    pub change: Change,
}

/// Collects the entries of one of the tables.
type Table = Box<dyn FnOnce(&Fixed, &Switch, p4rack_wire::Nanos) -> Vec<Entry> + Send>;

/// A prepared read.
pub type Lookup = Box<dyn FnOnce(&Switch, p4rack_wire::Nanos) -> Checked<Vec<TableEntry>> + Send>;

fn missing(entry: &Entry, key: &str) -> String {
    format!("table `{}`: the entry's key needs `{key}`", entry.table())
}

fn not_offered<T>(entry: &Entry, what: &str) -> Checked<T> {
    refuse(Code::Unimplemented, format!("table `{}`: {what} is not offered by this switch", entry.table()))
}

impl Fixed {
    /// Empty tables, except for the ports, which outlive programs.
    pub fn new(schema: Schema, ports: Ports) -> Fixed {
        Fixed { schema, ports, replication: Mutex::default() }
    }

    /// Whether this is one of the tables.
    pub fn has(&self, table_id: u32) -> bool {
        self.schema.table_by_id(table_id).is_some()
    }

    fn replication(&self) -> MutexGuard<'_, Replication> {
        // A change that fails half-way is undone before it returns.
        self.replication.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ports(&self) -> MutexGuard<'_, BTreeMap<u16, Entry>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, message: &TableEntry) -> Checked<Entry> {
        Entry::read(&self.schema, message).or_else(|error| refuse(Code::InvalidArgument, error.to_string()))
    }

    /// Checks an update.
    pub fn step(
        self: &Arc<Fixed>,
        program: &Arc<Program>,
        kind: update::Type,
        message: &TableEntry,
    ) -> Checked<Step> {
        let entry = self.entry(message)?;
        if message.value.is_none() {
            return refuse(
                Code::InvalidArgument,
                format!("table `{}`: the entry's key is not set", entry.table()),
            );
        }
        match entry.table() {
            "$pre.node" => {
                let id = self.id(&entry, "$MULTICAST_NODE_ID")?;
                let node = if kind == update::Type::Delete { None } else { Some(node(&entry)?) };
                Ok(self.edit(program, kind, Edit::Node(id, node)))
            }
            "$pre.mgid" => {
                let id = self.id(&entry, "$MGID")?;
                let nodes = if kind == update::Type::Delete { None } else { Some(nodes(&entry)?) };
                Ok(self.edit(program, kind, Edit::Group(id, nodes)))
            }
            "$mirror.cfg" => {
                let id = self.id(&entry, "$sid")?;
                let session = if kind == update::Type::Delete { None } else { Some(Session::of(entry)?) };
                Ok(self.edit(program, kind, Edit::Session(id, session)))
            }
            "$PORT" => self.port_step(kind, entry),
            _ => refuse(Code::Unimplemented, format!("table `{}` can only be read here", entry.table())),
        }
    }

    fn id(&self, entry: &Entry, key: &str) -> Checked<u32> {
        let id = entry.exact_number(key).and_then(|id| u32::try_from(id).ok());
        id.map_or_else(|| refuse(Code::InvalidArgument, missing(entry, key)), Ok)
    }

    fn edit(self: &Arc<Fixed>, program: &Arc<Program>, kind: update::Type, edit: Edit) -> Step {
        let (saving, saved_program, before) = (self.clone(), program.clone(), edit.clone());
        let snapshot: Snapshot = Box::new(move |_| {
            let before = saving.replication().there(&before);
            Box::new(move |switch| {
                let _ = saving.replication().apply(&saved_program, switch, p4rack_wire::Nanos(0), before);
            })
        });
        let (fixed, program) = (self.clone(), program.clone());
        let change: Change = Box::new(move |switch, now| {
            let mut replication = fixed.replication();
            replication.expect(kind, &edit, switch)?;
            let edit = replication.merged(kind, edit)?;
            replication.apply(&program, switch, now, edit)
        });
        Step { snapshot: Some(snapshot), change }
    }

    fn port_step(self: &Arc<Fixed>, kind: update::Type, entry: Entry) -> Checked<Step> {
        if matches!(kind, update::Type::ModifyInc | update::Type::Reset) {
            return not_offered(&entry, kind.as_str_name());
        }
        let port = self.id(&entry, "$DEV_PORT")?;
        let Ok(port) = u16::try_from(port) else {
            return refuse(Code::InvalidArgument, format!("there is no port {port}"));
        };
        let saving = self.clone();
        let snapshot: Snapshot = Box::new(move |_| {
            let before = saving.ports().get(&port).cloned();
            Box::new(move |_| {
                match before {
                    Some(entry) => saving.ports().insert(port, entry),
                    None => saving.ports().remove(&port),
                };
            })
        });
        let fixed = self.clone();
        let change: Change = Box::new(move |switch, _| {
            if !switch.config().ports.iter().any(|own| own.port == port) {
                return refuse(Code::InvalidArgument, format!("the switch has no port {port}"));
            }
            let mut ports = fixed.ports();
            match (kind, ports.contains_key(&port)) {
                (update::Type::Insert, true) => {
                    return refuse(Code::AlreadyExists, format!("port {port} was added before"));
                }
                (update::Type::Modify | update::Type::Delete, false) => {
                    return refuse(Code::NotFound, format!("port {port} was not added"));
                }
                _ => {}
            }
            match kind {
                update::Type::Delete => drop(ports.remove(&port)),
                _ => {
                    let before = ports.remove(&port);
                    let merged = before.map_or_else(|| entry.clone(), |before| before.updated(&entry));
                    ports.insert(port, merged);
                }
            }
            Ok(())
        });
        Ok(Step { snapshot: Some(snapshot), change })
    }

    /// The next entries of a table that is not the switch's, from a number on, and the number of the next one; `None` for
    /// another table. Without a number the read begins.
    pub fn page(
        &self,
        message: &TableEntry,
        from: Option<u32>,
    ) -> Checked<Option<(Vec<TableEntry>, Option<u32>)>> {
        let entry = self.entry(&TableEntry { data: None, ..message.clone() })?;
        let key = match entry.table() {
            "$pre.node" => "$MULTICAST_NODE_ID",
            "$pre.mgid" => "$MGID",
            "$mirror.cfg" => "$sid",
            _ => return Ok(None),
        };
        let range = match message.value {
            Some(_) => {
                let id = self.id(&entry, key)?;
                id..=id
            }
            None => from.unwrap_or(0)..=u32::MAX,
        };
        let replication = self.replication();
        let found = match entry.table() {
            "$pre.node" => replication.nodes(range),
            "$pre.mgid" => replication.groups(range),
            _ => replication.sessions(range),
        };
        drop(replication);
        if found.is_empty() && message.value.is_some() {
            return refuse(Code::NotFound, format!("table `{}` has no such entry", entry.table()));
        }
        let next = found.last().and_then(|(id, _)| id.checked_add(1)).filter(|_| message.value.is_none());
        let built = found.iter().map(|(_, entry)| entry.build(&self.schema));
        let built: Result<Vec<TableEntry>, _> = built.collect();
        Ok(Some((built.or_else(|error| refuse(Code::Internal, error.to_string()))?, next)))
    }

    /// Checks a read of the switch's state.
    pub fn lookup(self: &Arc<Fixed>, arch: &str, message: &TableEntry) -> Checked<Lookup> {
        // The requested fields carry no values.
        let entry = self.entry(&TableEntry { data: None, ..message.clone() })?;
        let all = message.value.is_none();
        let fixed = self.clone();
        let second = is_second(arch);
        let wanted = |key: &str| if all { Ok(None) } else { self.id(&entry, key).map(Some) };
        let found: Table = match entry.table() {
            name @ ("tf1.dev.device_configuration" | "tf2.dev.device_configuration") => {
                let name = name.to_owned();
                Box::new(move |_, switch, _| vec![device(&name, switch, second)])
            }
            "$PORT" => {
                let wanted = wanted("$DEV_PORT")?;
                Box::new(move |fixed, switch, _| fixed.ports_read(switch, wanted))
            }
            "$PORT_STAT" => {
                let wanted = wanted("$DEV_PORT")?;
                Box::new(move |_, switch, now| statistics(switch, now, wanted))
            }
            _ => return not_offered(&entry, "reading"),
        };
        let name = entry.table().to_owned();
        Ok(Box::new(move |switch, now| {
            let entries = found(&fixed, switch, now);
            if entries.is_empty() && !all {
                return refuse(Code::NotFound, format!("table `{name}` has no such entry"));
            }
            let built = entries.iter().map(|entry| entry.build(&fixed.schema));
            let built: Result<Vec<TableEntry>, _> = built.collect();
            built.or_else(|error| refuse(Code::Internal, error.to_string()))
        }))
    }

    fn ports_read(&self, switch: &Switch, wanted: Option<u32>) -> Vec<Entry> {
        let ports = self.ports();
        let fits = |port: &u16| wanted.is_none_or(|wanted| wanted == u32::from(*port));
        let one = |(port, entry): (&u16, &Entry)| {
            let enabled = entry.get("$PORT_ENABLE") == Some(&Value::Bool(true));
            let up = enabled && switch.is_port_up(*port);
            let entry = entry.clone().data("$PORT_UP", up).data("$IS_VALID", true);
            entry.data("$PORT_NAME", &*format!("{port}/0"))
        };
        ports.iter().filter(|(port, _)| fits(port)).map(one).collect()
    }
}

fn numbers(entry: &Entry, field: &str) -> Vec<u32> {
    match entry.get(field) {
        Some(Value::Numbers(numbers)) => numbers.clone(),
        _ => Vec::new(),
    }
}

fn node(entry: &Entry) -> Checked<Node> {
    if !numbers(entry, "$MULTICAST_LAG_ID").is_empty() {
        return not_offered(entry, "$MULTICAST_LAG_ID");
    }
    let rid = entry.get("$MULTICAST_RID").and_then(Value::number).and_then(|rid| u16::try_from(rid).ok());
    let Some(rid) = rid else {
        return refuse(
            Code::InvalidArgument,
            format!("table `{}`: $MULTICAST_RID is not set", entry.table()),
        );
    };
    Ok(Node { rid, ports: numbers(entry, "$DEV_PORT") })
}

fn nodes(entry: &Entry) -> Checked<Vec<u32>> {
    let nodes = numbers(entry, "$MULTICAST_NODE_ID");
    if !numbers(entry, "$MULTICAST_ECMP_ID").is_empty() {
        return not_offered(entry, "$MULTICAST_ECMP_ID");
    }
    let valid = match entry.get("$MULTICAST_NODE_L1_XID_VALID") {
        Some(Value::Bools(valid)) => &valid[..],
        _ => &[],
    };
    let given = |field: &str| entry.get(field).is_some();
    let xids = numbers(entry, "$MULTICAST_NODE_L1_XID");
    let unequal = given("$MULTICAST_NODE_L1_XID_VALID") && valid.len() != nodes.len()
        || given("$MULTICAST_NODE_L1_XID") && xids.len() != nodes.len();
    if unequal {
        let message = format!(
            "table `{}`: {} nodes, but {} values of $MULTICAST_NODE_L1_XID_VALID and {} of $MULTICAST_NODE_L1_XID; \
             give one for each node",
            entry.table(),
            nodes.len(),
            valid.len(),
            xids.len()
        );
        return refuse(Code::InvalidArgument, message);
    }
    if valid.contains(&true) {
        return not_offered(entry, "exclusion by $MULTICAST_NODE_L1_XID");
    }
    Ok(nodes)
}

fn device(table: &str, switch: &Switch, second: bool) -> Entry {
    let config = switch.config();
    let cpu: Vec<u32> = config.cpu_port.into_iter().map(u32::from).collect();
    let ports: Vec<u32> = config.ports.iter().map(|port| port.port.into()).collect();
    let count = u32::try_from(ports.len()).unwrap_or(u32::MAX);
    Entry::default_of(table)
        .data("sku", "UNKNOWN")
        .data("num_pipes", u32::try_from(switch.pipes()).unwrap_or(1))
        .data("num_stages", STAGES[usize::from(second)])
        .data("num_max_ports", count)
        .data("num_front_ports", count)
        .data("pcie_cpu_port", cpu.first().copied().unwrap_or(0))
        .data("eth_cpu_port_list", Value::Numbers(cpu))
        .data("internal_port_list", Value::Numbers(Vec::new()))
        .data("external_port_list", Value::Numbers(ports))
        .data("recirc_port_list", Value::Numbers(Vec::new()))
        .data("intr_based_link_monitoring", false)
}

fn statistics(switch: &Switch, now: p4rack_wire::Nanos, wanted: Option<u32>) -> Vec<Entry> {
    let stats = switch.stats(now);
    let is_own = |port: u16| switch.config().ports.iter().any(|own| own.port == port);
    let wanted = |port: u16| is_own(port) && wanted.is_none_or(|wanted| wanted == u32::from(port));
    let ports = stats.ports.iter().filter(|port| wanted(port.port));
    let one = |port: &p4rack_switch::PortStats| {
        let full = [DropReason::BufferFull, DropReason::BestEffortFull, DropReason::QueueLimit];
        let dropped: u64 =
            port.drops.iter().filter(|(why, _)| full.contains(why)).map(|(_, count)| count).sum();
        Entry::of("$PORT_STAT")
            .exact("$DEV_PORT", port.port.into())
            .data("$FramesReceivedOK", port.rx_frames)
            .data("$FramesReceivedAll", port.rx_frames)
            .data("$OctetsReceivedinGoodFrames", port.rx_bytes)
            .data("$OctetsReceived", port.rx_bytes)
            .data("$FramesDroppedBufferFull", dropped)
            .data("$FramesTransmittedOK", port.tx_frames)
            .data("$FramesTransmittedAll", port.tx_frames)
            .data("$OctetsTransmittedwithouterror", port.tx_bytes)
            .data("$OctetsTransmittedTotal", port.tx_bytes)
    };
    ports.map(one).collect()
}
