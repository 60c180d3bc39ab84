//! Lowers `main`: the architecture's blocks, bound to the storage of one packet.

use super::arch::{BlockSlot, Package, Param};
use super::storage::{Place, scalars};
use super::{Binding, Lower, type_name};
use crate::ir::{
    Block, Body, ControllerHeader, DataStruct, DataTy, Expr, HeaderRef, IntrinsicVar, Named, NewType,
    NextState, SerEnum, Stmt, Task, Ty, VarId,
};
use crate::sema::tree::{EKind, InstDecl};
use crate::sema::types::{BlockKind, BlockTy, StructKind, StructTy, Type};
use crate::sema::value::to_bits;
use std::rc::Rc;

/// A block of the architecture in this program.
struct Stage {
    slot: &'static BlockSlot,
    pipeline: u32,
    frame: usize,
    ty: Rc<BlockTy>,
    inst: Rc<InstDecl>,
}

impl Lower<'_> {
    /// Elaborates everything that `main` reaches. Returns false if there is nothing to elaborate.
    pub(super) fn main(&mut self, main: &Rc<InstDecl>) -> bool {
        self.prog.pkginfo = main.annos.rest.clone();
        self.prog.main = main.span;
        for inst in &self.checked.instances {
            if matches!(inst.ty, Type::Extern(_)) {
                self.instance(inst, &[]);
            }
        }
        self.shared_instances = self.prog.instances.len();
        let mut stages = Vec::new();
        let packages = main.args.iter().flatten().filter(|arg| is_package(&arg.ty)).count();
        if self.stages(main, packages > 1, &mut stages).is_none() {
            return false;
        }
        let mut places: Vec<((u32, Param), Place)> = Vec::new();
        for stage in &stages {
            self.storage(stage, &mut places);
        }
        self.shared_vars = self.prog.vars.len();
        for stage in &stages {
            self.bind_ctor(stage.frame, &stage.ty, &stage.inst.args);
            for (param, stands_for) in stage.ty.params.iter().zip(stage.slot.params) {
                let place = places.iter().find(|(key, _)| *key == (stage.pipeline, *stands_for));
                let binding = place.map_or(Binding::Opaque, |(_, place)| Binding::Place(place.clone()));
                self.bind(stage.frame, param.id, binding);
            }
        }
        for stage in &stages {
            self.stage(stage);
        }
        self.types();
        true
    }

    /// The blocks of a package and of the packages that it takes. `None` if the architecture does not know
    /// the package.
    fn stages(&mut self, package: &InstDecl, prefixed: bool, out: &mut Vec<Stage>) -> Option<()> {
        let Type::Block(ty) = &package.ty else { return None };
        let known: &'static Package = self.arch.packages().iter().find(|known| known.name == ty.name)?;
        let pipeline = out.last().map_or(0, |stage| stage.pipeline + 1);
        let mut slots = known.blocks.iter();
        if !known.blocks.is_empty() {
            self.prog.pipelines.push(package.name.clone());
        }
        for arg in package.args.iter().flatten() {
            let inst = match &arg.kind {
                EKind::New(inst) => inst.clone(),
                EKind::Local(id) => self.checked.instances.iter().find(|i| i.id == *id)?.clone(),
                _ => return None,
            };
            let Type::Block(ty) = inst.ty.clone() else { return None };
            if ty.kind == BlockKind::Package {
                self.stages(&inst, prefixed, out)?;
                continue;
            }
            let slot = slots.next()?;
            ty.body.as_ref()?;
            // A nameless instance takes the name of its type.
            let name = self.full_name(0, &inst.name, &inst.annos);
            // Several pipelines may have blocks of the same names.
            let path = if prefixed { format!("{}.{name}", package.name) } else { name };
            let frame = self.new_frame(0, path, true);
            self.frames[frame].subst = self.block_subst(&ty);
            out.push(Stage { slot, pipeline, frame, ty, inst });
        }
        slots.all(|slot| slot.role.task == Task::Watch).then_some(())
    }

    /// Allocates a block's parameters, unless an earlier block shares them.
    fn storage(&mut self, stage: &Stage, places: &mut Vec<((u32, Param), Place)>) {
        for (param, stands_for) in stage.ty.params.iter().zip(stage.slot.params) {
            let key = (stage.pipeline, *stands_for);
            if *stands_for == Param::Packet || places.iter().any(|(known, _)| *known == key) {
                continue;
            }
            let place = self.alloc(&param.ty, &param.name);
            match stands_for {
                Param::Metadata(_) => self.listed_fields(&param.ty, &place),
                Param::Intrinsic(of) => self.intrinsic_fields(stage, of, &param.ty, &place),
                Param::Headers(_) | Param::Packet => {}
            }
            places.push((key, place));
        }
    }

    /// Records the intrinsic fields of a struct that the architecture knows.
    fn intrinsic_fields(&mut self, stage: &Stage, of: &str, ty: &Type, place: &Place) {
        let Type::Struct(s) = ty else { return };
        let pipeline = stage.pipeline;
        let vars: Vec<Option<VarId>> = match place {
            Place::Tuple(parts) => parts.iter().map(Place::variable).collect(),
            Place::Header(HeaderRef::Fixed(header), _) => {
                self.prog.headers[header.0 as usize].fields.iter().map(|field| Some(field.var)).collect()
            }
            _ => return,
        };
        for (field, var) in s.fields.iter().zip(vars) {
            let Some(var) = var else { continue };
            if let Some(role) = self.arch.intrinsic(of, &field.name) {
                self.prog.intrinsics.push(IntrinsicVar { pipeline, role, var });
            }
            if self.arch.is_marked(of, &field.name) {
                self.mark(pipeline, stage.slot.role.half, var);
            }
        }
    }

    /// Records the field lists of the program's metadata.
    fn listed_fields(&mut self, ty: &Type, place: &Place) {
        let mut lists = Vec::new();
        self.field_lists(ty, place, &[], &mut lists);
        lists.sort_by_key(|(id, _)| *id);
        for (id, var) in lists {
            match self.prog.field_lists.iter_mut().find(|(i, _)| *i == id) {
                Some((_, vars)) => vars.push(var),
                None => self.prog.field_lists.push((id, vec![var])),
            }
        }
    }

    /// Variables with `@field_list`, including the lists of enclosing structs.
    fn field_lists(&self, ty: &Type, place: &Place, around: &[u32], out: &mut Vec<(u32, VarId)>) {
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

    fn stage(&mut self, stage: &Stage) {
        let Some(def) = stage.ty.body.clone() else { return };
        let (frame, role) = (stage.frame, stage.slot.role);
        self.role = role;
        self.out.clear();
        self.depth = 0;
        self.within(frame, |l| l.items(&def));
        let body = if role.task == Task::Parse {
            self.within(frame, |l| l.states(&def, NextState::Accept, def.span));
            self.begin_unwritten(stage.pipeline, role.half, def.span);
            self.end_with_those();
            Body::Parser(std::mem::take(&mut self.parser))
        } else {
            let stmts: Vec<Stmt> = self.collect(|l| {
                l.within(frame, |l| {
                    l.initialise(&def);
                    l.stmts(&def.apply);
                });
            });
            Body::Control(stmts)
        };
        let name = self.frames[frame].path.clone();
        self.prog.blocks.push(Block { pipeline: stage.pipeline, role, name, body });
    }

    /// A type as the control plane sees it; records structs.
    pub(crate) fn data_ty(&mut self, ty: &Type) -> DataTy {
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

    /// Records the types that P4Info shows.
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
            let (name, mappings) = (new.name.clone(), self.mappings(&new.annos.rest, &translation, ty));
            self.prog.new_types.push(NewType { name, ty, inner, annotations, translation, mappings });
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

fn is_package(ty: &Type) -> bool {
    matches!(ty, Type::Block(block) if block.kind == BlockKind::Package)
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

/// The type that a `type` stands for, seen through other `type`s.
fn innermost(ty: &Type) -> Type {
    match ty {
        Type::New(n) => innermost(&n.inner),
        other => other.clone(),
    }
}
