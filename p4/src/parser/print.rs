//! Prints a syntax tree as P4 with every operator in brackets, for tests. The output shows how a program was
//! parsed, and must parse to the same tree again.

use crate::ast::*;

fn list<T>(items: &[T], separator: &str, print: impl Fn(&T) -> String) -> String {
    items.iter().map(print).collect::<Vec<_>>().join(separator)
}

fn quote(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{}\"", text.replace('\t', "\\t").replace('\r', "\\r"))
}

pub(super) fn program(program: &Program) -> String {
    list(&program.decls, "\n", decl) + "\n"
}

fn annotations(all: &[Annotation]) -> String {
    list(all, "", |a| {
        let body = match &a.body {
            AnnotationBody::Empty => String::new(),
            AnnotationBody::Tokens(tokens) => {
                let token = |t: &AnnotationToken| if t.is_string { quote(&t.text) } else { t.text.clone() };
                format!("({})", list(tokens, " ", token))
            }
            AnnotationBody::List(items) => format!("[{}]", list(items, ", ", expr)),
            AnnotationBody::KeyValues(items) => format!("[{}]", key_values(items)),
        };
        format!("@{}{body} ", a.name.name)
    })
}

fn key_values(items: &[(Ident, Expr)]) -> String {
    list(items, ", ", |(k, v)| format!("{} = {}", k.name, expr(v)))
}

fn type_params(params: &[Ident]) -> String {
    if params.is_empty() { String::new() } else { format!("<{}>", list(params, ", ", |p| p.name.clone())) }
}

fn params(all: &[Param]) -> String {
    list(all, ", ", |p| {
        let direction = match p.direction {
            Direction::None => "",
            Direction::In => "in ",
            Direction::Out => "out ",
            Direction::InOut => "inout ",
        };
        let default = p.default.as_ref().map_or(String::new(), |d| format!(" = {}", expr(d)));
        format!("{}{direction}{} {}{default}", annotations(&p.annotations), ty(&p.ty), p.name.name)
    })
}

fn proto(p: &FunctionProto) -> String {
    let ret = p.ret.as_ref().map_or(String::new(), |r| ty(r) + " ");
    format!("{ret}{}{}({})", p.name.name, type_params(&p.type_params), params(&p.params))
}

fn struct_like(word: &str, s: &StructDecl) -> String {
    let field = |f: &Field| format!("{}{} {}; ", annotations(&f.annotations), ty(&f.ty), f.name.name);
    format!("{word} {}{} {{ {}}}", s.name.name, type_params(&s.type_params), list(&s.fields, "", field))
}

fn initial(value: &Option<Expr>) -> String {
    value.as_ref().map_or(String::new(), |v| format!(" = {}", expr(v)))
}

pub(super) fn decl(d: &Decl) -> String {
    let text = match &d.kind {
        DeclKind::Const { ty: t, name, value } => format!("const {} {} = {};", ty(t), name.name, expr(value)),
        DeclKind::Variable { ty: t, name, init } => format!("{} {}{};", ty(t), name.name, initial(init)),
        DeclKind::Instance { ty: t, args: a, name, init } => {
            let init = init.as_ref().map_or(String::new(), |i| format!(" = {{ {} }}", list(i, " ", decl)));
            format!("{}({}) {}{init};", ty(t), args(a), name.name)
        }
        DeclKind::Header(s) => struct_like("header", s),
        DeclKind::HeaderUnion(s) => struct_like("header_union", s),
        DeclKind::Struct(s) => struct_like("struct", s),
        DeclKind::Enum { repr, name, members } => {
            let repr = repr.as_ref().map_or(String::new(), |r| ty(r) + " ");
            let member = |m: &EnumMember| {
                format!("{}{}{}", annotations(&m.annotations), m.name.name, initial(&m.value))
            };
            format!("enum {repr}{} {{ {} }}", name.name, list(members, ", ", member))
        }
        DeclKind::Error { members } => format!("error {{ {} }}", list(members, ", ", |m| m.name.clone())),
        DeclKind::MatchKind { members } => {
            format!("match_kind {{ {} }}", list(members, ", ", |m| m.name.clone()))
        }
        DeclKind::Typedef { ty: t, name } => format!("typedef {} {};", ty(t), name.name),
        DeclKind::NewType { ty: t, name } => format!("type {} {};", ty(t), name.name),
        DeclKind::ExternObject { name, type_params: t, methods } => {
            format!("extern {}{} {{ {} }}", name.name, type_params(t), list(methods, " ", method))
        }
        DeclKind::FunctionProto { proto: p, .. } => format!("extern {};", proto(p)),
        DeclKind::Function { proto: p, body } => format!("{} {}", proto(p), block(body)),
        DeclKind::Action { name, params: p, body } => {
            format!("action {}({}) {}", name.name, params(p), block(body))
        }
        DeclKind::ParserType { name, type_params: t, params: p } => {
            format!("parser {}{}({});", name.name, type_params(t), params(p))
        }
        DeclKind::ControlType { name, type_params: t, params: p } => {
            format!("control {}{}({});", name.name, type_params(t), params(p))
        }
        DeclKind::PackageType { name, type_params: t, params: p } => {
            format!("package {}{}({});", name.name, type_params(t), params(p))
        }
        DeclKind::Parser { name, type_params: t, params: p, ctor_params, locals, states } => format!(
            "parser {}{}({})({}) {{ {} {} }}",
            name.name,
            type_params(t),
            params(p),
            params(ctor_params),
            list(locals, " ", decl),
            list(states, "\n  ", state),
        ),
        DeclKind::Control { name, type_params: t, params: p, ctor_params, locals, apply } => format!(
            "control {}{}({})({}) {{ {}\n  apply {} }}",
            name.name,
            type_params(t),
            params(p),
            params(ctor_params),
            list(locals, "\n  ", decl),
            block(apply),
        ),
        DeclKind::Table { name, properties } => {
            format!("table {} {{ {} }}", name.name, list(properties, "\n    ", property))
        }
        DeclKind::ValueSet { ty: t, size, name } => {
            format!("value_set<{}>({}) {};", ty(t), expr(size), name.name)
        }
    };
    annotations(&d.annotations) + &text
}

fn method(d: &Decl) -> String {
    let DeclKind::FunctionProto { proto: p, is_abstract } = &d.kind else { return decl(d) };
    format!("{}{}{};", annotations(&d.annotations), if *is_abstract { "abstract " } else { "" }, proto(p))
}

fn state(s: &ParserState) -> String {
    let transition = match &s.transition {
        None => String::new(),
        Some(Transition::Direct(target)) => format!("transition {};", target.name),
        Some(Transition::Select { keys, cases, .. }) => {
            let case = |c: &SelectCase| format!("{} : {};", keysets(&c.keysets), c.state.name);
            format!("transition select({}) {{ {} }}", list(keys, ", ", expr), list(cases, " ", case))
        }
    };
    format!(
        "{}state {} {{ {} {transition} }}",
        annotations(&s.annotations),
        s.name.name,
        list(&s.body, " ", stmt)
    )
}

fn keysets(all: &[Expr]) -> String {
    format!("({})", list(all, ", ", expr))
}

fn property(p: &TableProperty) -> String {
    let text = match &p.kind {
        TablePropertyKind::Key(elements) => {
            let element = |e: &KeyElement| {
                format!("{} : {} {};", expr(&e.expr), e.match_kind.name, annotations(&e.annotations))
            };
            format!("key = {{ {} }}", list(elements, " ", element))
        }
        TablePropertyKind::Actions(actions) => {
            let action = |a: &ActionListEntry| {
                let bound = a.args.as_ref().map_or(String::new(), |a| format!("({})", args(a)));
                format!("{}{}{bound};", annotations(&a.annotations), name(&a.name))
            };
            format!("actions = {{ {} }}", list(actions, " ", action))
        }
        TablePropertyKind::Entries(entries) => {
            let entry = |e: &TableEntry| {
                let is_const = if e.is_const { "const " } else { "" };
                let priority =
                    e.priority.as_ref().map_or(String::new(), |p| format!("priority = {} : ", expr(p)));
                let (keys, action) = (keysets(&e.keysets), expr(&e.action));
                format!("{is_const}{priority}{keys} : {action} {};", annotations(&e.annotations))
            };
            format!("entries = {{ {} }}", list(entries, " ", entry))
        }
        TablePropertyKind::Other { name, value } => format!("{} = {};", name.name, expr(value)),
    };
    format!("{}{}{text}", annotations(&p.annotations), if p.is_const { "const " } else { "" })
}

fn block(b: &Block) -> String {
    format!("{}{{ {} }}", annotations(&b.annotations), list(&b.stmts, " ", stmt))
}

pub(super) fn stmt(s: &Stmt) -> String {
    match &s.kind {
        StmtKind::Empty => ";".to_owned(),
        StmtKind::Call(e) => expr(e) + ";",
        StmtKind::Assign { .. } => step(s) + ";",
        StmtKind::DirectApply { ty: t, args: a } => format!("{}.apply({});", ty(t), args(a)),
        StmtKind::If { cond, then, otherwise } => {
            let otherwise = otherwise.as_ref().map_or(String::new(), |o| format!(" else {}", branch(o)));
            format!("if ({}) {}{otherwise}", expr(cond), branch(then))
        }
        StmtKind::Block(b) => block(b),
        StmtKind::Exit => "exit;".to_owned(),
        StmtKind::Return(None) => "return;".to_owned(),
        StmtKind::Return(Some(e)) => format!("return {};", expr(e)),
        StmtKind::Switch { expr: e, cases } => {
            let case = |c: &SwitchCase| {
                format!("{}: {}", expr(&c.label), c.body.as_ref().map_or(String::new(), block))
            };
            format!("switch ({}) {{ {} }}", expr(e), list(cases, " ", case))
        }
        StmtKind::For { annotations: a, init, cond, update, body } => format!(
            "{}for ({}; {}; {}) {}",
            annotations(a),
            list(init, ", ", step),
            expr(cond),
            list(update, ", ", step),
            branch(body)
        ),
        StmtKind::ForIn { annotations: a, ty: t, name, over, body } => {
            let t = t.as_ref().map_or(String::new(), |t| ty(t) + " ");
            let over = match &over.kind {
                ExprKind::Range { lo, hi } => format!("{} .. {}", expr(lo), expr(hi)),
                _ => expr(over),
            };
            format!("{}for ({t}{} in {over}) {}", annotations(a), name.name, branch(body))
        }
        StmtKind::Break => "break;".to_owned(),
        StmtKind::Continue => "continue;".to_owned(),
        StmtKind::Decl(d) => decl(d),
    }
}

/// In braces, so that an `else` stays with its `if`.
fn branch(s: &Stmt) -> String {
    match &s.kind {
        StmtKind::Block(b) => block(b),
        _ => format!("{{ {} }}", stmt(s)),
    }
}

fn step(s: &Stmt) -> String {
    match &s.kind {
        StmtKind::Assign { op, target, value } => {
            format!("{} {}= {}", expr(target), op.map_or("", binary_sign), expr(value))
        }
        _ => stmt(s).trim_end_matches(';').to_owned(),
    }
}

fn name(n: &Name) -> String {
    format!("{}{}", if n.global { "." } else { "" }, n.ident.name)
}

pub(super) fn ty(t: &TypeRef) -> String {
    let angles = |args: &[TypeRef]| format!("<{}>", list(args, ", ", ty));
    match &t.kind {
        TypeRefKind::Bool => "bool".to_owned(),
        TypeRefKind::Error => "error".to_owned(),
        TypeRefKind::MatchKind => "match_kind".to_owned(),
        TypeRefKind::String => "string".to_owned(),
        TypeRefKind::Void => "void".to_owned(),
        TypeRefKind::InfInt => "int".to_owned(),
        TypeRefKind::DontCare => "_".to_owned(),
        TypeRefKind::Bit(None) => "bit".to_owned(),
        TypeRefKind::Bit(Some(w)) => format!("bit<{}>", expr(w)),
        TypeRefKind::Int(w) => format!("int<{}>", expr(w)),
        TypeRefKind::Varbit(w) => format!("varbit<{}>", expr(w)),
        TypeRefKind::List(element) => format!("list<{}>", ty(element)),
        TypeRefKind::Tuple(args) => format!("tuple{}", angles(args)),
        TypeRefKind::Stack { element, size } => format!("{}[{}]", ty(element), expr(size)),
        TypeRefKind::Named { name: n, args } if args.is_empty() => name(n),
        TypeRefKind::Named { name: n, args } => name(n) + &angles(args),
    }
}

fn args(all: &[Arg]) -> String {
    list(all, ", ", |a| {
        let named = a.name.as_ref().map_or(String::new(), |n| n.name.clone() + " = ");
        named + &a.value.as_ref().map_or("_".to_owned(), expr)
    })
}

pub(super) fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::Int { value, width: None, .. } => value.to_string(),
        ExprKind::Int { value, width: Some(w), .. } => {
            format!("{}{}{value}", w.bits, if w.signed { 's' } else { 'w' })
        }
        ExprKind::String(text) => quote(text),
        ExprKind::Name(n) => name(n),
        ExprKind::Dots => "...".to_owned(),
        ExprKind::DontCare => "_".to_owned(),
        ExprKind::Default => "default".to_owned(),
        ExprKind::This => "this".to_owned(),
        ExprKind::ErrorMember(m) => format!("error.{}", m.name),
        ExprKind::Member { base, member } => format!("{}.{}", expr(base), member.name),
        ExprKind::TypeMember { ty: t, member } => format!("{}.{}", ty(t), member.name),
        ExprKind::Index { base, index } => format!("{}[{}]", expr(base), expr(index)),
        ExprKind::Slice { base, hi, lo } => format!("{}[{}:{}]", expr(base), expr(hi), expr(lo)),
        ExprKind::PlusSlice { base, start, width } => {
            format!("{}[{}+:{}]", expr(base), expr(start), expr(width))
        }
        ExprKind::List { items, dots } => format!("{{{}}}", with_dots(list(items, ", ", expr), *dots)),
        ExprKind::KeyValues { items, dots } => format!("{{{}}}", with_dots(key_values(items), *dots)),
        ExprKind::Invalid => "{#}".to_owned(),
        ExprKind::Unary { op, expr: e } => {
            let sign = match op {
                UnaryOp::Not => "!",
                UnaryOp::BitNot => "~",
                UnaryOp::Neg => "-",
                UnaryOp::Plus => "+",
            };
            format!("({sign}{})", expr(e))
        }
        ExprKind::Binary { op, left, right } => {
            format!("({} {} {})", expr(left), binary_sign(*op), expr(right))
        }
        ExprKind::Ternary { cond, then, otherwise } => {
            format!("({} ? {} : {})", expr(cond), expr(then), expr(otherwise))
        }
        ExprKind::Cast { ty: t, expr: e } => format!("(({}) {})", ty(t), expr(e)),
        ExprKind::Call { callee, type_args, args: a } => {
            let types =
                if type_args.is_empty() { String::new() } else { format!("<{}>", list(type_args, ", ", ty)) };
            format!("{}{types}({})", expr(callee), args(a))
        }
        ExprKind::Construct { ty: t, args: a } => format!("{}({})", ty(t), args(a)),
        ExprKind::Mask { value, mask } => format!("{} &&& {}", expr(value), expr(mask)),
        ExprKind::Range { lo, hi } => format!("{} .. {}", expr(lo), expr(hi)),
    }
}

fn with_dots(items: String, dots: bool) -> String {
    match (items.is_empty(), dots) {
        (_, false) => items,
        (true, true) => "...".to_owned(),
        (false, true) => items + ", ...",
    }
}

fn binary_sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "%",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::AddSat => "|+|",
        BinaryOp::SubSat => "|-|",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Le => "<=",
        BinaryOp::Ge => ">=",
        BinaryOp::Lt => "<",
        BinaryOp::Gt => ">",
        BinaryOp::Ne => "!=",
        BinaryOp::Eq => "==",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::BitOr => "|",
        BinaryOp::Concat => "++",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
    }
}
