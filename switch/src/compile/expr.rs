//! Translates expressions: each becomes operations that leave its value in a slot.

use super::builder::{Builder, Label, kind};
use crate::code::ops::*;
use crate::code::plans::*;
use crate::error::CompileError;
use crate::words::limbs_of;
use p4rack_p4::ir::{BinOp, Expr, HeaderId, HeaderRef, LValue, StackId, Ty, UnOp};

type Result<T> = std::result::Result<T, CompileError>;

impl Builder<'_> {
    /// The type of an expression.
    pub fn ty(&self, expr: &Expr) -> Result<Ty> {
        Ok(match expr {
            Expr::Const { ty, .. } | Expr::Field { ty, .. } | Expr::Unary { ty, .. } => *ty,
            Expr::Var(var) => self.var_ty(*var)?,
            Expr::Valid(_) => Ty::Bool,
            Expr::Binary { op, ty, .. } => match op {
                BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => Ty::Bool,
                BinOp::And | BinOp::Or => Ty::Bool,
                _ => *ty,
            },
            Expr::Ternary { ty, .. } | Expr::Lookahead { ty, .. } => *ty,
            Expr::Cast { to, .. } => *to,
            Expr::Slice { hi, lo, .. } => Ty::Bit((hi + 1).saturating_sub(*lo)),
            Expr::Concat { left_ty, right_ty, .. } => {
                let width = left_ty.width() + right_ty.width();
                if matches!(left_ty, Ty::Int(_)) { Ty::Int(width) } else { Ty::Bit(width) }
            }
            Expr::PacketLength => Ty::Bit(32),
            Expr::DropPort => Ty::Bit(9),
        })
    }

    /// The type of an expression's value as the executor sees it.
    pub fn kind_of(&self, expr: &Expr) -> Result<ValueType> {
        let kind = kind(self.ty(expr)?);
        if kind.width > 2048 && !kind.varbit {
            return Err(CompileError::TooBig {
                object: self.program.name.clone(),
                needed: kind.width.into(),
                limit: 2048,
                unit: "bits in an expression",
            });
        }
        Ok(kind)
    }

    /// Translates a value that must fit one word, such as an index.
    pub fn narrow(&mut self, expr: &Expr, what: &str) -> Result<Slot> {
        if !self.kind_of(expr)?.narrow() {
            return Err(CompileError::Unsupported {
                object: self.program.name.clone(),
                what: format!("{what} of more than 64 bits"),
                help: "cast it to bit<64> or less".into(),
            });
        }
        self.expr(expr, None)
    }

    /// Evaluates into the given words.
    pub fn expr_into(&mut self, expr: &Expr, dst: Slot) -> Result<()> {
        let words = self.kind_of(expr)?.words();
        let slot = self.expr(expr, Some(dst))?;
        self.copy(dst, slot, words);
        Ok(())
    }

    /// Evaluates. The value may end up in `want`, in a variable itself or in a temporary. Only the last
    /// operation writes `want`, so it may be one of the operands.
    pub fn expr(&mut self, expr: &Expr, want: Option<Slot>) -> Result<Slot> {
        let result = self.kind_of(expr)?;
        if result.width == 0 {
            return self.constant(vec![0; result.words()]);
        }
        match expr {
            Expr::Const { value, .. } => self.constant(limbs_of(value, result.limbs())),
            Expr::Var(var) => self.var(*var),
            Expr::Field { header, field, .. } => {
                let at = self.header_at(header)?;
                if at.stack == NO_STACK {
                    return Ok(self.field(HeaderId(at.index.into()), *field)?.slot);
                }
                let plan = self.indexed(at.stack, Some(*field))?;
                let dst = self.want(want, result)?;
                self.emit(Op::LoadAt { dst, index: at.index, plan });
                Ok(dst)
            }
            Expr::Valid(header) => {
                let at = self.header_at(header)?;
                if at.stack == NO_STACK {
                    return Ok(self.code.headers[at.index as usize].valid);
                }
                let plan = self.indexed(at.stack, None)?;
                let dst = self.want(want, result)?;
                self.emit(Op::LoadAt { dst, index: at.index, plan });
                Ok(dst)
            }
            Expr::Unary { op, expr, ty } => {
                let a = self.expr(expr, None)?;
                let dst = self.want(want, result)?;
                let kind = kind(*ty);
                let w = kind.width as u8;
                match op {
                    _ if !kind.narrow() => self.wide(WidePlan::Unary { op: *op, dst, a, kind }),
                    UnOp::Not => self.emit(Op::Not { dst, a }),
                    UnOp::BitNot => self.emit(Op::BitNot { dst, a, w }),
                    UnOp::Neg => self.emit(Op::Neg { dst, a, w }),
                }
                Ok(dst)
            }
            Expr::Binary { op, left, right, ty } => self.binary(*op, left, right, kind(*ty), want, result),
            // Without a jump, if both sides may be evaluated: code behind it keeps the facts from before.
            Expr::Ternary { cond, then, otherwise, .. }
                if result.narrow() && is_simple(then, SIMPLE) && is_simple(otherwise, SIMPLE) =>
            {
                let c = self.expr(cond, None)?;
                let (a, b) = (self.expr(then, None)?, self.expr(otherwise, None)?);
                let dst = self.want(want, result)?;
                self.emit(Op::Select { dst, c, a, b });
                Ok(dst)
            }
            Expr::Ternary { cond, then, otherwise, .. } => {
                let dst = self.want(want, result)?;
                let (no, end) = (self.label(), self.label());
                self.branch(cond, false, no)?;
                self.expr_into(then, dst)?;
                self.jump(end);
                self.bind(no);
                self.expr_into(otherwise, dst)?;
                self.bind(end);
                Ok(dst)
            }
            Expr::Cast { expr, from, to } => self.cast(expr, kind(*from), kind(*to), want),
            Expr::Slice { expr, from, hi, lo } => {
                let from = kind(*from);
                if *hi >= from.width || lo > hi {
                    return Err(self.malformed(format!("slice [{hi}:{lo}] of {} bits", from.width)));
                }
                let a = self.expr(expr, None)?;
                let dst = self.want(want, result)?;
                // Within one word of a wide value, the fast operation suffices.
                if lo / 64 == hi / 64 {
                    let a = a + (lo / 64) as Slot;
                    self.emit(Op::Slice { dst, a, lo: (lo % 64) as u8, w: result.width as u8 });
                } else {
                    self.wide(WidePlan::Slice { dst, a, from, hi: *hi, lo: *lo });
                }
                Ok(dst)
            }
            Expr::Concat { left, left_ty, right, right_ty } => {
                let (left_kind, right_kind) = (kind(*left_ty), kind(*right_ty));
                let a = self.expr(left, None)?;
                let b = self.expr(right, None)?;
                let dst = self.want(want, result)?;
                if result.narrow() && right_kind.width < 64 {
                    self.emit(Op::Concat { dst, a, b, lo: right_kind.width as u8 });
                } else {
                    self.wide(WidePlan::Concat { dst, a, left: left_kind, b, right: right_kind });
                }
                Ok(dst)
            }
            Expr::Lookahead { total, offset, ty } => {
                let error = self.number(self.code.errors.packet_too_short)?;
                let dst = self.want(want, result)?;
                let plan = LookaheadPlan {
                    total: (*total).max(offset + ty.width()),
                    offset: *offset,
                    kind: kind(*ty),
                    error,
                };
                self.code.lookaheads.push(plan);
                self.emit(Op::Lookahead { dst, plan: self.code.lookaheads.len() as u32 - 1 });
                Ok(dst)
            }
            Expr::PacketLength => {
                let dst = self.want(want, result)?;
                self.emit(Op::PacketLength { dst });
                Ok(dst)
            }
            Expr::DropPort => {
                let dst = self.want(want, result)?;
                self.emit(Op::DropPort { dst });
                Ok(dst)
            }
        }
    }

    fn want(&mut self, want: Option<Slot>, kind: ValueType) -> Result<Slot> {
        match want {
            Some(slot) => Ok(slot),
            None => self.temp(kind.words()),
        }
    }

    /// Emits an operation of any width.
    pub fn wide(&mut self, plan: WidePlan) {
        self.code.wide.push(plan);
        self.emit(Op::Wide { plan: self.code.wide.len() as u32 - 1 });
    }

    fn binary(
        &mut self,
        op: BinOp,
        left: &Expr,
        right: &Expr,
        kind: ValueType,
        want: Option<Slot>,
        result: ValueType,
    ) -> Result<Slot> {
        if matches!(op, BinOp::And | BinOp::Or) && raises(right) {
            let dst = self.temp(1)?;
            let end = self.label();
            self.expr_into(left, dst)?;
            let (a, to) = (dst, end.0);
            self.emit(if op == BinOp::And { Op::JumpIfNot { a, to } } else { Op::JumpIf { a, to } });
            self.expr_into(right, dst)?;
            self.bind(end);
            return Ok(dst);
        }
        let a = self.expr(left, None)?;
        let b = self.expr(right, None)?;
        let right = self.kind_of(right)?;
        let dst = self.want(want, result)?;
        let w = kind.width.min(64) as u8;
        let saturates = matches!(op, BinOp::AddSat | BinOp::SubSat);
        let rare = matches!(op, BinOp::Div | BinOp::Mod)
            || (matches!(op, BinOp::Shr | BinOp::AddSat | BinOp::SubSat) && kind.signed)
            || kind.width == 0;
        if rare || !kind.narrow() || !right.narrow() {
            self.wide(WidePlan::Binary { op, dst, a, b, kind, right });
            return Ok(dst);
        }
        if saturates {
            return self.saturating(op, dst, (a, b), w);
        }
        let swapped = matches!(op, BinOp::Gt | BinOp::Ge);
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        self.emit(match op {
            BinOp::Add => Op::Add { dst, a, b, w },
            BinOp::Sub => Op::Sub { dst, a, b, w },
            BinOp::Mul => Op::Mul { dst, a, b, w },
            BinOp::BitAnd | BinOp::And => Op::And { dst, a, b },
            BinOp::BitOr | BinOp::Or => Op::Or { dst, a, b },
            BinOp::BitXor => Op::Xor { dst, a, b },
            BinOp::Shl => Op::Shl { dst, a, b, w },
            BinOp::Shr => Op::Shr { dst, a, b },
            BinOp::Eq => Op::Eq { dst, a, b },
            BinOp::Ne => Op::Ne { dst, a, b },
            BinOp::Lt | BinOp::Gt if kind.signed => Op::Slt { dst, a, b, w },
            BinOp::Le | BinOp::Ge if kind.signed => Op::Sle { dst, a, b, w },
            BinOp::Lt | BinOp::Gt => Op::Lt { dst, a, b },
            BinOp::Le | BinOp::Ge => Op::Le { dst, a, b },
            BinOp::Div | BinOp::Mod | BinOp::AddSat | BinOp::SubSat => {
                return Err(self.malformed("operator without a fast form".into()));
            }
        });
        Ok(dst)
    }

    /// Saturating arithmetic, unsigned, up to 64 bits: overflow becomes all ones, underflow becomes zero.
    /// `dst` may be `a` or `b`.
    fn saturating(&mut self, op: BinOp, dst: Slot, (a, b): (Slot, Slot), w: u8) -> Result<Slot> {
        let mask = self.temp(1)?;
        if op == BinOp::AddSat {
            let sum = self.temp(1)?;
            self.emit(Op::Add { dst: sum, a, b, w });
            self.emit(Op::Lt { dst: mask, a: sum, b: a });
            self.emit(Op::Neg { dst: mask, a: mask, w });
            self.emit(Op::Or { dst, a: sum, b: mask });
        } else {
            let one = self.number(1)?;
            self.emit(Op::Lt { dst: mask, a, b });
            self.emit(Op::Sub { dst: mask, a: mask, b: one, w: 64 });
            self.emit(Op::Sub { dst, a, b, w });
            self.emit(Op::And { dst, a: dst, b: mask });
        }
        Ok(dst)
    }

    fn cast(&mut self, expr: &Expr, from: ValueType, to: ValueType, want: Option<Slot>) -> Result<Slot> {
        let a = self.expr(expr, None)?;
        if from.varbit || to.varbit {
            return if from == to { Ok(a) } else { Err(self.malformed("cast of a varbit".into())) };
        }
        let keeps = to.width == from.width || (to.width > from.width && !from.signed);
        if keeps && to.limbs() == from.limbs() {
            return Ok(a);
        }
        // The low word of a wide value is its first word.
        if to.width == 64 && from.width > 64 {
            return Ok(a);
        }
        let dst = self.want(want, to)?;
        if to.width < 64 && to.width <= from.width {
            self.emit(Op::Cut { dst, a, w: to.width as u8 });
        } else if to.narrow() && from.narrow() && from.width > 0 {
            self.emit(Op::SignExtend { dst, a, from: from.width as u8, w: to.width as u8 });
        } else {
            self.wide(WidePlan::Cast { dst, a, from, to });
        }
        Ok(dst)
    }

    /// Jumps to `to` if the condition equals `when`; otherwise continues.
    pub fn branch(&mut self, cond: &Expr, when: bool, to: Label) -> Result<()> {
        match cond {
            Expr::Unary { op: UnOp::Not, expr, .. } => return self.branch(expr, !when, to),
            Expr::Binary { op: op @ (BinOp::And | BinOp::Or), left, right, .. } => {
                // `a && b` being false, `a || b` being true: either side alone decides.
                if when == (*op == BinOp::Or) {
                    self.branch(left, when, to)?;
                    return self.branch(right, when, to);
                }
                let past = self.label();
                self.branch(left, !when, past)?;
                self.branch(right, when, to)?;
                self.bind(past);
                return Ok(());
            }
            Expr::Binary { op, left, right, ty } => {
                let operand = kind(*ty);
                let ordered = matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge);
                let plain = operand.narrow() && operand.width > 0 && self.kind_of(right)?.narrow();
                if plain && (matches!(op, BinOp::Eq | BinOp::Ne) || (ordered && !operand.signed)) {
                    let a = self.expr(left, None)?;
                    let b = self.expr(right, None)?;
                    let to = to.0;
                    self.emit(match (op, when) {
                        (BinOp::Eq, true) | (BinOp::Ne, false) => Op::JumpEq { a, b, to },
                        (BinOp::Eq, false) | (BinOp::Ne, true) => Op::JumpNe { a, b, to },
                        (BinOp::Lt, true) | (BinOp::Ge, false) => Op::JumpLt { a, b, to },
                        (BinOp::Lt, false) | (BinOp::Ge, true) => Op::JumpLe { a: b, b: a, to },
                        (BinOp::Le, true) | (BinOp::Gt, false) => Op::JumpLe { a, b, to },
                        _ => Op::JumpLt { a: b, b: a, to },
                    });
                    return Ok(());
                }
            }
            _ => {}
        }
        let a = self.expr(cond, None)?;
        let to = to.0;
        self.emit(if when { Op::JumpIf { a, to } } else { Op::JumpIfNot { a, to } });
        Ok(())
    }

    /// Resolves a header reference as far as possible at compile time.
    pub fn header_at(&mut self, header: &HeaderRef) -> Result<HeaderAt> {
        let stack = match header {
            HeaderRef::Fixed(header) => {
                self.touch_header(*header)?;
                return Ok(HeaderAt { stack: NO_STACK, index: header.0 as u16 });
            }
            HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => *stack,
        };
        self.touch_stack(stack)?;
        let next = self.code.stacks[stack.0 as usize].next;
        let index = match header {
            HeaderRef::Index(_, index) => self.narrow(index, "a stack index")?,
            HeaderRef::Last(_) => {
                if self.in_parser {
                    let error = self.number(self.code.errors.stack_out_of_bounds)?;
                    self.emit(Op::RaiseIfZero { a: next, error });
                }
                // An empty stack gives an index out of range.
                let one = self.number(1)?;
                let dst = self.temp(1)?;
                self.emit(Op::Sub { dst, a: next, b: one, w: 64 });
                dst
            }
            _ => next,
        };
        Ok(HeaderAt { stack: stack.0 as u16, index })
    }

    /// Marks all variables of a stack as mentioned.
    pub fn touch_stack(&mut self, stack: StackId) -> Result<()> {
        let program = self.program;
        let described = program
            .stacks
            .get(stack.0 as usize)
            .ok_or_else(|| self.malformed(format!("stack {} is not declared", stack.0)))?;
        self.var(described.next)?;
        for &element in &described.elements {
            self.touch_header(element)?;
        }
        Ok(())
    }

    fn field(&self, header: HeaderId, field: u32) -> Result<FieldPlan> {
        let plan = self.code.headers.get(header.0 as usize).and_then(|plan| plan.fields.get(field as usize));
        plan.copied()
            .ok_or_else(|| self.malformed(format!("field {field} of header {} is not declared", header.0)))
    }

    /// Reads a field (or the validity bit) of an element of a stack.
    pub(super) fn indexed(&mut self, stack: u16, field: Option<u32>) -> Result<u32> {
        let elements = &self.code.stacks[stack as usize].elements;
        let count = elements.len() as u16;
        let Some(&first) = elements.first() else {
            return Err(self.malformed("an empty stack is indexed".into()));
        };
        let header = &self.code.headers[first as usize];
        let (valid, stride) = (header.valid, header.words);
        let (base, words) = match field {
            None => (valid, 1),
            Some(field) => {
                let field = self.field(HeaderId(first.into()), field)?;
                (field.slot, field.kind.words() as u16)
            }
        };
        self.code.indexed.push(IndexedPlan { base, stride, count, words });
        Ok(self.code.indexed.len() as u32 - 1)
    }

    /// The type of an lvalue's value.
    pub fn lvalue_kind(&self, target: &LValue) -> Result<ValueType> {
        match target {
            LValue::Var(var) => Ok(kind(self.var_ty(*var)?)),
            LValue::Slice { hi, lo, .. } => Ok(kind(Ty::Bit((hi + 1).saturating_sub(*lo)))),
            LValue::Field { header, field } => {
                let header = match header {
                    HeaderRef::Fixed(header) => *header,
                    HeaderRef::Next(stack) | HeaderRef::Last(stack) | HeaderRef::Index(stack, _) => {
                        let elements = self.program.stacks.get(stack.0 as usize).map(|stack| &stack.elements);
                        *elements
                            .and_then(|elements| elements.first())
                            .ok_or_else(|| self.malformed(format!("stack {} is empty", stack.0)))?
                    }
                };
                Ok(self.field(header, *field)?.kind)
            }
        }
    }

    /// The slot into which an lvalue's value may be written directly.
    pub fn direct(&mut self, target: &LValue) -> Result<Option<Slot>> {
        match target {
            LValue::Var(var) => Ok(Some(self.var(*var)?)),
            LValue::Field { header: HeaderRef::Fixed(header), field } => {
                self.touch_header(*header)?;
                Ok(Some(self.field(*header, *field)?.slot))
            }
            _ => Ok(None),
        }
    }

    /// Stores the value in `a`.
    pub fn store(&mut self, target: &LValue, a: Slot) -> Result<()> {
        let kind = self.lvalue_kind(target)?;
        if let Some(dst) = self.direct(target)? {
            self.copy(dst, a, kind.words());
            return Ok(());
        }
        match target {
            LValue::Var(_) => Ok(()),
            LValue::Field { header, field } => {
                let at = self.header_at(header)?;
                let plan = self.indexed(at.stack, Some(*field))?;
                self.emit(Op::StoreAt { a, index: at.index, plan });
                Ok(())
            }
            LValue::Slice { .. } => {
                let (mut root, mut low, mut high) = (target, 0, None);
                while let LValue::Slice { base, hi, lo } = root {
                    high = Some(high.map_or(*hi, |inner: u32| inner + lo));
                    low += lo;
                    root = base;
                }
                let hi = high.unwrap_or(0);
                let whole = self.lvalue_kind(root)?;
                if hi >= whole.width || low > hi || whole.varbit {
                    return Err(self.malformed(format!("slice [{hi}:{low}] of {} bits", whole.width)));
                }
                let direct = self.direct(root)?;
                let dst = match (direct, root) {
                    (Some(slot), _) => slot,
                    (None, LValue::Field { header, field }) => {
                        let at = self.header_at(header)?;
                        let plan = self.indexed(at.stack, Some(*field))?;
                        let dst = self.temp(whole.words())?;
                        self.emit(Op::LoadAt { dst, index: at.index, plan });
                        dst
                    }
                    _ => return Err(self.malformed("slice of nothing".into())),
                };
                if low / 64 == hi / 64 {
                    let (lo, w) = ((low % 64) as u8, (hi - low + 1) as u8);
                    self.emit(Op::Insert { dst: dst + (low / 64) as Slot, a, lo, w });
                } else {
                    self.wide(WidePlan::Insert { dst, whole, a, hi, lo: low });
                }
                if direct.is_none() { self.store(root, dst) } else { Ok(()) }
            }
        }
    }
}

/// Whether evaluation can raise a parser error, so that it must not be speculative.
fn raises(expr: &Expr) -> bool {
    match expr {
        Expr::Lookahead { .. } => true,
        Expr::Const { .. } | Expr::Var(_) | Expr::PacketLength | Expr::DropPort => false,
        Expr::Field { header, .. } | Expr::Valid(header) => match header {
            HeaderRef::Fixed(_) => false,
            HeaderRef::Next(_) | HeaderRef::Last(_) => true,
            HeaderRef::Index(_, index) => raises(index),
        },
        Expr::Unary { expr, .. } | Expr::Cast { expr, .. } | Expr::Slice { expr, .. } => raises(expr),
        Expr::Binary { left, right, .. } | Expr::Concat { left, right, .. } => raises(left) || raises(right),
        Expr::Ternary { cond, then, otherwise, .. } => raises(cond) || raises(then) || raises(otherwise),
    }
}

/// Maximum chained operators that cost less than a jump that may be mispredicted.
const SIMPLE: usize = 2;

/// Whether speculative evaluation is harmless and costs next to nothing.
fn is_simple(expr: &Expr, depth: usize) -> bool {
    let deeper = |expr: &Expr| depth > 0 && is_simple(expr, depth - 1);
    match expr {
        Expr::Const { .. } | Expr::Var(_) => true,
        Expr::Field { .. } | Expr::Valid(_) | Expr::Lookahead { .. } | Expr::Concat { .. } => false,
        Expr::PacketLength | Expr::DropPort => false,
        Expr::Unary { expr, ty, .. } => kind(*ty).narrow() && deeper(expr),
        Expr::Cast { expr, from, .. } => kind(*from).narrow() && is_simple(expr, depth),
        Expr::Slice { expr, from, .. } => kind(*from).narrow() && deeper(expr),
        Expr::Binary { op: BinOp::Div | BinOp::Mod, .. } => false,
        Expr::Binary { left, right, ty, .. } => kind(*ty).narrow() && deeper(left) && deeper(right),
        Expr::Ternary { cond, then, otherwise, .. } => deeper(cond) && deeper(then) && deeper(otherwise),
    }
}
