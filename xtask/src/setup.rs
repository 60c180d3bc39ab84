//! Packages from Debian and PyPI that the tests need: installed if permitted, otherwise listed.

use crate::lanes::{Lane, Started, patient};
use crate::report::Report;
use crate::root;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian package, a file that it contains, and its users.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("g++", "/usr/bin/g++", "the fuzz targets"),
    ("memcached", "/usr/bin/memcached", "the memcached test"),
    ("redis-server", "/usr/bin/redis-server", "the store of a Redis server"),
    ("libjpeg-turbo-progs", "/usr/bin/djpeg", "the test of photos on a board"),
    ("iperf3", "/usr/bin/iperf3", "the iperf3 test"),
    ("curl", "/usr/bin/curl", "the documents' commands"),
    ("iputils-ping", "/usr/bin/ping", "the ping tests"),
    ("iproute2", "/usr/sbin/ip", "the PTF suite"),
    ("etcd-server", "/usr/bin/etcd", "the etcd test"),
    ("mininet", "/usr/bin/mn", "the Mininet test"),
    ("tshark", "/usr/bin/tshark", "the tests of RoCE's and Clio's frames"),
    ("valgrind", "/usr/bin/valgrind", "the tests of recorded traces and of the CPU's caches"),
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

/// Virtual environments with pinned packages, where they could be made: their Python.
#[derive(Debug, Default)]
pub struct Environments {
    /// PyPI's P4Runtime clients and the PTF suite.
    clients: Option<PathBuf>,
    /// The shell that requires bindings of an older version of the standard.
    standard: Option<PathBuf>,
    /// finsy needs another generation of protobuf than the `p4runtime` package.
    finsy: Option<PathBuf>,
}

/// Makes the environments of [`python`].
pub fn environments(lane: &Lane) -> Environments {
    let tests = root().join("tests/python");
    let clients = [tests.join("requirements.txt"), root().join("ptf-tests/requirements.txt")];
    Environments {
        clients: environment(lane, ".venv", &clients),
        standard: environment(lane, ".venv-standard", &[tests.join("of_the_standard/requirements.txt")]),
        finsy: environment(lane, ".venv-finsy", &[tests.join("with_finsy/requirements.txt")]),
    }
}

/// The folder with the binaries that the tests have built.
fn binaries() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    target.join("verify")
}

fn pytest(python: &Path, args: &[&str]) -> Command {
    let mut pytest = Command::new(python);
    pytest.current_dir(root().join("tests/python"));
    pytest.args(["-m", "pytest", "-rs", "--no-header", "-p", "no:cacheprovider"]);
    crate::settle(pytest.args(args).env("P4RACK_BIN", binaries().join("p4rack")));
    pytest
}

/// Runs the tests of the Python clients and the PTF suite.
pub fn python(lane: &Lane, environments: &Environments) {
    if let Some(python) = &environments.clients {
        let others = ["--ignore=with_finsy", "--ignore=of_the_standard", "--ignore=with_libcachesim"];
        lane.run("Python clients", &mut pytest(python, &[&others[..], &["."]].concat()));
        // Two at a time, each in a namespace of its own: tests mostly wait.
        let runs = [
            [("embedded", "v1model"), ("bfrt", "tna")],
            [("embedded", "tna"), ("bfrt", "t2na")],
            [("bmv2", "v1model"), ("tofino-model", "tna")],
        ];
        for pair in runs {
            let started = pair.map(|(platform, arch)| {
                let name = format!("PTF on {platform}, {arch}");
                println!("     begins {name}");
                let mut suite = Command::new(python);
                suite.arg(root().join("ptf-tests/run.py")).args(["--platform", platform, "--arch", arch]);
                Started::new(&name, suite.arg("--binary").arg(binaries().join("p4rack")))
            });
            for suite in started {
                lane.finish(suite);
            }
        }
        pace(lane, python);
    }
    if let Some(python) = &environments.standard {
        lane.run("Standard's messages", &mut pytest(python, &["of_the_standard"]));
    }
    if let Some(python) = &environments.finsy {
        lane.run("finsy", &mut pytest(python, &["with_finsy"]));
    }
}

/// Compares the policies of caches with libCacheSim's, with the processors' time that others leave.
pub fn simulator(lane: &Lane) {
    let requirements = root().join("tests/python/with_libcachesim/requirements.txt");
    if let Some(python) = environment(lane, ".venv-libcachesim", &[requirements]) {
        lane.run("libCacheSim", &mut patient(&pytest(&python, &["with_libcachesim"])));
    }
}

/// Runs the PTF tests of the scheme in examples/pace on the embedded switch.
fn pace(lane: &Lane, python: &Path) {
    let example = root().join("examples/pace");
    let generated = binaries().join("pace-generated");
    let mut generate = Command::new(binaries().join("p4rack-pace"));
    generate.arg("generate").arg(example.join("rack.toml")).arg(&generated);
    if !lane.run("Program of examples/pace", &mut generate) {
        return;
    }
    let mut suite = Command::new(python);
    suite.arg(root().join("ptf-tests/run.py")).args(["--platform", "embedded"]);
    suite.arg("--artefacts").arg(generated).arg("--test-dir").arg(example.join("ptf"));
    lane.run("PTF of examples/pace", suite.arg("--binary").arg(binaries().join("p4rack")));
}

/// Runs the tests of a copy of open-p4studio, or those with this in their names.
pub fn tna_examples(lane: &Lane, folder: &Path, only: &str) {
    let tests = root().join("tests/python/tna");
    if let Some(python) = environment(lane, ".venv-tna", &[tests.join("requirements.txt")]) {
        let mut run = Command::new(&python);
        run.arg(tests.join("run.py")).arg(folder).arg("--binary").arg(binaries().join("p4rack"));
        lane.run("open-p4studio's tests", run.args(["--only", only]));
    }
}

/// Creates a virtual environment in the workspace and returns its Python.
pub fn environment(lane: &Lane, name: &str, requirements: &[PathBuf]) -> Option<PathBuf> {
    let venv = root().join(name);
    let python = venv.join("bin/python");
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&venv);
        if !lane.run("Python environment", &mut create) {
            println!("   get it by: sudo apt-get install python3-venv");
            return None;
        }
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "-q", "--disable-pip-version-check"]);
    for file in requirements {
        install.arg("-r").arg(file);
    }
    lane.run("Python packages", &mut install).then_some(python)
}
