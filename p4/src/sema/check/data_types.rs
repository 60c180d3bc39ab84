//! Checks structs, headers, unions and enums.

use super::Checker;
use super::scope::{Symbol, TypeSym};
use crate::ast::{self, Decl, Ident, StructDecl};
use crate::diag::Diagnostic;
use crate::sema::tree::TExpr;
use crate::sema::types::{EnumMemberTy, EnumTy, Extent, FieldTy, StructKind, StructTy, Type};
use crate::sema::value::{self, Value};
use std::rc::Rc;

impl Checker {
    pub(super) fn struct_decl(&mut self, decl: &Decl, s: &StructDecl, kind: StructKind) {
        let annos = self.annos(&decl.annotations);
        let id = self.new_type_id();
        let (vars, fields) = self.scoped(|c| {
            let vars = c.type_params(&s.type_params);
            let mut fields: Vec<FieldTy> = Vec::new();
            let mut varbit = None;
            for field in &s.fields {
                let ty = c.type_ref(&field.ty);
                let annos = c.annos(&field.annotations);
                if let Some(old) = s.fields.iter().take(fields.len()).find(|f| f.name.name == field.name.name)
                {
                    c.report(
                        Diagnostic::error(
                            field.name.span,
                            format!("field `{}` is declared twice", field.name.name),
                        )
                        .label(field.name.span, "again here")
                        .label(old.name.span, "first declared here"),
                    );
                    continue;
                }
                let fine = c.field_fits(kind, &ty, field);
                if matches!(ty, Type::Varbit(_)) && kind == StructKind::Header {
                    match varbit {
                        Some(first) => {
                            c.two_varbits.insert(id, (first, field.name.span));
                        }
                        None => varbit = Some(field.name.span),
                    }
                }
                let ty = if fine { ty } else { Type::Poison };
                fields.push(FieldTy { name: field.name.name.clone(), ty, annos });
            }
            (vars, fields)
        });
        let args = vars.iter().map(|v| Type::Var(v.clone())).collect();
        let extent = Extent::of(fields.iter().map(|f| &f.ty));
        if !self.type_fits(extent, s.name.span, &s.name.name) {
            self.declare(&s.name, Symbol::Poison);
            return;
        }
        let ty = Rc::new(StructTy { id, name: s.name.name.clone(), kind, args, extent, fields, annos });
        if vars.is_empty() {
            self.out.structs.push(Type::Struct(ty.clone()));
        }
        self.declare(&s.name, Symbol::Type(TypeSym::Struct(ty, vars)));
    }

    fn field_fits(&mut self, kind: StructKind, ty: &Type, field: &ast::Field) -> bool {
        if ty.is_poison() {
            return false;
        }
        let what = format!("field `{}`", field.name.name);
        if !self.storable(ty, field.ty.span, &what) {
            return false;
        }
        let fits = match kind {
            StructKind::Struct => true,
            StructKind::Header => header_field(ty),
            StructKind::Union => ty.is_header() || matches!(ty, Type::Var(_)),
        };
        if !fits {
            let (owner, want) = match kind {
                StructKind::Union => ("header union", "only headers"),
                _ => (
                    "header",
                    "bits, integers, booleans, enums with an underlying type, structs and arrays of these",
                ),
            };
            self.report(
                Diagnostic::error(field.ty.span, format!("a {owner} cannot have a field of type `{ty}`"))
                    .note(format!("a {owner} holds {want}")),
            );
        }
        fits
    }

    pub(super) fn enum_decl(
        &mut self,
        repr: Option<&ast::TypeRef>,
        name: &Ident,
        members: &[ast::EnumMember],
    ) {
        let repr_ty = repr.map(|r| self.type_ref(r));
        if let (Some(r), Some(ty)) = (repr, &repr_ty)
            && !ty.is_poison()
            && !ty.is_bits()
        {
            self.error(r.span, format!("the underlying type of an enum is `bit<n>` or `int<n>`, not `{ty}`"));
        }
        let mut list: Vec<EnumMemberTy> = Vec::new();
        for (number, member) in members.iter().enumerate() {
            if list.iter().any(|m| m.name == member.name.name) {
                self.error(member.name.span, format!("member `{}` is declared twice", member.name.name));
                continue;
            }
            let value = match (&member.value, &repr_ty) {
                (Some(e), Some(ty)) => {
                    let typed = self.among_members(&list, ty, |c| c.expr(e));
                    let typed = self.coerce(typed, ty);
                    match typed.value() {
                        Some(Value::Int(i)) => i.clone(),
                        _ => {
                            if !typed.is_bad() {
                                self.error(
                                    e.span,
                                    "the value of an enum member must be known at compile time",
                                );
                            }
                            number.into()
                        }
                    }
                }
                (Some(e), None) => {
                    self.report(
                        Diagnostic::error(
                            e.span,
                            "only an enum with an underlying type gives its members values",
                        )
                        .help(format!("write `enum bit<8> {}`", name.name)),
                    );
                    number.into()
                }
                (None, Some(_)) => {
                    self.error(member.name.span, format!("member `{}` needs a value", member.name.name));
                    number.into()
                }
                (None, None) => number.into(),
            };
            list.push(EnumMemberTy { name: member.name.name.clone(), value });
        }
        let id = self.new_type_id();
        let repr = repr_ty.map(|t| t.underlying().clone());
        let ty = Rc::new(EnumTy { id, name: name.name.clone(), repr, members: list });
        self.out.enums.push(ty.clone());
        self.declare(name, Symbol::Type(TypeSym::Plain(Type::Enum(ty))));
    }

    /// Runs where the members that an enum has so far can be named alone, as their numbers.
    fn among_members<T>(
        &mut self,
        so_far: &[EnumMemberTy],
        ty: &Type,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.scoped(|c| {
            for member in so_far {
                let ident = Ident { name: member.name.clone(), span: ast::Span::default() };
                let number = TExpr::constant(Value::Int(member.value.clone()), ty.clone(), ident.span);
                c.declare(&ident, Symbol::Const(number));
            }
            run(c)
        })
    }

    /// The constant for a member of an enum.
    pub(super) fn enum_member(&mut self, e: &Rc<EnumTy>, member: &Ident, span: ast::Span) -> TExpr {
        let found = e.members.iter().enumerate().find(|(_, m)| m.name == member.name);
        match found {
            Some((number, m)) => {
                let value = match e.repr {
                    Some(_) => Value::Int(value::wrap(m.value.clone(), &Type::Enum(e.clone()))),
                    None => Value::Member(number as u32),
                };
                TExpr::constant(value, Type::Enum(e.clone()), span)
            }
            None => {
                let near = super::scope::nearest(&member.name, e.members.iter().map(|m| m.name.as_str()));
                let mut d = Diagnostic::error(
                    member.span,
                    format!("enum `{}` has no member `{}`", e.name, member.name),
                );
                if let Some(near) = near {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                self.report(d);
                TExpr::bad(span)
            }
        }
    }
}

/// Whether a header may contain this type.
pub(super) fn header_field(ty: &Type) -> bool {
    match ty {
        Type::Struct(s) => {
            s.kind == StructKind::Struct && s.fields.iter().all(|f| f.ty.is_poison() || header_field(&f.ty))
        }
        Type::Var(_) | Type::Varbit(_) | Type::Bool | Type::Bit(_) | Type::Int(_) => true,
        Type::Enum(e) => e.repr.is_some(),
        Type::New(n) => header_field(&n.inner),
        Type::Stack(element, _) => !matches!(**element, Type::Varbit(_)) && header_field(element),
        _ => false,
    }
}
