//! From the typed tree to the IR: instantiates `main`, inlines calls and flattens structs.

mod action;
pub mod arch;
mod call;
mod copy;
mod evaluate;
mod expr;
mod externs;
mod finish;
mod instance;
mod list;
mod main_block;
mod mappings;
mod marks;
mod method;
mod parser;
mod parts;
mod stmt;
mod storage;
mod table;
mod unemitted;
mod unread;

use super::tree::{Annos, Checked, InstDecl, LocalId, TExpr};
use super::types::{BlockTy, ExternTy, Subst, Type};
use crate::ast::Span;
use crate::diag::{Diagnostic, Severity};
use crate::ir::{self, ActionId, Half, InstanceId, Role, StateId, TableId, Task, ValueSetId, VarId};
use arch::Architecture;
pub(crate) use externs::concatenated;
pub(crate) use instance::max_group_size;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
pub(crate) use storage::{Place, Val, constant, scalars, zero};

/// Elaborates a program that was checked without error.
pub(super) fn lower(
    checked: &Checked,
    main: &Rc<InstDecl>,
    arch: &'static dyn Architecture,
    name: &str,
) -> (Option<ir::Program>, Vec<Diagnostic>) {
    let mut lower = Lower::new(checked, name, arch);
    let done = lower.main(main);
    lower.check_names();
    let mut diags = std::mem::take(&mut lower.diags);
    let program = done.then(|| lower.finish());
    if diags.iter().all(|d| d.severity != Severity::Error) {
        diags.extend(program.iter().flat_map(unemitted::warnings));
    }
    (program, diags)
}

/// Maximum statements and variables of a program with all calls inlined (long names count more).
const MAX_ELABORATED: u64 = 1 << 20;

/// Cost of a call or instance, in addition to its statements and variables.
const FRAME_COST: u64 = 16;

/// Binding of a local name.
#[derive(Clone, Debug)]
enum Binding {
    Place(Place),
    /// An argument of a constructor.
    Const(TExpr),
    Extern(Rc<Object>),
    Block(usize),
    /// `packet_in`, `packet_out` and other things without storage.
    Opaque,
}

/// An extern object that the architecture knows.
#[derive(Debug)]
pub(crate) struct Object {
    pub inst: Rc<InstDecl>,
    pub ext: Rc<ExternTy>,
    pub made: Made,
    /// Where it is declared.
    frame: usize,
}

/// An architecture's translation of an extern object.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// State that outlives the packet.
    Instance(InstanceId),
    /// The digest with this number.
    Digest(u32),
    /// Variables of the packet.
    Variables(Vec<VarId>),
    /// Nothing: its calls need its declaration alone.
    Nothing,
}

impl Object {
    /// Its number, if it has state that outlives the packet.
    pub fn instance(&self) -> Option<InstanceId> {
        match self.made {
            Made::Instance(id) => Some(id),
            _ => None,
        }
    }
}

/// The bindings of locals in the program, in an instance of a block, or in one call of an action or function.
#[derive(Debug, Default)]
struct Bindings {
    parent: Option<usize>,
    /// Prefix of the full names of declarations here; empty at top level.
    path: String,
    is_block: bool,
    /// Positions of the actions that a block declares.
    declared: HashMap<LocalId, u32>,
    bound: HashMap<LocalId, Binding>,
    subst: Subst,
}

/// An instance of a parser or control.
#[derive(Clone, Debug)]
struct BlockInst {
    frame: usize,
    ty: Rc<BlockTy>,
    /// For each parameter, whether it stands for the argument itself rather than for a copy.
    alias: Vec<bool>,
}

/// State of the lowering.
pub(crate) struct Lower<'a> {
    checked: &'a Checked,
    diags: Vec<Diagnostic>,
    prog: ir::Program,
    frames: Vec<Bindings>,
    frame: usize,
    blocks: Vec<BlockInst>,
    /// Statements are appended here.
    out: Vec<ir::Stmt>,
    arch: &'static dyn Architecture,
    /// Role of the block being lowered.
    role: Role,
    /// The parser being lowered, including the sub-parsers that it applies.
    parser: ir::Parser,
    tables: HashMap<(usize, u32), TableId>,
    /// Statements to run before each application of a table.
    table_prelude: BTreeMap<TableId, Vec<ir::Stmt>>,
    actions: HashMap<(usize, LocalId), ActionId>,
    /// Actions that are called directly.
    called: HashSet<(usize, LocalId)>,
    /// Names that the control plane sees, with their declarations.
    shown: Vec<(&'static str, String, Span)>,
    /// Where each action of the program is declared.
    action_spans: Vec<Span>,
    /// Position of each action in P4Info.
    action_order: Vec<(usize, u32)>,
    value_sets: HashMap<(usize, LocalId), ValueSetId>,
    /// Copies back at the end of enclosing calls, for `exit`.
    pending: Vec<Vec<(Place, storage::Val)>>,
    /// Copied back after the extern call being lowered.
    copy_out: Vec<(Place, storage::Val)>,
    /// Where `return` stores its value.
    returns: Vec<Option<Place>>,
    /// The left side of a compound assignment. Its value reads it without evaluating it again.
    held: Option<(Span, Place)>,
    /// The state being filled, and the nesting depth of statements.
    state: Option<StateId>,
    depth: u32,
    /// Depth of calls, against runaway inlining.
    inlining: u32,
    temps: u32,
    /// Storage of variables of type `list`, by number.
    lists: Vec<list::List>,
    /// Objects that may still be created before the program counts as too big.
    budget: u64,
    /// Source location of the statement being lowered.
    at: Span,
    /// Variables with one bit more than their field has, which is set until the field is written, by pipeline
    /// and by the half in which packets begin with them.
    marked: Vec<(u32, Half, VarId)>,
    /// Statements before the parser accepts.
    at_accept: Vec<ir::Stmt>,
    /// Number of variables of headers and metadata, which come first.
    shared_vars: usize,
    /// Number of extern objects at top level, which come first.
    shared_instances: usize,
}

impl<'a> Lower<'a> {
    fn new(checked: &'a Checked, name: &str, arch: &'static dyn Architecture) -> Lower<'a> {
        let prog = ir::Program {
            name: name.to_owned(),
            pkginfo: Vec::new(),
            main: Span::default(),
            arch: arch.name().to_owned(),
            vars: Vec::new(),
            shared_vars: 0,
            headers: Vec::new(),
            stacks: Vec::new(),
            tables: Vec::new(),
            actions: Vec::new(),
            instances: Vec::new(),
            methods: Vec::new(),
            value_sets: Vec::new(),
            digests: Vec::new(),
            controller_headers: Vec::new(),
            errors: checked.errors.clone(),
            new_types: Vec::new(),
            ser_enums: Vec::new(),
            enums: Vec::new(),
            data_structs: Vec::new(),
            rules: ir::Rules::default(),
            intrinsics: Vec::new(),
            uses_externs: false,
            field_lists: Vec::new(),
            pipelines: Vec::new(),
            blocks: Vec::new(),
        };
        Lower {
            checked,
            diags: Vec::new(),
            prog,
            frames: vec![Bindings { is_block: true, ..Bindings::default() }],
            frame: 0,
            blocks: Vec::new(),
            out: Vec::new(),
            arch,
            role: Role::ingress(Task::Parse),
            parser: ir::Parser::default(),
            tables: HashMap::new(),
            table_prelude: BTreeMap::new(),
            actions: HashMap::new(),
            called: HashSet::new(),
            shown: Vec::new(),
            action_spans: Vec::new(),
            action_order: Vec::new(),
            value_sets: HashMap::new(),
            pending: Vec::new(),
            copy_out: Vec::new(),
            held: None,
            returns: Vec::new(),
            state: None,
            depth: 0,
            inlining: 0,
            temps: 0,
            lists: Vec::new(),
            budget: MAX_ELABORATED,
            at: Span::default(),
            marked: Vec::new(),
            at_accept: Vec::new(),
            shared_vars: 0,
            shared_instances: 0,
        }
    }

    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diags.push(Diagnostic::error(span, message));
    }

    pub(crate) fn unsupported(&mut self, span: Span, what: impl std::fmt::Display) {
        self.error(span, format!("{what} is not supported yet"));
    }

    /// A type with the type parameters of enclosing calls replaced.
    pub(crate) fn ty(&self, ty: &Type) -> Type {
        let mut at = Some(self.frame);
        while let Some(frame) = at.and_then(|i| self.frames.get(i)) {
            if !frame.subst.is_empty() {
                return ty.subst(&frame.subst);
            }
            at = frame.parent;
        }
        ty.clone()
    }

    fn find(&self, id: LocalId) -> Option<&Binding> {
        let mut at = Some(self.frame);
        while let Some(frame) = at.and_then(|i| self.frames.get(i)) {
            if let Some(binding) = frame.bound.get(&id) {
                return Some(binding);
            }
            at = frame.parent;
        }
        None
    }

    fn bind(&mut self, frame: usize, id: LocalId, binding: Binding) {
        self.frames[frame].bound.insert(id, binding);
    }

    fn new_frame(&mut self, parent: usize, path: String, is_block: bool) -> usize {
        self.charge(FRAME_COST + path.len() as u64 / 16);
        self.frames.push(Bindings { parent: Some(parent), path, is_block, ..Bindings::default() });
        self.frames.len() - 1
    }

    /// The frame of the block being lowered.
    fn block_frame(&self) -> usize {
        let mut at = self.frame;
        while let Some(frame) = self.frames.get(at) {
            if frame.is_block {
                return at;
            }
            at = frame.parent.unwrap_or(0);
        }
        0
    }

    /// Runs in another frame.
    fn within<T>(&mut self, frame: usize, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.frame, frame);
        let result = run(self);
        self.frame = outer;
        result
    }

    /// Collects the statements that `run` emits.
    fn collect(&mut self, run: impl FnOnce(&mut Self)) -> Vec<ir::Stmt> {
        let outer = std::mem::take(&mut self.out);
        self.depth += 1;
        run(self);
        self.depth -= 1;
        std::mem::replace(&mut self.out, outer)
    }

    pub(crate) fn emit(&mut self, stmt: ir::Stmt) {
        if self.charge(1) {
            self.out.push(stmt);
        }
    }

    /// Deducts from the budget. Returns false when it is used up, which is reported once.
    fn charge(&mut self, amount: u64) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget = self.budget.saturating_sub(amount);
        if self.budget == 0 {
            let message = format!("more than {MAX_ELABORATED} statements and variables");
            self.diags.push(
                Diagnostic::error(self.at, message)
                    .note("calls, parsers and controls are inlined, so each use counts")
                    .help("use fewer nested calls, or tables instead"),
            );
        }
        self.budget > 0
    }

    /// Whether the program is too big. Nothing more is created then.
    fn exhausted(&self) -> bool {
        self.budget == 0
    }

    /// Full name of something declared in a frame; respects `@name`.
    fn full_name(&self, frame: usize, name: &str, annos: &Annos) -> String {
        let own = annos.name.as_deref().unwrap_or(name);
        if let Some(absolute) = own.strip_prefix('.') {
            return absolute.to_owned();
        }
        match self.frames[frame].path.as_str() {
            "" => own.to_owned(),
            path => format!("{path}.{own}"),
        }
    }

    fn named(&self, frame: usize, name: &str, annos: &Annos) -> ir::Named {
        ir::Named {
            name: self.full_name(frame, name, annos),
            id: annos.id,
            hidden: annos.hidden,
            annotations: annos.rest.clone(),
        }
    }

    pub(crate) fn temp_name(&mut self, hint: &str) -> String {
        self.temps += 1;
        let path = &self.frames[self.frame].path;
        let dot = if path.is_empty() { "" } else { "." };
        format!("{path}{dot}${hint}{}", self.temps)
    }
}

/// Name of a `type` or serializable enum that P4Info shows.
fn type_name(ty: &Type) -> Option<String> {
    match ty {
        Type::New(n) => Some(n.name.clone()),
        Type::Enum(e) if e.repr.is_some() => Some(e.name.clone()),
        _ => None,
    }
}
