//! `main`: the architecture's blocks, bound to one packet's storage.

use super::storage::{Place, scalars};
use super::{Binding, Lower, Stage, type_name};
use crate::ast::Span;
use crate::ir::{ControllerHeader, DataStruct, DataTy, Expr, Named, NewType, SerEnum, Stmt, Target, Ty};
use crate::sema::tree::{EKind, InstDecl, TExpr};
use crate::sema::types::{BlockKind, BlockTy, StructKind, StructTy, Type};
use crate::sema::value::to_bits;
use std::rc::Rc;

/// Parameters of V1Switch in order.
const STAGES: [Stage; 6] =
    [Stage::Parser, Stage::Verify, Stage::Ingress, Stage::Egress, Stage::Compute, Stage::Deparser];

impl Lower<'_> {
    /// Elaborates everything that `main` reaches; false if there is nothing to elaborate.
    pub(super) fn main(&mut self) -> bool {
        let Some(main) = self.checked.main.clone() else {
            self.diags.push(
                crate::diag::Diagnostic::error(Span::default(), "the program has no `main`")
                    .help("end it with `V1Switch(…) main;`"),
            );
            return false;
        };
        let Type::Block(package) = &main.ty else {
            self.error(main.span, "`main` is a package");
            return false;
        };
        if package.kind != BlockKind::Package {
            self.error(main.span, "`main` is a package");
            return false;
        }
        if package.name != "V1Switch" || main.args.len() != STAGES.len() {
            let what = format!("`main` is a `{}`: this architecture is not supported", package.name);
            self.diags.push(
                crate::diag::Diagnostic::error(main.span, what)
                    .note(crate::builtin::SUPPORTED_ARCHITECTURES)
                    .help(crate::builtin::PORT_TO_V1MODEL),
            );
            return false;
        }
        self.prog.pkginfo = main.annos.rest.clone();
        for inst in &self.checked.instances {
            if matches!(inst.ty, Type::Extern(_)) {
                self.instance(inst, &[]);
            }
        }
        self.shared_instances = self.prog.instances.len();
        let mut blocks = Vec::new();
        for arg in main.args.iter().flatten() {
            match self.stage_block(arg) {
                Some(block) => blocks.push(block),
                None => return false,
            }
        }
        let [parser, ..] = &blocks[..] else { return false };
        let places = self.storage(&parser.1);
        self.shared_vars = self.prog.vars.len();
        for (stage, (frame, block, inst)) in STAGES.into_iter().zip(blocks.clone()) {
            self.bind_ctor(frame, &block, &inst.args);
            let wanted: &[usize] = match stage {
                Stage::Parser => &[usize::MAX, 0, 1, 2],
                Stage::Verify | Stage::Compute => &[0, 1],
                Stage::Ingress | Stage::Egress => &[0, 1, 2],
                Stage::Deparser => &[usize::MAX, 0],
            };
            for (param, slot) in block.params.iter().zip(wanted) {
                let binding = places.get(*slot).map_or(Binding::Opaque, |p| Binding::Place(p.clone()));
                self.bind(frame, param.id, binding);
            }
        }
        for (stage, (frame, block, _)) in STAGES.into_iter().zip(blocks) {
            self.stage(stage, frame, &block);
        }
        self.types();
        true
    }

    fn stage_block(&mut self, arg: &TExpr) -> Option<(usize, Rc<BlockTy>, Rc<InstDecl>)> {
        let inst = match &arg.kind {
            EKind::New(inst) => inst.clone(),
            EKind::Local(id) => self.checked.instances.iter().find(|i| i.id == *id)?.clone(),
            _ => return None,
        };
        let Type::Block(block) = &inst.ty else { return None };
        block.body.as_ref()?;
        // A nameless instance is called like its type.
        let path = self.full_name(0, &inst.name, &inst.annos);
        let frame = self.new_frame(0, path, true);
        self.frames[frame].subst = self.block_subst(block);
        Some((frame, block.clone(), inst))
    }

    /// Headers, metadata and standard metadata.
    fn storage(&mut self, parser: &BlockTy) -> Vec<Place> {
        let mut places = Vec::new();
        for param in parser.params.iter().skip(1) {
            places.push(self.alloc(&param.ty, &param.name));
        }
        if let [_, meta, standard] = &places[..] {
            let mut lists = Vec::new();
            if let Some(param) = parser.params.get(2) {
                self.field_lists(&param.ty, meta, &[], &mut lists);
            }
            if let (Some(Type::Struct(s)), Place::Tuple(parts)) =
                (parser.params.get(3).map(|p| &p.ty), standard)
            {
                for (field, part) in s.fields.iter().zip(parts) {
                    if let Place::Leaf(crate::ir::LValue::Var(v), _) = part {
                        self.prog.standard_metadata.push((field.name.clone(), *v));
                    }
                }
            }
            lists.sort_by_key(|(id, _)| *id);
            for (id, var) in lists {
                match self.prog.field_lists.iter_mut().find(|(i, _)| *i == id) {
                    Some((_, vars)) => vars.push(var),
                    None => self.prog.field_lists.push((id, vec![var])),
                }
            }
        }
        places
    }

    /// Variables under `@field_list`, with the lists of the structs around.
    fn field_lists(&self, ty: &Type, place: &Place, around: &[u32], out: &mut Vec<(u32, crate::ir::VarId)>) {
        match (ty, place) {
            (Type::Struct(s), Place::Tuple(parts)) => {
                for (field, part) in s.fields.iter().zip(parts) {
                    let mut lists = around.to_vec();
                    lists.extend(field.annos.field_lists.iter().filter(|l| !around.contains(l)));
                    self.field_lists(&field.ty, part, &lists, out);
                }
            }
            (_, place) if !around.is_empty() => {
                let mut parts = Vec::new();
                scalars(self, &self.read(place), &mut parts);
                for (e, _) in parts {
                    if let Expr::Var(v) = e {
                        out.extend(around.iter().map(|list| (*list, v)));
                    }
                }
            }
            _ => {}
        }
    }

    fn stage(&mut self, stage: Stage, frame: usize, block: &Rc<BlockTy>) {
        let Some(def) = block.body.clone() else { return };
        self.stage = stage;
        self.out.clear();
        self.depth = 0;
        self.within(frame, |l| l.items(&def));
        if stage == Stage::Parser {
            self.within(frame, |l| l.states(&def, Target::Accept, def.span));
            return;
        }
        let stmts: Vec<Stmt> = self.collect(|l| {
            l.within(frame, |l| {
                l.initialise(&def);
                l.stmts(&def.apply);
            });
        });
        match stage {
            Stage::Verify => self.prog.verify = stmts,
            Stage::Ingress => self.prog.ingress = stmts,
            Stage::Egress => self.prog.egress = stmts,
            Stage::Compute => self.prog.compute = stmts,
            _ => self.prog.deparser = stmts,
        }
    }

    /// A type as the control plane sees it; structs are noted.
    pub(super) fn data_ty(&mut self, ty: &Type) -> DataTy {
        match ty {
            Type::Error => DataTy::Error,
            Type::New(n) => DataTy::NewType(n.name.clone()),
            Type::Enum(e) if e.repr.is_some() => DataTy::SerEnum(e.name.clone()),
            Type::Enum(e) => DataTy::Enum(e.name.clone()),
            Type::Tuple(items) => DataTy::Tuple(items.iter().map(|t| self.data_ty(t)).collect()),
            Type::Struct(s) => {
                if !self.prog.data_structs.iter().any(|d| d.name == s.name) {
                    let fields = s.fields.iter().map(|f| (f.name.clone(), self.data_ty(&f.ty))).collect();
                    self.prog.data_structs.push(DataStruct { name: s.name.clone(), fields });
                }
                match s.kind {
                    StructKind::Struct => DataTy::Struct(s.name.clone()),
                    _ => DataTy::Header(s.name.clone()),
                }
            }
            other => DataTy::Scalar(other.scalar().unwrap_or(Ty::Bit(0))),
        }
    }

    /// Types that P4Info shows.
    fn types(&mut self) {
        for ty in &self.checked.structs {
            let Type::Struct(s) = ty else { continue };
            let Some(at) = s.annos.rest.iter().find(|a| a.name == "controller_header") else { continue };
            let annotations = s.annos.rest.clone();
            let name = at.body.trim_matches('"').to_owned();
            let fields = controller_fields(s);
            self.prog.controller_headers.push(ControllerHeader {
                named: Named { name, id: s.annos.id, hidden: s.annos.hidden, annotations },
                fields,
                type_name: s.name.clone(),
            });
        }
        for new in &self.checked.new_types {
            let Some(ty) = new.inner.scalar() else { continue };
            let translation = new.annos.rest.iter().find(|a| a.name == "p4runtime_translation");
            let translation = translation.map(|a| translation_of(&a.body));
            let inner = self.data_ty(&innermost(&new.inner));
            let annotations =
                new.annos.rest.iter().filter(|a| a.name != "p4runtime_translation").cloned().collect();
            self.prog.new_types.push(NewType { name: new.name.clone(), ty, inner, annotations, translation });
        }
        for e in &self.checked.enums {
            let Some(width) = e.repr.as_ref().and_then(Type::scalar).map(|t| t.width()) else {
                let members = e.members.iter().map(|m| m.name.clone()).collect();
                self.prog.enums.push((e.name.clone(), members));
                continue;
            };
            let members = e.members.iter().map(|m| (m.name.clone(), to_bits(&m.value, width))).collect();
            self.prog.ser_enums.push(SerEnum { name: e.name.clone(), width, members });
        }
    }
}

fn controller_fields(s: &StructTy) -> Vec<(Named, Ty, Option<String>)> {
    let mut fields = Vec::new();
    for field in &s.fields {
        let own = field.annos.name.as_deref().unwrap_or(&field.name);
        let Some(ty) = field.ty.scalar() else {
            if let Type::Struct(inner) = &field.ty {
                for (mut named, ty, type_name) in controller_fields(inner) {
                    named.name = format!("{own}.{}", named.name);
                    fields.push((named, ty, type_name));
                }
            }
            continue;
        };
        let named = Named {
            name: own.to_owned(),
            id: field.annos.id,
            hidden: field.annos.hidden,
            annotations: field.annos.rest.clone(),
        };
        fields.push((named, ty, type_name(&field.ty)));
    }
    fields
}

/// `"uri", 32`, `"uri", string` or `"uri", bit<32>`.
fn translation_of(body: &str) -> (String, Option<u32>) {
    let mut parts = body.splitn(2, ',');
    let uri = parts.next().unwrap_or("").trim().trim_matches('"').to_owned();
    let what = parts.next().unwrap_or("").trim();
    let digits = what.trim_start_matches("bit").trim_start_matches('<').trim_end_matches('>').trim();
    (uri, digits.parse().ok())
}

/// What a `type` stands for, through other `type`s.
fn innermost(ty: &Type) -> Type {
    match ty {
        Type::New(n) => innermost(&n.inner),
        other => other.clone(),
    }
}
