//! Typed intermediate representation: a program after every name, type, generic and instantiation
//! is resolved. Structs are flattened into scalar variables, sub-parsers, sub-controls, functions
//! and direct action calls are inlined, so an executor needs neither a symbol table nor a stack.
//!
//! ```text
//!  Program ── vars[]     scalars, each with a type; all storage of one packet's trip
//!          ├─ headers[]  a valid bit and fields, both variables
//!          ├─ stacks[]   headers[] and the variable nextIndex
//!          ├─ blocks[]   parsers and controls, each with its role in a pipeline
//!          └─ tables[], actions[], instances[], methods[], value_sets[]
//! ```
//!
//! Copy-in/copy-out has been made explicit with temporaries; every expression in it is pure except
//! [`Expr::Lookahead`], which can raise `PacketTooShort`. Uninitialised variables are zero.

mod block;
mod code;
mod curve;
mod objects;
mod parts;
mod rules;

pub use block::*;
pub use code::*;
pub use curve::Curve;
pub use objects::*;
pub use parts::Parts;
pub use rules::*;

use crate::ast::Span;

/// Index into [`Program::vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);
/// Index into [`Program::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderId(pub u32);
/// Index into [`Program::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);
/// Index into [`Program::tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);
/// Index into [`Program::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u32);
/// Index into [`Program::instances`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);
/// Index into [`Parser::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);
/// Index into [`Program::value_sets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueSetId(pub u32);

/// Type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// 0 or 1.
    Bool,
    /// Unsigned, width in bits (0 to 2048). Enums and errors are `Bit` too.
    Bit(u32),
    /// Two's complement, width in bits (0 to 2048).
    Int(u32),
    /// Up to this many bits. The current length travels with the value.
    Varbit(u32),
}

impl Ty {
    /// Width in bits (a varbit's largest).
    pub fn width(self) -> u32 {
        match self {
            Ty::Bool => 1,
            Ty::Bit(w) | Ty::Int(w) | Ty::Varbit(w) => w,
        }
    }
}

/// A program for one architecture.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of the main file without folder and extension, or `@pkginfo(name=...)`.
    pub name: String,
    /// Annotations of `main`, for P4Info's `pkg_info`.
    pub pkginfo: Vec<Annotation>,
    /// Where `main` is declared; the text's start for programs of no text.
    pub main: Span,
    /// Name of the architecture, as in P4Info.
    pub arch: String,
    /// All scalar variables.
    pub vars: Vec<Var>,
    /// How many of them, from the first one on, are headers' and metadata: parameters of blocks.
    pub shared_vars: usize,
    /// All header instances.
    pub headers: Vec<Header>,
    /// All header stacks.
    pub stacks: Vec<Stack>,
    /// All tables.
    pub tables: Vec<Table>,
    /// All actions that a table lists. Actions called directly are inlined, but listed here for P4Info.
    pub actions: Vec<Action>,
    /// Counters, meters, registers, action profiles …
    pub instances: Vec<Instance>,
    /// Bodies of abstract methods that the program implements.
    pub methods: Vec<Method>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Types of digests with their fields, in order of first use.
    pub digests: Vec<Digest>,
    /// Headers annotated `@controller_header("packet_in"|"packet_out")`, as declared.
    pub controller_headers: Vec<ControllerHeader>,
    /// Names of errors by number. `NoError` is 0; core.p4's come first.
    pub errors: Vec<String>,
    /// `type T N` with `@p4runtime_translation`, by name.
    pub new_types: Vec<NewType>,
    /// Serializable enums that P4Info lists: name, width, members.
    pub ser_enums: Vec<SerEnum>,
    /// Other enums: name and members.
    pub enums: Vec<(String, Vec<String>)>,
    /// Structs and headers that digests contain.
    pub data_structs: Vec<DataStruct>,
    /// Rules for controllers' writes.
    pub rules: Rules,
    /// Fields of intrinsic metadata.
    pub intrinsics: Vec<IntrinsicVar>,
    /// Whether a control calls an extern function or uses an object of an extern that the program declares
    /// itself. P4Info reports this.
    pub uses_externs: bool,
    /// Field lists (`@field_list`) by index: variables that a clone, resubmit or recirculate preserves.
    pub field_lists: Vec<(u32, Vec<VarId>)>,
    /// Names of the pipelines, by number.
    pub pipelines: Vec<String>,
    /// Parsers and controls, pipeline by pipeline, in the order of the architecture's package.
    pub blocks: Vec<Block>,
}

impl Program {
    /// The block with this role in a pipeline.
    pub fn block(&self, pipeline: u32, role: Role) -> Option<&Block> {
        self.blocks.iter().find(|block| block.pipeline == pipeline && block.role == role)
    }

    /// Statements of the control with this role in the first pipeline; empty if there is none.
    pub fn control(&self, role: Role) -> &[Stmt] {
        self.block(0, role).map_or(&[], Block::stmts)
    }

    /// The parser at the start of the first pipeline.
    pub fn parser(&self) -> Option<&Parser> {
        self.block(0, Role::ingress(Task::Parse)).and_then(Block::parser)
    }

    /// The variable of an intrinsic field in the first pipeline.
    pub fn intrinsic(&self, role: Intrinsic) -> Option<VarId> {
        self.intrinsics.iter().find(|field| field.pipeline == 0 && field.role == role).map(|field| field.var)
    }
}

/// A scalar variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Full name, for traces: `hdr.ethernet.dstAddr`, `MyIngress.tmp`.
    pub name: String,
    /// Type of the scalar.
    pub ty: Ty,
}

/// A header instance.
#[derive(Clone, Debug)]
pub struct Header {
    /// Full name: `hdr.ethernet`, `hdr.vlan[1]`.
    pub name: String,
    /// Name of its type.
    pub type_name: String,
    /// Variable that holds the validity bit.
    pub valid: VarId,
    /// Fields, in wire order.
    pub fields: Vec<HeaderField>,
    /// Other members of the same header union. Extracting or validating one of them invalidates this header.
    pub union_siblings: Vec<HeaderId>,
}

/// A field of a header instance.
#[derive(Clone, Debug)]
pub struct HeaderField {
    /// Name of the field within the header.
    pub name: String,
    /// Variable that holds it.
    pub var: VarId,
}

/// A header stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Full name.
    pub name: String,
    /// Elements, in order. All have the same type.
    pub elements: Vec<HeaderId>,
    /// Variable that holds `nextIndex`, a `bit<32>`.
    pub next: VarId,
}
