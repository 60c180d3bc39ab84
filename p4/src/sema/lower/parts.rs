//! Parts from which architectures build calls of their externs.

use super::storage::{Place, Val, constant, zero};
use super::{Lower, Made, Object};
use crate::ast::Span;
use crate::ir::{Expr, ExternCall, HeaderId, InstanceKind, Intrinsic, LValue, Role, Stmt, Ty, VarId};
use crate::sema::tree::TExpr;
use crate::sema::types::Type;
use num_bigint::BigUint;

impl Lower<'_> {
    /// Number of errors reported so far.
    pub(crate) fn error_count(&self) -> usize {
        self.diags.len()
    }

    /// Role of the block being lowered.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Full name of an object.
    pub(crate) fn name_of(&self, object: &Object) -> String {
        self.full_name(object.frame, &object.inst.name, &object.inst.annos)
    }

    /// Hides an object from the control plane.
    pub(crate) fn hide(&mut self, made: &Made) {
        if let Made::Instance(id) = made
            && let Some(instance) = self.prog.instances.get_mut(id.0 as usize)
        {
            instance.named.hidden = true;
        }
    }

    /// Notes which bits are taken of a hash that has just been computed.
    pub(super) fn takes_of_hash(&mut self, value: &Expr, bits: (u32, u32)) {
        if let Some(Stmt::Extern { call: ExternCall::Hash { object: Some(object), dst, .. }, .. }) =
            self.out.last()
            && matches!((dst, value), (LValue::Var(dst), Expr::Var(value)) if dst == value)
            && let Some(InstanceKind::Hash { taken, .. }) =
                self.prog.instances.get_mut(object.0 as usize).map(|instance| &mut instance.kind)
        {
            *taken = bits;
        }
    }

    /// Variables of a packet, 0 at first.
    pub(crate) fn packet_variables(&mut self, wanted: &[(&str, Ty)]) -> Made {
        let variable = |lower: &mut Self, (hint, ty): &(&str, Ty)| {
            let name = lower.temp_name(hint);
            lower.new_var(name, *ty)
        };
        Made::Variables(wanted.iter().map(|wanted| variable(self, wanted)).collect())
    }

    /// A variable that is set here, and false for packets that do not pass here.
    pub(crate) fn flag(&mut self, hint: &str, span: Span) -> VarId {
        let name = self.temp_name(hint);
        let var = self.new_var(name, Ty::Bool);
        self.emit(Stmt::Assign { target: LValue::Var(var), value: constant(1u8, Ty::Bool), span });
        var
    }

    /// The bits of a constant of any type, as a register stores them. `None` if it is not known at compile time,
    /// which is reported.
    pub(crate) fn known_bits(&mut self, value: &TExpr, ty: &Type) -> Option<BigUint> {
        if let (Some(known), Some(scalar)) = (self.value(value), ty.scalar()) {
            return Some(known.bits(scalar.width()));
        }
        let found = self.expr(value);
        let mut parts = Vec::new();
        super::storage::scalars(self, &found, &mut parts);
        let mut all = BigUint::ZERO;
        for (part, ty) in parts {
            let Expr::Const { value, .. } = part else {
                self.error(value.span, "this must be known at compile time");
                return None;
            };
            all = (all << ty.width()) | value;
        }
        Some(all)
    }

    /// Changes the width of a value.
    pub(crate) fn cast(&self, expr: Expr, from: Ty, to: Ty) -> Expr {
        super::expr::cast(expr, from, to)
    }

    /// The value of an assignable place.
    pub(crate) fn read_target(&self, target: &LValue) -> Expr {
        self.read_lvalue(target)
    }

    /// The header that a variable is a field of.
    pub(crate) fn header_of(&self, var: VarId) -> Option<HeaderId> {
        let has = |header: &crate::ir::Header| header.fields.iter().any(|field| field.var == var);
        self.prog.headers.iter().position(has).map(|at| HeaderId(at as u32))
    }

    /// The variable that holds a header's validity.
    pub(crate) fn validity(&self, header: HeaderId) -> VarId {
        self.prog.headers[header.0 as usize].valid
    }

    /// Type of an intrinsic field in the first pipeline, as the program sees it.
    pub(crate) fn intrinsic_ty(&self, role: Intrinsic) -> Option<Ty> {
        self.prog.intrinsic(role).map(|var| self.prog.vars[var.0 as usize].ty)
    }

    /// A value of this type from the first of `total` bits after the parser's cursor.
    pub(crate) fn ahead(&mut self, ty: &Type, total: u32, span: Span) -> Option<Val> {
        self.lookahead(ty, total, &mut 0, span)
    }

    /// A place of this type, all zero.
    pub(crate) fn zeroed(&mut self, ty: &Type, hint: &str, span: Span) -> Place {
        let name = self.temp_name(hint);
        let place = self.alloc(ty, &name);
        match (&place, ty.scalar()) {
            (Place::Leaf(target, _), Some(scalar)) => {
                self.emit(Stmt::Assign { target: target.clone(), value: zero(scalar), span });
            }
            _ => {
                let nothing = self.default_val(ty, span);
                self.assign(&place, nothing, span);
            }
        }
        place
    }
}
