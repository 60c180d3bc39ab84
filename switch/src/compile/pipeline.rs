//! The compiled program: its code, and the data that the control plane needs.

use super::builder::kind;
use crate::arch::Arch;
use crate::code::ops::Vars;
use crate::code::plans::{Code, EntryId, ValueType};
use crate::config::Config;
use crate::exec::{self, Cx, Exit};
use crate::meter::Meter;
#[cfg(feature = "native")]
use crate::native::Native;
use crate::objects::CounterData;
use crate::profile::Profile;
use crate::shape::TableShape;
use crate::smooth::Smoother;
use crate::state::{InstanceState, PipeState, RegisterState, State};
use crate::table::{TableLayout, TableState};
use crate::words::limbs_of;
use num_bigint::BigUint;
use p4rack_p4::ir::{InstanceKind, TableId, Unit};
use std::sync::Arc;

/// A program that is ready to run.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(crate) arch: Arch,
    /// Shared by all switches with the program: many of them use the processor's cache for one.
    pub(crate) code: Arc<Code>,
    pub(crate) tables: Vec<TableShape>,
    pub(crate) instances: Vec<InstanceShape>,
    pub(crate) value_sets: Vec<ValueSetShape>,
    /// Types of the fields of each digest.
    pub(crate) digests: Vec<Vec<ValueType>>,
    /// Number of the pipeline of each table, extern object and value set.
    pub(crate) homes: [Vec<usize>; 3],
    /// Names of the parser's errors, by number.
    pub(crate) errors: Vec<String>,
    /// Whether the program records events.
    pub(crate) traced: bool,
    /// Tables with the entries that the program gives them.
    pub(crate) initial: Vec<TableState>,
    /// The blocks as machine code. `None` if they are interpreted.
    #[cfg(feature = "native")]
    pub(crate) native: Option<Arc<Native>>,
}

impl Pipeline {
    /// How a table stores plain entries, which consist of key, action and arguments. `None` if its entries
    /// have more.
    pub fn layout(&self, table: TableId) -> Option<TableLayout> {
        self.tables.get(table.0 as usize)?.layout()
    }

    /// Internal ports of the program's architecture: frames sent there come in again. A switch that is given
    /// a port of such a number keeps that one.
    pub fn loop_ports(&self) -> Vec<u16> {
        self.arch.loops(&mut (0..4).map(|pipe| pipe << 7))
    }

    /// Bytes that the program's parser reads before a frame's own: the device's words about the frame.
    pub fn prefix_bytes(&self) -> usize {
        self.arch.prefix_bytes()
    }

    /// Whether the blocks run as machine code.
    pub fn is_native(&self) -> bool {
        #[cfg(feature = "native")]
        return self.native.is_some();
        #[cfg(not(feature = "native"))]
        false
    }

    /// Whether the other pipeline is another form of the same program, so that a packet may mix halves of
    /// both.
    pub(crate) fn has_variables_of(&self, other: &Pipeline) -> bool {
        let (code, others) = (&self.code, &other.code);
        let tables = |pipeline: &Pipeline| -> Vec<String> {
            pipeline.tables.iter().map(|table| table.name.clone()).collect()
        };
        let instances = |pipeline: &Pipeline| -> Vec<String> {
            pipeline.instances.iter().map(|instance| instance.name.clone()).collect()
        };
        code.variables == others.variables
            && code.saved == others.saved
            && code.constants == others.constants
            && code.lists == others.lists
            && tables(self) == tables(other)
            && instances(self) == instances(other)
    }

    /// Whether ingress itself clears the variables of a packet that carries no metadata.
    #[inline(always)]
    pub(crate) fn clears(&self) -> bool {
        #[cfg(feature = "native")]
        if let Some(native) = &self.native {
            return native.clears;
        }
        false
    }

    /// Runs one of its entries, as machine code if there is some.
    #[inline(always)]
    pub(crate) fn run(&self, state: &mut State, vars: &mut Vars, cx: &mut Cx<'_>, entry: EntryId) -> Exit {
        let code = &self.code;
        #[cfg(feature = "native")]
        if let Some(native) = &self.native {
            return native.run(code, state, vars, cx, entry);
        }
        exec::execute(code, state, vars, cx, &code.entries[entry])
    }

    /// Positions of the cells of each extern object that is a register.
    pub(crate) fn registers(&self) -> Vec<Option<RegisterState>> {
        let mut first = 0;
        let place = |shape: &InstanceShape| match &shape.kind {
            InstanceKind::Register { size, ty, .. } => {
                let register = RegisterState { first, words: kind(*ty).words(), size: *size as usize };
                first += register.size * register.words;
                Some(register)
            }
            _ => None,
        };
        self.instances.iter().map(place).collect()
    }

    /// The state with which the program starts.
    pub(crate) fn initial_state(&self, config: &Config) -> State {
        let others = (1..self.arch.pipes(config)).map(|_| self.pipe_state()).collect();
        State::new(self.pipe_state(), others, self.traced, config)
    }

    /// The state with which one of its pipes starts.
    fn pipe_state(&self) -> PipeState {
        let instance = |(shape, register): (&InstanceShape, Option<RegisterState>)| match &shape.kind {
            InstanceKind::Counter { size, .. } => {
                InstanceState::Counter(vec![CounterData::default(); *size as usize])
            }
            InstanceKind::Meter { size, unit, .. } => InstanceState::Meter {
                bytes: *unit != Unit::Packets,
                adjust_bytes: 0,
                cells: vec![Meter::default(); *size as usize],
            },
            InstanceKind::Smoother { size, drops } => {
                InstanceState::Smoother { drops: *drops, cells: vec![Smoother::default(); *size as usize] }
            }
            InstanceKind::Register { .. } => register.map_or(InstanceState::None, InstanceState::Register),
            InstanceKind::ActionProfile { size } | InstanceKind::ActionSelector { size, .. } => {
                InstanceState::Profile(Profile::new(*size))
            }
            InstanceKind::Hash { .. } => InstanceState::Hash(None),
            InstanceKind::DirectCounter { .. }
            | InstanceKind::DirectMeter { .. }
            | InstanceKind::DirectRegister { .. }
            | InstanceKind::DirectSmoother { .. } => InstanceState::None,
        };
        let instances = self.instances.iter().zip(self.registers()).map(instance).collect();
        let mut tables = self.initial.clone();
        for (table, shape) in tables.iter_mut().zip(&self.tables) {
            table.make_room(shape.size);
        }
        let mut state = PipeState::new(tables, instances, self.value_sets.len());
        for (shape, register) in self.instances.iter().zip(self.registers()) {
            if let (InstanceKind::Register { initial, .. }, Some(register)) = (&shape.kind, register)
                && *initial != BigUint::ZERO
            {
                let value = limbs_of(initial, register.words);
                let cells = &mut state.registers[register.first..][..register.size * register.words];
                cells.chunks_exact_mut(register.words).for_each(|cell| cell.copy_from_slice(&value));
            }
        }
        state
    }
}

/// An extern object.
#[derive(Clone, Debug)]
pub(crate) struct InstanceShape {
    pub name: String,
    pub kind: InstanceKind,
}

/// A parser value set.
#[derive(Clone, Debug)]
pub(crate) struct ValueSetShape {
    pub name: String,
    pub size: u64,
    pub fields: Vec<ValueType>,
}
