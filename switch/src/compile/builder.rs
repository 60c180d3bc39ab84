//! State shared by the whole translation: layout of variables, labels, temporaries, constants.

use crate::arch::Arch;
use crate::code::ops::*;
use crate::code::plans::*;
use crate::error::CompileError;
use p4rack_p4::ir::{HeaderId, Intrinsic, IntrinsicVar, Program, Ty, VarId};
use p4rack_p4::shown;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum width of an integer, in bits.
const MAX_BITS: u32 = 2048;
/// Maximum length of a varbit, in bits.
const MAX_VARBIT: u32 = 16 * 1024;

/// The text of the program mentions the variable, in either half.
const MENTIONED: u8 = 4;

/// A position in the code that may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub u32);

/// A translation in progress.
pub(crate) struct Builder<'p> {
    pub program: &'p Program,
    pub arch: Arch,
    pub code: Code,
    /// First word of each variable.
    slots: Vec<Slot>,
    /// [`INGRESS`], [`EGRESS`] and [`MENTIONED`] bits of each variable.
    touched: Vec<u8>,
    /// Bits that a mention currently sets.
    pub half: u8,
    /// Whether parser errors can be raised here.
    pub in_parser: bool,
    /// Operations that look at a parser's error, and the pipelines of these parsers.
    pub error_checks: Vec<(usize, u32)>,
    /// The action that is translated; `None` within a block.
    pub action: Option<usize>,
    /// Whether the program records events.
    pub traced: bool,
    /// End labels of the enclosing inlined callees.
    pub scopes: Vec<Label>,
    /// End of the enclosing block; `None` within an action.
    pub exit: Option<Label>,
    /// End of the enclosing block for each application of a table.
    pub exits: Vec<Option<Label>>,
    /// End and head labels of the enclosing loops.
    pub loops: Vec<(Label, Label)>,
    /// The halves in which each table is applied.
    pub applied: Vec<u8>,
    labels: Vec<u32>,
    constants: BTreeMap<Vec<u64>, Slot>,
    constants_from: usize,
    temporaries_from: usize,
    temporary: usize,
    temporaries_to: usize,
}

/// The type of a value as the executor sees it.
pub(crate) fn kind(ty: Ty) -> ValueType {
    match ty {
        Ty::Bool => ValueType { width: 1, signed: false, varbit: false },
        Ty::Bit(width) => ValueType { width, signed: false, varbit: false },
        Ty::Int(width) => ValueType { width, signed: true, varbit: false },
        Ty::Varbit(width) => ValueType { width, signed: false, varbit: true },
    }
}

impl<'p> Builder<'p> {
    /// Lays out the variables: stacks first, then other headers, then everything else.
    pub fn new(program: &'p Program, arch: Arch) -> Result<Builder<'p>, CompileError> {
        let mut builder = Builder {
            program,
            arch,
            code: Code::default(),
            slots: vec![0; program.vars.len()],
            touched: vec![0; program.vars.len()],
            half: INGRESS,
            in_parser: false,
            error_checks: Vec::new(),
            action: None,
            traced: false,
            scopes: Vec::new(),
            exit: None,
            exits: Vec::new(),
            loops: Vec::new(),
            applied: vec![0; program.tables.len()],
            labels: Vec::new(),
            constants: BTreeMap::new(),
            constants_from: VARS_WORDS,
            temporaries_from: 0,
            temporary: 0,
            temporaries_to: 0,
        };
        let mut next = 1;
        for stack in &program.stacks {
            for &header in &stack.elements {
                builder.place_header(header, &mut next)?;
            }
        }
        for header in 0..program.headers.len() {
            builder.place_header(HeaderId(header as u32), &mut next)?;
        }
        for var in 0..program.vars.len() {
            builder.place(VarId(var as u32), &mut next)?;
        }
        builder.describe_headers()?;
        builder.place_intrinsics(&mut next)?;
        builder.code.variables = Builder::slot_of(next)?;
        builder.temporaries_from = next;
        builder.temporary = next;
        builder.temporaries_to = next;
        Ok(builder)
    }

    fn slot_of(word: usize) -> Result<Slot, CompileError> {
        Slot::try_from(word).map_err(|_| CompileError::TooBig {
            object: "program".into(),
            needed: word as u64,
            limit: VARS_WORDS as u64,
            unit: "words of variables",
        })
    }

    fn place(&mut self, var: VarId, next: &mut usize) -> Result<(), CompileError> {
        let index = var.0 as usize;
        if self.slots[index] != 0 {
            return Ok(());
        }
        let described = &self.program.vars[index];
        let kind = kind(described.ty);
        let limit = if kind.varbit { MAX_VARBIT } else { MAX_BITS };
        if kind.width > limit {
            return Err(CompileError::TooBig {
                object: described.name.clone(),
                needed: kind.width.into(),
                limit: limit.into(),
                unit: "bits",
            });
        }
        self.slots[index] = Builder::slot_of(*next)?;
        *next += kind.words();
        Builder::slot_of(*next)?;
        Ok(())
    }

    fn place_header(&mut self, header: HeaderId, next: &mut usize) -> Result<(), CompileError> {
        let described = self.program.headers.get(header.0 as usize).ok_or_else(|| {
            CompileError::Malformed { object: format!("header {}", header.0), what: "is not declared".into() }
        })?;
        if self.slots.get(described.valid.0 as usize).is_some_and(|&slot| slot != 0) {
            return Ok(());
        }
        for var in std::iter::once(described.valid).chain(described.fields.iter().map(|field| field.var)) {
            if var.0 as usize >= self.slots.len() {
                return Err(CompileError::Malformed {
                    object: described.name.clone(),
                    what: format!("variable {} is not declared", var.0),
                });
            }
            self.place(var, next)?;
        }
        Ok(())
    }

    fn describe_headers(&mut self) -> Result<(), CompileError> {
        let program = self.program;
        for header in &program.headers {
            let valid = self.slots[header.valid.0 as usize];
            let mut words = 1;
            let mut offset = 0;
            let mut has_varbit = false;
            let mut fields = Vec::new();
            for field in &header.fields {
                let kind = kind(program.vars[field.var.0 as usize].ty);
                let slot = self.slots[field.var.0 as usize];
                if slot as usize != valid as usize + words {
                    return Err(CompileError::Malformed {
                        object: format!("{}.{}", header.name, field.name),
                        what: "shares its variable with another header".into(),
                    });
                }
                fields.push(FieldPlan { slot, kind, offset });
                words += kind.words();
                has_varbit |= kind.varbit;
                offset += if kind.varbit { 0 } else { kind.width };
            }
            if offset % 8 != 0 {
                return Err(CompileError::Unsupported {
                    object: header.name.clone(),
                    what: format!("a header of {offset} bits"),
                    help: "pad it to whole bytes".into(),
                });
            }
            let siblings = header
                .union_siblings
                .iter()
                .filter_map(|sibling| program.headers.get(sibling.0 as usize))
                .map(|sibling| self.slots[sibling.valid.0 as usize])
                .collect();
            let words = Builder::slot_of(words)?;
            let narrow = fields.iter().all(|field| field.kind.narrow() && field.kind.width > 0);
            self.code.headers.push(HeaderPlan {
                valid,
                words,
                siblings,
                fields,
                fixed_bits: offset,
                has_varbit,
                narrow,
            });
        }
        for stack in &program.stacks {
            let elements: Vec<u16> = stack.elements.iter().map(|header| header.0 as u16).collect();
            let next = self.slots[stack.next.0 as usize];
            let first = elements.first().map(|&header| &self.code.headers[header as usize]);
            let apart = elements.iter().enumerate().any(|(index, &header)| {
                first.is_some_and(|first| {
                    let here = &self.code.headers[header as usize];
                    here.words != first.words
                        || here.valid as usize != first.valid as usize + index * first.words as usize
                })
            });
            if apart {
                return Err(CompileError::Malformed {
                    object: stack.name.clone(),
                    what: "has elements of different types".into(),
                });
            }
            self.code.stacks.push(StackPlan { elements, next });
        }
        Ok(())
    }

    fn place_intrinsics(&mut self, next: &mut usize) -> Result<(), CompileError> {
        let program = self.program;
        for pipeline in 0..program.pipelines.len().max(1) as u32 {
            let mut intrinsics = Intrinsics::default();
            for (role, slot) in Intrinsic::ALL.into_iter().zip(&mut intrinsics.0) {
                let own = |field: &&IntrinsicVar| (field.pipeline, field.role) == (pipeline, role);
                match program.intrinsics.iter().find(own) {
                    Some(field) => {
                        *slot = self.slots[field.var.0 as usize];
                        // The switch itself writes them before the queue.
                        self.touched[field.var.0 as usize] |= INGRESS;
                    }
                    None => {
                        *slot = Builder::slot_of(*next)?;
                        *next += 1;
                    }
                }
            }
            self.code.pipelines.push(intrinsics);
        }
        self.code.intrinsics = self.code.pipelines[0];
        Ok(())
    }

    /// First word of a variable, which is marked as mentioned.
    pub fn var(&mut self, var: VarId) -> Result<Slot, CompileError> {
        let index = var.0 as usize;
        match self.slots.get(index) {
            Some(&slot) => {
                self.touched[index] |= self.half | MENTIONED;
                Ok(slot)
            }
            None => Err(self.malformed(format!("variable {} is not declared", var.0))),
        }
    }

    /// The type of a variable.
    pub fn var_ty(&self, var: VarId) -> Result<Ty, CompileError> {
        self.program
            .vars
            .get(var.0 as usize)
            .map(|var| var.ty)
            .ok_or_else(|| self.malformed(format!("variable {} is not declared", var.0)))
    }

    /// Whether the program mentions a field that it exchanges with the switch.
    pub fn mentions(&self, pipeline: u32, role: Intrinsic) -> bool {
        self.program.intrinsics.iter().any(|field| {
            (field.pipeline, field.role) == (pipeline, role)
                && self.touched[field.var.0 as usize] & MENTIONED != 0
        })
    }

    /// Marks all variables of a header as mentioned.
    pub fn touch_header(&mut self, header: HeaderId) -> Result<(), CompileError> {
        let program = self.program;
        let described = program
            .headers
            .get(header.0 as usize)
            .ok_or_else(|| self.malformed(format!("header {} is not declared", header.0)))?;
        self.var(described.valid)?;
        for field in &described.fields {
            self.var(field.var)?;
        }
        for sibling in &described.union_siblings {
            if let Some(sibling) = program.headers.get(sibling.0 as usize) {
                self.var(sibling.valid)?;
            }
        }
        Ok(())
    }

    /// An error without an object of the program.
    pub fn malformed(&self, what: String) -> CompileError {
        CompileError::Malformed { object: self.program.name.clone(), what }
    }

    /// Emits a trace mark, in a traced program.
    pub fn mark(&mut self, mark: Mark) {
        if self.traced {
            self.code.marks.push(mark);
            self.emit(Op::Trace { mark: self.code.marks.len() as u32 - 1 });
        }
    }

    /// Starts an entry. `begins` says whether packets begin with it.
    pub fn begin(&mut self, half: u8, begins: bool) {
        self.half = half;
        let (start, parsed) = (self.here(), self.here());
        self.code.entries.push(Entry { half, start, parsed, begins, ..Entry::default() });
    }

    /// Ends the entry.
    pub fn end(&mut self) {
        self.emit(Op::End);
    }

    /// Appends an operation.
    pub fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
    }

    /// Position of the next operation.
    pub fn here(&self) -> u32 {
        self.code.ops.len() as u32
    }

    /// A label to be bound later.
    pub fn label(&mut self) -> Label {
        self.labels.push(u32::MAX);
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds a label to the current position.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.here();
    }

    /// Emits a jump to a label.
    pub fn jump(&mut self, label: Label) {
        self.emit(Op::Jump { to: label.0 });
    }

    /// Frees all temporaries; none is alive between statements.
    pub fn release(&mut self) {
        self.temporary = self.temporaries_from;
    }

    /// Allocates words for an intermediate value.
    pub fn temp(&mut self, words: usize) -> Result<Slot, CompileError> {
        let slot = Builder::slot_of(self.temporary)?;
        self.temporary += words.max(1);
        self.temporaries_to = self.temporaries_to.max(self.temporary);
        Builder::slot_of(self.temporary)?;
        Ok(slot)
    }

    /// A constant with this many words.
    pub fn constant(&mut self, words: Vec<u64>) -> Result<Slot, CompileError> {
        if let Some(&slot) = self.constants.get(&words) {
            return Ok(slot);
        }
        self.constants_from = self.constants_from.saturating_sub(words.len());
        let slot = Builder::slot_of(self.constants_from)?;
        for (index, &word) in words.iter().enumerate() {
            self.code.constants.push((slot + index as Slot, word));
        }
        self.constants.insert(words, slot);
        Ok(slot)
    }

    /// A one-word constant.
    pub fn number(&mut self, value: u64) -> Result<Slot, CompileError> {
        self.constant(vec![value])
    }

    /// Emits a copy of words.
    pub fn copy(&mut self, dst: Slot, a: Slot, words: usize) {
        if dst == a {
        } else if words == 1 {
            self.emit(Op::Mov { dst, a });
        } else {
            self.emit(Op::MovN { dst, a, n: words as u16 });
        }
    }

    /// Resolves labels to positions and determines which variables travel through the queue.
    pub fn finish(mut self) -> Result<Code, CompileError> {
        if self.temporaries_to.next_multiple_of(RUN) > self.constants_from {
            return Err(CompileError::TooBig {
                object: self.program.name.clone(),
                needed: (self.temporaries_to + VARS_WORDS - self.constants_from) as u64,
                limit: VARS_WORDS as u64,
                unit: "words of variables, temporaries and constants",
            });
        }
        for op in &mut self.code.ops {
            if let Some(to) = op.target_mut() {
                *to = self.labels[*to as usize];
            }
        }
        for (apply, exit) in self.code.applies.iter_mut().zip(&self.exits) {
            apply.exit = exit.map_or(0, |label| self.labels[label.0 as usize]);
        }
        // Field lists are read after egress too, and a clone of egress carries all headers.
        self.half = INGRESS | EGRESS;
        let program = self.program;
        if self.code.ops.iter().any(|op| matches!(op, Op::Clone { egress: true, .. })) {
            for header in 0..program.headers.len() {
                self.touch_header(HeaderId(header as u32))?;
            }
            for stack in &program.stacks {
                self.var(stack.next)?;
            }
        }
        for (_, vars) in &program.field_lists {
            let mut spans = Vec::new();
            for &var in vars {
                let slot = self.var(var)?;
                spans.push((slot, kind(self.var_ty(var)?).words() as u16));
            }
            self.code.lists.push(spans);
        }
        self.save();
        self.clear();
        self.watch();
        Ok(self.code)
    }

    fn clear(&mut self) {
        let (fields, pipelines) = (self.arch.fields(), self.code.pipelines.clone());
        let slots = |roles: &[Intrinsic]| -> Vec<Slot> {
            pipelines.iter().flat_map(|intrinsics| roles.iter().map(|role| intrinsics[*role])).collect()
        };
        let mut read = vec![false; self.code.variables as usize];
        for slot in slots(fields.implied) {
            read[slot as usize] = true;
        }
        for (index, _) in self.touched.iter().enumerate().filter(|(_, touched)| **touched & MENTIONED != 0) {
            let slot = self.slots[index] as usize;
            read[slot..slot + kind(self.program.vars[index].ty).words()].fill(true);
        }
        self.code.results = fields.read.map(slots);
        self.code.carries = fields.travel;
        let written = slots(fields.written);
        for (slot, _) in read.iter().enumerate().filter(|(_, read)| **read) {
            if !written.contains(&(slot as Slot)) {
                self.code.words_to_clear.push(slot as Slot);
            }
            let run = (slot - slot % RUN) as Slot;
            if self.code.to_clear.last() != Some(&run) {
                self.code.to_clear.push(run);
            }
        }
        let touched = |var: &VarId| self.touched.get(var.0 as usize).is_some_and(|by| by & EGRESS != 0);
        // A trace shows where and how each packet leaves.
        self.code.late.looks = self.traced || self.program.intrinsics.iter().any(|field| touched(&field.var));
        let looked_at = |slots: &[Slot]| {
            let looks =
                |(index, touched): (usize, &u8)| touched & EGRESS != 0 && slots.contains(&self.slots[index]);
            self.touched.iter().enumerate().any(looks)
        };
        let looks_at_queue = looked_at(&slots(fields.queue));
        self.code.late.looks_at_times = self.traced || looks_at_queue || looked_at(&slots(fields.times));
        self.code.late.is_early &= !looks_at_queue;
    }

    /// Lists the variables whose changes a trace shows: headers, metadata and the program's own variables.
    fn watch(&mut self) {
        if !self.traced {
            return;
        }
        // The trace shows an action's arguments with the table that found it.
        let args: BTreeSet<VarId> =
            self.program.actions.iter().flat_map(|action| &action.params).map(|param| param.var).collect();
        for (index, (var, &slot)) in (0..).zip(self.program.vars.iter().zip(&self.slots)) {
            // Names with a `$` are temporaries of this translation.
            let name = match var.name.strip_suffix(".$valid$") {
                Some(header) => format!("{header}.isValid()"),
                None => var.name.clone(),
            };
            if !name.contains('$') && !args.contains(&VarId(index)) {
                let format = shown::variable(&name, var.ty);
                self.code.watched.push(Watched { slot, kind: kind(var.ty), name, format });
            }
        }
    }

    fn save(&mut self) {
        if !self.arch.fields().travel {
            return;
        }
        let mut saved = vec![false; self.code.variables as usize];
        for (index, &touched) in self.touched.iter().enumerate() {
            if touched & (INGRESS | EGRESS) == INGRESS | EGRESS {
                let slot = self.slots[index] as usize;
                saved[slot..slot + kind(self.program.vars[index].ty).words()].fill(true);
            }
        }
        let mut is_header = vec![false; self.code.variables as usize];
        for header in &self.code.headers {
            is_header[header.valid as usize..][..header.words as usize].fill(true);
        }
        for stack in &self.code.stacks {
            is_header[stack.next as usize] = true;
        }
        for (slot, _) in saved.iter().enumerate().filter(|(_, saved)| **saved) {
            match self.code.saved.last_mut() {
                Some((first, count)) if *first as usize + *count as usize == slot => *count += 1,
                _ => self.code.saved.push((slot as Slot, 1)),
            }
            self.code.saved_is_header.push(is_header[slot]);
        }
        self.code.saved_words = self.code.saved_is_header.len();
    }
}
