//! Any text goes through the whole front end and, if it is a program, into the switch, which then takes frames:
//! no panic, no hang, no memory without bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_p4::Options;
use p4rack_switch::{Config, Pipeline, PortConfig, Switch};
use p4rack_wire::Nanos;

fuzz_target!(|data: &[u8]| {
    // Frames follow the first NUL, each of up to 255 bytes after its length.
    let at = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..at]);
    let compiled = match p4rack_p4::compile(&text, "fuzz.p4", &Options::default()) {
        Ok(compiled) => compiled,
        Err(errors) => {
            assert!(errors.has_errors());
            errors.render(false);
            return;
        }
    };
    let Ok(pipeline) = Pipeline::compile(&compiled.program) else { return };
    let ports = (1..=2).map(|port| PortConfig::new(port, 0)).collect();
    let mut switch = Switch::new(Config { ports, cpu_port: Some(510), ..Config::default() });
    switch.load(pipeline);
    let (mut now, mut out) = (Nanos(1), Vec::new());
    let mut left = data.get(at + 1..).unwrap_or_default();
    while let [length, rest @ ..] = left {
        let (frame, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        left = rest;
        now = now + Nanos(1_000);
        match frame.len() % 3 {
            0 => switch.handle_frame(1, frame, now),
            1 => {
                switch.forward_frame(1, frame, now, &mut out);
            }
            _ => {
                out.clear();
                out.extend_from_slice(frame);
                switch.forward_given(1, &mut out, now);
            }
        }
        // A recirculating program sends for ever: its work for one frame is bounded elsewhere.
        for _ in 0..64 {
            if switch.poll_transmit(now, &mut out).is_none() {
                break;
            }
        }
        while switch.poll_cpu(&mut out) {}
    }
});
