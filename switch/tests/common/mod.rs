//! A learning-free L2 switch built by hand: independent of the front end.

use num_bigint::BigUint;
use p4rack_p4::ast::Span;
use p4rack_p4::ir::*;
use p4rack_switch::{Config, Pipeline, PortConfig, Switch, TableEntry};

/// The forwarding table.
pub const DMAC: TableId = TableId(0);

pub fn named(name: &str) -> Named {
    Named { name: name.into(), ..Named::default() }
}

/// Collects variables.
pub struct Vars(pub Vec<Var>);

impl Vars {
    pub fn add(&mut self, name: &str, ty: Ty) -> VarId {
        self.0.push(Var { name: name.into(), ty });
        VarId(self.0.len() as u32 - 1)
    }
}

pub fn assign(target: VarId, value: Expr) -> Stmt {
    Stmt::Assign { target: LValue::Var(target), value, span: Span::default() }
}

/// A program without anything in it.
pub fn empty(name: &str) -> Program {
    Program {
        name: name.into(),
        pkginfo: Vec::new(),
        arch: "v1model".into(),
        vars: Vec::new(),
        headers: Vec::new(),
        stacks: Vec::new(),
        tables: Vec::new(),
        actions: Vec::new(),
        instances: Vec::new(),
        value_sets: Vec::new(),
        digests: Vec::new(),
        controller_headers: Vec::new(),
        errors: ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort"]
            .map(String::from)
            .to_vec(),
        new_types: Vec::new(),
        ser_enums: Vec::new(),
        standard_metadata: Vec::new(),
        field_lists: Vec::new(),
        parser: Parser::default(),
        verify: Vec::new(),
        ingress: Vec::new(),
        egress: Vec::new(),
        compute: Vec::new(),
        deparser: Vec::new(),
    }
}

/// Ethernet, an exact table on the destination with `forward(port)` and `drop()`.
pub fn l2() -> Program {
    let mut program = empty("l2");
    let mut vars = Vars(Vec::new());
    let standard = |vars: &mut Vars, name: &str, width| (name.to_string(), vars.add(name, Ty::Bit(width)));
    program.standard_metadata = vec![
        standard(&mut vars, "ingress_port", 9),
        standard(&mut vars, "egress_spec", 9),
        standard(&mut vars, "egress_port", 9),
        standard(&mut vars, "mcast_grp", 16),
        standard(&mut vars, "parser_error", 32),
        standard(&mut vars, "priority", 3),
    ];
    let egress_spec = program.standard_metadata[1].1;
    let valid = vars.add("hdr.ethernet.$valid", Ty::Bool);
    let field = |vars: &mut Vars, name: &str, width| HeaderField {
        name: name.into(),
        var: vars.add(&format!("hdr.ethernet.{name}"), Ty::Bit(width)),
    };
    let fields = vec![field(&mut vars, "dst", 48), field(&mut vars, "src", 48), field(&mut vars, "type", 16)];
    let dst = fields[0].var;
    program.headers.push(Header {
        name: "hdr.ethernet".into(),
        type_name: "ethernet_t".into(),
        valid,
        fields,
        union_siblings: Vec::new(),
    });
    let port = vars.add("forward.port", Ty::Bit(9));
    let param = ActionParam { named: named("port"), var: port, ty: Ty::Bit(9), type_name: None };
    program.actions = vec![
        Action {
            named: named("forward"),
            params: vec![param],
            body: vec![assign(egress_spec, Expr::Var(port))],
            in_table: true,
        },
        Action {
            named: named("drop"),
            params: Vec::new(),
            body: vec![Stmt::Extern(ExternCall::MarkToDrop)],
            in_table: true,
        },
    ];
    let listed = |action| TableAction {
        action: ActionId(action),
        table_only: false,
        default_only: false,
        annotations: Vec::new(),
    };
    program.tables.push(Table {
        named: named("dmac"),
        keys: vec![Key {
            named: named("hdr.ethernet.dst"),
            expr: Expr::Var(dst),
            ty: Ty::Bit(48),
            kind: MatchKind::Exact,
            type_name: None,
        }],
        actions: vec![listed(0), listed(1)],
        default_action: Some(ActionCall { action: 1, args: Vec::new() }),
        default_is_const: false,
        entries: Vec::new(),
        entries_const: false,
        size: 1024,
        implementation: None,
        counter: None,
        meter: None,
        idle_timeout: false,
    });
    let ethernet = HeaderRef::Fixed(HeaderId(0));
    program.parser.states.push(State {
        name: "start".into(),
        stmts: vec![Stmt::Extract { header: ethernet.clone(), varbit_bits: None }],
        next: Next::Accept,
    });
    program.ingress = vec![Stmt::Apply { table: DMAC, hit: None, action_run: None }];
    program.deparser = vec![Stmt::Emit(ethernet)];
    program.vars = vars.0;
    program
}

/// An entry of [`DMAC`].
pub fn to_port(mac: u64, port: u16) -> TableEntry {
    let call = ActionCall { action: 0, args: vec![BigUint::from(port)] };
    TableEntry::new(vec![Matcher::Exact(BigUint::from(mac))], call)
}

/// Ports 1 to 4 without limit, `02:00:00:00:00:0p` behind port `p`.
pub fn l2_switch() -> Switch {
    let ports = (1..=4).map(|port| PortConfig::new(port, 0)).collect();
    let mut switch = Switch::new(Config { ports, ..Config::default() });
    switch.load(Pipeline::compile(&l2()).expect("the program is within the switch's reach"));
    for port in 1..=4 {
        switch.insert(DMAC, to_port(0x0200_0000_0000 + u64::from(port), port)).expect("a new entry");
    }
    switch
}

/// A frame of so many bytes to `02:00:00:00:00:0p`.
pub fn frame_to(port: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, port, 2, 0, 0, 0, 0, 9, 0x88, 0xb5];
    frame.extend((14..len).map(|byte| byte as u8));
    frame
}
