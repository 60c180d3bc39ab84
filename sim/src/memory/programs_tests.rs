use super::*;
use p4rack_codegen::Scheme;
use p4rack_wire::edm::Opcode;

fn rack() -> MemoryRack {
    let hosts: String = (1..=3)
        .map(|n| format!("[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n"))
        .collect();
    let text = format!(
        "name = \"r\"\n[switch]\nport_rate = \"1 Gb/s\"\n[edm]\nmode = \"timed-dst\"\nmemory = [\"h1\"]\n{hosts}"
    );
    let rack = Rack::parse(&text, "r.toml").unwrap().under(Scheme::EDM_TIMED_DST).unwrap();
    let host = |nth| MemoryHost {
        compute: compute::Config {
            chunk_bytes: 1_024,
            window: 4,
            timeout: Nanos::from_millis(5),
            ..compute::Config::default()
        },
        memory: (nth == 0).then(|| {
            let rights = memory::Rights { read: true, write: true };
            let config = memory::Config { chunk_bytes: 1_024, window: 4, ..memory::Config::default() };
            (config, memory::Region { start: 0, bytes: vec![0; 8_192], key: 7, rights })
        }),
    };
    MemoryRack::new(&rack, (0..3).map(host).collect()).unwrap()
}

#[test]
fn what_is_asked_ends_in_order_of_time() {
    let mut rack = rack();
    let mut add = |was: u64| {
        let begun = rack.now();
        let add = rack.ask(1, 0, 7, 64, Request::Modify(Opcode::FetchAdd, [5, 0])).unwrap();
        let ended = rack.next(Nanos::from_millis(1)).unwrap();
        assert_eq!(ended, (1, add, Outcome::Answer(was.to_be_bytes().to_vec())));
        rack.now().saturating_sub(begun)
    };
    // The first one waits for a session.
    let (opening, took) = (add(0), add(5));
    // Two frames of minimum length or little more, over two links each: 0.7 µs a link, and its length.
    assert!((Nanos(3_000)..Nanos(6_000)).contains(&took), "{took:?}");
    assert!((Nanos(6_000)..Nanos(12_000)).contains(&opening), "{opening:?}");
    let write = rack.ask(2, 0, 7, 0, Request::Write(vec![9; 3_000])).unwrap();
    assert_eq!(rack.next(Nanos::from_millis(1)), Some((2, write, Outcome::Sent)));
    assert_eq!(rack.next(Nanos::from_millis(1)), None, "nothing else was asked");
    assert_eq!(rack.now(), Nanos::from_millis(1));
    let (long, short) = (Request::Read(3_000), Request::Read(8));
    let long = rack.ask(1, 0, 7, 0, long).unwrap();
    let short = rack.ask(2, 0, 7, 64, short).unwrap();
    let first = rack.next(Nanos::MAX).unwrap();
    assert_eq!((first.0, first.1), (2, short));
    assert_eq!(rack.next(Nanos::MAX), Some((1, long, Outcome::Answer(vec![9; 3_000]))));
    let counts = rack.counts(0).unwrap();
    assert!(counts.drops.is_empty() && counts.queue_max_bytes > 0, "{counts:?}");
}

#[test]
fn what_is_refused_or_unanswered_ends_too() {
    let mut rack = rack();
    rack.ask(1, 0, 8, 0, Request::Read(8)).unwrap();
    assert!(matches!(rack.next(Nanos::MAX), Some((1, _, Outcome::Refused(edm::Status::WrongKey)))));
    // That host has no memory, so the switch drops the demand.
    rack.ask(1, 2, 7, 0, Request::Read(8)).unwrap();
    assert!(matches!(rack.next(Nanos::MAX), Some((1, _, Outcome::Null))));
    assert_eq!(rack.counts(0).unwrap().drops.get("program.edm_no_memory"), Some(&1));
    assert_eq!(rack.ask(1, 0, 7, 0, Request::Read(0)), Err(Refused::BadLength));
}
