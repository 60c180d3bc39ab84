//! Architectures: the package that `main` is, its blocks, its intrinsic metadata and what its externs mean.
//!
//! To add one, implement [`Architecture`] in a module beside [`v1model`] and list it in [`ALL`]. Nothing else in this
//! crate names an architecture, its fields or its externs; core.p4 is the language's and is lowered in `sema`.

mod v1model;

use crate::ast;
use crate::ir::{InstanceId, InstanceKind, Intrinsic, Role};
use crate::sema::lower::{Lower, Val};
use crate::sema::tree::{FnDef, InstDecl, TCall};
use crate::sema::types::ExternTy;

/// Every architecture that programs may be written for.
const ALL: &[&dyn Architecture] = &[&v1model::V1model];

/// What an architecture means to the front end.
pub(crate) trait Architecture: Sync {
    /// As P4Info names it.
    fn name(&self) -> &'static str;
    /// Its include files: names and texts.
    fn includes(&self) -> &'static [(&'static str, &'static str)];
    /// What a program says to be one for it.
    fn usage(&self) -> &'static str;
    /// What a program for another architecture needs to become one for it.
    fn porting(&self) -> &'static str;
    /// Its packages: the one that `main` is, and those that it takes as pipelines. The first is `main`'s.
    fn packages(&self) -> &'static [Package];
    /// What a field of one of its structs stands for; `None`: the switch does not know it.
    fn intrinsic(&self, of: &str, field: &str) -> Option<Intrinsic>;
    /// Its extern functions; others are the program's own.
    fn functions(&self) -> &'static [Function];
    /// Lowers a call of one of [`Architecture::functions`]; gives its result, `None` if it is void or was refused.
    fn function(&self, lower: &mut Lower<'_>, def: &FnDef, call: &TCall, at: ast::Span) -> Option<Val>;
    /// What an extern object is; `None` if it is the program's own or was refused.
    fn object(&self, lower: &mut Lower<'_>, inst: &InstDecl, ext: &ExternTy) -> Option<InstanceKind>;
    /// Lowers a call of a method of an object; gives its result, `None` if it is void or was refused.
    fn method(
        &self,
        lower: &mut Lower<'_>,
        object: (&ExternTy, InstanceId),
        def: &FnDef,
        call: &TCall,
        at: ast::Span,
    ) -> Option<Val>;
}

/// A package. One that takes blocks is a pipeline; arguments that are packages are pipelines themselves.
pub(crate) struct Package {
    pub name: &'static str,
    /// The blocks it takes, in order.
    pub blocks: &'static [BlockSlot],
}

/// A block that a package takes.
pub(crate) struct BlockSlot {
    pub role: Role,
    /// What its parameters stand for, in order.
    pub params: &'static [Param],
}

/// What a parameter of a block stands for. Within a pipeline, equal ones share their storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    /// `packet_in` or `packet_out`.
    Packet,
    /// The program's headers; a pipeline may have several sets.
    Headers(u8),
    /// The program's metadata, likewise.
    Metadata(u8),
    /// Intrinsic metadata: the architecture's struct of this name.
    Intrinsic(&'static str),
}

/// An extern function.
pub(crate) struct Function {
    pub name: &'static str,
    /// The blocks that may call it; empty: any.
    pub callers: &'static [Role],
    /// These in words.
    pub place: &'static str,
}

/// The architecture of a package.
pub(crate) fn of_package(name: &str) -> Option<&'static dyn Architecture> {
    ALL.iter().copied().find(|arch| arch.packages().iter().any(|package| package.name == name))
}

/// Whether a program ends in an instance of a supported architecture's package.
pub fn is_supported(program: &ast::Program) -> bool {
    program.decls.iter().any(|decl| match &decl.kind {
        ast::DeclKind::Instance { name, ty, .. } if name.name == "main" => {
            matches!(&ty.kind, ast::TypeRefKind::Named { name, .. } if of_package(&name.ident.name).is_some())
        }
        _ => false,
    })
}

/// What a program may be written for.
pub fn supported() -> String {
    let each = ALL.iter().map(|arch| format!("{} is supported: {}", arch.name(), arch.usage()));
    each.collect::<Vec<_>>().join("; ")
}

/// What to do with a program for another architecture.
pub fn how_to_port() -> String {
    ALL.iter().map(|arch| arch.porting()).collect::<Vec<_>>().join("; or ")
}

/// How a program may end.
pub(crate) fn mains() -> String {
    let each = ALL.iter().filter_map(|arch| arch.packages().first());
    each.map(|package| format!("`{}(…) main;`", package.name)).collect::<Vec<_>>().join(" or ")
}

/// Text of an architecture's include file.
pub(crate) fn include(name: &str) -> Option<&'static str> {
    let mut all = ALL.iter().flat_map(|arch| arch.includes());
    all.find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// Names of the packages that `main` may be.
pub fn main_packages() -> String {
    let each = ALL.iter().filter_map(|arch| arch.packages().first());
    each.map(|package| format!("`{}`", package.name)).collect::<Vec<_>>().join(" or ")
}
