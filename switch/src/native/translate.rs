//! Translates operations to cranelift's IR.

use super::Source;
use super::call;
use super::graph::Graph;
use super::known::{Fact, Known, Pending, Ways};
use super::read::{BEFORE, ReadWords};
use crate::code::ops::{Op, Slot};
use crate::code::plans::Code;
use crate::exec::{Cx, Exit, FUEL};
use crate::state::RegisterState;
use crate::table::TableState;
use crate::words::ones;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, Function, InstBuilder, InstructionData, MemFlagsData, Opcode, SigRef, Signature, Type,
    Value, types,
};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::collections::{BTreeMap, HashMap};
use std::mem::offset_of;

/// Maximum words that are copied or cleared without a call.
const SHORT: u16 = 16;

pub(super) struct Translator<'a, 'b> {
    pub b: FunctionBuilder<'b>,
    pub code: &'a Code,
    pub tables: &'a [TableState],
    pub graph: &'a Graph,
    /// The words that are read from memory, as recorded so far.
    pub read: &'a mut ReadWords,
    pub registers: &'a [Option<RegisterState>],
    constants: HashMap<Slot, u64>,
    blocks: BTreeMap<u32, ir::Block>,
    pub known: Known,
    vars: Value,
    pub cx: Value,
    pub runtime: Value,
    signature: SigRef,
    /// Signature of lookup functions.
    pub finder: SigRef,
    /// Signature of the functions for meters and counters.
    metering: SigRef,
    /// The site that applied the table whose action runs.
    pub site: Variable,
    fuel: Variable,
    pending: Pending<'a>,
    /// Position of the current operation.
    pub at: u32,
}

/// Generates the function of one entry.
pub(super) fn translate(
    func: &mut Function,
    scratch: &mut FunctionBuilderContext,
    Source { code, tables, registers }: Source<'_>,
    (graph, ways): (&Graph, Option<&Ways>),
    read: &mut ReadWords,
    config: TargetFrontendConfig,
) {
    let mut called = Signature::new(config.default_call_conv);
    called.params.extend([types::I64, types::I64, types::I32].map(AbiParam::new));
    called.returns.push(AbiParam::new(types::I64));
    let mut b = FunctionBuilder::new(func, scratch);
    let mut finds = called.clone();
    finds.returns.push(AbiParam::new(types::I64));
    let mut meters = called.clone();
    meters.params.push(AbiParam::new(types::I64));
    let (signature, finder) = (b.import_signature(called), b.import_signature(finds));
    let metering = b.import_signature(meters);
    let first = b.create_block();
    b.append_block_params_for_function_params(first);
    b.switch_to_block(first);
    let (vars, cx, runtime) = match *b.block_params(first) {
        [vars, cx, runtime] => (vars, cx, runtime),
        _ => return,
    };
    let (site, fuel) = (b.declare_var(types::I32), b.declare_var(types::I32));
    let none = b.ins().iconst(types::I32, 0);
    b.def_var(site, none);
    let full = b.ins().iconst(types::I32, i64::from(FUEL));
    b.def_var(fuel, full);
    let blocks = graph.starts.keys().map(|&at| (at, b.create_block())).collect();
    let mut translator = Translator {
        b,
        code,
        tables,
        graph,
        read,
        registers,
        constants: code.constants.iter().copied().collect(),
        blocks,
        known: Known::default(),
        vars,
        cx,
        runtime,
        signature,
        finder,
        metering,
        site,
        fuel,
        pending: Pending::new(ways),
        at: graph.entry.start,
    };
    translator.read.begin(graph.part, BEFORE);
    if !graph.entry.begins {
        translator.read.note_inherits();
    } else {
        translator.known.cursor = Some(Fact::Number(0));
        if super::clears(code) {
            translator.clear();
        }
    }
    translator.jump(graph.entry.start);
    translator.pending.end(BEFORE);
    translator.run();
    translator.b.seal_all_blocks();
    translator.b.finalize(config);
}

/// Flags of an access that cannot trap, at any alignment.
pub(super) fn anywhere() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Flags of an aligned access that cannot trap.
pub(super) fn plain() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Flags of an access to data that do not change during a run: they are loaded once.
pub(super) fn lasting() -> MemFlagsData {
    plain().with_readonly().with_can_move()
}

/// Whether a comparison holds.
fn holds(how: IntCC, a: u64, b: u64) -> bool {
    match how {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::UnsignedLessThan => a < b,
        _ => a <= b,
    }
}

/// Result of an operation on numbers, and its place.
fn fold(op: Op, number: impl Fn(Slot) -> Option<u64>) -> Option<(Slot, u64)> {
    Some(match op {
        Op::Add { dst, a, b, w } => (dst, number(a)?.wrapping_add(number(b)?) & ones(w.into())),
        Op::Sub { dst, a, b, w } => (dst, number(a)?.wrapping_sub(number(b)?) & ones(w.into())),
        Op::And { dst, a, b } => (dst, number(a)? & number(b)?),
        Op::Or { dst, a, b } => (dst, number(a)? | number(b)?),
        Op::Xor { dst, a, b } => (dst, number(a)? ^ number(b)?),
        Op::Eq { dst, a, b } => (dst, (number(a)? == number(b)?).into()),
        Op::Ne { dst, a, b } => (dst, (number(a)? != number(b)?).into()),
        Op::Lt { dst, a, b } => (dst, (number(a)? < number(b)?).into()),
        Op::Le { dst, a, b } => (dst, (number(a)? <= number(b)?).into()),
        Op::Not { dst, a } => (dst, number(a)? ^ 1),
        Op::Cut { dst, a, w } => (dst, number(a)? & ones(w.into())),
        Op::Slice { dst, a, lo, w } => (dst, number(a)? >> lo & ones(w.into())),
        Op::Concat { dst, a, b, lo } => (dst, number(a)? << lo | number(b)?),
        _ => return None,
    })
}

impl Translator<'_, '_> {
    fn run(&mut self) {
        while let Some((start, known)) = self.pending.next() {
            self.b.switch_to_block(self.blocks[&start]);
            self.known = known;
            self.at = start;
            self.read.begin(self.graph.part, start);
            while self.operation(self.code.ops[self.at as usize]) {
                self.at += 1;
                if self.blocks.contains_key(&self.at) {
                    self.jump(self.at);
                    break;
                }
            }
            self.pending.end(start);
        }
    }

    /// Clears the words that may be read before they are written, unless that is already done.
    fn clear(&mut self) {
        let next = self.code.carries.then(|| {
            let cleared = self.load_cx(types::I8, offset_of!(Cx<'static>, cleared));
            let (clear, next) = (self.b.create_block(), self.b.create_block());
            self.b.ins().brif(cleared, next, &[], clear, &[]);
            self.b.switch_to_block(clear);
            next
        });
        let zero = self.number(0);
        let zeros = self.b.ins().splat(types::I64X2, zero);
        let wanted = self.code.words_to_clear.iter().copied().filter(|slot| self.read.wants(*slot));
        let wanted: Vec<Slot> = wanted.collect();
        let mut words = &wanted[..];
        while let [slot, rest @ ..] = words {
            let at = i32::from(*slot) * 8;
            words = match rest {
                [next, rest @ ..] if *next == slot + 1 => {
                    self.b.ins().store(anywhere(), zeros, self.vars, at);
                    rest
                }
                _ => {
                    self.b.ins().store(plain(), zero, self.vars, at);
                    rest
                }
            };
        }
        if let Some(next) = next {
            self.b.ins().jump(next, &[]);
            self.b.switch_to_block(next);
        } else {
            let zeros = self.code.words_to_clear.iter().map(|slot| (*slot, Fact::Number(0)));
            self.known.words.extend(zeros);
        }
    }

    /// The block of a position, to be translated later, to which the facts here carry over.
    pub fn block(&mut self, to: u32) -> ir::Block {
        self.read.note_next(to);
        self.pending.lead(to, &self.known);
        self.blocks[&to]
    }

    /// The same for a way on which a value is a number.
    fn block_if(&mut self, to: u32, number: Option<(Value, u64)>) -> ir::Block {
        let Some((value, number)) = number else { return self.block(to) };
        let before = self.known.numbers.insert(value, number);
        let block = self.block(to);
        match before {
            Some(before) => self.known.numbers.insert(value, before),
            None => self.known.numbers.remove(&value),
        };
        block
    }

    pub fn jump(&mut self, to: u32) {
        let block = self.block(to);
        self.b.ins().jump(block, &[]);
    }

    /// Jumps to `to` if the word is not zero, or is zero with `when` false; else continues with the next operation.
    fn jump_if(&mut self, a: Slot, when: bool, to: u32) {
        if let Some(number) = self.constant(a) {
            return self.jump(if (number != 0) == when { to } else { self.at + 1 });
        }
        let condition = self.get(a);
        let (yes, no) = if when { (to, self.at + 1) } else { (self.at + 1, to) };
        let (yes, no) = (self.block(yes), self.block_if(no, Some((condition, 0))));
        self.b.ins().brif(condition, yes, &[], no, &[]);
    }

    pub fn number(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value as i64)
    }

    /// The number that a word of the variables certainly is.
    pub fn constant(&self, slot: Slot) -> Option<u64> {
        match self.known.words.get(&slot) {
            _ if !self.pending.knows_ways() => None,
            Some(Fact::Number(number)) => Some(*number),
            Some(Fact::Value(value)) => self.known.numbers.get(value).copied(),
            None => self.constants.get(&slot).copied(),
        }
    }

    /// Value of a word of the variables.
    pub fn get(&mut self, slot: Slot) -> Value {
        if let Some(&number) = self.constants.get(&slot) {
            return self.number(number);
        }
        match self.known.words.get(&slot) {
            Some(Fact::Number(number)) => return self.number(*number),
            Some(Fact::Value(value)) => return *value,
            None => {}
        }
        self.read.note(slot, 1);
        let value = self.b.ins().load(types::I64, plain(), self.vars, i32::from(slot) * 8);
        self.known.words.insert(slot, Fact::Value(value));
        value
    }

    /// Address of a word of the variables.
    pub fn address(&mut self, slot: Slot) -> Value {
        self.b.ins().iadd_imm_u(self.vars, i64::from(slot) * 8)
    }

    pub fn set(&mut self, slot: Slot, value: Value) {
        if !self.holds(slot, value) {
            self.read.note_written(slot);
            self.store(slot, value);
        }
    }

    /// Sets a word on some paths through the block only.
    pub fn set_at_times(&mut self, slot: Slot, value: Value) {
        if !self.holds(slot, value) {
            self.store(slot, value);
        }
    }

    /// Whether a word certainly has the value already. The earlier write is not overwritten then, so it counts as
    /// wanted wherever the word is read.
    fn holds(&self, slot: Slot, value: Value) -> bool {
        self.pending.knows_ways() && self.known.words.get(&slot) == Some(&self.fact(value))
    }

    /// Sets a word of which it is already noted that this happens.
    pub fn store(&mut self, slot: Slot, value: Value) {
        if self.read.wants(slot) {
            self.b.ins().store(plain(), value, self.vars, i32::from(slot) * 8);
        }
        let fact = self.fact(value);
        self.known.words.insert(slot, fact);
    }

    /// Fact about a value.
    pub fn fact(&self, value: Value) -> Fact {
        let made = self.b.func.dfg.value_def(value).inst().map(|made| self.b.func.dfg.insts[made]);
        match made {
            Some(InstructionData::UnaryImm { opcode: Opcode::Iconst, imm }) => {
                Fact::Number(imm.bits() as u64)
            }
            _ => Fact::Value(value),
        }
    }

    /// Forgets the known values of words that may have changed.
    pub fn forget(&mut self, slot: Slot, count: usize) {
        for at in slot as usize..slot as usize + count {
            self.known.words.remove(&(at as Slot));
        }
    }

    fn cut(&mut self, value: Value, w: u8) -> Value {
        if w >= 64 { value } else { self.b.ins().band_imm_u(value, ones(w.into()) as i64) }
    }

    fn truth(&mut self, condition: Value) -> Value {
        self.b.ins().uextend(types::I64, condition)
    }

    fn signed(&mut self, value: Value, w: u8) -> Value {
        let shift = 64 - i64::from(w);
        let high = self.b.ins().ishl_imm_u(value, shift);
        self.b.ins().sshr_imm_u(high, shift)
    }

    /// Loads a field of the interpreter's view of the packet.
    pub fn load_cx(&mut self, ty: Type, offset: usize) -> Value {
        self.b.ins().load(ty, plain(), self.cx, offset as i32)
    }

    pub fn load_runtime(&mut self, offset: usize) -> Value {
        self.b.ins().load(types::I64, plain(), self.runtime, offset as i32)
    }

    /// Loads data that do not change during a run.
    pub fn load_lasting(&mut self, offset: usize) -> Value {
        self.b.ins().load(types::I64, lasting(), self.runtime, offset as i32)
    }

    /// Bytes of the packet.
    pub fn frame_len(&mut self) -> Value {
        self.b.ins().load(types::I64, lasting(), self.cx, offset_of!(Cx<'static>, len) as i32)
    }

    fn drop_port(&mut self) -> Value {
        let port = self.load_cx(types::I16, offset_of!(Cx<'static>, drop_port));
        self.b.ins().uextend(types::I64, port)
    }

    /// The position of the first byte that is not parsed.
    pub fn cursor(&mut self) -> Value {
        match self.known.cursor {
            Some(Fact::Number(cursor)) => self.number(cursor),
            Some(Fact::Value(cursor)) => cursor,
            None => {
                let cursor = self.load_cx(types::I64, offset_of!(Cx<'static>, cursor));
                self.known.cursor = Some(Fact::Value(cursor));
                cursor
            }
        }
    }

    /// Moves the cursor to `end`, which is within the packet.
    pub fn move_to(&mut self, end: Value) {
        self.b.ins().store(plain(), end, self.cx, offset_of!(Cx<'static>, cursor) as i32);
        self.known.cursor = Some(self.fact(end));
    }

    /// The position of the cursor plus some bytes.
    pub fn ahead(&mut self, bytes: u64) -> Value {
        match self.known.cursor {
            Some(Fact::Number(cursor)) => self.number(cursor + bytes),
            _ => {
                let cursor = self.cursor();
                self.b.ins().iadd_imm_u(cursor, bytes as i64)
            }
        }
    }

    /// Calls a function of [`call`] about the current operation or one of its plans.
    pub fn call(&mut self, function: usize, about: u32) -> Value {
        self.read.note_operands(self.code, self.code.ops[self.at as usize]);
        let callee = self.number(function as u64);
        let about = self.b.ins().iconst(types::I32, i64::from(about));
        let args = [self.cx, self.runtime, about];
        let call = self.b.ins().call_indirect(self.signature, callee, &args);
        self.b.inst_results(call)[0]
    }

    /// Calls the interpreter for the current operation.
    pub fn rare(&mut self) -> Value {
        self.call(call::rare as *const () as usize, self.at)
    }

    /// Calls the interpreter for the current operation, which may write anywhere and raise an error.
    fn rare_parse(&mut self) {
        let result = self.rare();
        self.known = Known::default();
        let error = self.b.ins().iadd_imm_s(result, -1);
        self.raise_if(result, error);
    }

    /// Jumps to the parser's end with an error if the condition is not zero.
    pub fn raise_if(&mut self, condition: Value, error: Value) {
        let (raise, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(raise);
        self.b.ins().brif(condition, raise, &[], next, &[]);
        self.b.switch_to_block(raise);
        let known = self.known.clone();
        self.raise(error);
        self.known = known;
        self.b.switch_to_block(next);
    }

    fn raise(&mut self, error: Value) {
        self.set_at_times(self.graph.entry.error, error);
        self.jump(self.graph.entry.parsed);
    }

    pub fn leave(&mut self, exit: Exit) {
        self.read.note_end();
        let exit = self.b.ins().iconst(types::I32, exit as i64);
        self.b.ins().return_(&[exit]);
    }

    /// Translates an operation. Returns whether the next one follows it.
    fn operation(&mut self, op: Op) -> bool {
        match op {
            Op::Mov { dst, a } => {
                let value = self.get(a);
                self.set(dst, value);
            }
            Op::MovN { dst, a, n } if n <= SHORT => {
                // Constants are at the very end of the variables.
                let values: Vec<Value> = (0..n).map(|word| self.get(a + word)).collect();
                (dst..).zip(values).for_each(|(slot, value)| self.set(slot, value));
            }
            Op::MovN { dst, n, .. } => {
                self.rare();
                self.forget(dst, n.into());
            }
            Op::Zero { dst, n } if n <= SHORT => {
                let zero = self.number(0);
                (dst..dst + n).for_each(|slot| self.set(slot, zero));
            }
            Op::Zero { dst, n } => {
                self.rare();
                self.forget(dst, n.into());
            }
            Op::Jump { to } => {
                self.jump(to);
                return false;
            }
            Op::JumpIf { a, to } => {
                self.jump_if(a, true, to);
                return false;
            }
            Op::JumpIfNot { a, to } => {
                self.jump_if(a, false, to);
                return false;
            }
            Op::JumpEq { a, b, to } => return self.jump_compared(IntCC::Equal, a, b, to),
            Op::JumpNe { a, b, to } => return self.jump_compared(IntCC::NotEqual, a, b, to),
            Op::JumpLt { a, b, to } => return self.jump_compared(IntCC::UnsignedLessThan, a, b, to),
            Op::JumpLe { a, b, to } => return self.jump_compared(IntCC::UnsignedLessThanOrEqual, a, b, to),
            Op::JumpUnlessMember { to, .. } => {
                let member = self.call(call::is_member as *const () as usize, self.at);
                let (then, next) = (self.block(to), self.block(self.at + 1));
                self.b.ins().brif(member, next, &[], then, &[]);
                return false;
            }
            Op::Fuel => self.burn(),
            // Other packets are never parsed alone.
            Op::Parsed if !self.code.carries => {}
            Op::Parsed => {
                let only = self.load_cx(types::I8, offset_of!(Cx<'static>, parse_only));
                self.leave_if(only, Exit::Done);
            }
            Op::End => {
                self.leave(Exit::Done);
                return false;
            }
            Op::AssertFailed => {
                self.leave(Exit::AssertFailed);
                return false;
            }
            Op::Reject => {
                self.leave(Exit::Rejected);
                return false;
            }
            Op::Ret | Op::Exit => {
                self.back();
                return false;
            }
            Op::Raise { a } => {
                let error = self.get(a);
                self.raise(error);
                return false;
            }
            Op::RaiseIfZero { a, error } => {
                let (a, error) = (self.get(a), self.get(error));
                let zero = self.b.ins().icmp_imm_u(IntCC::Equal, a, 0);
                self.raise_if(zero, error);
            }
            Op::Advance { bits } => self.advance(bits),
            Op::SetValid { header } if self.code.headers[header as usize].words <= SHORT => {
                self.set_valid(header)
            }
            Op::CopyHeader { dst, src } if self.code.headers[src as usize].words <= SHORT => {
                self.copy_header(dst, src);
            }
            Op::Extract { header } if self.code.headers[header as usize].narrow => self.extract(header),
            Op::Lookahead { dst, plan } if self.code.lookaheads[plan as usize].kind.narrow() => {
                self.look_ahead(dst, plan);
            }
            Op::Extract { .. }
            | Op::Lookahead { .. }
            | Op::ExtractNext { .. }
            | Op::ExtractVarbit { .. }
            | Op::ExtractNextVarbit { .. }
            | Op::ExtractAt { .. } => self.rare_parse(),
            Op::PacketLength { dst } => {
                let len = self.frame_len();
                self.set(dst, len);
            }
            Op::DropPort { dst } => {
                let port = self.drop_port();
                self.set(dst, port);
            }
            Op::Emit { header } => self.emit(header),
            Op::Apply { .. } | Op::ApplyIndirect { .. } => {
                self.apply();
                return false;
            }
            Op::RegisterRead { instance, index, dst } => self.register_read(instance, index, dst),
            Op::RegisterWrite { instance, index, a } => self.register_write(instance, index, a),
            Op::Count { instance, index } => self.count(instance, index),
            Op::CountLess { .. }
            | Op::DirectCount { .. }
            | Op::DirectCountLess { .. }
            | Op::CloneWith { .. }
            | Op::ResubmitWith { .. }
            | Op::Clone { .. }
            | Op::Resubmit { .. }
            | Op::Recirculate { .. }
            | Op::Truncate { .. }
            | Op::Digest { .. }
            | Op::Log { .. }
            | Op::EmitAt { .. }
            | Op::Trace { .. } => {
                self.rare();
            }
            Op::Meter { instance, index, dst } => self.meter(instance, index, dst),
            Op::DirectRegisterWrite { .. } => {
                self.rare();
            }
            Op::DirectRegisterRead { dst, words, .. } => {
                self.rare();
                self.forget(dst, words.into());
            }
            Op::DirectColor { dst }
            | Op::DirectMeter { dst, .. }
            | Op::DirectMeterGiven { dst, .. }
            | Op::MeterGiven { dst, .. }
            | Op::Random { dst, .. }
            | Op::Smooth { dst, .. }
            | Op::DirectSmooth { dst, .. }
            | Op::Approximate { dst, .. } => {
                self.rare();
                self.forget(dst, 1);
            }
            Op::VerifyChecksum { plan } => {
                self.rare();
                self.forget(self.code.checksums[plan as usize].wrong, 1);
            }
            Op::UpdateChecksum { plan } => {
                self.rare();
                self.forget(self.code.checksums[plan as usize].value, 1);
            }
            Op::Wide { .. }
            | Op::SetValid { .. }
            | Op::SetValidAt { .. }
            | Op::CopyHeader { .. }
            | Op::CopyHeaderAt { .. }
            | Op::LoadAt { .. }
            | Op::StoreAt { .. }
            | Op::StackShift { .. }
            | Op::Hash { .. } => {
                self.rare();
                self.known.words.clear();
            }
            simple => self.arithmetic(simple),
        }
        true
    }

    fn arithmetic(&mut self, op: Op) {
        if let Some((dst, number)) = fold(op, |slot| self.constant(slot)) {
            let number = self.number(number);
            return self.set(dst, number);
        }
        use IntCC::{Equal, NotEqual, SignedLessThan, SignedLessThanOrEqual};
        use IntCC::{UnsignedLessThan, UnsignedLessThanOrEqual};
        let (dst, value) = match op {
            Op::Add { dst, a, b, w } => (dst, self.binary(a, b, w, |i, a, b| i.iadd(a, b))),
            Op::Sub { dst, a, b, w } => (dst, self.binary(a, b, w, |i, a, b| i.isub(a, b))),
            Op::Mul { dst, a, b, w } => (dst, self.binary(a, b, w, |i, a, b| i.imul(a, b))),
            Op::And { dst, a, b } => (dst, self.binary(a, b, 64, |i, a, b| i.band(a, b))),
            Op::Or { dst, a, b } => (dst, self.binary(a, b, 64, |i, a, b| i.bor(a, b))),
            Op::Xor { dst, a, b } => (dst, self.binary(a, b, 64, |i, a, b| i.bxor(a, b))),
            Op::Shl { dst, a, b, w } => {
                let value = self.binary(a, b, w, |i, a, b| i.ishl(a, b));
                (dst, self.unless_over(value, b))
            }
            Op::Shr { dst, a, b } => {
                let value = self.binary(a, b, 64, |i, a, b| i.ushr(a, b));
                (dst, self.unless_over(value, b))
            }
            Op::Eq { dst, a, b } => (dst, self.compared(Equal, a, b)),
            Op::Ne { dst, a, b } => (dst, self.compared(NotEqual, a, b)),
            Op::Lt { dst, a, b } => (dst, self.compared(UnsignedLessThan, a, b)),
            Op::Le { dst, a, b } => (dst, self.compared(UnsignedLessThanOrEqual, a, b)),
            Op::Slt { dst, a, b, w } => (dst, self.compared_signed(SignedLessThan, a, b, w)),
            Op::Sle { dst, a, b, w } => (dst, self.compared_signed(SignedLessThanOrEqual, a, b, w)),
            Op::Select { dst, c, a, b } => {
                let (c, a, b) = (self.get(c), self.get(a), self.get(b));
                (dst, self.b.ins().select(c, a, b))
            }
            Op::Not { dst, a } => {
                let a = self.get(a);
                (dst, self.b.ins().bxor_imm_u(a, 1))
            }
            Op::BitNot { dst, a, w } => {
                let a = self.get(a);
                let value = self.b.ins().bnot(a);
                (dst, self.cut(value, w))
            }
            Op::Neg { dst, a, w } => {
                let a = self.get(a);
                let value = self.b.ins().ineg(a);
                (dst, self.cut(value, w))
            }
            Op::Cut { dst, a, w } => {
                let a = self.get(a);
                (dst, self.cut(a, w))
            }
            Op::SignExtend { dst, a, from, w } => {
                let a = self.get(a);
                let value = self.signed(a, from);
                (dst, self.cut(value, w))
            }
            Op::Slice { dst, a, lo, w } => {
                let a = self.get(a);
                let value = self.b.ins().ushr_imm_u(a, i64::from(lo));
                (dst, self.cut(value, w))
            }
            Op::Concat { dst, a, b, lo } => {
                let (a, b) = (self.get(a), self.get(b));
                let high = self.b.ins().ishl_imm_u(a, i64::from(lo));
                (dst, self.b.ins().bor(high, b))
            }
            Op::Insert { dst, a, lo, w } => {
                let mask = ones(w.into()) << lo;
                let (old, a) = (self.get(dst), self.get(a));
                let rest = self.b.ins().band_imm_u(old, !mask as i64);
                let moved = self.b.ins().ishl_imm_u(a, i64::from(lo));
                let new = self.b.ins().band_imm_u(moved, mask as i64);
                (dst, self.b.ins().bor(rest, new))
            }
            _ => {
                self.rare();
                return self.known.words.clear();
            }
        };
        self.set(dst, value);
    }

    fn binary(
        &mut self,
        a: Slot,
        b: Slot,
        w: u8,
        make: impl FnOnce(cranelift_frontend::FuncInstBuilder<'_, '_>, Value, Value) -> Value,
    ) -> Value {
        let (a, b) = (self.get(a), self.get(b));
        let value = make(self.b.ins(), a, b);
        self.cut(value, w)
    }

    /// The value, or 0 if `b` is 64 or more.
    fn unless_over(&mut self, value: Value, b: Slot) -> Value {
        let (b, zero) = (self.get(b), self.number(0));
        let within = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, b, 64);
        self.b.ins().select(within, value, zero)
    }

    fn compared(&mut self, how: IntCC, a: Slot, b: Slot) -> Value {
        let (a, b) = (self.get(a), self.get(b));
        let condition = self.b.ins().icmp(how, a, b);
        self.truth(condition)
    }

    fn compared_signed(&mut self, how: IntCC, a: Slot, b: Slot, w: u8) -> Value {
        let (a, b) = (self.get(a), self.get(b));
        let (a, b) = (self.signed(a, w), self.signed(b, w));
        let condition = self.b.ins().icmp(how, a, b);
        self.truth(condition)
    }

    fn jump_compared(&mut self, how: IntCC, a: Slot, b: Slot, to: u32) -> bool {
        let next = self.at + 1;
        let (left, right) = (self.constant(a), self.constant(b));
        if let (Some(left), Some(right)) = (left, right) {
            self.jump(if holds(how, left, right) { to } else { next });
            return false;
        }
        let (x, y) = (self.get(a), self.get(b));
        let condition = self.b.ins().icmp(how, x, y);
        // On the path on which they are equal, both are the same number.
        let same = match (left, right) {
            (Some(number), None) => Some((y, number)),
            (None, Some(number)) => Some((x, number)),
            _ => None,
        };
        let then = self.block_if(to, same.filter(|_| how == IntCC::Equal));
        let next = self.block_if(next, same.filter(|_| how == IntCC::NotEqual));
        self.b.ins().brif(condition, then, &[], next, &[]);
        false
    }

    fn leave_if(&mut self, condition: Value, exit: Exit) {
        let (leave, next) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(leave);
        self.b.ins().brif(condition, leave, &[], next, &[]);
        self.b.switch_to_block(leave);
        self.leave(exit);
        self.b.switch_to_block(next);
    }

    /// Counts a pass of a loop.
    fn burn(&mut self) {
        let fuel = self.b.use_var(self.fuel);
        let left = self.b.ins().iadd_imm_s(fuel, -1);
        self.b.def_var(self.fuel, left);
        let out = self.b.ins().icmp_imm_u(IntCC::Equal, left, 0);
        self.leave_if(out, Exit::LoopLimit);
    }

    fn meter(&mut self, instance: u16, index: Slot, dst: Slot) {
        let callee = self.number(call::meter as *const () as usize as u64);
        let (instance, index) = (self.b.ins().iconst(types::I32, i64::from(instance)), self.get(index));
        let args = [self.cx, self.runtime, instance, index];
        let call = self.b.ins().call_indirect(self.metering, callee, &args);
        let color = self.b.inst_results(call)[0];
        self.set(dst, color);
    }

    fn count(&mut self, instance: u16, index: Slot) {
        let callee = self.number(call::count as *const () as usize as u64);
        let (instance, index) = (self.b.ins().iconst(types::I32, i64::from(instance)), self.get(index));
        self.b.ins().call_indirect(self.metering, callee, &[self.cx, self.runtime, instance, index]);
    }
}
