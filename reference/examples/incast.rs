//! Prints the queue that four senders cause at one port, over schemes and parameters.
//!
//! `cargo run --release -p p4rack-reference --example incast [MILLISECONDS [WAKE_US]]`
//!
//! `WAKE_US`: how late hosts wake up at most (default 100).

use p4rack_fabric::pl2::Mode;
use p4rack_reference::{Incast, Outcome};
use p4rack_wire::Nanos;

const MTU_FRAME: f64 = 1530.0;

fn main() {
    let argument = |n: usize| std::env::args().nth(n).and_then(|text| text.parse().ok());
    let millis = argument(1).unwrap_or(2_000);
    let wake_us = argument(2).unwrap_or(100);
    println!(
        "{:8} {:>3} {:>9} {:>8}  {:>7} {:>9} {:>8} {:>6} {:>6} {:>6} {:>8} {:>9} {:>9}",
        "scheme",
        "t",
        "in_flight",
        "headroom",
        "goodput",
        "p99.9/MTU",
        "max/MTU",
        "drops",
        "over T",
        "unsol.",
        "fairness",
        "resp p50",
        "resp p99"
    );
    print(&run(Incast::new(None), millis, wake_us), "l2", &Incast::new(None));
    for (mode, name) in [(Mode::Counter, "counter"), (Mode::Clock, "clock")] {
        for t_slots in [0, 1, 2, 4, 15] {
            for in_flight in [1, 2, 3] {
                for headroom_percent in [0, 2, 5] {
                    let incast = Incast { t_slots, in_flight, headroom_percent, ..Incast::new(Some(mode)) };
                    print(&run(incast.clone(), millis, wake_us), name, &incast);
                }
            }
        }
    }
}

fn run(mut incast: Incast, millis: u64, wake_us: u64) -> Outcome {
    incast.jitter.wake.1 = Nanos::from_micros(wake_us);
    incast.duration = Nanos::from_millis(millis);
    incast.run()
}

fn print(outcome: &Outcome, name: &str, incast: &Incast) {
    println!(
        "{name:8} {:>3} {:>9} {:>6} %  {:>5.1} % {:>9.1} {:>8.1} {:>6} {:>6} {:>4.0} % {:>8.2} {:>9} {:>9}",
        incast.t_slots,
        incast.in_flight,
        incast.headroom_percent,
        outcome.goodput * 100.0,
        outcome.depth_p999_bytes as f64 / MTU_FRAME,
        outcome.depth_max_bytes as f64 / MTU_FRAME,
        outcome.buffer_drops,
        outcome.unsolicited_drops,
        outcome.unsolicited_share * 100.0,
        outcome.fairness,
        outcome.response_p50.to_string(),
        outcome.response_p99.to_string(),
    );
}
