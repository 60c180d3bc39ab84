//! Cost of a frame's way through the simulated rack: `cargo bench -p p4rack-sim`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4rack_sim::{Experiment, run};

fn experiment(kind: &str) -> Experiment {
    let text = format!(
        "name = \"bench\"\nduration_us = 20000\n[rack]\nhosts = 6\n[scheme]\nkind = \"{kind}\"\nin_flight = 3\n\
         [[traffic]]\nname = \"incast\"\npattern = \"incast\"\nsenders = [\"h2\", \"h3\", \"h4\", \"h5\"]\n\
         size = 6000\narrivals = \"saturate\"\nflows = 12\n"
    );
    Experiment::parse(&text, "bench.toml").expect("a valid experiment")
}

fn hops(c: &mut Criterion) {
    let mut group = c.benchmark_group("sim");
    group.sample_size(10);
    for kind in ["l2", "pl2-clock", "pl2-counter"] {
        let experiment = experiment(kind);
        let (outcome, _) = run(&experiment, None).expect("it runs");
        group.throughput(Throughput::Elements(outcome.frame_hops));
        group.bench_function(format!("incast of four, {kind}"), |bencher| {
            bencher.iter(|| run(&experiment, None).expect("it runs").0.frame_hops);
        });
    }
    group.finish();
}

criterion_group!(benches, hops);
criterion_main!(benches);
