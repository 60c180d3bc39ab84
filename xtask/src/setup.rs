//! Packages from Debian and PyPI that the tests need: installed if permitted, otherwise listed.

use crate::report::{Report, Started};
use crate::root;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian package, a file that it contains, and what needs it.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("g++", "/usr/bin/g++", "the fuzz targets"),
    ("memcached", "/usr/bin/memcached", "the memcached test"),
    ("iperf3", "/usr/bin/iperf3", "the iperf3 test"),
    ("curl", "/usr/bin/curl", "the documents' commands"),
    ("iputils-ping", "/usr/bin/ping", "the ping tests"),
    ("iproute2", "/usr/sbin/ip", "the PTF suite"),
    ("etcd-server", "/usr/bin/etcd", "the etcd test"),
    ("mininet", "/usr/bin/mn", "the Mininet test"),
    ("tshark", "/usr/bin/tshark", "the test of RoCE's frames"),
    ("valgrind", "/usr/bin/valgrind", "the test of recorded traces"),
];

/// Installs missing packages.
pub fn debian(report: &mut Report) {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, file, _)| !present(file)).map(|(name, _, _)| *name).collect();
    if missing.is_empty() {
        return;
    }
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command
    };
    let updated = apt(&["update", "-q"]).status().is_ok_and(|status| status.success());
    let mut install = apt(&["install", "-y", "-q", "--no-install-recommends"]);
    install.args(&missing);
    if !updated || !report.step("Debian packages", &mut install) {
        for (name, file, need) in PACKAGES.iter().filter(|(_, file, _)| !present(file)) {
            report.skip(need, &format!("needs {file}, get it by: sudo apt-get install {name}"));
        }
    }
}

/// Whether a command is in /usr/bin or /bin, or a file exists.
fn present(file: &str) -> bool {
    Path::new(file).exists() || Path::new(&file.replacen("/usr", "", 1)).exists()
}

/// Runs the tests of the Python clients and the PTF suite in virtual environments with pinned packages.
pub fn python(report: &mut Report) {
    let tests = root().join("tests/python");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let binary = target.join("verify/p4rack");
    let pytest = |python: &Path, args: &[&str]| {
        let mut pytest = Command::new(python);
        pytest.current_dir(&tests).args(["-m", "pytest", "-rs", "--no-header", "-p", "no:cacheprovider"]);
        crate::settle(pytest.args(args).env("P4RACK_BIN", &binary));
        pytest
    };
    let requirements = [tests.join("requirements.txt"), root().join("ptf-tests/requirements.txt")];
    if let Some(python) = environment(report, ".venv", &requirements) {
        report.tests(
            "Python clients",
            &mut pytest(
                &python,
                &["--ignore=with_finsy", "--ignore=of_the_standard", "--ignore=with_libcachesim", "."],
            ),
        );
        // Two at a time, each in a namespace of its own: tests mostly wait.
        let runs = [
            [("embedded", "v1model"), ("bfrt", "tna")],
            [("embedded", "tna"), ("bfrt", "t2na")],
            [("bmv2", "v1model"), ("tofino-model", "tna")],
        ];
        for pair in runs {
            let started = pair.map(|(platform, arch)| {
                let mut suite = Command::new(&python);
                suite.arg(root().join("ptf-tests/run.py")).args(["--platform", platform, "--arch", arch]);
                Started::new(&format!("PTF on {platform}, {arch}"), suite.arg("--binary").arg(&binary))
            });
            for suite in started {
                report.finish(suite);
            }
        }
        pace(report, &python, &target.join("verify"));
    }
    // The shell requires bindings of an older version of the standard.
    let standard = [tests.join("of_the_standard/requirements.txt")];
    if let Some(python) = environment(report, ".venv-standard", &standard) {
        report.tests("Standard's messages", &mut pytest(&python, &["of_the_standard"]));
    }
    let simulator = [tests.join("with_libcachesim/requirements.txt")];
    if let Some(python) = environment(report, ".venv-libcachesim", &simulator) {
        report.tests("libCacheSim", &mut pytest(&python, &["with_libcachesim"]));
    }
    // finsy needs another generation of protobuf than the `p4runtime` package.
    if let Some(python) = environment(report, ".venv-finsy", &[tests.join("with_finsy/requirements.txt")]) {
        report.tests("finsy", &mut pytest(&python, &["with_finsy"]));
    }
}

/// Runs the PTF tests of the scheme in examples/pace on the embedded switch. `binaries` has the commands.
fn pace(report: &mut Report, python: &Path, binaries: &Path) {
    let example = root().join("examples/pace");
    let generated = binaries.join("pace-generated");
    let mut generate = Command::new(binaries.join("p4rack-pace"));
    generate.arg("generate").arg(example.join("rack.toml")).arg(&generated);
    if !report.step("Program of examples/pace", &mut generate) {
        return;
    }
    let mut suite = Command::new(python);
    suite.arg(root().join("ptf-tests/run.py")).args(["--platform", "embedded"]);
    suite.arg("--artefacts").arg(generated).arg("--test-dir").arg(example.join("ptf"));
    suite.arg("--binary").arg(binaries.join("p4rack"));
    report.finish(Started::new("PTF of examples/pace", &mut suite));
}

/// Runs the tests of a copy of open-p4studio, or those with this in their names.
pub fn tna_examples(report: &mut Report, folder: &Path, only: &str) {
    let tests = root().join("tests/python/tna");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    if let Some(python) = environment(report, ".venv-tna", &[tests.join("requirements.txt")]) {
        let mut run = Command::new(&python);
        run.arg(tests.join("run.py")).arg(folder).arg("--binary").arg(target.join("verify/p4rack"));
        report.step("open-p4studio's tests", run.args(["--only", only]));
    }
}

/// Creates a virtual environment in the workspace and returns its Python.
pub fn environment(report: &mut Report, name: &str, requirements: &[PathBuf]) -> Option<PathBuf> {
    let venv = root().join(name);
    let python = venv.join("bin/python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&venv);
        if !report.step("Python environment", &mut create) {
            println!("   get it by: sudo apt-get install python3-venv");
            return None;
        }
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "-q", "--disable-pip-version-check"]);
    for file in requirements {
        install.arg("-r").arg(file);
    }
    report.step("Python packages", &mut install).then_some(python)
}
