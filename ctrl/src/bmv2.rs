//! What BMv2's `simple_switch_grpc` requires of a controller beyond P4Runtime: a program compiled to its own
//! JSON, and time in microseconds.
//!
//! It offers no registers over P4Runtime, so PL2's are accessed through management frames, as on every
//! target.

pub mod packets;

use crate::error::CtrlError;
use p4rack_codegen::rack::Target;
use p4rack_codegen::{Artefacts, Rack};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// p4c's compiler for BMv2's v1model switch.
const COMPILER: &str = "p4c-bm2-ss";
/// The file that the compiler writes.
const OUTPUT: &str = "program.json";
/// Unit of BMv2's timestamps.
const TIME_UNIT_NS: u64 = 1_000;

/// Rejects a rack whose times BMv2 cannot represent.
pub fn check(rack: &Rack) -> Result<(), CtrlError> {
    if !rack.exchanges_times() || rack.switch.time_unit_ns == TIME_UNIT_NS {
        return Ok(());
    }
    let unit_ns = rack.switch.time_unit_ns;
    let add = match rack.switch.target {
        Target::Bmv2 => "take time_unit_ns out of [switch]",
        Target::Embedded => "write target = \"bmv2\" under [switch]",
    };
    Err(CtrlError::Program(format!(
        "rack {}: BMv2 counts time in units of {TIME_UNIT_NS} ns, the description's are {unit_ns} ns, and hosts \
         and switch must agree: {add}",
        rack.name
    )))
}

/// Which compiler makes BMv2's JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// p4rack's own.
    #[default]
    Own,
    /// p4c-bm2-ss, which must be on PATH.
    P4c,
}

/// The program in the form that BMv2 takes.
pub fn compile(artefacts: &Artefacts, compiler: Compiler) -> Result<Vec<u8>, CtrlError> {
    let Artefacts { name, p4, .. } = artefacts;
    if compiler == Compiler::P4c {
        return compile_text(name, p4);
    }
    let json = p4rack_p4::compile(p4, &format!("{name}.p4"), &p4rack_p4::Options::default())
        .and_then(|compiled| p4rack_bmv2::write(&compiled));
    let json = json.map_err(|refused| CtrlError::Program(refused.render(false)))?;
    Ok(json.to_string().into_bytes())
}

/// Compiles any P4_16 program for v1model by p4c to the form that BMv2 takes. Its messages call it `name`.
pub fn compile_text(name: &str, text: &str) -> Result<Vec<u8>, CtrlError> {
    compile_including(name, text, &[])
}

/// Same for a program that includes files from these folders.
pub fn compile_including(name: &str, text: &str, folders: &[PathBuf]) -> Result<Vec<u8>, CtrlError> {
    let compiler = find(COMPILER, &std::env::var_os("PATH").unwrap_or_default());
    compile_with(name, text, folders, compiler)
}

fn compile_with(
    name: &str,
    text: &str,
    folders: &[PathBuf],
    compiler: Option<PathBuf>,
) -> Result<Vec<u8>, CtrlError> {
    let compiler = compiler.ok_or_else(|| {
        CtrlError::Program(format!(
            "{COMPILER} is not on PATH: install p4c (`p4rack doctor` says how), or use p4rack's own compiler, which \
             `deploy` does without --compiler and `p4rack p4 compile` for any program"
        ))
    })?;
    let folder = private_folder()?;
    let source = format!("{name}.p4");
    let io = |what: &str, error: std::io::Error| CtrlError::Program(format!("{what}: {error}"));
    std::fs::write(folder.path().join(&source), text).map_err(|error| io("writing the program", error))?;
    let done = Command::new(&compiler)
        .args(["--arch", "v1model", "-o", OUTPUT, &source])
        .args(folders.iter().flat_map(|folder| [OsStr::new("-I"), folder.as_os_str()]))
        // The output names its input, so a unique path would make every compilation a different program.
        .current_dir(folder.path())
        .output()
        .map_err(|error| io(&format!("starting {}", compiler.display()), error))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(CtrlError::Program(format!("{COMPILER} rejected the program:\n{}", said.trim_end())));
    }
    std::fs::read(folder.path().join(OUTPUT))
        .map_err(|error| io(&format!("reading what {COMPILER} wrote"), error))
}

fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A private folder with an unpredictable name, removed together with the value.
fn private_folder() -> Result<TempDir, CtrlError> {
    let private = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix("p4rack-bmv2-").permissions(private).tempdir();
    made.map_err(|error| CtrlError::Program(format!("a folder for {COMPILER}'s files: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_codegen::{Arch, Scheme, generate};

    fn rack(switch: &str) -> Rack {
        let text = format!(
            "name = \"r\"\n[switch]\nport_rate = \"100 Mb/s\"\n{switch}\n[[host]]\nname = \"a\"\nport = 1\n\
             mac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nport = 2\n\
             mac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\n[pl2]\nmode = \"clock\"\n"
        );
        Rack::parse(&text, "r.toml").unwrap()
    }

    fn artefacts() -> Artefacts {
        generate(&rack("target = \"bmv2\""), Scheme::PL2_CLOCK, Arch::V1model).unwrap()
    }

    /// A stand-in for the compiler: this tests how it is called and how its result is used, not p4c.
    fn script(body: &str) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("compiler");
        // Written by another process: a child that this process forks in the meantime would hold the file
        // open, and it could not be executed.
        let write = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", write]).arg(&path).arg(format!("#!/bin/sh\n{body}\n"));
        assert!(shell.status().unwrap().success());
        (folder, path)
    }

    /// The compiler runs in a private folder with a fresh name, which is removed afterwards.
    #[test]
    fn the_compiler_works_where_nobody_else_can() {
        let (_kept, compiler) = script("(pwd; stat -c %a .) > \"$4\"");
        let said = || String::from_utf8(compile_with("r", "", &[], Some(compiler.clone())).unwrap()).unwrap();
        let (first, second) = (said(), said());
        let folder = first.lines().next().unwrap();
        assert_eq!(first.lines().nth(1), Some("700"));
        assert_ne!(Some(folder), second.lines().next());
        assert!(!std::path::Path::new(folder).exists());
    }

    #[test]
    fn what_the_compiler_writes_is_installed() {
        let body = "test \"$1 $2\" = '--arch v1model' && (cat \"$5\"; echo \"of $5\") > \"$4\"";
        let (_kept, compiler) = script(body);
        let artefacts = artefacts();
        let config = compile_with("r", &artefacts.p4, &[], Some(compiler)).unwrap();
        assert_eq!(String::from_utf8(config).unwrap(), artefacts.p4 + "of r.p4\n");
    }

    #[test]
    fn the_programs_of_all_schemes_compile_without_p4c() {
        for scheme in [Scheme::L2, Scheme::PL2_COUNTER, Scheme::PL2_CLOCK] {
            let artefacts = generate(&rack("target = \"bmv2\""), scheme, Arch::V1model).unwrap();
            let json = compile(&artefacts, Compiler::Own).unwrap();
            let json = String::from_utf8(json).unwrap();
            let info = p4rack_p4rt::text::parse(&artefacts.p4info).unwrap();
            p4rack_bmv2::read(&json, "r.json", Some(&info)).unwrap();
        }
    }

    #[test]
    fn what_the_compiler_says_is_passed_on() {
        let (_kept, compiler) = script("echo 'r.p4(7): error: no' >&2; exit 1");
        let compile = |compiler| compile_with("r", "", &[], compiler);
        let error = compile(Some(compiler)).unwrap_err().to_string();
        assert!(error.contains("p4c-bm2-ss rejected the program:\nr.p4(7): error: no"), "{error}");
        let error = compile(None).unwrap_err().to_string();
        assert!(error.contains("not on PATH") && error.contains("p4rack doctor"), "{error}");
        let (_kept, idle) = script("exit 0");
        let error = compile(Some(idle)).unwrap_err().to_string();
        assert!(error.contains("reading what p4c-bm2-ss wrote"), "{error}");
    }

    #[test]
    fn clocks_must_be_bmv2s() {
        check(&rack("target = \"bmv2\"")).unwrap();
        check(&rack("").under(Scheme::PL2_COUNTER).unwrap()).unwrap();
        let error = check(&rack("")).unwrap_err().to_string();
        assert!(
            error.contains("the description's are 1 ns") && error.contains("target = \"bmv2\""),
            "{error}"
        );
        let rack = rack("target = \"bmv2\"\ntime_unit_ns = 10");
        let error = check(&rack).unwrap_err().to_string();
        assert!(error.contains("take time_unit_ns out"), "{error}");
        assert_eq!(rack.switch.device_id, 0);
    }
}
