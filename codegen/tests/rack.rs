//! Rack descriptions: accepted and refused ones, and the words of errors.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::{Mix, Queueing};
use p4rack_codegen::scheme::pl2::{Mode, Pl2};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::Nanos;
use proptest::prelude::*;

const HOSTS: &str = r#"
[[host]]
name = "h1"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
[[host]]
name = "h2"
port = 2
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
"#;

fn rack(switch: &str, hosts: &str, rest: &str) -> Result<Rack, String> {
    let text = format!("name = \"r\"\n[switch]\n{switch}\n{hosts}\n{rest}\n");
    Rack::parse(&text, "r.toml").map_err(|error| error.to_string())
}

fn refused(switch: &str, hosts: &str, rest: &str) -> String {
    rack(switch, hosts, rest).expect_err("must be refused")
}

/// One burst of every host to the same port has to fit into the buffer for scheduled frames.
#[test]
fn more_bursts_than_the_buffer_holds_are_warned_of() {
    let warnings = |switch: &str, pl2: &str| {
        let rack = rack(
            &format!("port_rate = \"1 Gb/s\"\n{switch}"),
            HOSTS,
            &format!("[pl2]\nmode = \"clock\"\n{pl2}"),
        );
        let rack = rack.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rack.summary().workload.contains("warning: switch.buffer"), !rack.warnings().is_empty());
        rack.warnings().join("\n")
    };
    // One other host, a lane, 2 bursts of 4 frames of 1530 bytes with their FCS: 12240 bytes.
    assert_eq!(warnings("buffer = \"48960 B\"", "shim = false"), "", "a quarter is reserved");
    assert_eq!(warnings("buffer = \"48960 B\"", ""), "", "12240");
    let named = |text: &str, words: &[&str]| words.iter().all(|word| text.contains(word));
    let more = warnings("buffer = \"48 KiB\"", "lanes = 2");
    assert!(
        named(&more, &["1 hosts of 2 lanes", "24480 B", "12 KiB", "lanes = 1", "buffer of 96 KiB"]),
        "{more}"
    );
    let none = warnings("reserved_percent = 0", "");
    assert!(named(&none, &["write a reserved_percent"]), "{none}");
    assert_eq!(warnings("target = \"bmv2\"\nbuffer = \"16 KiB\"", ""), "", "has no reserve");
}

#[test]
fn examples_load() {
    for name in ["pl2-incast", "two-hosts"] {
        let path = format!("{}/../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let rack = Rack::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rack.name, name);
        assert_eq!(rack.scheme(), Scheme::PL2_CLOCK);
    }
}

#[test]
fn defaults_are_those_documented() {
    let rack = rack("port_rate = \"100 Mb/s\"", HOSTS, "[pl2]\nmode = \"counter\"").unwrap();
    let pl2 = rack.protocol::<Pl2>().unwrap();
    assert_eq!((pl2.mode, pl2.k, pl2.t_slots, pl2.drop_threshold_slots), (Mode::Counter, 4, 15, 120));
    assert_eq!((pl2.ether_type.0, pl2.vid, pl2.shim, pl2.reservations_in_flight), (0x88b5, 100, true, 1));
    assert_eq!((pl2.by_flow, pl2.pace_unsolicited, pl2.piece()), (false, true, None));
    let lines = "[pl2]\nmode = \"clock\"\nk = \"backlog\"";
    for (more, expected) in [
        ("", (40, Some(4), true, 2, 4, 320)),
        ("\nk_max = 3", (3, Some(3), true, 2, 4, 120)),
        ("\nby_flow = false", (40, Some(4), false, 2, 2, 320)),
        ("\nreservations_in_flight = 9", (40, Some(4), true, 9, 9, 320)),
    ] {
        let rack = self::rack("port_rate = \"100 Mb/s\"", HOSTS, &format!("{lines}{more}")).unwrap();
        let pl2 = rack.protocol::<Pl2>().unwrap();
        let found = (
            pl2.k,
            pl2.piece(),
            pl2.by_flow,
            pl2.reservations_in_flight,
            pl2.lanes,
            pl2.drop_threshold_slots,
        );
        assert_eq!(found, expected, "{more}");
    }
    let switch = &rack.switch;
    assert_eq!((switch.device_id, switch.cpu_port, switch.drop_port), (1, 510, 511));
    assert_eq!((switch.buffer_bytes, switch.time_unit_ns), (262_144, 1));
    // 1500 + 14 + 4 + 8 + 4 + 20 bytes at 80 ns each, 3 % longer.
    assert_eq!(pl2.slot(&rack, rack.host("h1").unwrap()), Nanos(127_720));
    assert_eq!(rack.wire_bytes(), 1550);
    let plain = rack.under(Scheme::L2).unwrap();
    assert_eq!(plain.wire_bytes(), 1538);
    assert_eq!(plain.goodput_ceiling_bps(&rack.hosts[0]), 97_529_258);
    assert_eq!(rack.host("h3"), None);
}

#[test]
fn sending_ceiling_counts_the_reservations() {
    let rest = "[pl2]\nmode = \"clock\"\nshim = false\nslot_headroom_percent = 0";
    let rack = rack("port_rate = \"1 Gb/s\"", HOSTS, rest).unwrap();
    // 6000 / (4 × 1542 + 84) of the rate.
    assert_eq!(rack.send_ceiling_bps(&rack.hosts[0]), 959_692_898);
}

#[test]
fn slots_follow_each_port_and_whole_time_units() {
    let hosts = HOSTS.replace("ip = \"10.0.0.2/24\"", "ip = \"10.0.0.2/24\"\nrate = \"25 Gb/s\"");
    let rest = "[pl2]\nmode = \"clock\"\nshim = false\nslot_headroom_percent = 0";
    let rack = rack("port_rate = \"100 Gb/s\"\ntime_unit_ns = 10", &hosts, rest).unwrap();
    let pl2 = rack.protocol::<Pl2>().unwrap();
    assert_eq!([0, 1].map(|n| pl2.slot(&rack, &rack.hosts[n])), [Nanos(130), Nanos(500)]);
    assert_eq!(pl2.slot_units(&rack, &rack.hosts[1]), 50);
}

#[test]
fn each_part_of_a_slot_is_whole_time_units() {
    let slot = |rate: &str, rest: &str| {
        let rack =
            rack(&format!("port_rate = \"{rate}\""), HOSTS, &format!("[pl2]\nmode = \"clock\"\n{rest}"))
                .unwrap();
        let (pl2, host) = (rack.protocol::<Pl2>().unwrap(), &rack.hosts[0]);
        (pl2.slot(&rack, host).0, pl2.part_units(&rack, host))
    };
    let exact = "slot_headroom_percent = 0\nslot_parts = ";
    // A full frame takes 124 ns, then 1240.
    assert_eq!(slot("100 Gb/s", "slot_headroom_percent = 0"), (124, 124));
    assert_eq!(slot("100 Gb/s", &format!("{exact}31")), (124, 4));
    assert_eq!(slot("100 Gb/s", &format!("{exact}8")), (128, 16));
    assert_eq!(slot("10 Gb/s", &format!("{exact}8")), (1_240, 155));
    assert_eq!(slot("10 Gb/s", "slot_parts = 4"), (1_280, 320), "1277.2 ns and what rounding adds");
}

#[test]
fn every_mistake_is_reported_at_once_with_its_line() {
    let hosts = HOSTS.replace("port = 2", "prot = 2").replace("00:02\"", "00:01\"");
    let error =
        refused("port_rate = \"100 MB/s\"\nbufer = \"1 MiB\"", &hosts, "[pl2]\nmode = \"clok\"\nk = 0");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(
        lines,
        [
            "r.toml:3: switch.port_rate: `100 MB/s` is not a rate: the unit is missing or unknown; \
             write a rate such as \"100 Mb/s\" or \"25 Gb/s\"",
            "r.toml:4: switch.bufer: is unknown; did you mean `buffer`?",
            "r.toml:11: host[1].port: is missing; add port = 1",
            "r.toml:13: host[1].prot: is unknown; did you mean `port`?",
            "r.toml:14: host[1].mac: 02:00:00:00:00:01 is host[0]'s already; give each host its own address",
            "r.toml:18: pl2.mode: `clok` is no mode; write \"clock\" or \"counter\"",
            "r.toml:19: pl2.k: 0 is out of range; write an integer from 1 to 255",
        ]
    );
}

#[test]
fn refusals() {
    let rate = "port_rate = \"100 Mb/s\"";
    let clock = "[pl2]\nmode = \"clock\"";
    let host = |from: &str, to: &str| HOSTS.replacen(from, to, 1);
    let incast = |more: &str| format!("[workload]\nkind = \"incast\"\nreceiver = \"h1\"\n{more}");
    let outcast = |more: &str| format!("[workload]\nkind = \"outcast\"\nsender = \"h1\"\n{more}");
    let cowbird =
        |more: &str| format!("[cowbird]\nip = \"10.0.0.254\"\npool = [\"h1\"]\ncompute = [\"h2\"]\n{more}");
    for (error, wanted) in [
        (
            refused(rate, HOSTS, &cowbird("probe_ns = 99")),
            "cowbird.probe_ns: 99 is out of range; write an integer from 100 to",
        ),
        (
            refused(rate, HOSTS, &cowbird("probe_us = 20")),
            "cowbird.probe_us: is unknown; did you mean `probe_ns`?",
        ),
        (refused("", HOSTS, ""), "switch.port_rate: is missing"),
        (refused("port_rate = \"0 Mb/s\"", HOSTS, ""), "a port that sends nothing"),
        (refused("port_rate = 100", HOSTS, ""), "switch.port_rate: is an integer; write a rate"),
        (refused("port_rate = \"1 Gb/s\"\nbuffer = \"1 kB\"", HOSTS, ""), "don't hold 8 full frames"),
        (refused("port_rate = \"1 Gb/s\"\ncpu_port = 511", HOSTS, ""), "511 is also the drop port"),
        (refused("port_rate = \"1 Gb/s\"\ngrpc_addr = \"x\"", HOSTS, ""), "no address with a port"),
        (refused(rate, "", ""), "host: is missing"),
        (refused(rate, &host("port = 2", "port = 1"), ""), "host[1].port: port 1 is host[0]'s already"),
        (refused(rate, &host("\"h2\"", "\"h1\""), ""), "host[1].name: `h1` is host[0]'s already"),
        (refused(rate, &host("10.0.0.2", "10.0.0.1"), ""), "host[1].ip: 10.0.0.1 is host[0]'s already"),
        (refused(rate, &host("port = 2", "port = 510"), ""), "510 is the CPU port"),
        (refused(rate, &host("port = 2", "port = 0"), ""), "host[1].port: 0 is out of range"),
        (refused(rate, &host("02:00:00:00:00:02", "03:00:00:00:00:02"), ""), "is a group address"),
        (refused(rate, &host("02:00:00:00:00:02", "2:0:0:0:0:2"), ""), "is not a MAC address"),
        (refused(rate, &host("10.0.0.2/24", "10.0.0.2"), ""), "has no prefix length"),
        (refused(rate, &host("10.0.0.2/24", "10.0.0.2/33"), ""), "no prefix length from 1 to 30"),
        (refused(rate, &host("10.0.0.2/24", "10.0.0.0/24"), ""), "is no host's address"),
        (refused(rate, &host("10.0.0.2/24", "10.0.1.2/24"), ""), "10.0.1.2/24 is not in 10.0.0.0/24"),
        (refused(rate, &host("\"h2\"", "\"h 2\""), ""), "`h 2` is no name"),
        (refused(rate, HOSTS, "[pl2]"), "pl2.mode: is missing"),
        (refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nk = 256"), "pl2.k: 256 is out of range"),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nk = \"all\""),
            "pl2.k: `all` is no K; write \"backlog\"",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nk = \"backlog\"\nk_max = 0"),
            "pl2.k_max: 0 is out of range",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nk_max = 9"),
            "pl2.k_max: bounds what waits; write k = \"backlog\"",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nk = \"backlog\"\nslot_parts = 7"),
            "pl2.slot_parts: 40 slots of 7 parts are more than the 255",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nplacement = \"nic\""),
            "pl2.placement: an agent's placement is where it runs; remove it",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nslot_parts = 0"),
            "pl2.slot_parts: 0 is out of range",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nslot_parts = 64"),
            "pl2.slot_parts: 4 slots of 64 parts are more than the 255 that an RSV can ask for; write 63 or less",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"counter\"\nslot_parts = 2"),
            "pl2.slot_parts: counter mode counts frames, not parts of a slot; remove it",
        ),
        (
            refused("port_rate = \"100 Gb/s\"", HOSTS, "[pl2]\nmode = \"clock\"\nk = 1\nslot_parts = 100"),
            "a part of a slot at 100 Gb/s is 1.3 ns, under two of the switch's 1 ns time units; write fewer slot_parts",
        ),
        (
            refused(
                rate,
                HOSTS,
                &format!(
                    "[pl2]\nmode = \"clock\"\nslot_parts = 2\n{}",
                    incast("senders = [\"h2\"]\nschemes = [\"pl2-counter\"]")
                ),
            ),
            "workload.schemes[0]: pl2-counter counts frames, not parts of a slot",
        ),
        (
            refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nT = 9"),
            "pl2.T: is unknown; the switch's threshold is called drop_threshold",
        ),
        (refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\nether_type = 0x0800"), "belongs to another protocol"),
        (refused(rate, HOSTS, "[pl2]\nmode = \"clock\"\ndrop_threshold = 3"), "3 slots are less than t = 15"),
        (
            refused("port_rate = \"100 Gb/s\"\ntime_unit_ns = 1000", HOSTS, clock),
            "write a rate of 6.39 Gb/s or less",
        ),
        (refused("port_rate = \"1 Mb/s\"", HOSTS, clock), "pl2-clock can't tell that many reserved slots of"),
        (
            refused(rate, &host("port = 2", "port = 2\nrate = \"1 Gb/s\""), "[pl2]\nmode = \"counter\""),
            "r.toml:13: host[1].rate: counter mode counts one slot for all ports, but 100 Mb/s and 1 Gb/s differ",
        ),
        (refused(rate, HOSTS, &incast("senders = [\"h9\"]")), "workload.senders[0]: there is no host `h9`"),
        (refused(rate, HOSTS, &incast("senders = [\"h1\"]")), "h1 is the receiver"),
        (refused(rate, HOSTS, &incast("senders = []")), "workload.senders: is empty"),
        (
            refused(rate, HOSTS, &incast("senders = [\"h2\"]\nreceivers = [\"h2\"]")),
            "workload.receivers: is an outcast's",
        ),
        (refused(rate, HOSTS, &outcast("receivers = [\"h1\"]")), "workload.receivers[0]: h1 is the sender"),
        (refused(rate, HOSTS, &outcast("senders = [\"h2\"]")), "workload.senders: is an incast's"),
        (
            refused(rate, HOSTS, &outcast("receivers = [\"h2\"]\nkill = { host = \"h1\" }")),
            "workload.kill: leaves an outcast without its sender",
        ),
        (
            refused(rate, HOSTS, &incast("senders = [\"h2\"]\nschemes = [\"pl2-clock\"]")),
            "needs PL2's parameters",
        ),
        (
            refused(rate, HOSTS, &incast("senders = [\"h2\"]\nrpc = { client = \"h1\" }")),
            "workload.rpc.server: is missing",
        ),
        (refused(rate, HOSTS, &incast("senders = [\"h2\"]\nkill = { host = \"h1\" }")), "h1 is no sender"),
        (refused(rate, HOSTS, "[workload\n"), "the file must be TOML"),
    ] {
        assert!(error.contains(wanted), "wanted: {wanted}\n   got: {error}");
    }
}

#[test]
fn a_store_has_a_server_and_clients() {
    let rate = "port_rate = \"100 Mb/s\"";
    let table = |keys: &str| format!("[workload]\nkind = \"store\"\n{keys}");
    let of = |keys: &str| rack(rate, HOSTS, &table(keys)).unwrap().workload.unwrap();
    let workload = of("server = \"h1\"\nclients = [\"h2\"]");
    assert_eq!((workload.ends(), workload.duration_s), (("h1", &["h2".to_owned()][..]), 5.0));
    let store = workload.store.unwrap();
    assert_eq!((store.records, store.value_bytes, store.mixes), (1_000, 960, Mix::ALL.to_vec()));
    let keys =
        "server = \"h2\"\nclients = [\"h1\"]\nmixes = [\"F\", \"C\"]\nrecords = 7\nvalue_bytes = 8\nseed = 3";
    let workload = of(keys);
    let store = workload.store.unwrap();
    assert_eq!(
        (store.records, store.value_bytes, store.mixes, workload.seed),
        (7, 8, vec![Mix::F, Mix::C], 3)
    );
    for (keys, wanted) in [
        ("clients = [\"h2\"]", "workload.server: is missing"),
        ("server = \"h1\"", "workload.clients: is missing"),
        ("server = \"h1\"\nclients = []", "workload.clients: is empty"),
        (
            "server = \"h1\"\nclients = [\"h2\"]\nbulk = \"h2\"",
            "workload.bulk: h2 is the store's server or client",
        ),
        ("server = \"h1\"\nclients = [\"h2\"]\nbulk = \"h9\"", "workload.bulk: there is no host `h9`"),
        ("server = \"h1\"\nclients = [\"h1\"]", "workload.clients[0]: h1 is the server"),
        ("server = \"h9\"\nclients = [\"h1\"]", "workload.server: there is no host `h9`"),
        ("server = \"h1\"\nclients = [\"h2\"]\nmixes = []", "workload.mixes: is empty"),
        ("server = \"h1\"\nclients = [\"h2\"]\nmixes = [\"D\"]", "`D` is no mix; there are A, B, C and F"),
        ("server = \"h1\"\nclients = [\"h2\"]\nrecords = 0", "workload.records"),
        ("server = \"h1\"\nclients = [\"h2\"]\nvalue_bytes = 65537", "workload.value_bytes"),
        ("server = \"h1\"\nclients = [\"h2\"]\nload_percent = 5", "workload.load_percent: is unknown"),
    ] {
        let error = refused(rate, HOSTS, &table(keys));
        assert!(error.contains(wanted), "wanted: {wanted}\n   got: {error}");
    }
}

#[test]
fn slower_lanes_have_reservations_of_their_own() {
    let lane = |n: u16, rate: &str| {
        format!(
            "[[host]]\nname = \"l{n}\"\nport = 7\nmac = \"02:00:00:00:01:0{n}\"\nip = \"10.0.0.10{n}/24\"\nrate = \"{rate}\"\nport_rate = \"100 Gb/s\"\n"
        )
    };
    let lanes = |rates: [&str; 3]| {
        (1..).zip(rates).map(|(n, rate)| lane(n, rate)).collect::<String>() + "[pl2]\nmode = \"clock\"\n"
    };
    let links = |rates| -> Vec<u16> {
        let rack = rack("port_rate = \"100 Gb/s\"", HOSTS, &lanes(rates)).unwrap();
        rack.hosts.iter().map(|host| host.link).collect()
    };
    assert_eq!(links(["25 Gb/s"; 3]), [1, 2, 512, 513, 514]);
    assert_eq!(links(["100 Gb/s"; 3]), [1, 2, 7, 7, 7], "as fast as the port: they share its reservations");
    let error = refused("port_rate = \"100 Gb/s\"", HOSTS, &lanes(["50 Gb/s"; 3]));
    assert!(
        error.contains("host[2].port_rate: 100 Gb/s is less than the 150 Gb/s of its links together"),
        "{error}"
    );
    let counter = lanes(["25 Gb/s"; 3]).replace("clock", "counter");
    let error = refused("port_rate = \"100 Gb/s\"", HOSTS, &counter);
    assert!(error.contains("counter mode counts one slot for all ports"), "{error}");
}

#[test]
fn lanes_have_vlans_and_room() {
    let rate = "port_rate = \"100 Mb/s\"";
    let lanes = |keys: &str| rack(rate, HOSTS, &format!("[pl2]\nmode = \"clock\"\n{keys}\n"));
    let count = |keys| lanes(keys).unwrap().protocol::<Pl2>().unwrap().lanes;
    assert_eq!([count(""), count("reservations_in_flight = 3"), count("lanes = 5")], [1, 3, 5]);
    assert_eq!(count("vid = 3967\nlanes = 64\nk = 1"), 64, "up to VLAN 4094");
    for (keys, wanted) in [
        ("lanes = 0", "pl2.lanes: 0 is"),
        ("lanes = 65", "pl2.lanes: 65 is"),
        ("reservations_in_flight = 3\nlanes = 2", "pl2.lanes: 2 are fewer than the 3 reservations_in_flight"),
        (
            "vid = 3968\nlanes = 64",
            "pl2.vid: 64 lanes need the VLANs 3968 to 4095, but 4094 is the last; write a vid of 3967",
        ),
        ("vid = 4094", "pl2.vid: 1 lanes need the VLANs 4094 to 4095"),
    ] {
        let error = lanes(keys).unwrap_err();
        assert!(error.contains(wanted), "wanted: {wanted}\n   got: {error}");
    }
    let host = |n: usize| {
        format!(
            "[[host]]\nname = \"m{n}\"\nport = {n}\nmac = \"02:00:00:00:{:02x}:{:02x}\"\nip = \"10.1.{}.{}/16\"\n",
            n / 256,
            n % 256,
            1 + n / 250,
            1 + n % 250
        )
    };
    let many: String = (1..=200).map(host).collect();
    let pl2 = "[pl2]\nmode = \"clock\"\nlanes = ";
    assert!(rack("port_rate = \"100 Gb/s\"", &many, &format!("{pl2}50")).is_ok());
    let error = refused("port_rate = \"100 Gb/s\"", &many, &format!("{pl2}60"));
    assert!(error.contains("60 lanes between 200 hosts need 4824000 cells, more than 4194304"), "{error}");
}

#[test]
fn cells_of_pairs_lie_side_by_side() {
    let rack = rack("port_rate = \"1 Gb/s\"", HOSTS, "[pl2]\nmode = \"clock\"\nlanes = 3").unwrap();
    let pl2 = rack.protocol::<Pl2>().unwrap();
    assert_eq!((pl2.cells_a_pair(), pl2.cell_count(&rack)), (6, 36));
    let first = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| pl2.cell_number(&rack, from, to, 0));
    assert_eq!(first, [12, 18, 24, 30], "behind those of the controller's frames");
}

/// All reservations that lanes of all hosts may hold must begin within the horizon.
#[test]
fn lanes_count_where_the_horizon_is_near() {
    // 12.772 ms a slot, of which 84 fit.
    let pl2 = |rest: &str| {
        rack("port_rate = \"1 Mb/s\"", HOSTS, &format!("[pl2]\nt = 1\ndrop_threshold = 2\nk = 1\n{rest}"))
    };
    assert!(pl2("mode = \"clock\"\nlanes = 39").is_ok(), "2 × 39 + 5 slots");
    assert!(pl2("mode = \"clock\"\nlanes = 40").unwrap_err().contains("pl2-clock can't tell"));
    assert!(pl2("mode = \"counter\"\nlanes = 21").is_ok(), "4 × 21 slots");
    assert!(pl2("mode = \"counter\"\nlanes = 22").unwrap_err().contains("pl2-counter can't tell"));
    assert!(pl2("mode = \"clock\"\nclocks = \"chain\"\nlanes = 18").is_ok(), "twice 2 × 18 + 5");
    assert!(pl2("mode = \"clock\"\nclocks = \"chain\"\nlanes = 19").is_err());
}

#[test]
fn clocks_are_checked_where_only_the_workload_runs_them() {
    let workload = "[workload]\nkind = \"incast\"\nreceiver = \"h1\"\nsenders = [\"h2\"]";
    let counter = format!("[pl2]\nmode = \"counter\"\n{workload}\n");
    let slow = "port_rate = \"1 Mb/s\"";
    assert!(rack(slow, HOSTS, &counter).unwrap().under(Scheme::PL2_CLOCK).is_err());
    let error = refused(slow, HOSTS, &format!("{counter}schemes = [\"pl2-clock\"]"));
    assert!(
        error.contains("workload.schemes[0]: pl2-clock can't tell that many reserved slots from the past"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_not_there() {
    let error = Rack::load("no/such/rack.toml").expect_err("must be refused").to_string();
    assert!(error.starts_with("no/such/rack.toml: can't be read:"), "{error}");
}

/// A description as people write it, with one thing changed, left out or put in.
fn mutated() -> impl Strategy<Value = String> {
    let example = include_str!("../../examples/pl2-incast.toml");
    let junk = prop_oneof![
        Just(String::new()),
        Just("[[host]]".to_owned()),
        Just("-1".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just("9e999".to_owned()),
        Just("{ a = [".to_owned()),
        Just("\"\\u0000 µ\"".to_owned()),
        "\\PC{0,6}",
    ];
    (0..example.len(), 0usize..12, junk).prop_map(|(at, cut, junk)| {
        let boundary = |at: usize| (at..).find(|at| example.is_char_boundary(*at)).unwrap_or(example.len());
        let (from, to) = (boundary(at), boundary((at + cut).min(example.len())));
        format!("{}{junk}{}", &example[..from], &example[to..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_is_read_or_refused_with_a_reason(text in mutated()) {
        match Rack::parse(&text, "r.toml") {
            Ok(rack) => prop_assert!(!rack.summary().rack.is_empty() && rack.hosts.len() <= 6),
            Err(error) => {
                prop_assert!(!error.errors.is_empty());
                for error in error.errors {
                    prop_assert!(error.line <= text.lines().count() + 1, "{}", error);
                    prop_assert!(!error.message.is_empty() && !error.help.is_empty(), "{}", error);
                }
            }
        }
    }
}

/// A pool's port has no reservations, so its hosts take turns there unless the description says otherwise.
#[test]
fn ports_take_turns_where_hosts_share_a_pool() {
    let cowbird = "[cowbird]\nip = \"10.0.0.254\"\npool = [\"h1\"]\ncompute = [\"h2\"]";
    let of = |switch: &str, rest: &str| {
        let rack = rack(&format!("port_rate = \"1 Gb/s\"\n{switch}"), HOSTS, rest);
        rack.unwrap_or_else(|error| panic!("{error}"))
    };
    for (switch, rest, expected) in [
        ("", "", Queueing::Fifo),
        ("queueing = \"fair\"", "", Queueing::Fair),
        ("", cowbird, Queueing::Fair),
        ("queueing = \"fifo\"", cowbird, Queueing::Fifo),
        ("target = \"bmv2\"", cowbird, Queueing::Fifo),
    ] {
        let rack = of(switch, rest);
        assert_eq!(rack.switch.queueing, expected, "{switch} {rest}");
        assert_eq!(rack.under(Scheme::L2).unwrap().switch.queueing, expected, "without the engine, too");
        assert_eq!(rack.warnings(), [] as [String; 0]);
    }
    let warned = |rack: Rack| rack.warnings().join("\n");
    assert!(
        warned(of("target = \"bmv2\"\nqueueing = \"fair\"", ""))
            .contains("switch.queueing: BMv2 has no turns")
    );
    assert!(warned(of("", cowbird).on(Arch::Tna)).contains("switch.queueing: Tofino"));
    let error = refused("port_rate = \"1 Gb/s\"\nqueueing = \"red\"", HOSTS, "");
    assert!(error.contains("`red` is no queueing; there are fifo and fair"), "{error}");
}

#[test]
fn stores_in_cached_regions_have_a_pool_and_clients() {
    let rate = "port_rate = \"100 Mb/s\"";
    let table = |pool: &str, keys: &str, cache: &str| {
        format!("[pool]\n{pool}\n[workload]\nkind = \"store\"\n{keys}\n[workload.cache]\n{cache}")
    };
    let (pool, keys) = ("memory = [\"h1\"]", "clients = [\"h2\"]");
    let good = rack(rate, HOSTS, &table(pool, keys, "")).unwrap();
    let cache = good.cache().unwrap();
    assert_eq!((cache.local_percent.as_slice(), cache.policy.as_str()), (&[100, 50, 25, 10][..], "runs"));
    assert_eq!((cache.pool.extent_bytes, cache.pool.lease_s, good.engine()), (2 << 20, 2, None));
    let workload = good.workload.as_ref().unwrap();
    assert_eq!(workload.ends(), ("h1", &["h2".to_owned()][..]));
    let names: Vec<String> = workload.schemes.iter().map(|run| run.name()).collect();
    assert_eq!(names, ["local", "tcp", "rdma", "clio"], "no engine, no EDM");
    let summary = good.summary().workload;
    assert!(summary.contains("100, 50, 25, 10 % of each region are local, policy runs"), "{summary}");
    assert!(summary.contains("pool: memory of h1, extents of 2 MiB, leases of 2 s"), "{summary}");
    for (pool, keys, cache, wanted) in [
        ("", keys, "", "r.toml:16: pool.memory: is missing; add memory = [\"h1\", \"h2\"]"),
        ("memory = []", keys, "", "pool.memory: is empty"),
        ("memory = [\"h9\"]", keys, "", "r.toml:17: pool.memory[0]: there is no host `h9`"),
        ("memory = [\"h1\", \"h1\"]", keys, "", "pool.memory[1]: h1 stands there twice"),
        ("memory = [\"h2\"]", keys, "", "pool.memory[0]: h2 is one of the clients"),
        (
            "memory = [\"h1\"]\nextent = \"3 MiB\"",
            keys,
            "",
            "pool.extent: 3 MiB are no extent; write a power of two",
        ),
        ("memory = [\"h1\"]\nlease_s = 0", keys, "", "pool.lease_s: 0 is out of range"),
        ("memory = [\"h1\"]\nleases = 1", keys, "", "pool.leases: is unknown; did you mean `lease_s`?"),
        (
            pool,
            "clients = [\"h2\"]\nserver = \"h1\"",
            "",
            "workload.server: is not a server of cached regions",
        ),
        (pool, "clients = [\"h2\"]\ndepth = 4", "", "workload.depth: 4 operations are more"),
        (pool, "clients = [\"h2\"]\nbulk = \"h1\"", "", "workload.bulk"),
        (pool, "clients = [\"h2\"]\nkill = { host = \"h1\" }", "", "workload.kill.host: h1 is no client"),
        (
            pool,
            "clients = [\"h2\"]\nkill = { host = \"h2\" }",
            "",
            "workload.kill: leaves no client that gets",
        ),
        (pool, "clients = [\"h2\"]\nschemes = [\"l2\"]", "", "l2 is no way to the store's remote memory"),
        (
            pool,
            "clients = [\"h2\"]\nschemes = [\"rdma-sync\"]",
            "",
            "rdma-sync has one request under way, and a cached",
        ),
        (pool, "clients = [\"h2\"]\nschemes = [\"redis\"]", "", "or [workload.cache]"),
        (
            pool,
            "clients = [\"h2\"]\nschemes = [\"cowbird-spot\"]",
            "",
            "add engine, the name of one, to [workload.cache]",
        ),
        (pool, keys, "local_percent = []", "workload.cache.local_percent: is empty"),
        (pool, keys, "local_percent = [50, 101]", "r.toml:22: workload.cache.local_percent[1]"),
        (pool, keys, "local_percent = [50, 50]", "workload.cache.local_percent[1]: 50 stands there twice"),
        (pool, keys, "block_bytes = 100", "workload.cache.block_bytes: 100 is no power of two"),
        (pool, keys, "engine = \"h1\"", "workload.cache.engine: h1 is the store's server or client"),
        (pool, keys, "log = 1", "workload.cache.log: is unknown"),
    ] {
        let error = refused(rate, HOSTS, &table(pool, keys, cache));
        assert!(error.contains(wanted), "wanted: {wanted}\n   got: {error}");
    }
    let without = "[workload]\nkind = \"store\"\nclients = [\"h2\"]\n[workload.cache]";
    let error = refused(rate, HOSTS, without);
    assert!(error.contains("workload.cache: needs the memory nodes of a pool; add [pool]"), "{error}");
    for kind in [
        "\"incast\"\nreceiver = \"h1\"\nsenders = [\"h2\"]",
        "\"store\"\nserver = \"h1\"\nclients = [\"h2\"]",
    ] {
        let unused = format!("[pool]\nmemory = [\"h1\"]\n[workload]\nkind = {kind}");
        let error = refused(rate, HOSTS, &unused);
        assert!(error.contains("pool: is not used by the workload; add [workload.cache]"), "{error}");
    }
}
