//! P4 architectures: the package that `main` instantiates, its blocks, its intrinsic metadata and the meaning
//! of its externs.
//!
//! To add one, implement [`Architecture`] in a module beside [`v1model`] and list it in [`ALL`]. Nothing else
//! in this crate names an architecture, its fields or its externs. core.p4 belongs to the language and is
//! lowered in `sema`.

mod tna;
mod v1model;

use crate::Compiled;
use crate::ast::{self, Span};
use crate::diag::Diagnostic;
use crate::ir::{Intrinsic, MatchKind, Role, Storage, Task};
use crate::sema;
use crate::sema::lower::{Lower, Made, Object, Val};
use crate::sema::tree::{FnDef, InstDecl, TCall, TExpr, TableDef};
use crate::sema::types::{BlockKind, BlockTy, ExternTy, Type};
use std::rc::Rc;

/// All architectures that programs may be written for.
const ALL: &[&dyn Architecture] = &[&v1model::V1model, &tna::FIRST, &tna::SECOND];

/// An architecture's description for the front end.
pub(crate) trait Architecture: Sync {
    /// Its name in P4Info.
    fn name(&self) -> &'static str;
    /// Names and texts of its include files.
    fn includes(&self) -> &'static [(&'static str, &'static str)];
    /// How a program declares that it is written for this architecture.
    fn usage(&self) -> &'static str;
    /// How to port a program from another architecture; `None`: the switch does not run programs for this one.
    fn porting(&self) -> Option<&'static str>;
    /// Its packages: first the one that `main` instantiates, then those that it takes as pipelines.
    fn packages(&self) -> &'static [Package];
    /// Meaning of a field of one of its structs. `None` if the switch does not know the field.
    fn intrinsic(&self, of: &str, field: &str) -> Option<Intrinsic>;
    /// Whether such a field records if the program has written it. Its variable then has one bit more, which is
    /// set until the program writes it.
    fn is_marked(&self, _of: &str, _field: &str) -> bool {
        false
    }
    /// How a key of one of its own match kinds matches.
    fn match_kind(&self, _name: &str) -> Option<MatchKind> {
        None
    }
    /// Whether one of its own properties says that a table's entries age.
    fn has_idle_timeout(&self, _table: &TableDef) -> bool {
        false
    }
    /// Whether one of its own annotations lets the control plane set a mask of a table's exact keys.
    fn has_key_mask(&self, _table: &TableDef) -> bool {
        false
    }
    /// How one of its own properties, objects or annotations stores a table's masked keys.
    fn storage(&self, _table: &TableDef) -> Storage {
        Storage::Any
    }
    /// The argument of a property of its own that attaches a register to a table's entries.
    fn registers<'t>(&self, _table: &'t TableDef) -> Option<&'t TExpr> {
        None
    }
    /// The argument of a property of its own that attaches a smoother to a table's entries.
    fn smoother<'t>(&self, _table: &'t TableDef) -> Option<&'t TExpr> {
        None
    }
    /// A program's interface in the form that clients of BFRuntime read, where the architecture has one.
    fn bf_rt(&self, _compiled: &Compiled) -> Option<serde_json::Value> {
        None
    }
    /// Properties of tables that are its own.
    fn properties(&self) -> &'static [&'static str];
    /// Whether a parser's errors are the program's, so that `verify` can raise them.
    fn verifies(&self) -> bool {
        true
    }
    /// Its extern functions. All others belong to the program.
    fn functions(&self) -> &'static [Function];
    /// Lowers a call of one of [`Architecture::functions`] and returns its result. `None` if it is void or
    /// was rejected.
    fn function(&self, lower: &mut Lower<'_>, def: &FnDef, call: &TCall, at: ast::Span) -> Option<Val>;
    /// Its translation of an extern object. `None` if its extern belongs to the program or the object was
    /// rejected.
    fn object(&self, lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<Made>;
    /// Lowers a call of an object's method and returns its result. `None` if it is void or was rejected.
    fn method(
        &self,
        lower: &mut Lower<'_>,
        object: &Object,
        def: &FnDef,
        call: &TCall,
        at: ast::Span,
    ) -> Option<Val>;
}

/// A package. A package that takes blocks is a pipeline; one that takes packages has several pipelines.
pub(crate) struct Package {
    pub name: &'static str,
    /// The blocks that it takes, in order.
    pub blocks: &'static [BlockSlot],
}

/// A block that a package takes.
pub(crate) struct BlockSlot {
    pub role: Role,
    /// Meaning of its parameters, in order.
    pub params: &'static [Param],
}

/// Meaning of a parameter of a block. Within a pipeline, equal ones share storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// `packet_in` or `packet_out`.
    Packet,
    /// The program's headers. A pipeline may have several sets, which the number distinguishes.
    Headers(u8),
    /// The program's metadata, with the same numbering.
    Metadata(u8),
    /// Intrinsic metadata: the architecture's struct with this name.
    Intrinsic(&'static str),
}

/// An extern function.
pub(crate) struct Function {
    pub name: &'static str,
    /// The blocks that may call it; empty if all may.
    pub callers: &'static [Role],
    /// These blocks in words, for messages.
    pub place: &'static str,
}

/// The architecture whose package an instance is: one of its name that takes such blocks, from any file.
pub(crate) fn of_package(ty: &BlockTy) -> Option<&'static dyn Architecture> {
    ALL.iter().copied().find(|arch| is_package(*arch, ty))
}

/// Whether a package takes the same parameters as the architecture's of that name.
fn is_package(arch: &dyn Architecture, ty: &BlockTy) -> bool {
    let Some(known) = arch.packages().iter().find(|package| package.name == ty.name) else { return false };
    let mut slots = known.blocks.iter();
    let fits = |param: &Rc<sema::tree::Param>| match &param.ty {
        Type::Block(inner) if inner.kind == BlockKind::Package => is_package(arch, inner),
        Type::Block(inner) => slots.next().is_some_and(|slot| slot.fits(inner)),
        _ => false,
    };
    !ty.params.is_empty() && ty.params.iter().all(fits) && slots.next().is_none()
}

impl BlockSlot {
    /// Whether a parser or control has these parameters, as far as they are the architecture's own.
    fn fits(&self, block: &BlockTy) -> bool {
        let kind = if self.role.task == Task::Parse { BlockKind::Parser } else { BlockKind::Control };
        let fits = |(param, stands_for): (&Rc<sema::tree::Param>, &Param)| match stands_for {
            Param::Intrinsic(name) => matches!(&param.ty, Type::Struct(s) if s.name == *name),
            _ => true,
        };
        block.kind == kind
            && block.params.len() == self.params.len()
            && block.params.iter().zip(self.params).all(fits)
    }
}

/// Whether a property of a table is some architecture's.
pub(crate) fn is_property(name: &str) -> bool {
    ALL.iter().any(|arch| arch.properties().contains(&name))
}

/// The architectures that programs may be written for, in words.
pub fn supported() -> String {
    let each = executed().map(|arch| format!("{} is supported: {}", arch.name(), arch.usage()));
    each.collect::<Vec<_>>().join("; ")
}

/// How to port a program from another architecture, in words.
pub fn how_to_port() -> String {
    ALL.iter().filter_map(|arch| arch.porting()).collect::<Vec<_>>().join("; or ")
}

/// The architectures whose programs the switch runs.
fn executed() -> impl Iterator<Item = &'static dyn Architecture> {
    ALL.iter().copied().filter(|arch| arch.porting().is_some())
}

/// Why a well-typed program cannot be elaborated: `main` is this package, or there is none.
pub(crate) fn not_elaborated(main: Option<&ast::Ident>) -> Diagnostic {
    match main {
        Some(package) => {
            let what = format!("`main` is a `{}`: this architecture is not supported", package.name);
            Diagnostic::error(package.span, what).note(supported()).help(how_to_port())
        }
        None => Diagnostic::error(Span::default(), "the program has no `main`")
            .help(format!("end it with {}", mains())),
    }
}

/// How a program may end.
fn mains() -> String {
    let each = executed().filter_map(|arch| arch.packages().first());
    each.map(|package| format!("`{}(…) main;`", package.name)).collect::<Vec<_>>().join(" or ")
}

/// A program's interface for BFRuntime, if its architecture has one.
pub(crate) fn bf_rt(compiled: &Compiled) -> Option<serde_json::Value> {
    ALL.iter().find(|arch| arch.name() == compiled.program.arch)?.bf_rt(compiled)
}

/// Text of an architecture's include file.
pub(crate) fn include(name: &str) -> Option<&'static str> {
    let mut all = ALL.iter().flat_map(|arch| arch.includes());
    all.find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// Names of the packages that `main` may be.
pub fn main_packages() -> String {
    let mut names: Vec<String> =
        ALL.iter().filter_map(|arch| arch.packages().first()).map(|p| format!("`{}`", p.name)).collect();
    names.dedup();
    names.join(" or ")
}
