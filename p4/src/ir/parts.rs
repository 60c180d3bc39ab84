//! Parts of externs' calls.

use super::{Expr, ExternCall, InstanceId, LValue};

/// Roles of a call's parts.
#[derive(Debug)]
pub struct Parts<'c> {
    /// Values that it takes.
    pub values: Vec<&'c Expr>,
    /// Places that it writes.
    pub targets: Vec<&'c LValue>,
    /// The object that it acts on.
    pub object: Option<InstanceId>,
}

impl ExternCall {
    /// Values, places and the object of the call.
    pub fn parts(&self) -> Parts<'_> {
        let mut values: Vec<&Expr> = Vec::new();
        let mut targets: Vec<&LValue> = Vec::new();
        let mut object = None;
        match self {
            ExternCall::CounterCount { instance, index, less } => {
                object = Some(*instance);
                values.push(index);
                values.extend(less);
            }
            ExternCall::DirectCount { instance, less } => {
                object = Some(*instance);
                values.extend(less);
            }
            ExternCall::DirectMeterRead { instance, given, less, dst } => {
                object = Some(*instance);
                values.extend(given);
                values.extend(less);
                targets.push(dst);
            }
            ExternCall::DirectRegisterRead { instance, dst } => {
                object = Some(*instance);
                targets.push(dst);
            }
            ExternCall::MeterExecute { instance, index, given, less, dst } => {
                object = Some(*instance);
                values.push(index);
                values.extend(given);
                values.extend(less);
                targets.push(dst);
            }
            ExternCall::RegisterRead { instance, index, dst } => {
                object = Some(*instance);
                values.push(index);
                targets.push(dst);
            }
            ExternCall::RegisterWrite { instance, index, value } => {
                object = Some(*instance);
                values.extend([index, value]);
            }
            ExternCall::DirectRegisterWrite { instance, value } => {
                object = Some(*instance);
                values.push(value);
            }
            ExternCall::Smooth { instance, index, value, dst } => {
                object = Some(*instance);
                values.extend(index);
                values.push(value);
                targets.push(dst);
            }
            ExternCall::Approximate { value, dst, .. } => {
                values.push(value);
                targets.push(dst);
            }
            ExternCall::Hash { dst, data, bounds, .. } => {
                values.extend(data.iter().map(|(value, _)| value));
                values.extend(bounds.iter().flat_map(|(base, max)| [base, max]));
                targets.push(dst);
            }
            ExternCall::Random { dst, lo, hi, .. } => {
                values.extend([lo, hi]);
                targets.push(dst);
            }
            ExternCall::Digest { receiver, data, .. } => {
                values.push(receiver);
                values.extend(data.iter().map(|(value, _)| value));
            }
            ExternCall::Clone { session, .. } => values.push(session),
            ExternCall::CloneWith { session, header, .. } => {
                values.push(session);
                values.extend(header.iter().map(|(value, _)| value));
            }
            ExternCall::ResubmitWith { header } => values.extend(header.iter().map(|(value, _)| value)),
            ExternCall::Truncate { bytes } => values.push(bytes),
            ExternCall::VerifyChecksum { cond, data, checksum, .. } => {
                values.extend([cond, checksum]);
                values.extend(data.iter().map(|(value, _)| value));
            }
            ExternCall::UpdateChecksum { cond, data, dst, .. } => {
                values.push(cond);
                values.extend(data.iter().map(|(value, _)| value));
                targets.push(dst);
            }
            ExternCall::LogMsg { args, .. } => values.extend(args.iter().map(|(value, _)| value)),
            ExternCall::Assert { cond, .. } => values.push(cond),
            ExternCall::Foreign { args, results, .. } => {
                values.extend(args.iter().map(|(value, _)| value));
                targets.extend(results.iter().map(|(target, _)| target));
            }
            ExternCall::Drop | ExternCall::Resubmit { .. } | ExternCall::Recirculate { .. } => {}
        }
        Parts { values, targets, object }
    }
}
