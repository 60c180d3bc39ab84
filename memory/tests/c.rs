//! The C headers: they agree with the library, and their examples compile. `cli/tests/memory.rs` and `cowbird.rs` run
//! them.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_memory::c::memory::{CallerAccess, CallerOperation};
use p4rack_memory::c::{Status, clio, cowbird, region};
use std::fmt::Write as _;
use std::io::Write;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// Whether there is a C compiler; says so when not, past the harness, which hides what a passing test prints.
fn have_cc() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: needs cc, get it by: sudo apt-get install gcc");
    }
    found
}

fn compile(source: &Path, output: &Path, libraries: &[&str]) {
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg("-I")
        .arg(repo("include"))
        .arg(source)
        .arg("-o")
        .arg(output)
        .args(libraries)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// C programs see the same sizes, offsets and numbers as the library.
#[test]
fn the_header_says_what_the_library_has() {
    if !have_cc() {
        return;
    }
    let mut wanted = vec![("sizeof(p4rack_memory_operation)".to_owned(), size_of::<CallerOperation>())];
    macro_rules! places {
        ($($field:ident),*) => { $(wanted.push((
            format!("offsetof(p4rack_memory_operation, {})", stringify!($field)),
            offset_of!(CallerOperation, $field),
        ));)* };
    }
    places!(address, operand, expected, old, bytes, length, kind, status);
    wanted.push(("sizeof(p4rack_memory_access)".to_owned(), size_of::<CallerAccess>()));
    macro_rules! accesses {
        ($($field:ident),*) => { $(wanted.push((
            format!("offsetof(p4rack_memory_access, {})", stringify!($field)),
            offset_of!(CallerAccess, $field),
        ));)* };
    }
    accesses!(
        rack,
        host,
        at,
        way,
        interface,
        scheme,
        memory,
        engine,
        reserve_bytes,
        key,
        ca,
        cert,
        cert_key,
        server_name
    );
    wanted.push(("sizeof(p4rack_memory_status)".to_owned(), size_of::<Status>()));
    for (name, status) in [
        ("OK", Status::Ok),
        ("UNKNOWN", Status::Unknown),
        ("OUT_OF_BOUNDS", Status::OutOfBounds),
        ("WRONG_KEY", Status::WrongKey),
        ("NOT_PERMITTED", Status::NotPermitted),
        ("BAD_LENGTH", Status::BadLength),
        ("BAD_OPERATION", Status::BadOperation),
        ("BUSY", Status::Busy),
        ("FULL", Status::Full),
        ("NO_SUCH_NODE", Status::NoSuchNode),
        ("GONE", Status::Gone),
        ("BAD_ARGUMENT", Status::BadArgument),
    ] {
        wanted.push((format!("P4RACK_MEMORY_{name}"), status as usize));
    }
    assert_all("p4rack_memory.h", &wanted);
}

#[test]
fn the_header_of_cowbird_says_what_the_library_has() {
    if !have_cc() {
        return;
    }
    let mut wanted = vec![("sizeof(p4rack_cowbird_config)".to_owned(), size_of::<cowbird::CallerConfig>())];
    macro_rules! places {
        ($($field:ident),*) => { $(wanted.push((
            format!("offsetof(p4rack_cowbird_config, {})", stringify!($field)),
            offset_of!(cowbird::CallerConfig, $field),
        ));)* };
    }
    places!(interface, ip, pool, engines, region_bytes, entries, ring_bytes);
    places!(engine_count, region_count, threads, mtu_bytes);
    assert_all("p4rack_cowbird.h", &wanted);
}

#[test]
fn the_header_of_clio_says_what_the_library_has() {
    if !have_cc() {
        return;
    }
    let mut wanted = vec![
        ("sizeof(p4rack_clio_event)".to_owned(), size_of::<clio::CallerEvent>()),
        ("sizeof(p4rack_clio_chase)".to_owned(), size_of::<clio::CallerChase>()),
        ("offsetof(p4rack_clio_event, number)".to_owned(), offset_of!(clio::CallerEvent, number)),
        ("offsetof(p4rack_clio_event, status)".to_owned(), offset_of!(clio::CallerEvent, status)),
        ("sizeof(p4rack_clio_mode)".to_owned(), size_of::<u32>()),
    ];
    macro_rules! places {
        ($($field:ident),*) => { $(wanted.push((
            format!("offsetof(p4rack_clio_chase, {})", stringify!($field)),
            offset_of!(clio::CallerChase, $field),
        ));)* };
    }
    places!(address, key, key_offset, next_offset, value_offset, value_bytes, depth, value_is_pointer);
    assert_all("p4rack_clio.h", &wanted);
}

#[test]
fn the_header_of_regions_says_what_the_library_has() {
    if !have_cc() {
        return;
    }
    let mut wanted = vec![
        ("sizeof(p4rack_region_config)".to_owned(), size_of::<region::CallerConfig>()),
        ("sizeof(p4rack_region_statistics)".to_owned(), size_of::<region::CallerStatistics>()),
    ];
    macro_rules! places {
        ($kind:ident, $name:literal: $($field:ident),*) => { $(wanted.push((
            format!("offsetof({}, {})", $name, stringify!($field)),
            offset_of!(region::$kind, $field),
        ));)* };
    }
    places!(CallerConfig, "p4rack_region_config": local_bytes, policy, block_bytes);
    places!(CallerStatistics, "p4rack_region_statistics": region_bytes, local_bytes, tables_bytes, from_host);
    places!(CallerStatistics, "p4rack_region_statistics": from_device, from_remote, fetched_bytes, written_bytes);
    places!(CallerStatistics, "p4rack_region_statistics": prefetched, prefetched_used, block_bytes);
    assert_all("p4rack_region.h", &wanted);
}

/// Has the C compiler check numbers that a header gives.
fn assert_all(header: &str, wanted: &[(String, usize)]) {
    let mut source = format!("#include <{header}>\n");
    for (what, number) in wanted {
        writeln!(source, "_Static_assert({what} == {number}, \"the library has {number}\");").unwrap();
    }
    source += "int main(void) { return 0; }\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sizes.c");
    std::fs::write(&path, source).unwrap();
    compile(&path, &folder.path().join("sizes"), &[]);
}

/// The example compiles without warnings, finds the library and reports what it needs.
#[test]
fn the_example_compiles_and_links() {
    if !have_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("remote-memory");
    // The test's own folder has the library that was built with it.
    let libraries = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    compile(&repo("examples/remote-memory.c"), &program, &["-L", &libraries, "-lp4rack_memory"]);
    let run = |args: &[&str]| {
        let output = Command::new(&program).args(args).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&[]).0, Some(2));
    let rack = repo("examples/edm-kv.toml").display().to_string();
    for (args, expected) in [
        (["/nonexistent.toml", "h2", "h1"], "/nonexistent.toml"),
        ([&rack, "h9", "h1"], "no host is called `h9`"),
    ] {
        let (code, said) = run(&args);
        assert!(code == Some(1) && said.contains(expected), "{said}");
    }
}

#[test]
fn the_example_of_cowbird_compiles_and_says_what_it_needs() {
    if !have_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("remote-rings");
    let libraries = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    compile(&repo("examples/remote-rings.c"), &program, &["-L", &libraries, "-lp4rack_memory"]);
    let run = |args: &[&str]| {
        let output = Command::new(&program).args(args).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&[]).0, Some(2));
    for (args, expected) in [
        (["nowhere0", "10.0.0.1", "127.0.0.1:1", "127.0.0.1:1"], "nowhere0"),
        (["lo", "10.0.0", "127.0.0.1:1", "127.0.0.1:1"], "ip is `10.0.0`, which is no IPv4 address"),
    ] {
        let (code, said) = run(&args);
        assert!(code == Some(1) && said.contains(expected), "{said}");
    }
}

/// The example of regions runs over memory of its own process, so it needs no rack.
#[test]
fn the_example_of_regions_counts_words() {
    if !have_cc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("remote-region");
    let libraries = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    compile(&repo("examples/remote-region.c"), &program, &["-L", &libraries, "-lp4rack_memory"]);
    let rack = repo("examples/two-hosts.toml").display().to_string();
    let text = folder.path().join("text");
    std::fs::write(&text, "a rose is a rose is a rose\n".repeat(100)).unwrap();
    let run = |args: &[&str]| {
        let input = std::fs::File::open(&text).unwrap();
        let mut command = Command::new(&program);
        let output = command.args(args).env("LD_LIBRARY_PATH", &libraries).stdin(input).output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), said(&output.stdout), said(&output.stderr))
    };
    assert_eq!(run(&[]).0, Some(2));
    let (code, said, why) = run(&[&rack, "h1", "h2", "local"]);
    let expected = "800 words, the most frequent one 300 times; 3 accesses waited";
    assert!(code == Some(0) && said.starts_with(expected), "{said}{why}");
    let (code, _, why) = run(&[&rack, "h9", "h2", "local"]);
    assert!(code == Some(1) && why.contains("no host is called `h9`"), "{why}");
}
