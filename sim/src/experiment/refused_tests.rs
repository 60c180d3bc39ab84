//! Mistakes in experiment files: each error names line and field.

use super::Experiment;

/// The rack's fields are on line 5, the scheme's on line 8.
const FILE: &str = "name = \"x\"\nduration_us = 10\n[rack]\nhosts = 6\nRACK\n[scheme]\nkind = \"pl2-clock\"\nSCHEME\n[[traffic]]\n\
                    name = \"x\"\npattern = \"incast\"\narrivals = \"saturate\"\n";

fn refused(rack: &str, scheme: &str) -> String {
    let text = FILE.replace("RACK", rack).replace("SCHEME", scheme);
    Experiment::parse(&text, "x.toml").map(|_| ()).unwrap_err().to_string()
}

#[test]
fn of_the_rack() {
    let slow = "rates = { h1 = \"50 Gb/s\", h2 = \"50 Gb/s\", h3 = \"50 Gb/s\" }, ";
    for (rack, error) in [
        ("shared = [[\"h1\"]]", "x.toml:5: [rack] shared: has a port of one host alone"),
        ("shared = [[\"h1\", \"h9\"]]", "x.toml:5: [rack] shared: `h9` is no host; there are h1 to h6"),
        ("shared = [[\"h1\", \"h2\"], [\"h2\", \"h3\"]]", "x.toml:5: [rack] shared: `h2` is listed twice"),
        ("shared = [\"h1\"]", "x.toml:5: invalid type: string"),
        (
            "rates = { h1 = \"200 Gb/s\" }\nshared = [[\"h1\", \"h2\"]]",
            "x.toml:6: [rack] shared: `h1` is faster than the port it shares",
        ),
        (
            &slow.replace("}, ", "}\nshared = [[\"h1\", \"h2\", \"h3\"]]"),
            "x.toml:6: [rack] shared: lanes h1, h2, h3 together ask for more than their port has",
        ),
        ("lane_buffer = \"64 KB/s\"", "x.toml:5: [rack] lane_buffer: "),
        ("lane_buffer = \"100 B\"", "x.toml:5: [rack] lane_buffer: is under two frames"),
        ("lane_buffer = 64", "x.toml:5: invalid type: integer"),
        ("foreign = { h9 = 10 }", "x.toml:5: [rack] foreign: `h9` is no host"),
        ("foreign = { h6 = 0 }", "x.toml:5: [rack] foreign: 0 % for `h6` is out of range; write 1 to 90"),
        ("foreign = { h5 = 60, h6 = 60 }", "x.toml:5: [rack] foreign: leaves less than 10 %"),
        ("foreign = { h6 = -1 }", "x.toml:5: invalid value: integer `-1`"),
        ("rates = { h1 = \"25 Gb\" }", "x.toml:5: [rack] rates: h1: "),
        ("buffer = \"4 KiB\"", "x.toml:5: [rack] buffer: "),
    ] {
        let found = refused(rack, "");
        assert!(found.starts_with(error), "{rack}\nwanted: {error}\n   got: {found}");
    }
    // Fields that only PL2 has.
    let text = FILE.replace("RACK", "foreign = { h6 = 10 }").replace("pl2-clock", "l2");
    let found = Experiment::parse(&text.replace("SCHEME", ""), "x.toml").unwrap_err().to_string();
    assert!(found.starts_with("x.toml:5: [rack] foreign: is what PL2 leaves"), "{found}");
    let text = FILE.replace("RACK", "rates = { h1 = \"25 Gb/s\" }").replace("pl2-clock", "pl2-counter");
    let found = Experiment::parse(&text.replace("SCHEME", ""), "x.toml").unwrap_err().to_string();
    assert!(found.starts_with("x.toml:5: [rack] rates: pl2-counter counts one slot"), "{found}");
}

#[test]
fn of_the_scheme() {
    for (scheme, error) in [
        ("clocks = \"calender\"", "x.toml:8: unknown variant `calender`"),
        ("pack = 1", "x.toml:8: invalid type: integer"),
        ("notify_receiver = \"yes\"", "x.toml:8: invalid type: string"),
        ("silent_after_us = 0", "x.toml:8: [scheme] silent_after_us: 0 is out of range; write 1 to 1000000"),
        ("silent_after_us = -5", "x.toml:8: invalid value: integer `-5`"),
        ("controller_us = 2000000", "x.toml:8: [scheme] controller_us: 2000000 is out of range"),
        ("slot_parts = 64", "x.toml:8: [scheme] slot_parts: 64 is out of range with K = 4; write 1 to 63"),
        ("slot_parts = 0", "x.toml:8: [scheme] slot_parts: 0 is out of range"),
        ("in_flight = 65", "x.toml:8: [scheme] in_flight: 65 is out of range"),
        ("drop_threshold = 3", "x.toml:8: [scheme] drop_threshold: 3 slots are less than t = 15"),
        ("slot_headroom_percent = 101", "x.toml:8: [scheme] slot_headroom_percent: "),
        ("pace_unsolicited = 0", "x.toml:8: invalid type: integer"),
        ("calendar = true", "x.toml:8: unknown field `calendar`"),
    ] {
        let found = refused("", scheme);
        assert!(found.starts_with(error), "{scheme}\nwanted: {error}\n   got: {found}");
    }
    let found = refused("rates = { h1 = \"1 Gb/s\" }", "clocks = \"calendar\"\nk = 4");
    assert!(found.starts_with("x.toml:9: [scheme] k: ") && found.contains("half a calendar"), "{found}");
}

#[test]
fn counters_have_no_parts_of_slots() {
    let text =
        FILE.replace("RACK", "").replace("pl2-clock", "pl2-counter").replace("SCHEME", "slot_parts = 2");
    let found = Experiment::parse(&text, "x.toml").map(|_| ()).unwrap_err().to_string();
    assert!(found.starts_with("x.toml:8: [scheme] slot_parts: pl2-counter counts frames"), "{found}");
}

#[test]
fn of_the_traffic() {
    for (from, to, error) in [
        (
            "\"saturate\"",
            "\"poisson\"\nload = 0.5\nload_in = \"frames\"",
            "x.toml:14: unknown variant `frames`",
        ),
        ("\"saturate\"", "\"saturate\"\ntimed_from = \"start\"", "x.toml:13: unknown variant `start`"),
        ("\"saturate\"", "\"poisson\"\nload = 0", "x.toml:13: [traffic] load: 0 is out of range"),
        (
            "\"saturate\"",
            "\"saturate\"\nload_link = \"h0\"",
            "x.toml:13: [traffic] load_link: `h0` is no host",
        ),
    ] {
        let text = FILE.replace("RACK", "").replace("SCHEME", "").replace(from, to);
        let found = Experiment::parse(&text, "x.toml").map(|_| ()).unwrap_err().to_string();
        assert!(found.starts_with(error), "{to}\nwanted: {error}\n   got: {found}");
    }
}

/// A table has its place however it is written.
#[test]
fn of_tables_in_lines_and_of_keys_with_dots() {
    let traffic = "pattern = \"incast\", arrivals";
    for (text, errors) in [
        (
            format!(
                "name = \"x\"\nduration_us = 10\nrack = {{ hosts = 1,\n  buffer = \"x\" }}\nscheme = {{ kind = \"l2\" }}\n\
                 traffic = [\n  {{ name = \"a\", {traffic} = \"saturate\" }},\n  {{ name = \"b\", {traffic} = \"poisson\",\n    \
                 load = 200.0, queue_limit = 0 }},\n  {{ name = \"c\", {traffic} = \"poisson\" }},\n]\n"
            ),
            &[
                "x.toml:3: [rack] hosts: 1 is out of range",
                "x.toml:4: [rack] buffer: ",
                "x.toml:9: [traffic] load: 200 is out of range",
                "x.toml:9: [traffic] queue_limit: is 0",
                "x.toml:10: [traffic] load: is missing",
            ][..],
        ),
        (
            "name = \"x\"\nduration_us = 10\nscheme.kind = \"l2\"\nrack.hosts = 6\nrack.buffer = \"x\"\n\
             [[traffic]]\nname = \"a\"\npattern = \"incast\"\narrivals = \"poisson\"\n"
                .into(),
            &["x.toml:5: [rack] buffer: ", "x.toml:6: [traffic] load: is missing"],
        ),
    ] {
        let said = Experiment::parse(&text, "x.toml").map(|_| ()).unwrap_err().to_string();
        for error in errors {
            assert!(said.lines().any(|line| line.starts_with(error)), "wanted: {error}\n   got: {said}");
        }
    }
}
