//! Calls of externs.

use super::expr::{argument, hex};
use super::primitive::primitive;
use super::{Result, Writer};
use crate::names::{ALGORITHMS, STANDARD};
use num_bigint::BigUint;
use p4rack_p4::ir::{Expr, ExternCall, HashAlgorithm, InstanceId, LValue, Ty};
use serde_json::{Value, json};

impl Writer {
    /// Appends what a call of an extern becomes.
    pub(super) fn external(&mut self, call: &ExternCall, out: &mut Vec<Value>) -> Result<()> {
        match call {
            ExternCall::CounterCount { instance, index, less: None } => {
                let parameters = vec![self.object("counter_array", *instance), self.param(index)?];
                out.push(primitive("count", parameters));
            }
            // It counts whenever its table is applied.
            ExternCall::DirectCount { less: None, .. } => {}
            ExternCall::DirectMeterRead { instance, given: None, less: None, dst } => {
                let ty = self.target_ty(dst);
                let colour = match self.colours.get(instance) {
                    Some(colour) => *colour,
                    None => {
                        let colour = self.temp("colour_", ty);
                        self.colours.insert(*instance, colour);
                        colour
                    }
                };
                let span = self.at;
                let copy =
                    p4rack_p4::ir::Stmt::Assign { target: dst.clone(), value: Expr::Var(colour), span };
                return self.statement(&copy, out);
            }
            ExternCall::MeterExecute { instance, index, given: None, less: None, dst } => {
                let (meter, index) = (self.object("meter_array", *instance), self.param(index)?);
                return self.write_field(dst, out, |to| primitive("execute_meter", vec![meter, index, to]));
            }
            ExternCall::RegisterRead { instance, index, dst } => {
                let (register, index) = (self.object("register_array", *instance), self.param(index)?);
                return self
                    .write_field(dst, out, |to| primitive("register_read", vec![to, register, index]));
            }
            ExternCall::RegisterWrite { instance, index, value } => {
                let register = self.object("register_array", *instance);
                let parameters = vec![register, self.param(index)?, self.param(value)?];
                out.push(primitive("register_write", parameters));
            }
            ExternCall::Hash { object: None, algorithm, dst, data, bounds: Some((base, max)), .. } => {
                return self.hash(*algorithm, dst, data, (base, max), out);
            }
            ExternCall::Random { dst, lo, hi, .. } => {
                let bounds = [self.param(lo)?, self.param(hi)?];
                return self.write_field(dst, out, |to| {
                    let [lo, hi] = bounds;
                    primitive("modify_field_rng_uniform", vec![to, lo, hi])
                });
            }
            ExternCall::Digest { receiver, digest, data } => {
                let receiver = self.param(receiver)?;
                let list = self.learn_list(*digest, data, out)?;
                out.push(primitive("generate_digest", vec![receiver, list]));
            }
            ExternCall::Drop => {
                out.push(primitive("mark_to_drop", vec![json!({ "type": "header", "value": STANDARD })]));
            }
            ExternCall::Clone { egress, session, field_list } => {
                let op = if *egress { "clone_egress_pkt_to_egress" } else { "clone_ingress_pkt_to_egress" };
                let parameters = vec![self.param(session)?, self.list(*field_list)];
                out.push(primitive(op, parameters));
            }
            ExternCall::Resubmit { field_list } => {
                out.push(primitive("resubmit", vec![self.list(Some(*field_list))]));
            }
            ExternCall::Recirculate { field_list } => {
                out.push(primitive("recirculate", vec![self.list(Some(*field_list))]));
            }
            ExternCall::Truncate { bytes } => {
                let bytes = self.param(bytes)?;
                out.push(primitive("truncate", vec![bytes]));
            }
            ExternCall::LogMsg { format, args } => {
                let mut values = Vec::new();
                for (arg, _) in args {
                    values.push(self.param(arg)?);
                }
                let format = json!({ "type": "string", "value": format });
                let values = json!({ "type": "parameters_vector", "value": values });
                out.push(primitive("log_msg", vec![format, values]));
            }
            ExternCall::Assert { cond, assume, span } => {
                self.at = *span;
                // BMv2 loads a condition only as a number.
                let cond = argument(self.data(cond)?);
                out.push(primitive(if *assume { "assume" } else { "assert" }, vec![cond]));
            }
            ExternCall::VerifyChecksum { .. } | ExternCall::UpdateChecksum { .. } => {
                return self.refuse("checksum outside of its control");
            }
            ExternCall::Foreign { name, .. } => return self.refuse(format!("extern `{name}`")),
            _ => return self.refuse("such extern"),
        }
        Ok(())
    }

    fn object(&self, ty: &str, instance: InstanceId) -> Value {
        json!({ "type": ty, "value": self.program.instances[instance.0 as usize].named.name })
    }

    /// The id of a field list; one without an index is the empty one.
    fn list(&self, index: Option<u32>) -> Value {
        let known = |index: u32| self.program.field_lists.iter().position(|(number, _)| *number == index);
        let id = index.and_then(known).and_then(|at| self.lists.get(at).copied());
        hex(&BigUint::from(id.unwrap_or(super::objects::EMPTY_LIST)), 32)
    }

    fn hash(
        &mut self,
        algorithm: HashAlgorithm,
        dst: &LValue,
        data: &[(Expr, Ty)],
        bounds: (&Expr, &Expr),
        out: &mut Vec<Value>,
    ) -> Result<()> {
        let mut inputs = Vec::new();
        for (value, ty) in data {
            inputs.push((self.plain(value, out)?, *ty));
        }
        let name = self.calculation(algorithm, &inputs, false)?;
        let (base, max) = (self.param(bounds.0)?, self.param(bounds.1)?);
        let calculation = json!({ "type": "calculation", "value": name });
        self.write_field(dst, out, |to| {
            primitive("modify_field_with_hash_based_offset", vec![to, base, calculation, max])
        })
    }

    /// A new calculation over fields and constants. Returns its name.
    pub(super) fn calculation(
        &mut self,
        algorithm: HashAlgorithm,
        data: &[(Expr, Ty)],
        payload: bool,
    ) -> Result<String> {
        let Some((_, algo)) = ALGORITHMS.iter().find(|(known, _)| *known == algorithm) else {
            return self.refuse("such hash algorithm");
        };
        let mut input = Vec::new();
        for (value, ty) in data.iter().filter(|(_, ty)| ty.width() > 0) {
            let mut part = match value {
                Expr::Var(_) | Expr::Const { .. } => self.param(value)?,
                _ => return self.refuse("data of a checksum that is neither a field nor a constant"),
            };
            if part["type"] == "hexstr" {
                part["bitwidth"] = json!(ty.width());
            }
            input.push(part);
        }
        if payload {
            input.push(json!({ "type": "payload", "value": null }));
        }
        let name = self.name("calc_");
        let id = self.calculations.len();
        self.calculations.push(json!({ "name": name, "id": id, "algo": algo, "input": input }));
        Ok(name)
    }

    fn learn_list(&mut self, digest: u32, data: &[(Expr, Ty)], out: &mut Vec<Value>) -> Result<Value> {
        let mut elements = Vec::new();
        for (value, ty) in data {
            // A list has fields only, and those that the controller's message is made of keep their width.
            let field = match value {
                Expr::Var(var) if !self.params.contains_key(var) => value.clone(),
                _ => {
                    let temp = self.temp("digest_", *ty);
                    let span = self.at;
                    let target = LValue::Var(temp);
                    let copy = p4rack_p4::ir::Stmt::Assign { target, value: value.clone(), span };
                    self.statement(&copy, out)?;
                    Expr::Var(temp)
                }
            };
            elements.push(self.param(&field)?);
        }
        let id = self.learn_lists.len() + 1;
        let name = &self.program.digests[digest as usize].named.name;
        self.learn_lists.push(json!({ "id": id, "name": name, "elements": elements }));
        Ok(hex(&BigUint::from(id), 32))
    }
}
