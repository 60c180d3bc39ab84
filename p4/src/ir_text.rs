//! The IR as text, for people and for tests that show the translation of a construct.

use crate::ast::Direction;
use crate::ir::{
    BinOp, Block, Curve, Expr, ExternCall, HeaderRef, LValue, Matcher, Next, NextState, Parser, Program,
    State, Stmt, Ty, UnOp, VarId,
};
use std::fmt::Write as _;

impl Program {
    /// Statements as text: one per line, blocks indented.
    pub fn text_of(&self, stmts: &[Stmt]) -> String {
        let mut out = String::new();
        Printer { program: self, indent: 0 }.stmts(&mut out, stmts);
        out
    }

    /// The states of all parsers as text.
    pub fn parser_text(&self) -> String {
        let mut out = String::new();
        for parser in self.blocks.iter().filter_map(Block::parser) {
            for state in &parser.states {
                Printer { program: self, indent: 0 }.state(&mut out, state, parser);
            }
        }
        out
    }

    /// Bodies of abstract methods as text.
    pub fn methods_text(&self) -> String {
        let printer = Printer { program: self, indent: 0 };
        let names = |vars: &[VarId]| -> Vec<&str> {
            vars.iter().map(|var| self.vars[var.0 as usize].name.as_str()).collect()
        };
        let mut out = String::new();
        for method in &self.methods {
            let params = method.params.iter().map(|param| {
                let direction = match param.direction {
                    Direction::None => "",
                    Direction::In => "in ",
                    Direction::Out => "out ",
                    Direction::InOut => "inout ",
                };
                format!("{direction}{}", names(&param.vars).join(" "))
            });
            let params: Vec<String> = params.collect();
            let result = names(&method.result).join(" ");
            printer.line(
                &mut out,
                &format!("method {}.{}({}) -> {{{result}}}", method.object, method.name, params.join(", ")),
            );
            printer.inner(&mut out, &method.body);
        }
        out
    }
}

#[derive(Clone, Copy)]
struct Printer<'p> {
    program: &'p Program,
    indent: usize,
}

impl Printer<'_> {
    fn line(&self, out: &mut String, text: &str) {
        let _ = writeln!(out, "{}{text}", "  ".repeat(self.indent));
    }

    fn inner(&self, out: &mut String, stmts: &[Stmt]) {
        Printer { indent: self.indent + 1, ..*self }.stmts(out, stmts);
    }

    fn stmts(&self, out: &mut String, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(out, stmt);
        }
    }

    fn stmt(&self, out: &mut String, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { target, value, .. } => {
                self.line(out, &format!("{} = {}", self.lvalue(target), self.expr(value)));
            }
            Stmt::CopyHeader { dst, src } => {
                self.line(out, &format!("{} := {}", self.header(dst), self.header(src)))
            }
            Stmt::SetValid { header, valid } => {
                let what = if *valid { "valid" } else { "invalid" };
                self.line(out, &format!("{what} {}", self.header(header)));
            }
            Stmt::StackShift { stack, count } => {
                let name = &self.program.stacks[stack.0 as usize].name;
                self.line(out, &format!("shift {name} by {count}"));
            }
            Stmt::If { cond, then, otherwise, .. } => {
                self.line(out, &format!("if {}", self.expr(cond)));
                self.inner(out, then);
                if !otherwise.is_empty() {
                    self.line(out, "else");
                    self.inner(out, otherwise);
                }
            }
            Stmt::Switch { expr, cases, default, .. } => {
                self.line(out, &format!("switch {}", self.expr(expr)));
                for (values, body) in cases {
                    let values: Vec<String> = values.iter().map(|v| v.to_string()).collect();
                    self.line(out, &format!("case {}", values.join(", ")));
                    self.inner(out, body);
                }
                self.line(out, "default");
                self.inner(out, default);
            }
            Stmt::Scope(stmts) => {
                self.line(out, "scope");
                self.inner(out, stmts);
            }
            Stmt::Loop { cond, body, update } => {
                self.line(out, &format!("while {}", self.expr(cond)));
                self.inner(out, body);
                self.line(out, "update");
                self.inner(out, update);
            }
            Stmt::Break => self.line(out, "break"),
            Stmt::Continue => self.line(out, "continue"),
            Stmt::Return => self.line(out, "return"),
            Stmt::Exit => self.line(out, "exit"),
            Stmt::Apply { table, hit, action_run, .. } => {
                let mut text = format!("apply {}", self.program.tables[table.0 as usize].named.name);
                for (what, var) in [("hit", hit), ("action_run", action_run)] {
                    if let Some(var) = var {
                        let _ = write!(text, " {what}={}", self.program.vars[var.0 as usize].name);
                    }
                }
                self.line(out, &text);
            }
            Stmt::Extract { header, varbit_bits } => {
                let bits =
                    varbit_bits.as_ref().map(|e| format!(" varbit {}", self.expr(e))).unwrap_or_default();
                self.line(out, &format!("extract {}{bits}", self.header(header)));
            }
            Stmt::Advance(bits) => self.line(out, &format!("advance {}", self.expr(bits))),
            Stmt::Verify { cond, error } => {
                self.line(out, &format!("verify {} else {}", self.expr(cond), self.expr(error)));
            }
            Stmt::Emit(header) => self.line(out, &format!("emit {}", self.header(header))),
            Stmt::Extern { call, .. } => self.line(out, &self.external(call)),
        }
    }

    fn external(&self, call: &ExternCall) -> String {
        let instance = |i: &crate::ir::InstanceId| self.program.instances[i.0 as usize].named.name.as_str();
        let list = |data: &[(Expr, Ty)]| {
            let parts: Vec<String> = data.iter().map(|(e, _)| self.expr(e)).collect();
            format!("{{{}}}", parts.join(", "))
        };
        let with = |word: &str, value: &Option<Expr>| {
            value.as_ref().map(|value| format!(" {word} {}", self.expr(value))).unwrap_or_default()
        };
        match call {
            ExternCall::CounterCount { instance: i, index, less } => {
                let less = with("less", less);
                format!("{}.count({}){less}", instance(i), self.expr(index))
            }
            ExternCall::DirectCount { instance: i, less } => {
                let less = with("less", less);
                format!("{}.count(){less}", instance(i))
            }
            ExternCall::DirectMeterRead { instance: i, given, less, dst } => {
                let given = with("given", given) + &with("less", less);
                format!("{} = {}.read(){given}", self.lvalue(dst), instance(i))
            }
            ExternCall::MeterExecute { instance: i, index, given, less, dst } => {
                let given = with("given", given) + &with("less", less);
                format!("{} = {}.execute({}){given}", self.lvalue(dst), instance(i), self.expr(index))
            }
            ExternCall::RegisterRead { instance: i, index, dst } => {
                format!("{} = {}[{}]", self.lvalue(dst), instance(i), self.expr(index))
            }
            ExternCall::RegisterWrite { instance: i, index, value } => {
                format!("{}[{}] = {}", instance(i), self.expr(index), self.expr(value))
            }
            ExternCall::DirectRegisterRead { instance: i, dst } => {
                format!("{} = {}", self.lvalue(dst), instance(i))
            }
            ExternCall::DirectRegisterWrite { instance: i, value } => {
                format!("{} = {}", instance(i), self.expr(value))
            }
            ExternCall::Smooth { instance: i, index, value, dst } => {
                let index = index.as_ref().map(|index| format!("[{}]", self.expr(index))).unwrap_or_default();
                format!("{} = {}{index}.smooth({})", self.lvalue(dst), instance(i), self.expr(value))
            }
            ExternCall::Approximate { curve, value, dst, .. } => {
                let Curve { inverts, shift, scale, table } = &**curve;
                let sign = if *inverts { "-" } else { "" };
                let value = self.expr(value);
                format!("{} = curve({sign}{shift}, {scale}, {table:?}, {value})", self.lvalue(dst))
            }
            ExternCall::Hash { algorithm, dst, data, bounds, .. } => {
                let hash = format!("{algorithm:?}{}", list(data));
                match bounds {
                    Some((base, max)) => {
                        format!("{} = {} + {hash} % {}", self.lvalue(dst), self.expr(base), self.expr(max))
                    }
                    None => format!("{} = {hash}", self.lvalue(dst)),
                }
            }
            ExternCall::Random { dst, lo, hi, .. } => {
                format!("{} = random({}, {})", self.lvalue(dst), self.expr(lo), self.expr(hi))
            }
            ExternCall::Digest { receiver, digest, data } => {
                let name = &self.program.digests[*digest as usize].named.name;
                format!("digest {name} to {} {}", self.expr(receiver), list(data))
            }
            ExternCall::Drop => "drop".to_owned(),
            ExternCall::Clone { egress, session, field_list } => {
                let from = if *egress { "of egress" } else { "of ingress" };
                let fields = field_list.map(|f| format!(" fields {f}")).unwrap_or_default();
                format!("clone {from} {}{fields}", self.expr(session))
            }
            ExternCall::CloneWith { egress, session, header } => {
                let from = if *egress { "of egress" } else { "of ingress" };
                format!("clone {from} {} with {}", self.expr(session), list(header))
            }
            ExternCall::ResubmitWith { header } => format!("resubmit with {}", list(header)),
            ExternCall::Resubmit { field_list } => format!("resubmit fields {field_list}"),
            ExternCall::Recirculate { field_list } => format!("recirculate fields {field_list}"),
            ExternCall::Truncate { bytes } => format!("truncate {}", self.expr(bytes)),
            ExternCall::VerifyChecksum { cond, data, checksum, algorithm, payload, .. } => format!(
                "if {} verify {} == {algorithm:?}{}{}",
                self.expr(cond),
                self.expr(checksum),
                list(data),
                if *payload { " with payload" } else { "" }
            ),
            ExternCall::UpdateChecksum { cond, data, dst, algorithm, payload, .. } => format!(
                "if {} {} = {algorithm:?}{}{}",
                self.expr(cond),
                self.lvalue(dst),
                list(data),
                if *payload { " with payload" } else { "" }
            ),
            ExternCall::LogMsg { format, args } => format!("log {format:?} {}", list(args)),
            ExternCall::Assert { cond, assume, .. } => {
                format!("{} {}", if *assume { "assume" } else { "assert" }, self.expr(cond))
            }
            ExternCall::Foreign { name, object, args, results, .. } => {
                let to: Vec<String> = results.iter().map(|(l, _)| self.lvalue(l)).collect();
                let on = object.as_ref().map(|o| format!(" of {o}")).unwrap_or_default();
                format!("{{{}}} = foreign {name}{on} {}", to.join(", "), list(args))
            }
        }
    }

    fn state(&self, out: &mut String, state: &State, parser: &Parser) {
        self.line(out, &format!("state {}", state.name));
        self.inner(out, &state.stmts);
        let inner = Printer { indent: self.indent + 1, ..*self };
        match &state.next {
            Next::Accept => inner.line(out, "accept"),
            Next::Reject => inner.line(out, "reject"),
            Next::Goto(id) => inner.line(out, &format!("goto {}", parser.states[id.0 as usize].name)),
            Next::Select { keys, cases } => {
                let keys: Vec<String> = keys.iter().map(|(e, _)| self.expr(e)).collect();
                inner.line(out, &format!("select {}", keys.join(", ")));
                for (matchers, target) in cases {
                    let matchers: Vec<String> = matchers.iter().map(|m| self.matcher(m)).collect();
                    let target = match target {
                        NextState::Accept => "accept",
                        NextState::Reject => "reject",
                        NextState::State(id) => &parser.states[id.0 as usize].name,
                    };
                    inner.line(out, &format!("  {} -> {target}", matchers.join(", ")));
                }
            }
        }
    }

    fn matcher(&self, matcher: &Matcher) -> String {
        match matcher {
            Matcher::Any => "_".to_owned(),
            Matcher::Exact(v) => v.to_string(),
            Matcher::Mask { value, mask } => format!("{value:#x} &&& {mask:#x}"),
            Matcher::Range { lo, hi } => format!("{lo}..{hi}"),
            Matcher::ValueSet(id) => self.program.value_sets[id.0 as usize].named.name.clone(),
        }
    }

    fn header(&self, header: &HeaderRef) -> String {
        let stack = |s: &crate::ir::StackId| self.program.stacks[s.0 as usize].name.as_str();
        match header {
            HeaderRef::Fixed(h) => self.program.headers[h.0 as usize].name.clone(),
            HeaderRef::Next(s) => format!("{}.next", stack(s)),
            HeaderRef::Last(s) => format!("{}.last", stack(s)),
            HeaderRef::Index(s, i) => format!("{}[{}]", stack(s), self.expr(i)),
        }
    }

    fn field(&self, header: &HeaderRef, field: u32) -> String {
        let any = match header {
            HeaderRef::Fixed(h) => *h,
            HeaderRef::Next(s) | HeaderRef::Last(s) | HeaderRef::Index(s, _) => {
                self.program.stacks[s.0 as usize].elements[0]
            }
        };
        let name = &self.program.headers[any.0 as usize].fields[field as usize].name;
        format!("{}.{name}", self.header(header))
    }

    fn lvalue(&self, lvalue: &LValue) -> String {
        match lvalue {
            LValue::Var(v) => self.program.vars[v.0 as usize].name.clone(),
            LValue::Field { header, field } => self.field(header, *field),
            LValue::Slice { base, hi, lo } => format!("{}[{hi}:{lo}]", self.lvalue(base)),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Const { value, ty: Ty::Bool } => (*value != num_bigint::BigUint::ZERO).to_string(),
            Expr::Const { value, .. } => value.to_string(),
            Expr::Var(v) => self.program.vars[v.0 as usize].name.clone(),
            Expr::Field { header, field, .. } => self.field(header, *field),
            Expr::Valid(h) => format!("valid({})", self.header(h)),
            Expr::Unary { op, expr, .. } => {
                let sign = match op {
                    UnOp::Not => "!",
                    UnOp::BitNot => "~",
                    UnOp::Neg => "-",
                };
                format!("{sign}{}", self.expr(expr))
            }
            Expr::Binary { op, left, right, .. } => {
                format!("({} {} {})", self.expr(left), sign(*op), self.expr(right))
            }
            Expr::Ternary { cond, then, otherwise, .. } => {
                format!("({} ? {} : {})", self.expr(cond), self.expr(then), self.expr(otherwise))
            }
            Expr::Cast { expr, to, .. } => format!("({to:?}){}", self.expr(expr)),
            Expr::Slice { expr, hi, lo, .. } => format!("{}[{hi}:{lo}]", self.expr(expr)),
            Expr::Concat { left, right, .. } => format!("({} ++ {})", self.expr(left), self.expr(right)),
            Expr::Lookahead { total, offset, ty } => format!("lookahead({offset} of {total}, {ty:?})"),
            Expr::PacketLength => "length".to_owned(),
            Expr::DropPort => "drop port".to_owned(),
        }
    }
}

fn sign(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Mod => "%",
        BinOp::AddSat => "|+|",
        BinOp::SubSat => "|-|",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::And => "&&",
        BinOp::Or => "||",
    }
}
