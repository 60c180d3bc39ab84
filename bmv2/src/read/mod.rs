//! Reads BMv2's JSON, as p4c and this crate write it for `simple_switch`.
//!
//! ```text
//!  JSON ─ cursor ─┬─ headers, objects ─▶ variables, headers, extern objects
//!                 ├─ parser ───────────▶ states
//!                 └─ pipeline, actions ─▶ blocks with jumps ─ structure ─▶ nested statements
//! ```

mod action;
mod checksum;
mod cursor;
mod expr;
mod given;
mod header_ref;
mod headers;
mod objects;
mod operation;
mod parser;
mod pipeline;
mod primitive;
mod structure;
mod table;
mod truth;

use cursor::{Cursor, Result};
use p4rack_p4::ast::Span;
use p4rack_p4::ir::{
    ActionId, Block, Body, Expr, HashAlgorithm, HeaderId, InstanceId, Program, Role, Rules, StackId, TableId,
    Task, Ty, ValueSetId, Var, VarId,
};
use p4rack_p4::{Compiled, Diagnostics, Options, p4info, preprocess};
use p4rack_p4rt::p4::config::v1::P4Info;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Whether a file is read as JSON: it is called so, or its text begins with a brace, as no P4 program does.
pub fn is_json_file(text: &str, name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "json") || is_json(text)
}

/// Whether a text is JSON: no P4 program begins with a brace.
pub fn is_json(text: &str) -> bool {
    text.trim_start_matches(|first: char| first == '\u{feff}' || first.is_whitespace()).starts_with('{')
}

/// The program that BMv2's JSON describes. `name` is the file's, for messages. The P4Info that p4c has written with
/// the JSON has ids, annotations and types that the JSON lacks; without it, they are made from the names.
///
/// ```
/// let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/forward.p4"));
/// let compiled = p4rack_p4::compile(text, "forward.p4", &p4rack_p4::Options::default())?;
/// let json = p4rack_bmv2::write(&compiled)?.to_string();
/// let again = p4rack_bmv2::read(&json, "forward.json", Some(&compiled.p4info))?;
/// assert_eq!(again.p4info, compiled.p4info);
///
/// let wrong = json.replace("\"assign\"", "\"asign\"");
/// let error = p4rack_bmv2::read(&wrong, "forward.json", None).unwrap_err();
/// assert!(error.starts_with("forward.json: at `actions["), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(text: &str, name: &str, info: Option<&P4Info>) -> std::result::Result<Compiled, String> {
    let text = text.trim_start_matches('\u{feff}');
    let json: Value = serde_json::from_str(text).map_err(|error| {
        let what = if text.trim().is_empty() { "the file is empty".to_owned() } else { error.to_string() };
        format!("{name}: {what}; expected BMv2's JSON, as p4c-bm2-ss writes it")
    })?;
    if let Some(info) = info {
        given::check(info).map_err(|what| format!("{name}: {what}"))?;
    }
    let root = Cursor::root(&json);
    let mut reader = Reader::new(root, name, info);
    reader.program().map_err(|wrong| format!("{name}: {wrong}"))?;
    let (mut p4info, ids) = p4info::generate(&reader.program);
    if let Some(info) = info {
        given::compare(info, &p4info).map_err(|what| format!("{name}: {what}"))?;
        p4info = info.clone();
    }
    let sources = preprocess::run("", name, &Options::default())
        .map_err(|diagnostics| format!("{name}: {diagnostics}"))?;
    let warnings = Diagnostics::new(Arc::new(sources), Vec::new());
    Ok(Compiled { program: reader.program, p4info, ids, warnings })
}

/// A named calculation.
#[derive(Clone, Debug)]
struct Calculation {
    algorithm: HashAlgorithm,
    data: Vec<(Expr, Ty)>,
    payload: bool,
}

struct Reader<'j> {
    root: Cursor<'j>,
    info: Option<&'j P4Info>,
    program: Program,
    /// Variables of fields, by instance and name.
    fields: HashMap<(String, String), VarId>,
    headers: HashMap<String, HeaderId>,
    header_ids: HashMap<u64, HeaderId>,
    stacks: HashMap<String, StackId>,
    unions: HashMap<String, Vec<HeaderId>>,
    /// Stacks of the members of a stack of unions, by the members' names.
    union_stacks: HashMap<String, Vec<(String, StackId)>>,
    instances: HashMap<String, InstanceId>,
    value_sets: HashMap<String, ValueSetId>,
    /// Value sets whose keys are known from a `select`.
    used_sets: HashSet<u32>,
    calculations: HashMap<String, Calculation>,
    /// Digests and their data, by the id of the list.
    learn_lists: HashMap<u64, (u32, Vec<(Expr, Ty)>)>,
    /// Actions of the file, by id, and their ids by name.
    actions: HashMap<u64, Cursor<'j>>,
    action_ids: HashMap<&'j str, Cursor<'j>>,
    /// Names of direct counters, by the tables to which they are bound.
    direct_counters: HashMap<&'j str, &'j str>,
    /// Meters and action profiles, by name.
    meters: HashMap<&'j str, Cursor<'j>>,
    profiles: HashMap<&'j str, Cursor<'j>>,
    /// Actions of the program, by id and by the direct meter of the table.
    built: HashMap<(u64, Option<InstanceId>), ActionId>,
    tables: HashMap<String, TableId>,
    /// Numbers of the program's errors, by those of the file.
    errors: BTreeMap<u64, u32>,
    parser_error: Option<VarId>,
    /// The parameters of the action that is being read.
    params: Vec<(VarId, Ty)>,
    /// Nodes of the expressions that are read, with those of actions that are read several times.
    nodes: usize,
    /// Statements and variables, in the same way.
    statements: usize,
}

/// The major version of the format that is read. Files of version 1 lack what P4_16 needs.
const MAJOR: u64 = 2;

impl<'j> Reader<'j> {
    fn new(root: Cursor<'j>, name: &str, info: Option<&'j P4Info>) -> Reader<'j> {
        let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Reader {
            root,
            info,
            program: empty(stem.unwrap_or_default()),
            fields: HashMap::new(),
            headers: HashMap::new(),
            header_ids: HashMap::new(),
            stacks: HashMap::new(),
            unions: HashMap::new(),
            union_stacks: HashMap::new(),
            instances: HashMap::new(),
            value_sets: HashMap::new(),
            used_sets: HashSet::new(),
            calculations: HashMap::new(),
            learn_lists: HashMap::new(),
            actions: HashMap::new(),
            action_ids: HashMap::new(),
            direct_counters: HashMap::new(),
            meters: HashMap::new(),
            profiles: HashMap::new(),
            built: HashMap::new(),
            tables: HashMap::new(),
            errors: BTreeMap::new(),
            parser_error: None,
            params: Vec::new(),
            nodes: 0,
            statements: 0,
        }
    }

    fn program(&mut self) -> Result<()> {
        let root = self.root.clone();
        check(&root)?;
        self.errors()?;
        self.read_headers()?;
        self.intrinsics()?;
        self.program.shared_vars = self.program.vars.len();
        self.objects()?;
        for action in root.list_of("actions")? {
            let id = action.get("id")?.number()?;
            if self.actions.insert(id, action.clone()).is_some() {
                return action.wrong(format!("a second action with the id {id}"));
            }
            self.action_ids.insert(action.text_of("name")?, action.get("id")?);
        }
        for meter in root.list_of("meter_arrays")? {
            self.meters.entry(meter.text_of("name")?).or_insert(meter);
        }
        for pipeline in root.get("pipelines")?.list()? {
            for profile in pipeline.list_of("action_profiles")? {
                self.profiles.entry(profile.text_of("name")?).or_insert(profile);
            }
        }
        for counter in root.list_of("counter_arrays")? {
            if counter.flag_of("is_direct")? {
                let bound = counter.find("binding").and_then(|table| table.text().ok());
                if let Some(table) = bound {
                    self.direct_counters.entry(table).or_insert(counter.text_of("name")?);
                }
            }
        }
        let parser = self.parser()?;
        self.declare_tables()?;
        let [ingress, egress] = [self.pipeline("ingress")?, self.pipeline("egress")?];
        let [verify, update] = self.checksums()?;
        let deparser = self.deparser()?;
        let block =
            |role: Role, name: &str, body: Body| Block { pipeline: 0, role, name: name.to_owned(), body };
        self.program.blocks = vec![
            block(Role::ingress(Task::Parse), "parser", Body::Parser(parser)),
            block(Role::ingress(Task::Verify), "verify", Body::Control(verify)),
            block(Role::ingress(Task::Process), "ingress", Body::Control(ingress)),
            block(Role::egress(Task::Process), "egress", Body::Control(egress)),
            block(Role::egress(Task::Compute), "compute", Body::Control(update)),
            block(Role::egress(Task::Deparse), "deparser", Body::Control(deparser)),
        ];
        self.apply_info();
        Ok(())
    }

    fn new_var(&mut self, name: String, ty: Ty) -> VarId {
        self.program.vars.push(Var { name, ty });
        VarId(self.program.vars.len() as u32 - 1)
    }

    fn errors(&mut self) -> Result<()> {
        // Whatever the numbers of the file, the switch's `NoError` is 0.
        self.program.errors = CORE_ERRORS.map(str::to_owned).to_vec();
        for error in self.root.list_of("errors")? {
            let (name, number) = (error.at(0)?.text()?, error.at(1)?.number()?);
            let known = self.program.errors.iter().position(|known| known == name);
            let at = known.unwrap_or_else(|| {
                self.program.errors.push(name.to_owned());
                self.program.errors.len() - 1
            });
            self.errors.insert(number, at as u32);
        }
        Ok(())
    }
}

/// The errors of the language, in its order.
const CORE_ERRORS: [&str; 7] = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
];

/// What to do about a file for another target, or of another version.
const AGAIN: &str = "compile the program for v1model, with p4c-bm2-ss or `p4rack compat p4c`";

/// Refuses files of other versions and for other targets.
fn check(root: &Cursor<'_>) -> Result<()> {
    let is_bmv2 = root.find("header_types").is_some() && root.find("pipelines").is_some();
    if !is_bmv2 {
        return root.wrong(
            "this is not BMv2's JSON: `header_types` and `pipelines` are missing. The switch runs P4_16 text and the \
             JSON of p4c-bm2-ss",
        );
    }
    if let Some(meta) = root.find("__meta__") {
        let version = meta.get("version")?;
        let major = version.list().ok().and_then(|parts| parts.first()?.number().ok());
        match major {
            Some(MAJOR) => {}
            Some(other) => {
                return version.wrong(format!("version {other} of the format; expected {MAJOR}: {AGAIN}"));
            }
            None => return version.wrong(format!("expected a list such as [{MAJOR}, 23]: {AGAIN}")),
        }
    }
    for pipeline in root.get("pipelines")?.list()? {
        let name = pipeline.get("name")?;
        if !matches!(name.text()?, "ingress" | "egress") {
            return name.wrong(format!(
                "a pipeline `{}`: this file is for another target than simple_switch, whose pipelines are `ingress` and \
                 `egress`; {AGAIN}",
                name.text()?
            ));
        }
    }
    let externs = root.list_of("extern_instances")?;
    if let Some(other) = externs.first() {
        return other.wrong(format!(
            "an extern of type `{}`: the externs of simple_switch have lists of their own, so this file is for another \
             target or for a switch with code of its own; {AGAIN}",
            other.text_of("type")?
        ));
    }
    Ok(())
}

fn empty(name: String) -> Program {
    Program {
        name,
        pkginfo: Vec::new(),
        main: Span::default(),
        arch: "v1model".to_owned(),
        vars: vec![Var { name: String::new(), ty: Ty::Bit(1) }],
        shared_vars: 0,
        headers: Vec::new(),
        stacks: Vec::new(),
        tables: Vec::new(),
        actions: Vec::new(),
        instances: Vec::new(),
        methods: Vec::new(),
        value_sets: Vec::new(),
        digests: Vec::new(),
        controller_headers: Vec::new(),
        errors: Vec::new(),
        new_types: Vec::new(),
        ser_enums: Vec::new(),
        enums: Vec::new(),
        data_structs: Vec::new(),
        rules: Rules::default(),
        intrinsics: Vec::new(),
        uses_externs: false,
        field_lists: Vec::new(),
        pipelines: vec![String::new()],
        blocks: Vec::new(),
    }
}

/// The file has no places of the program's text.
const NOWHERE: Span = Span { lo: 0, hi: 0 };
