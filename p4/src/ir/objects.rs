//! Objects that the control plane sees: tables, actions, extern objects, value sets, digests and their types.

use super::*;
use crate::ast::{AnnotationToken, Direction, Span};
use num_bigint::BigUint;

/// Match kind of a table key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatchKind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
    Selector,
}

/// An annotation that appears in P4Info, or that fixes a name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Name without the `@`.
    pub name: String,
    /// Text between the parentheses, with tokens joined as p4c joins them.
    pub body: String,
    /// For structured annotations (`@x[...]`): the expressions or key-value pairs.
    pub structured: Option<Structured>,
    /// The tokens between the parentheses.
    pub tokens: Vec<AnnotationToken>,
    /// Source location.
    pub span: Span,
}

/// Body of a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structured {
    /// `@x[1, "a", true]`
    List(Vec<AnnotationValue>),
    /// `@x[k = 1]`
    KeyValues(Vec<(String, AnnotationValue)>),
}

/// A compile-time value in a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AnnotationValue {
    Str(String),
    Int(i64),
    Bool(bool),
}

/// Fields of every object in P4Info.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Control-plane name: `MyIngress.table`, or the argument of `@name`.
    pub name: String,
    /// `@id`, if given: the low 24 bits or the whole id.
    pub id: Option<u32>,
    /// `@hidden`: not in P4Info.
    pub hidden: bool,
    /// Other annotations, in order, without those that p4c omits from P4Info (`name`, `id`, `hidden`, …).
    pub annotations: Vec<Annotation>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name and id.
    pub named: Named,
    /// Keys, in order.
    pub keys: Vec<Key>,
    /// Actions, in order. Entries refer to an action by its position.
    pub actions: Vec<TableAction>,
    /// Default action with arguments. `None` means `NoAction`, for tables without the property.
    pub default_action: Option<ActionCall>,
    /// `const default_action`
    pub default_is_const: bool,
    /// `const entries` (immutable) or `entries` (initial).
    pub entries: Vec<Entry>,
    /// Whether the entries are `const`.
    pub entries_const: bool,
    /// Value of `size`; 1024 if absent.
    pub size: u64,
    /// Action profile or selector that implements the table.
    pub implementation: Option<InstanceId>,
    /// Direct counter attached to the table.
    pub counter: Option<InstanceId>,
    /// Direct meter attached to the table.
    pub meter: Option<InstanceId>,
    /// Direct register attached to the table.
    pub register: Option<InstanceId>,
    /// `support_timeout = true`
    pub idle_timeout: bool,
    /// Whether the control plane may set a mask of its exact keys.
    pub has_key_mask: bool,
    /// How its masked keys are stored.
    pub storage: Storage,
    /// Source location of its name.
    pub span: Span,
}

/// How a table's masked keys are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// The target chooses.
    #[default]
    Any,
    /// In plain memory: part of the key says in which part of it.
    Partitioned,
    /// In plain memory: a smaller table says in which part of it.
    Searched,
}

/// A table key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Control-plane name: `@name` or the text of the expression.
    pub named: Named,
    /// Expression that is matched.
    pub expr: Expr,
    /// Type of the expression.
    pub ty: Ty,
    /// How it is matched.
    pub kind: MatchKind,
    /// Name of its `type` (P4Runtime translation) or serializable enum.
    pub type_name: Option<String>,
}

/// An action in a table's list.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// The action. An action whose arguments are bound in the list is specialised already.
    pub action: ActionId,
    /// `@tableonly`
    pub table_only: bool,
    /// `@defaultonly`
    pub default_only: bool,
    /// Annotations of the reference in the list.
    pub annotations: Vec<Annotation>,
}

/// An action with its control-plane arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// Position in [`Table::actions`].
    pub action: u32,
    /// One value per control-plane parameter.
    pub args: Vec<BigUint>,
}

/// A constant or initial entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One matcher per key. LPM is a `Mask`.
    pub keys: Vec<Matcher>,
    /// The action with its arguments.
    pub call: ActionCall,
    /// Priority in P4Runtime's order: the larger one wins.
    pub priority: i32,
    /// `const`
    pub is_const: bool,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Name and id.
    pub named: Named,
    /// Control-plane parameters, in order.
    pub params: Vec<ActionParam>,
    /// Statements of the action.
    pub body: Vec<Stmt>,
    /// Whether a table lists it. The others are kept for P4Info only.
    pub in_table: bool,
}

/// A control-plane parameter of an action.
#[derive(Clone, Debug)]
pub struct ActionParam {
    /// Name and annotations.
    pub named: Named,
    /// Variable that receives the value.
    pub var: VarId,
    /// Type of the parameter.
    pub ty: Ty,
    /// Name of its `type` or serializable enum.
    pub type_name: Option<String>,
}

/// Unit of counters and meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Packets,
    Bytes,
    Both,
}

/// An extern object.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Name and id.
    pub named: Named,
    /// Kind of object, with its parameters.
    pub kind: InstanceKind,
}

/// Kinds of extern objects.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum InstanceKind {
    Counter {
        size: u64,
        unit: Unit,
        index_type: Option<String>,
    },
    /// A counter of a table's entries. It counts whenever the table is applied or, with `on_call`, where the
    /// program calls it.
    DirectCounter {
        table: Option<TableId>,
        unit: Unit,
        on_call: bool,
    },
    Meter {
        size: u64,
        unit: Unit,
        index_type: Option<String>,
    },
    /// A meter of a table's entries. Like a direct counter.
    DirectMeter {
        table: Option<TableId>,
        unit: Unit,
        on_call: bool,
    },
    /// A register with an element for each entry of a table.
    DirectRegister {
        table: Option<TableId>,
        /// Type in which an element is stored.
        ty: Ty,
        /// Type of an element as the control plane sees it.
        data: DataTy,
        /// Value of an element when its entry is made.
        initial: BigUint,
    },
    /// A register. An element that is a struct is stored as the concatenation of its fields, the first one
    /// highest.
    Register {
        size: u64,
        /// Type in which an element is stored.
        ty: Ty,
        /// Type of an element as the control plane sees it.
        data: DataTy,
        /// Initial value of each element.
        initial: BigUint,
        index_type: Option<String>,
    },
    /// Smooths values over time or, with `drops`, decides on drops by a smoothed value.
    Smoother {
        size: u64,
        drops: bool,
    },
    /// A smoother with a cell for each entry of a table.
    DirectSmoother {
        table: Option<TableId>,
        drops: bool,
    },
    /// A hash that is computed in one place, on fields with names, so that the control plane may configure it.
    Hash {
        algorithm: HashAlgorithm,
        /// Bits of the result.
        width: u32,
        /// Hashed fields. Empty if more than one place computes it.
        fields: Vec<(String, Ty)>,
        /// Highest and lowest bit of the result that the place takes.
        taken: (u32, u32),
        /// The place.
        at: Span,
    },
    ActionProfile {
        size: u64,
    },
    ActionSelector {
        size: u64,
        algorithm: HashAlgorithm,
        output_width: u32,
        max_group_size: u64,
        /// The profile whose members it selects from, if that is an object of its own.
        profile: Option<InstanceId>,
        /// How many groups there may be; 0: as many as members.
        groups: u64,
    },
}

/// A body that the program gives to an abstract method of an extern object. The caller sets the variables of
/// its parameters before the call and reads those of its `out` parameters and its result afterwards.
#[derive(Clone, Debug)]
pub struct Method {
    /// Full name of the object.
    pub object: String,
    /// Name of the method.
    pub name: String,
    /// Parameters, in order.
    pub params: Vec<MethodParam>,
    /// Variables that hold the scalars of the result.
    pub result: Vec<VarId>,
    /// Statements of the body; `Return` leaves it.
    pub body: Vec<Stmt>,
}

/// A parameter of a [`Method`].
#[derive(Clone, Debug)]
pub struct MethodParam {
    /// Direction of the parameter.
    pub direction: Direction,
    /// Variables that hold its scalars.
    pub vars: Vec<VarId>,
}

/// A parser value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Name and id.
    pub named: Named,
    /// Maximum number of members.
    pub size: u64,
    /// Fields of an element: name, type, match kind.
    pub fields: Vec<(Named, Ty, MatchKind)>,
}

/// Type of a digest.
#[derive(Clone, Debug)]
pub struct Digest {
    /// Name and id.
    pub named: Named,
    /// Name of the struct type.
    pub type_name: String,
    /// Fields, in order.
    pub fields: Vec<(String, Ty)>,
    /// The struct type with the names that P4Info shows.
    pub data: DataTy,
}

/// A type as the control plane sees it, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTy {
    /// A type without a name.
    Scalar(Ty),
    /// `error`
    Error,
    /// One of [`Program::enums`].
    Enum(String),
    /// One of [`Program::ser_enums`].
    SerEnum(String),
    /// One of [`Program::new_types`].
    NewType(String),
    /// One of [`Program::data_structs`].
    Struct(String),
    /// One of [`Program::data_structs`].
    Header(String),
    /// `tuple<...>`
    Tuple(Vec<DataTy>),
}

/// A struct or header that a digest contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataStruct {
    /// Name of the type.
    pub name: String,
    /// Fields, in order.
    pub fields: Vec<(String, DataTy)>,
}

/// `@controller_header`
#[derive(Clone, Debug)]
pub struct ControllerHeader {
    /// `packet_in` or `packet_out`, and annotations.
    pub named: Named,
    /// Fields in wire order: name and annotations, type, and name of its `type`.
    pub fields: Vec<(Named, Ty, Option<String>)>,
    /// Name of the header type.
    pub type_name: String,
}

/// `type T N`
#[derive(Clone, Debug)]
pub struct NewType {
    /// Name of the type.
    pub name: String,
    /// Type in which it is stored.
    pub ty: Ty,
    /// The underlying type, seen through other `type`s.
    pub inner: DataTy,
    /// Annotations, in order.
    pub annotations: Vec<Annotation>,
    /// URI and width of `@p4runtime_translation`. A width of `None` means string.
    pub translation: Option<(String, Option<u32>)>,
    /// `@p4runtime_translation_mappings`: controllers' names of some of the numbers.
    pub mappings: Vec<(ControllerValue, BigUint)>,
}

/// Controllers' name of a value of a translated type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ControllerValue {
    /// In a type that is translated to strings.
    Text(String),
    /// In a type that is translated to numbers.
    Number(BigUint),
}

impl ControllerValue {
    /// The value as P4Runtime carries it.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            ControllerValue::Text(text) => text.clone().into_bytes(),
            ControllerValue::Number(number) => number.to_bytes_be(),
        }
    }
}

/// `enum bit<W> E`
#[derive(Clone, Debug)]
pub struct SerEnum {
    /// Name of the enum.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Members: names and values.
    pub members: Vec<(String, BigUint)>,
}
