//! `bf-sde/`: scripts around Tofino's software, here with programs that imitate it.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{p4rack, stderr, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A folder of its own, with a generated program and an empty installation.
struct Rig {
    folder: PathBuf,
}

impl Rig {
    fn new(name: &str, arch: &str) -> Rig {
        let folder = std::env::temp_dir().join(format!("p4rack-{name}-{arch}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("install/bin")).unwrap();
        let rack = root().join("examples/pl2-incast.toml");
        let done =
            p4rack().arg("generate").arg(rack).args(["--arch", arch, "-o"]).arg(folder.join("out")).output();
        assert!(done.as_ref().unwrap().status.success(), "{}", stderr(&done.unwrap()));
        Rig { folder }
    }

    /// Runs a script on the generated folder.
    fn script(&self, name: &str) -> Output {
        let mut script = Command::new(root().join("bf-sde").join(name));
        script.arg(self.folder.join("out")).env("SDE_INSTALL", self.install()).env_remove("P4C");
        script.output().unwrap()
    }

    fn install(&self) -> PathBuf {
        self.folder.join("install")
    }

    /// A program of the installation.
    fn install_program(&self, name: &str, text: &str) {
        let path = self.install().join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn json(&self, path: &Path) -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Writes what a compiler for the chip leaves, and its arguments.
const COMPILER: &str = r#"echo "$@" > "$SDE_INSTALL/arguments"
while [ $# -gt 0 ]; do
    case $1 in -o) out=$2 ;; --target) target=$2 ;; --bf-rt-schema) schema=$2 ;; esac
    shift
done
mkdir -p "$out/pipe" && echo {} > "$schema" && echo {} > "$out/pipe/context.json" && echo x > "$out/pipe/$target.bin""#;

#[test]
fn the_driver_finds_what_the_compiler_leaves() {
    for (arch, target, chip) in [("tna", "tofino", "Tofino"), ("t2na", "tofino2", "Tofino2")] {
        let rig = Rig::new("build", arch);
        rig.install_program("p4c", COMPILER);
        let done = rig.script("build.sh");
        assert!(done.status.success(), "{}", stderr(&done));
        let arguments = std::fs::read_to_string(rig.install().join("arguments")).unwrap();
        assert!(arguments.contains(&format!("--target {target} --arch {arch}")), "{arguments}");
        assert!(arguments.contains("pl2-incast.p4"), "{arguments}");
        let conf = rig.json(&rig.folder.join("out/pl2-incast.switchd.conf"));
        assert_eq!(conf["chip_list"][0]["chip_family"], chip);
        let program = &conf["p4_devices"][0]["p4_programs"][0];
        let pipeline = &program["p4_pipelines"][0];
        for file in [&program["bfrt-config"], &pipeline["context"], &pipeline["config"]] {
            let file = rig.install().join(file.as_str().unwrap());
            assert!(file.is_file(), "{}", file.display());
        }
        rig.install_program("bf_switchd", "echo \"$@\"");
        let done = rig.script("switchd.sh");
        assert!(stdout(&done).contains("out/pl2-incast.switchd.conf --background"), "{}", stderr(&done));
        let text = rig.folder.join("out/pl2-incast.p4");
        std::fs::write(&text, std::fs::read_to_string(&text).unwrap() + "// of another rack\n").unwrap();
        let done = rig.script("switchd.sh");
        assert!(stderr(&done).contains("was compiled from another text: run"), "{}", stderr(&done));
    }
}

#[test]
fn what_is_missing_is_named_with_how_to_get_it() {
    let rig = Rig::new("missing", "tna");
    for (script, needs) in
        [("build.sh", "bf-p4c or p4c"), ("model.sh", "tofino-model"), ("switchd.sh", "bf_switchd")]
    {
        let done = rig.script(script);
        assert_eq!(done.status.code(), Some(77), "{script}: {}", stderr(&done));
        let said = stderr(&done);
        assert!(
            said.contains("skipped: needs ") && said.contains(needs) && said.contains(", get it by "),
            "{said}"
        );
    }
    let mut unset = Command::new(root().join("bf-sde/build.sh"));
    let done = unset.arg(rig.folder.join("out")).env_remove("SDE_INSTALL").output().unwrap();
    assert_eq!(done.status.code(), Some(77));
    assert!(stderr(&done).contains("skipped: needs SDE_INSTALL, get it by"), "{}", stderr(&done));
    // A compiler that refuses the program, and one without an assembler.
    rig.install_program("p4c", "exit 3");
    let done = rig.script("build.sh");
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("pl2-incast.p4: refused by"), "{}", stderr(&done));
    rig.install_program("p4c", "exit 0");
    assert!(stderr(&rig.script("build.sh")).contains("left no "));
    rig.install_program("bf_switchd", "exit 0");
    let done = rig.script("switchd.sh");
    assert!(stderr(&done).contains("pl2_clock is not compiled: run"), "{}", stderr(&done));
    std::fs::remove_file(rig.folder.join("out/pl2-incast.switchd.conf")).unwrap();
    let done = rig.script("build.sh");
    assert!(stderr(&done).contains("no *.switchd.conf; write it with"), "{}", stderr(&done));
}

#[test]
fn ports_are_those_of_the_rack() {
    let rig = Rig::new("ports", "tna");
    let out = |ending: &str| rig.folder.join(format!("out/pl2-incast.{ending}"));
    let ports = rig.json(&out("ports.json"));
    let rows = ports["ports"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0]["hosts"][0], "h1");
    assert!(rows[0]["speed"].is_null(), "no chip has ports of 100 Mb/s");
    let model = rig.json(&out("model.json"));
    let pairs = model["PortToVeth"].as_array().unwrap();
    assert_eq!(pairs.len(), 7, "with the CPU's");
    assert_eq!((&pairs[1]["veth1"], &pairs[1]["veth2"]), (&2.into(), &3.into()));
    assert_eq!((&pairs[6]["device_port"], &pairs[6]["veth1"]), (&64.into(), &250.into()));
    let script = std::fs::read_to_string(out("ports.py")).unwrap();
    assert!(script.contains("# port 1: no port has 100000000 b/s"), "{script}");
}
