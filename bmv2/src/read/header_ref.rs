//! Headers that expressions name, and their fields.

use super::expr::cast;
use super::operation::bare;
use super::{Cursor, Reader, Result};
use num_traits::{One, ToPrimitive};
use p4rack_p4::ir::{BinOp, Expr, HeaderRef, StackId, Ty};

impl<'j> Reader<'j> {
    /// A header.
    pub(super) fn header_ref(&mut self, node: &Cursor<'j>) -> Result<HeaderRef> {
        let node = bare(node.clone())?;
        if let Some(operation) = self.operation(&node)? {
            match operation.op {
                "dereference_header_stack" => {
                    let stack = self.stack_named(&operation.left()?.get("value")?)?;
                    return self.element(stack, &operation.right()?);
                }
                "access_union_header" => {
                    let position = operation.right()?.number()? as usize;
                    let union = bare(operation.left()?)?;
                    let Some(inner) = self.operation(&union)? else {
                        let name = union.get("value")?;
                        let member = self.unions.get(name.text()?).and_then(|all| all.get(position));
                        return match member {
                            Some(header) => Ok(HeaderRef::Fixed(*header)),
                            None => name.wrong("there is no such member of a union"),
                        };
                    };
                    let name = inner.left()?.get("value")?;
                    let member = self.union_stacks.get(name.text()?).and_then(|all| all.get(position));
                    let Some((_, stack)) = member else {
                        return name.wrong("there is no such member of a stack of unions");
                    };
                    return self.element(*stack, &inner.right()?);
                }
                other => {
                    return operation
                        .node
                        .get("op")?
                        .wrong(format!("the operation `{other}` gives no header"));
                }
            }
        }
        match node.text_of("type")? {
            "header" => Ok(HeaderRef::Fixed(self.header_named(&node.get("value")?)?)),
            other => node.wrong(format!("`{other}` is no header")),
        }
    }

    fn element(&mut self, stack: StackId, index: &Cursor<'j>) -> Result<HeaderRef> {
        let (value, ty) = self.exact(index)?;
        let elements = &self.program.stacks[stack.0 as usize].elements;
        if let Expr::Const { value, .. } = &value {
            return match value.to_usize().and_then(|at| elements.get(at)) {
                Some(header) => Ok(HeaderRef::Fixed(*header)),
                None => index.wrong(format!("the stack has {} elements", elements.len())),
            };
        }
        // The index of the last element.
        let next = self.program.stacks[stack.0 as usize].next;
        if let Expr::Binary { op: BinOp::Sub, left, right, .. } = &value
            && matches!((&**left, &**right), (Expr::Var(var), Expr::Const { value, .. }) if *var == next && value.is_one())
        {
            return Ok(HeaderRef::Last(stack));
        }
        let unsigned = Ty::Bit(ty.width());
        Ok(HeaderRef::Index(stack, Box::new(cast(value, ty, unsigned))))
    }

    /// Position of a header that a reference can mean.
    pub(super) fn any_header(&self, header: &HeaderRef) -> usize {
        match header {
            HeaderRef::Fixed(id) => id.0 as usize,
            HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => {
                self.program.stacks[stack.0 as usize].elements[0].0 as usize
            }
        }
    }

    pub(super) fn header_field(&self, header: HeaderRef, field: u32) -> (Expr, Ty) {
        let var = self.program.headers[self.any_header(&header)].fields[field as usize].var;
        let ty = self.program.vars[var.0 as usize].ty;
        match header {
            HeaderRef::Fixed(_) => (Expr::Var(var), ty),
            header => (Expr::Field { header, field, ty }, ty),
        }
    }

    /// Position of a field in the headers of a stack.
    pub(super) fn field_of(&self, stack: StackId, name: &Cursor<'_>) -> Result<u32> {
        let any = self.program.stacks[stack.0 as usize].elements[0].0 as usize;
        let text = name.text()?;
        match self.program.headers[any].fields.iter().position(|field| field.name == text) {
            Some(at) => Ok(at as u32),
            None => name.wrong(format!("there is no field `{text}`")),
        }
    }

    /// The stack of a member of a stack of unions.
    pub(super) fn union_member(&self, stack: &Cursor<'_>, member: &Cursor<'_>) -> Result<StackId> {
        let Some(members) = self.union_stacks.get(stack.text()?) else {
            return stack.wrong(format!("there is no stack of unions `{}`", stack.text()?));
        };
        let wanted = member.text()?;
        match members.iter().find(|(name, _)| name == wanted) {
            Some((_, stack)) => Ok(*stack),
            None => member.wrong(format!("there is no member `{wanted}`")),
        }
    }
}
