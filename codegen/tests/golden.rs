//! Generated files of the example racks, byte for byte: tests/golden/ keeps texts, outlines with digests, and
//! differences.
//!
//! A change of templates shows here as a diff to read. `cargo xtask bless` writes the files again.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::kept;
use crate::programs;

use kept::Files;
use p4rack_codegen::{Arch, Rack, Scheme, generate};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::text;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where golden files are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Folder for generated files: those covered by golden files, and those that differ from them.
fn left(what: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden").join(what)
}

fn generated() -> Files {
    let example = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
        Rack::load(path).unwrap_or_else(|error| panic!("{error}"))
    };
    let [rack, pipes, memory_pipes] = ["pl2-incast.toml", "pl2-pipes.toml", "edm-pipes.toml"].map(example);
    let breakout = Rack::parse(BREAKOUT, "breakout.toml").unwrap_or_else(|error| panic!("{error}"));
    let memory = Rack::parse(MEMORY, "memory.toml").unwrap_or_else(|error| panic!("{error}"));
    let [destinations, both] = ["timed-dst", "timed"].map(with_pl2);
    let offload = Rack::parse(OFFLOAD, "offload.toml").unwrap_or_else(|error| panic!("{error}"));
    let boards = Rack::parse(BOARDS, "boards.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut files = Files::new();
    let of_v1model = schemes(&rack)
        .into_iter()
        .map(|scheme| (&rack, scheme))
        .chain([(&breakout, Scheme::PL2_CLOCK)])
        .chain(schemes(&memory).into_iter().skip(1).map(|scheme| (&memory, scheme)))
        .chain([(&both, both.scheme())])
        .chain([(&offload, Scheme::COWBIRD), (&boards, Scheme::CLIO)]);
    let of_tofino = [Arch::Tna, Arch::T2na].into_iter().flat_map(|arch| {
        let of_pl2 = schemes(&rack).into_iter().map(|scheme| (&rack, scheme));
        let of_edm = schemes(&memory).into_iter().skip(1).map(|scheme| (&memory, scheme));
        let of_both = [&destinations, &both].map(|rack| (rack, rack.scheme()));
        let of_pipes = [(&pipes, Scheme::PL2_CLOCK), (&memory_pipes, Scheme::EDM_TIMED_DST)];
        of_pl2
            .chain(of_edm)
            .chain(of_both)
            .chain(of_pipes)
            .chain([(&offload, Scheme::COWBIRD)])
            .map(move |(rack, scheme)| (rack, scheme, arch))
    });
    let racks = of_v1model.map(|(rack, scheme)| (rack, scheme, Arch::V1model)).chain(of_tofino);
    for (rack, scheme, arch) in racks {
        let artefacts = generate(rack, scheme, arch).unwrap_or_else(|error| panic!("{error}"));
        let place = match arch {
            Arch::V1model => scheme.name().to_owned(),
            _ => format!("{scheme}-{arch}"),
        };
        let of_scheme = artefacts.files().into_iter();
        files.extend(of_scheme.map(|(name, contents)| (Path::new(&place).join(name), contents)));
    }
    files
}

/// EDM in this mode, and PL2 beside it.
fn with_pl2(mode: &str) -> Rack {
    let text = MEMORY.replace("mode = \"timed\"", &format!("mode = \"{mode}\""));
    let text = format!("{text}[pl2]\nmode = \"clock\"\n");
    Rack::parse(&text, "both.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// The schemes that a rack can run, but for those of several protocols.
fn schemes(rack: &Rack) -> Vec<Scheme> {
    Scheme::all().into_iter().filter(|scheme| rack.under(*scheme).is_ok()).collect()
}

/// A host, a memory node, and one that is both and slower.
const MEMORY: &str = r#"
name = "memory"
[switch]
port_rate = "100 Gb/s"
[edm]
mode = "timed"
memory = ["b", "c"]
chunk_bytes = 256
[[host]]
name = "a"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
[[host]]
name = "b"
port = 2
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
[[host]]
name = "c"
port = 3
mac = "02:00:00:00:00:03"
ip = "10.0.0.3/24"
rate = "25 Gb/s"
"#;

/// A compute node, a pool, and a host that is neither.
const OFFLOAD: &str = r#"
name = "offload"
[switch]
port_rate = "10 Gb/s"
[cowbird]
ip = "10.0.0.254"
compute = ["a"]
pool = ["b"]
[[host]]
name = "a"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
[[host]]
name = "b"
port = 2
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
[[host]]
name = "c"
port = 3
mac = "02:00:00:00:00:03"
ip = "10.0.0.3/24"
"#;

/// A host with a board, and one without.
const BOARDS: &str = r#"
name = "boards"
[switch]
port_rate = "10 Gb/s"
[clio]
boards = ["b"]
memory = "64 MiB"
[[host]]
name = "a"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
[[host]]
name = "b"
port = 2
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
"#;

/// Two links behind one port.
const BREAKOUT: &str = r#"
name = "breakout"
[switch]
port_rate = "100 Gb/s"
[pl2]
mode = "clock"
[[host]]
name = "a"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
rate = "50 Gb/s"
port_rate = "100 Gb/s"
[[host]]
name = "b"
port = 1
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
rate = "50 Gb/s"
port_rate = "100 Gb/s"
[[host]]
name = "c"
port = 2
mac = "02:00:00:00:00:03"
ip = "10.0.0.3/24"
"#;

#[test]
fn golden_files_are_up_to_date() {
    let generated = generated();
    let kept = kept::kept(&generated);
    let stored = stored();
    if std::env::var_os("P4RACK_BLESS").is_some() {
        stored.keys().filter(|path| !kept.contains_key(*path)).for_each(|path| {
            std::fs::remove_file(folder().join(path)).unwrap();
        });
        write(&folder(), &kept);
        return;
    }
    let is_right = |path: &PathBuf| stored.get(path) == kept.get(path);
    let folder_is_right = |path: &Path| kept.keys().filter(|one| one.parent() == path.parent()).all(is_right);
    write(&left("generated"), &generated);
    write(&left("stored"), &generated.into_iter().filter(|(path, _)| folder_is_right(path)).collect());
    let all = stored.keys().chain(kept.keys());
    let Some(path) = all.into_iter().find(|path| !is_right(path)) else { return };
    let text = |files: &Files| files.get(path).cloned().unwrap_or_default();
    let (old, new) = (text(&stored), text(&kept));
    let differs = old.lines().zip(new.lines()).position(|(old, new)| old != new);
    let line = differs.unwrap_or(old.lines().count().min(new.lines().count()));
    panic!(
        "tests/golden/{} differs from what is generated now, at line {}:\n- {}\n+ {}\nSee all differences with\n  \
         diff -ru {} {}\nThe first folder is from the last run that passed: if there was none, run this test between `git stash` \
         and `git stash pop`.\nIf the differences are meant, run `cargo xtask bless` and read the diff.",
        path.display(),
        line + 1,
        old.lines().nth(line).unwrap_or("(end of file)"),
        new.lines().nth(line).unwrap_or("(end of file)"),
        left("stored").display(),
        left("generated").display(),
    );
}

/// The golden files.
fn stored() -> Files {
    let entries =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = entries(folder()).flat_map(entries);
    let read = |path: PathBuf| {
        (path.strip_prefix(folder()).unwrap().to_path_buf(), std::fs::read_to_string(&path).unwrap())
    };
    files.map(read).collect()
}

fn write(folder: &Path, files: &Files) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// A controller, PTF and `top` take names from NAME.json, and the P4Info has to have each.
#[test]
fn what_constants_name_is_in_the_p4info() {
    let files = generated();
    let mut named = 0;
    for (path, constants) in &files {
        let info = path.with_extension("p4info.txtpb");
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let Some(info) = files.get(&info).filter(|_| is_json) else { continue };
        let constants: serde_json::Value = serde_json::from_str(constants).unwrap();
        let mut names = Vec::new();
        full_names("", &constants, &mut names);
        for (kind, name) in names {
            let preamble = format!("name: \"{name}\"\n");
            let before = info.split(&preamble).next().filter(|before| before.len() < info.len());
            let is_field = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
            let section = before.and_then(|before| before.rsplit('\n').find(is_field)).unwrap_or_default();
            assert_eq!(section.split([':', ' ']).next(), Some(kind), "{}: {name}", path.display());
            named += 1;
        }
    }
    assert!(named > 200, "{named}");
}

/// Every full name that is somewhere in `value`, and the kind of P4Info's objects that has it, from its field's name.
fn full_names<'a>(field: &str, value: &'a serde_json::Value, names: &mut Vec<(&'static str, &'a str)>) {
    if let Some(name) = value.as_str().filter(|text| text.contains("Ingress.") || text.contains("Egress.")) {
        let kind = match field {
            "tables" => "tables",
            "meters" => "meters",
            "registers" => "registers",
            _ if field.ends_with("counter") => "counters",
            _ => panic!("{field}: {name} is of no known kind"),
        };
        names.push((kind, name));
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        let groups = ["tables", "meters", "registers"];
        full_names(if groups.contains(&field) { field } else { key }, inner, names);
    }
}

#[test]
fn generating_twice_gives_the_same_bytes() {
    assert_eq!(generated(), generated());
}

/// Programs of options that no golden file has.
fn of_options() -> Vec<(PathBuf, String)> {
    let clock = |rest: &str| format!("[pl2]\nmode = \"clock\"\n{rest}");
    let edm = |mode: &str, rest: &str| {
        format!("[edm]\nmode = \"{mode}\"\nmemory = [\"b\"]\nchunk_bytes = 256\n{rest}")
    };
    let chips = [Arch::Tna, Arch::T2na];
    let all = [Arch::V1model, Arch::Tna, Arch::T2na];
    let mut cases: Vec<(String, &[Arch])> = vec![
        (clock("clocks = \"calendar\""), &all[..1]),
        (clock("slot_parts = 4"), &all[..1]),
        (clock("notify_receiver = true"), &all[..1]),
        ("[pl2]\nmode = \"counter\"\nnotify_receiver = true".to_owned(), &all[..1]),
        (clock(""), &chips),
        (clock("clocks = \"chain\""), &all),
        (clock("clocks = \"dst\""), &all),
        ("[pl2]\nmode = \"counter\"".to_owned(), &all),
    ];
    for mode in ["timed-dst", "timed", "calendar", "matched"] {
        cases.push((edm(mode, ""), &all));
        cases.push((edm(mode, "window = 1\nshares = true"), &all));
    }
    let mut programs = Vec::new();
    for (tables, archs) in cases {
        let mut text = BREAKOUT.replace("[pl2]\nmode = \"clock\"", &tables);
        if tables.contains("counter") {
            // It counts one slot for all links, so they have one rate.
            text = text.replace("rate = \"50 Gb/s\"\n", "");
        }
        let rack = Rack::parse(&text, "options.toml").unwrap_or_else(|error| panic!("{tables}: {error}"));
        for arch in archs {
            let program = p4rack_codegen::render_p4(&rack, rack.scheme(), *arch);
            let program = program.unwrap_or_else(|error| panic!("{tables} on {arch}: {error}"));
            programs.push((PathBuf::from(format!("{tables} on {arch}.p4")), program));
        }
    }
    programs
}

#[test]
fn no_line_is_untidy() {
    let others = ["timed-dst", "calendar", "matched"].map(with_pl2).map(|rack| {
        let program = p4rack_codegen::render_p4(&rack, rack.scheme(), Arch::V1model).unwrap();
        (PathBuf::from(format!("{}.p4", rack.scheme())), program)
    });
    let chunks = ["calendar", "matched"].map(|mode| {
        let table = format!("mode = \"{mode}\"\nwindow = 1");
        let rack = Rack::parse(&MEMORY.replace("mode = \"timed\"", &table), "chunks.toml").unwrap();
        let program = p4rack_codegen::render_p4(&rack, rack.scheme(), Arch::Tna).unwrap();
        (PathBuf::from(format!("{mode}-of-chunks.p4")), program)
    });
    let pipes = [Arch::Tna, Arch::T2na].map(|arch| {
        let text = include_str!("../../examples/edm-pipes.toml").replace("[edm]", "[edm]\nshares = false");
        let rack = Rack::parse(&text, "pipes.toml").unwrap();
        let program = p4rack_codegen::render_p4(&rack, Scheme::EDM_TIMED_DST, arch).unwrap();
        (PathBuf::from(format!("pipes-without-shares-{arch}.p4")), program)
    });
    let others = others.into_iter().chain(chunks).chain(pipes).chain(of_options());
    for (path, contents) in generated().into_iter().chain(others) {
        for (i, line) in contents.lines().enumerate() {
            assert!(!line.ends_with(' ') && !line.contains('\t'), "{}:{}: {line:?}", path.display(), i + 1);
            let is_p4 = path.extension().is_some_and(|ending| ending == "p4");
            assert!(!is_p4 || line.chars().count() <= 130, "{}:{}: too long", path.display(), i + 1);
        }
        if path.extension().is_some_and(|ending| ending == "p4") {
            assert_eq!(programs::faults(&contents), Vec::<String>::new(), "{}", path.display());
        }
        assert!(contents.ends_with('\n') && !contents.ends_with("\n\n"), "{}", path.display());
        let is_python = path.extension().is_some_and(|ending| ending == "py");
        assert!(is_python || !contents.contains("\n\n\n"), "{}: two empty lines", path.display());
    }
}

/// Controllers see what they may touch: no table of constant entries, and no action of such tables alone.
#[test]
fn the_p4info_has_what_controllers_may_touch() {
    for (path, text) in
        generated().iter().filter(|(path, _)| path.to_string_lossy().ends_with(".p4info.txtpb"))
    {
        let info: P4Info = text::parse(text).unwrap();
        let constant = info.tables.iter().filter(|table| table.is_const_table);
        assert_eq!(constant.count(), 0, "{}", path.display());
        let chosen: BTreeSet<u32> =
            info.tables.iter().flat_map(|table| table.action_refs.iter().map(|action| action.id)).collect();
        for action in info.actions.iter().filter_map(|action| action.preamble.as_ref()) {
            assert!(chosen.contains(&action.id), "{}: no table has {}", path.display(), action.name);
        }
    }
}

#[test]
fn schemes_that_the_rack_can_not_have_are_refused() {
    let text = "name = \"r\"\n[switch]\nport_rate = \"1 Gb/s\"\n[[host]]\nname = \"a\"\nport = 1\n\
        mac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nport = 2\n\
        mac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\nrate = \"2 Gb/s\"\n";
    let rack = Rack::parse(text, "r.toml").unwrap();
    let error = generate(&rack, Scheme::PL2_CLOCK, Arch::V1model).unwrap_err().to_string();
    assert_eq!(error, "rack r: pl2-clock needs PL2's parameters: add a [pl2] table with mode = \"clock\"");
    let rack = Rack::parse(&format!("{text}[pl2]\nmode = \"clock\"\n"), "r.toml").unwrap();
    let error = generate(&rack, Scheme::PL2_COUNTER, Arch::V1model).unwrap_err().to_string();
    assert!(error.contains("counts one slot for all ports, but their rates differ"), "{error}");
    assert!(generate(&rack, Scheme::PL2_CLOCK, Arch::V1model).is_ok());
}

#[test]
fn what_tofino_can_not_do_is_refused_by_name() {
    let rack = |switch: &str, pl2: &str| {
        let host = |n: u32| {
            format!(
                "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n"
            )
        };
        let hosts: String = (1..=4).map(host).collect();
        let text = format!("name = \"r\"\n[switch]\n{switch}\n{hosts}[pl2]\n{pl2}\n");
        Rack::parse(&text, "r.toml").unwrap_or_else(|error| panic!("{error}"))
    };
    let gigabit = "port_rate = \"10 Gb/s\"";
    for (switch, pl2, expected) in [
        (gigabit, "mode = \"clock\"\nclocks = \"calendar\"", "shifts calendars of 64 bits"),
        (gigabit, "mode = \"clock\"\nslot_parts = 2", "counts frames there, not parts of a slot"),
        (gigabit, "mode = \"clock\"\nnotify_receiver = true", "does not copy grants"),
        ("port_rate = \"10 Gb/s\"\ntime_unit_ns = 2", "mode = \"clock\"", "has times in nanoseconds"),
        (gigabit, "mode = \"counter\"\nk = 255\nlanes = 16", "needs a table of "),
        ("port_rate = \"5 Mb/s\"", "mode = \"clock\"", "can't tell that many reserved slots from the past"),
    ] {
        let rack = rack(switch, pl2);
        assert!(generate(&rack, rack.scheme(), Arch::V1model).is_ok(), "{pl2}");
        for arch in [Arch::Tna, Arch::T2na] {
            let error = generate(&rack, rack.scheme(), arch).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[test]
fn modes_of_edm_that_tofino_can_not_have_are_refused_by_name() {
    let refused = |rack: &Rack, scheme: Scheme, arch: Arch| {
        assert!(generate(rack, scheme, Arch::V1model).is_ok(), "{scheme}");
        generate(rack, scheme, arch).unwrap_err().to_string()
    };
    let slow_clock = MEMORY.replace("[switch]", "[switch]\ntime_unit_ns = 2");
    let slow_clock = slow_clock.replace("100 Gb/s", "1 Gb/s").replace("25 Gb/s", "250 Mb/s");
    let slow_clock = Rack::parse(&slow_clock, "slow.toml").unwrap();
    for arch in [Arch::Tna, Arch::T2na] {
        for (rack, scheme, expected) in [
            (&crowd(256), Scheme::EDM_MATCHED, "it names hosts that wait by a byte there, and there are 256"),
            (&slow_clock, Scheme::EDM_TIMED, "it has times in nanoseconds there"),
        ] {
            let error = refused(rack, scheme, arch);
            assert!(error.contains(&format!("is not generated for {arch}: {expected}")), "{error}");
        }
    }
}

/// Two protocols share the stages of a chip, if it has enough of them.
#[test]
fn protocols_that_do_not_fit_together_are_refused_with_the_numbers() {
    let calendar = with_pl2("calendar");
    let error = generate(&calendar, calendar.scheme(), Arch::Tna).unwrap_err().to_string();
    let expected = "rack memory: edm-calendar+pl2-clock is not generated for tna: it takes about 14 stages, of 12: use one";
    assert!(error.starts_with(expected), "{error}");
    for arch in [Arch::V1model, Arch::T2na] {
        assert!(generate(&calendar, calendar.scheme(), arch).is_ok());
    }
}

/// A rack of this many hosts at 60 ports, of which the first one has memory.
fn crowd(hosts: usize) -> Rack {
    let host = |n: usize| {
        let (port, high, low) = (8 + n % 60, n / 256, n % 256);
        format!(
            "[[host]]\nname = \"h{n}\"\nport = {port}\nport_rate = \"100 Gb/s\"\n\
             mac = \"02:00:00:00:{high:02x}:{low:02x}\"\nip = \"10.0.{high}.{low}/16\"\n"
        )
    };
    let hosts: String = (1..=hosts).map(host).collect();
    let text = format!(
        "name = \"r\"\n[switch]\nport_rate = \"100 Gb/s\"\n[edm]\nmode = \"timed\"\nmemory = [\"h1\"]\n{hosts}"
    );
    Rack::parse(&text, "r.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// A program without the place where PL2 sets the controller's link: the second generation's parser does so first, and the first
/// generation's ingress where a frame of the controller is accepted.
fn without_the_controllers_link(program: &str) -> Vec<Vec<&str>> {
    let mut lines = program.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let (mut kept, mut set) = (Vec::new(), vec!["meta.pl2.link_in", "meta.pl2.source"]);
    while let Some(line) = lines.next() {
        if line.starts_with(&["//", "The", "controller's", "reservations", "are"]) {
            // The first generation's statements follow, in braces.
            if set.is_empty() {
                lines.by_ref().find(|line| *line == ["}"]);
            }
        } else if let Some(at) = set.iter().position(|field| line.first() == Some(field)) {
            set.remove(at);
        } else {
            kept.push(line);
        }
    }
    kept
}

/// Both of Tofino's architectures have the same text, except for the include file, the bytes that a frame carries to
/// its next pass, the port by which it comes back, and the place where PL2 sets the controller's link.
#[test]
fn tofinos_programs_differ_in_little() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pl2-incast.toml");
    let rack = Rack::load(example).unwrap();
    for scheme in schemes(&rack) {
        let [one, two] = [Arch::Tna, Arch::T2na].map(|arch| generate(&rack, scheme, arch).unwrap().p4);
        let as_two = one
            .replace("#include <tna.p4>", "#include <t2na.p4>")
            .replace("bit<56> padding;", "bit<120> padding;")
            .replace("packet.advance(56)", "packet.advance(120)")
            .replace("LOOP_PORT = 68;", "LOOP_PORT = 7;");
        // Longer numbers move columns.
        let [one, two] = [&as_two, &two].map(|program| without_the_controllers_link(program));
        assert_eq!(one.iter().zip(&two).find(|(one, two)| one != two), None);
        assert_eq!(one.len(), two.len());
    }
}
