//! EDM's compute and memory nodes take any messages, in any order, from anybody; the memory node holds no more than it may, and
//! nothing outside its regions changes.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::compute::{self, Request};
use p4rack_fabric::edm::host::memory::{self, Region, Rights};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{Opcode, VERSION};

#[derive(Arbitrary, Debug)]
enum Step {
    Read(u8, u16, u16),
    Write(u8, u16, u16),
    Modify(u8, u16, u8),
    /// A message of a kind, with small numbers in it or any bytes.
    Message {
        from: u8,
        kind: u8,
        bytes: Vec<u8>,
        small: bool,
    },
    /// Frames of the compute node reach the memory node, and back.
    Exchange(u8),
    Wait(u16),
}

fuzz_target!(|steps: Vec<Step>| {
    let region =
        |start, key, write| Region { start, bytes: vec![0; 512], key, rights: Rights { read: true, write } };
    let regions = vec![region(0, 0, true), region(1_024, 1, false)];
    let mut memory = memory::MemoryNode::new(memory::Config::default(), regions).expect("apart");
    let mut compute =
        compute::ComputeNode::new(compute::Config { waiting_max: 8, ..compute::Config::default() }, 0);
    let (mut now, mut out, mut asked, mut ended) = (Nanos::ZERO, Vec::new(), 0, 0);
    for step in steps {
        let (to, address, request) = match step {
            Step::Read(to, address, bytes) => (to, address, Request::Read(bytes.into())),
            Step::Write(to, address, bytes) => {
                (to, address, Request::Write(vec![1; usize::from(bytes % 2_048)]))
            }
            Step::Modify(to, address, code) => {
                (to, address, Request::Modify(Opcode::ALL[usize::from(code) % 8], [1, 2]))
            }
            Step::Message { from, kind, mut bytes, small } => {
                if let Some(first) = bytes.first_mut() {
                    *first = VERSION << 4 | kind & 7;
                }
                if small {
                    bytes.iter_mut().skip(1).for_each(|byte| *byte &= 3);
                }
                memory.handle_link(((from % 3).into(), &bytes), now, now);
                compute.handle_link(((from % 3).into(), &bytes), now, now);
                continue;
            }
            Step::Exchange(times) => {
                for _ in 0..times {
                    if compute.poll_link(now, &mut out).is_some() {
                        memory.handle_link((0, &out), now, now);
                    }
                    if let Some(to) = memory.poll_link(now, &mut out) {
                        compute.handle_link((to, &out), now, now);
                    }
                }
                continue;
            }
            Step::Wait(us) => {
                now = now.saturating_add(Nanos::from_micros(us.into()));
                compute.handle_timeout(now);
                ended += std::iter::from_fn(|| compute.poll_completion()).count();
                assert!(ended <= asked, "a request ends once");
                continue;
            }
        };
        asked +=
            usize::from(compute.handle_request((to % 3).into(), 0, address.into(), request, now).is_ok());
    }
    assert_eq!(memory.regions()[1].bytes, [0; 512], "read only");
});
