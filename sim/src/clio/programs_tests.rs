use super::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_offload::{KvArguments, KvFunction};

fn rack(scheme: &str, buffer: &str) -> StoreRack {
    let hosts: String = (1..=3)
        .map(|n| format!("[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n"))
        .collect();
    let text = format!(
        "name = \"r\"\n[switch]\nport_rate = \"1 Gb/s\"\nbuffer = \"{buffer}\"\n[pl2]\nmode = \"clock\"\n\
         [clio]\nboards = [\"h1\"]\nmemory = \"1 MiB\"\nstore = \"1 MiB\"\n{hosts}"
    );
    let rack = Rack::parse(&text, "r.toml").unwrap().under(scheme.parse::<Scheme>().unwrap()).unwrap();
    let clio = rack.protocol::<Clio>().unwrap();
    let (board, udp_port) = (clio.board(clio.memory_bytes), clio.udp_port);
    let config = Config { calls_max: [64; 2], ..board.with_store(1 << 20) };
    StoreRack::new(&rack, StoreBoard { host: 0, udp_port, config, store_bytes: 1 << 20 }, 7).unwrap()
}

fn arguments(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut arguments = vec![0; KvArguments::BYTES];
    let (value_bytes, key_bytes) = (value.len() as u32, key.len() as u8);
    KvArguments { value_address: 0, value_bytes, key_bytes, reserved: 0 }.emit(&mut arguments);
    [&arguments, key, value].concat()
}

/// Agents of PL2 wait for grants.
fn patient() -> lib::Config {
    let ms = Nanos::from_millis;
    lib::Config { timeout: ms(2), timeout_max: ms(20), memory: ms(60), retries: 8, ..lib::Config::default() }
}

const PUT: u8 = KvFunction::Put as u8;
const READ: u8 = KvFunction::Read as u8;

/// One client reads what another wrote; each has a process of its own, and both share the store's
/// keys.
#[test]
fn clients_share_the_keys_of_a_board() {
    for scheme in ["clio", "pl2-clock+clio"] {
        let mut rack = rack(scheme, "256 KiB");
        let [writer, reader] = [1, 2].map(|host| rack.begin(host, patient()).unwrap());
        rack.call(writer, 1, PUT, &arguments(b"key", &[9; 900]), 0).unwrap();
        assert_eq!(rack.next(Nanos::MAX), Some((writer, 1, StoreOutcome::Done(Vec::new()))), "{scheme}");
        let begun = rack.now();
        rack.call(reader, 2, READ, &arguments(b"key", b""), 900).unwrap();
        rack.call(reader, 3, READ, &arguments(b"none", b""), 900).unwrap();
        let mut ended = [rack.next(Nanos::MAX).unwrap(), rack.next(Nanos::MAX).unwrap()];
        ended.sort_by_key(|(_, tag, _)| *tag);
        assert_eq!(ended[0], (reader, 2, StoreOutcome::Done(vec![9; 900])), "{scheme}");
        assert_eq!(ended[1], (reader, 3, StoreOutcome::Refused(Status::NotFound)), "{scheme}");
        // A value of 900 bytes takes 8 µs on each of two links.
        let took = rack.now().saturating_sub(begun);
        assert!((Nanos(16_000)..Nanos(60_000)).contains(&took), "{scheme}: {took:?}");
        assert_eq!(rack.next(Nanos::from_secs(1)), None, "{scheme}: nothing else was asked");
        let counts = rack.counts(1).unwrap();
        assert!(counts.drops.is_empty() && rack.counts(3).is_none(), "{scheme}: {counts:?}");
    }
}

/// Packets that a full buffer drops are sent again, and counted.
#[test]
fn what_is_lost_is_made_up_for() {
    let mut rack = rack("clio", "16 KiB");
    let clients: Vec<usize> = (0..16).map(|nth| rack.begin(1 + nth % 2, patient()).unwrap()).collect();
    for (nth, client) in clients.iter().enumerate() {
        for key in 0..4u8 {
            let put = arguments(&[nth as u8 + 1, key], &[key; 1_300]);
            rack.call(*client, key.into(), PUT, &put, 0).unwrap();
        }
    }
    for _ in 0..64 {
        let (_, _, outcome) = rack.next(Nanos::from_secs(10)).unwrap();
        assert_eq!(outcome, StoreOutcome::Done(Vec::new()));
    }
    assert!(!rack.counts(0).unwrap().drops.is_empty());
}
