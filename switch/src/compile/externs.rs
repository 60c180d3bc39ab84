//! Translates calls of externs.

use super::arch;
use super::builder::{Builder, kind};
use crate::code::ops::*;
use crate::code::plans::*;
use crate::error::CompileError;
use p4rack_p4::ir::{
    Expr, ExternCall, HashAlgorithm, Instance, InstanceId, InstanceKind, Intrinsic, LValue, Table, TableId,
    Ty,
};

type Result<T> = std::result::Result<T, CompileError>;

impl Builder<'_> {
    pub(super) fn extern_call(&mut self, call: &ExternCall) -> Result<()> {
        if let Some(name) = self.arch.trace_name(call) {
            self.mark(Mark::Extern(name));
        }
        match call {
            ExternCall::CounterCount { instance, index, less } => {
                self.object(*instance, "a counter", |kind| matches!(kind, InstanceKind::Counter { .. }))?;
                let index = self.narrow(index, "a counter's index")?;
                let instance = instance.0 as u16;
                match less {
                    None => self.emit(Op::Count { instance, index }),
                    Some(less) => {
                        let less = self.narrow(less, "a number of bytes")?;
                        self.emit(Op::CountLess { instance, index, less });
                    }
                }
                self.mark(Mark::Count { instance, index });
            }
            // A direct counter that counts whenever its table is applied needs no call.
            ExternCall::DirectCount { instance, less } => match (self.counts_on_call(*instance)?, less) {
                (None, _) => {}
                (Some(table), None) => self.emit(Op::DirectCount { table }),
                (Some(table), Some(less)) => {
                    let less = self.narrow(less, "a number of bytes")?;
                    self.emit(Op::DirectCountLess { table, less });
                }
            },
            ExternCall::DirectMeterRead { instance, given, less, dst } => {
                let called = self.counts_on_call(*instance)?;
                let told = self.told(given.as_ref(), less.as_ref())?;
                self.result(dst, |builder, dst| {
                    builder.emit(match (called, told) {
                        (Some(table), None) => Op::DirectMeter { table, dst },
                        (Some(table), Some((given, less))) => {
                            Op::DirectMeterGiven { table, given, less, dst }
                        }
                        (None, _) => Op::DirectColor { dst },
                    });
                    builder.mark(Mark::Meter { at: None, color: dst });
                })?;
            }
            ExternCall::MeterExecute { instance, index, given, less, dst } => {
                self.object(*instance, "a meter", |kind| matches!(kind, InstanceKind::Meter { .. }))?;
                let index = self.narrow(index, "a meter's index")?;
                let told = self.told(given.as_ref(), less.as_ref())?;
                let instance = instance.0 as u16;
                let traced = self.traced_index(index)?;
                self.result(dst, |builder, dst| {
                    builder.emit(match told {
                        None => Op::Meter { instance, index, dst },
                        Some((given, less)) => Op::MeterGiven { instance, index, given, less, dst },
                    });
                    builder.mark(Mark::Meter { at: Some((instance, traced)), color: dst });
                })?;
            }
            ExternCall::RegisterRead { instance, index, dst } => {
                let value = self.lvalue_kind(dst)?;
                self.register(*instance, value)?;
                let index = self.narrow(index, "a register's index")?;
                let instance = instance.0 as u16;
                let (traced, words) = (self.traced_index(index)?, value.words() as u16);
                self.result(dst, |builder, dst| {
                    builder.emit(Op::RegisterRead { instance, index, dst });
                    builder.mark(Mark::Register { instance, index: traced, value: dst, words, write: false });
                })?;
            }
            ExternCall::RegisterWrite { instance, index, value } => {
                let kind = self.kind_of(value)?;
                self.register(*instance, kind)?;
                let index = self.narrow(index, "a register's index")?;
                let a = self.expr(value, None)?;
                let (instance, words) = (instance.0 as u16, kind.words() as u16);
                self.mark(Mark::Register { instance, index, value: a, words, write: true });
                self.emit(Op::RegisterWrite { instance, index, a });
            }
            ExternCall::Smooth { instance, index: Some(index), value, dst } => {
                self.object(*instance, "a smoother", |kind| matches!(kind, InstanceKind::Smoother { .. }))?;
                let index = self.narrow(index, "a filter's index")?;
                let a = self.narrow(value, "a filtered value")?;
                let instance = instance.0 as u16;
                self.result(dst, |builder, dst| builder.emit(Op::Smooth { instance, index, a, dst }))?;
            }
            ExternCall::Smooth { instance, index: None, value, dst } => {
                let table = match self.program.instances.get(instance.0 as usize) {
                    Some(Instance { kind: InstanceKind::DirectSmoother { table, .. }, named }) => {
                        self.owner(&named.name, *table)?
                    }
                    _ => return Err(self.malformed(format!("extern object {} is no smoother", instance.0))),
                };
                let a = self.narrow(value, "a filtered value")?;
                self.result(dst, |builder, dst| builder.emit(Op::DirectSmooth { table, a, dst }))?;
            }
            ExternCall::DirectRegisterRead { instance, dst } => {
                let (table, words) = (self.table_of(*instance)?, self.lvalue_kind(dst)?.words() as u16);
                self.result(dst, |builder, dst| builder.emit(Op::DirectRegisterRead { table, dst, words }))?;
            }
            ExternCall::DirectRegisterWrite { instance, value } => {
                let (table, words) = (self.table_of(*instance)?, self.kind_of(value)?.words() as u16);
                let a = self.expr(value, None)?;
                self.emit(Op::DirectRegisterWrite { table, a, words });
            }
            ExternCall::Approximate { curve, value, width, dst } => {
                let a = self.narrow(value, "an approximated function's value")?;
                let plan = self.code.curves.len() as u32;
                self.code.curves.push(((**curve).clone(), *width));
                self.result(dst, |builder, dst| builder.emit(Op::Approximate { plan, a, dst }))?;
            }
            ExternCall::Hash { object, algorithm, dst, dst_ty, data, bounds } => {
                let object = object.map(|object| object.0 as u16);
                let bounds = match bounds {
                    Some((base, max)) => {
                        Some((self.narrow(base, "a hash's base")?, self.narrow(max, "a hash's max")?))
                    }
                    None => None,
                };
                let data = self.data(data)?;
                let (algorithm, kind) = (*algorithm, kind(*dst_ty));
                self.result(dst, |builder, dst| {
                    builder.code.hashes.push(HashPlan {
                        object,
                        hasher: algorithm.into(),
                        data,
                        dst,
                        kind,
                        bounds,
                    });
                    builder.emit(Op::Hash { plan: builder.code.hashes.len() as u32 - 1 });
                    let (what, words) = (hash_name(algorithm), kind.words() as u16);
                    builder.mark(Mark::Number { what, value: dst, words });
                })?;
            }
            ExternCall::Random { dst, dst_ty, lo, hi } => {
                if dst_ty.width() > 64 {
                    return Err(self.unsupported("random of more than 64 bits", "use bit<64> or less"));
                }
                let lo = self.narrow(lo, "a bound of random")?;
                let hi = self.narrow(hi, "a bound of random")?;
                self.result(dst, |builder, dst| {
                    builder.emit(Op::Random { dst, lo, hi });
                    builder.mark(Mark::Number { what: "random", value: dst, words: 1 });
                })?;
            }
            ExternCall::Digest { digest, data, .. } => {
                let data = self.data(data)?;
                self.code.digests.push(DigestPlan { digest: *digest, data });
                self.emit(Op::Digest { plan: self.code.digests.len() as u32 - 1 });
            }
            ExternCall::Drop => arch::drop(self),
            ExternCall::Clone { egress, session, field_list } => {
                let session = self.narrow(session, "a clone session")?;
                let list = self.list(*field_list);
                self.emit(Op::Clone { egress: *egress, session, list });
            }
            ExternCall::CloneWith { session, header, .. } => {
                let session = self.narrow(session, "a clone session")?;
                let header = self.data(header)?;
                self.code.prefixes.push(PrefixPlan { session, header });
                self.emit(Op::CloneWith { plan: self.code.prefixes.len() as u32 - 1 });
            }
            ExternCall::ResubmitWith { header } => {
                let header = self.data(header)?;
                self.code.prefixes.push(PrefixPlan { session: 0, header });
                self.emit(Op::ResubmitWith { plan: self.code.prefixes.len() as u32 - 1 });
            }
            ExternCall::Resubmit { field_list } => {
                let list = self.list(Some(*field_list));
                self.emit(Op::Resubmit { list });
            }
            ExternCall::Recirculate { field_list } => {
                let list = self.list(Some(*field_list));
                self.emit(Op::Recirculate { list });
            }
            ExternCall::Truncate { bytes } => {
                let bytes = self.narrow(bytes, "a length")?;
                self.emit(Op::Truncate { bytes });
            }
            ExternCall::VerifyChecksum { cond, data, checksum, checksum_ty, algorithm, payload } => {
                let skip = self.label();
                self.branch(cond, false, skip)?;
                let data = self.data(data)?;
                let value = self.expr(checksum, None)?;
                let wrong = self.code.intrinsics[Intrinsic::ChecksumError];
                let (hasher, kind) = ((*algorithm).into(), kind(*checksum_ty));
                let (is_sum, payload) = (is_sum(*algorithm, &data, *payload), *payload);
                self.checksum(ChecksumPlan { hasher, data, payload, value, kind, wrong, is_sum }, false)?;
                self.bind(skip);
            }
            ExternCall::UpdateChecksum { cond, data, dst, dst_ty, algorithm, payload } => {
                let skip = self.label();
                self.branch(cond, false, skip)?;
                let data = self.data(data)?;
                let (hasher, kind) = ((*algorithm).into(), kind(*dst_ty));
                let (is_sum, payload) = (is_sum(*algorithm, &data, *payload), *payload);
                let (value, direct) = self.lvalue_slot(dst)?;
                self.checksum(ChecksumPlan { hasher, data, payload, value, kind, wrong: 0, is_sum }, true)?;
                if !direct {
                    self.store(dst, value)?;
                }
                self.bind(skip);
            }
            ExternCall::LogMsg { format, args } => {
                let args = self.data(args)?;
                self.code.logs.push(LogPlan { format: format.clone(), args });
                self.emit(Op::Log { plan: self.code.logs.len() as u32 - 1 });
            }
            ExternCall::Foreign { name, object, span, .. } => {
                return Err(CompileError::Foreign {
                    name: format!("`{name}`"),
                    object: object.clone(),
                    arch: self.program.arch.clone(),
                    span: *span,
                });
            }
            ExternCall::Assert { cond, .. } => {
                let fine = self.label();
                self.branch(cond, true, fine)?;
                self.emit(Op::AssertFailed);
                self.bind(fine);
            }
        }
        Ok(())
    }

    /// The index for a trace mark that follows the operation. It is copied, because the result may overwrite
    /// it.
    fn traced_index(&mut self, index: Slot) -> Result<Slot> {
        if !self.traced {
            return Ok(index);
        }
        let copy = self.temp(1)?;
        self.copy(copy, index, 1);
        Ok(copy)
    }

    fn unsupported(&self, what: &str, help: &str) -> CompileError {
        CompileError::Unsupported { object: self.program.name.clone(), what: what.into(), help: help.into() }
    }

    /// A slot in place of the lvalue, and whether it is the lvalue itself.
    fn lvalue_slot(&mut self, target: &LValue) -> Result<(Slot, bool)> {
        match self.direct(target)? {
            Some(slot) => Ok((slot, true)),
            None => {
                let words = self.lvalue_kind(target)?.words();
                Ok((self.temp(words)?, false))
            }
        }
    }

    fn result(&mut self, target: &LValue, write: impl FnOnce(&mut Self, Slot)) -> Result<()> {
        let (slot, direct) = self.lvalue_slot(target)?;
        let words = self.lvalue_kind(target)?.words();
        if words > 1 {
            // Results of one word leave the other words unchanged.
            self.emit(Op::Zero { dst: slot, n: words as u16 });
        }
        write(self, slot);
        if direct { Ok(()) } else { self.store(target, slot) }
    }

    fn data(&mut self, data: &[(Expr, Ty)]) -> Result<DataList> {
        let mut list = Vec::new();
        for (expr, ty) in data {
            list.push((self.expr(expr, None)?, kind(*ty)));
        }
        Ok(list)
    }

    fn list(&self, index: Option<u32>) -> u16 {
        let lists = &self.program.field_lists;
        index
            .and_then(|index| lists.iter().position(|(number, _)| *number == index))
            .map_or(NO_LIST, |position| position as u16)
    }

    /// Checks that an object has the kind that the call expects.
    fn object(&self, instance: InstanceId, what: &str, is: impl Fn(&InstanceKind) -> bool) -> Result<()> {
        match self.program.instances.get(instance.0 as usize) {
            Some(found) if is(&found.kind) => Ok(()),
            _ => Err(self.malformed(format!("extern object {} is not {what}", instance.0))),
        }
    }

    /// The table of a direct register.
    fn table_of(&self, instance: InstanceId) -> Result<u16> {
        match self.program.instances.get(instance.0 as usize) {
            Some(Instance { kind: InstanceKind::DirectRegister { table, .. }, named }) => {
                self.owner(&named.name, *table)
            }
            _ => Err(self.malformed(format!("extern object {} is not a direct register", instance.0))),
        }
    }

    /// The table of a direct object that counts where it is called.
    /// Colour and bytes given to a meter; `None` if it is given neither.
    fn told(&mut self, given: Option<&Expr>, less: Option<&Expr>) -> Result<Option<(Slot, Slot)>> {
        if given.is_none() && less.is_none() {
            return Ok(None);
        }
        let none = Expr::Const { value: 0u8.into(), ty: Ty::Bit(32) };
        let given = self.narrow(given.unwrap_or(&none), "a colour")?;
        let less = self.narrow(less.unwrap_or(&none), "a number of bytes")?;
        Ok(Some((given, less)))
    }

    fn counts_on_call(&self, instance: InstanceId) -> Result<Option<u16>> {
        match self.program.instances.get(instance.0 as usize) {
            Some(Instance {
                kind:
                    InstanceKind::DirectCounter { table, on_call: true, .. }
                    | InstanceKind::DirectMeter { table, on_call: true, .. },
                named,
            }) => self.owner(&named.name, *table).map(Some),
            _ => Ok(None),
        }
    }

    /// The table of a direct object. A call acts on the entry whose action makes it, so that has to be one of this
    /// table's.
    fn owner(&self, object: &str, table: Option<TableId>) -> Result<u16> {
        let refused = |what: &str, help: String| {
            let (object, what) = (object.to_owned(), what.to_owned());
            Err(CompileError::Unsupported { object, what, help })
        };
        let Some(table) = table else {
            let what = "a direct object that belongs to no table";
            return refused(what, "name it in the property of a table".into());
        };
        let name = self.program.tables.get(table.0 as usize).map_or("", |table| table.named.name.as_str());
        let Some(action) = self.action else {
            return refused("a call outside of an action", format!("call it in an action of table {name}"));
        };
        let lists = |table: &&Table| table.actions.iter().any(|listed| listed.action.0 as usize == action);
        match self.program.tables.iter().filter(lists).find(|other| other.named.name != name) {
            Some(other) => {
                let what = format!("a call from an action of table {}", other.named.name);
                refused(&what, format!("give table {name} an action of its own"))
            }
            None => Ok(table.0 as u16),
        }
    }

    fn register(&self, instance: InstanceId, value: ValueType) -> Result<()> {
        self.object(
            instance,
            "a register of this type",
            |found| matches!(found, InstanceKind::Register { ty, .. } if kind(*ty).words() == value.words()),
        )
    }

    fn checksum(&mut self, plan: ChecksumPlan, update: bool) -> Result<()> {
        if plan.kind.width > 64 {
            return Err(self.unsupported("a checksum of more than 64 bits", "use bit<64> or less"));
        }
        if plan.hasher.algorithm == HashAlgorithm::Random {
            return Err(self.unsupported("a random checksum", "use csum16 or a CRC"));
        }
        self.code.checksums.push(plan);
        let plan = self.code.checksums.len() as u32 - 1;
        self.emit(if update { Op::UpdateChecksum { plan } } else { Op::VerifyChecksum { plan } });
        Ok(())
    }
}

/// See [`ChecksumPlan::is_sum`].
fn is_sum(algorithm: HashAlgorithm, data: &DataList, payload: bool) -> bool {
    algorithm == HashAlgorithm::Csum16 && !payload && data.iter().all(|(_, kind)| kind.narrow())
}

/// Name of an algorithm as traces show it.
fn hash_name(algorithm: HashAlgorithm) -> &'static str {
    match algorithm {
        HashAlgorithm::Crc32 => "hash crc32",
        HashAlgorithm::Crc32Custom => "hash crc32_custom",
        HashAlgorithm::Crc16 => "hash crc16",
        HashAlgorithm::Crc16Custom => "hash crc16_custom",
        HashAlgorithm::Random => "hash random",
        HashAlgorithm::Identity => "hash identity",
        HashAlgorithm::Csum16 => "hash csum16",
        HashAlgorithm::Xor16 => "hash xor16",
        HashAlgorithm::Xor8 => "hash xor8",
        HashAlgorithm::Xor32 => "hash xor32",
        HashAlgorithm::Crc(_) => "hash crc",
    }
}
