//! Verdicts of papers' figures.

use super::*;
use serde_json::json;

fn run(case: &str, scheme: &str, senders: &str, gbps: f64, paper: Value) -> Value {
    json!({
        "sweep": "fig",
        "settings": { "case": case, "seed": "1", "traffic.0.senders": senders, "scheme.kind": scheme },
        "ratios": [],
        "outcome": {
            "scheme": scheme, "seed": 1, "goodput_gbps": gbps, "paper": paper,
            "traffic": [{ "name": "bulk", "latency_ns": { "p50": 10_000, "p99": 50_000 } }]
        }
    })
}

fn says(paper: f64) -> Value {
    json!([{ "figure": "goodput_gbps", "paper": paper, "at_most": false, "source": "its words", "why": null }])
}

#[test]
fn what_is_as_in_the_paper_is_judged_and_stands_first() {
    let results = [
        run("baseline", "l2", "h2", 97.0, json!([])),
        run("ours", "pl2-clock", "h2", 50.0, says(80.0)),
        run("PL2 as in the paper", "pl2-counter", "h2", 81.0, says(80.0)),
        run("PL2 as in the paper", "pl2-counter", "h2+h3", 95.0, json!([])),
    ];
    let [comparison] = comparisons(&results).try_into().ok().unwrap();
    assert_eq!(comparison.columns, ["senders h2", "senders 2 hosts"]);
    let order: Vec<&str> = comparison.rows.iter().map(|row| row.case.as_str()).collect();
    assert_eq!(order, ["PL2 as in the paper", "ours", "baseline"]);
    assert_eq!(comparison.judged(), [81.0], "nothing else is");
    assert_eq!(comparison.text(), "fig, goodput, Gb/s: the paper 80, here 81: as the paper says\n");
    let html = comparison.html();
    assert!(html.contains("its words") && html.contains(" class=\"\">50</td>"), "{html}");
}

#[test]
fn what_is_off_says_why_or_that_nothing_is_known() {
    let mut results = [run("a", "pl2-clock", "h2", 50.0, says(80.0))];
    assert!(comparisons(&results)[0].text().ends_with("not reproduced: no reason found\n"));
    results[0]["outcome"]["paper"][0]["why"] = json!("<it> is slow");
    let comparison = &comparisons(&results)[0];
    assert!(comparison.text().ends_with("not reproduced: <it> is slow\n"));
    assert!(comparison.html().contains("&lt;it&gt; is slow") && comparison.html().contains("class=\"off\""));
    results[0]["outcome"]["paper"][0]["at_most"] = json!(true);
    assert!(comparisons(&results)[0].text().contains("at most 80, here 50: as the paper says"));
}

#[test]
fn an_experiment_says_how_near_is_near_enough() {
    let mut results = [run("a", "pl2-clock", "h2", 90.0, says(80.0))];
    assert_eq!(comparisons(&results)[0].reproduced(), Some(false));
    results[0]["outcome"]["paper"][0]["within"] = json!(0.15);
    assert_eq!(comparisons(&results)[0].reproduced(), Some(true));
}

#[test]
fn a_verdict_names_the_settings_that_it_depends_on() {
    let bound = |gbps: f64, host: &str| {
        let mut one = run("a", "pl2-clock", host, gbps, says(80.0));
        one["outcome"]["paper"][0]["at_most"] = json!(true);
        one
    };
    let results = [bound(70.0, "h2"), bound(81.0, "h3"), bound(90.0, "h4")];
    let text = comparisons(&results)[0].text();
    let expected =
        "not reproduced at senders h3; senders h4 (as the paper says at senders h2): no reason found\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn figures_may_be_quotients_within_a_run_and_between_cases() {
    let path = "traffic.0.latency_ns.p99 / traffic.0.latency_ns.p50";
    let paper = json!([{ "figure": path, "paper": 5.0, "at_most": false, "source": "", "why": null }]);
    let mut results = [run("a", "pl2-clock", "h2", 90.0, paper), run("b", "l2", "h2", 50.0, json!([]))];
    results[0]["ratios"] =
        json!([{ "figure": "goodput_gbps", "of": "a", "by": "b", "says": 1.0, "source": "x", "why": null }]);
    let text: Vec<String> = comparisons(&results).iter().map(Comparison::text).collect();
    assert_eq!(
        text[0],
        "fig, goodput, Gb/s: a / b: the paper 1, here 1.8: not reproduced: no reason found\n"
    );
    assert_eq!(text[1], "fig, p99 / p50 of bulk: the paper 5, here 5: as the paper says\n");
}

/// A bound can be broken, and so can the greatest of several figures: by one above it, or by none as great.
#[test]
fn every_kind_of_figure_can_be_missed() {
    let verdict = |key: &str, ours: &[f64]| {
        let hosts = ["h2", "h3", "h4"];
        let runs = ours.iter().zip(hosts).flat_map(|(gbps, host)| {
            [run("a", "l2", host, *gbps, json!([])), run("b", "l2", host, 10.0, json!([]))]
        });
        let mut results: Vec<Value> = runs.collect();
        for result in results.iter_mut().step_by(2) {
            let mut ratio = json!({ "figure": "goodput_gbps", "of": "a", "by": "b", "says": 3.0, "source": "x", "why": "y" });
            ratio[key] = json!(true);
            result["ratios"] = json!([ratio]);
        }
        let text = comparisons(&results)[0].text();
        text.split_once("the paper ").unwrap().1.to_owned()
    };
    assert_eq!(verdict("at_most", &[10.0, 30.0]), "at most 3, here 1 to 3: as the paper says\n");
    let missed = "not reproduced at senders h3 (as the paper says at senders h2): y\n";
    assert_eq!(verdict("at_most", &[10.0, 31.0]), format!("at most 3, here 1 to 3.1: {missed}"));
    assert_eq!(verdict("at_least", &[30.0, 45.0]), "at least 3, here 3 to 4.5: as the paper says\n");
    assert_eq!(verdict("at_least", &[30.0, 29.0]), format!("at least 3, here 2.9 to 3: {missed}"));
    assert_eq!(verdict("up_to", &[10.0, 29.0, 5.0]), "up to 3, here 0.5 to 2.9: as the paper says\n");
    assert_eq!(verdict("up_to", &[10.0, 20.0]), "up to 3, here 1 to 2: not reproduced: y\n");
    assert_eq!(
        verdict("mean", &[10.0, 49.0]),
        "on average 3, here 2.95 on average, 1 to 4.9: as the paper says\n"
    );
    assert_eq!(
        verdict("mean", &[10.0, 30.0]),
        "on average 3, here 2 on average, 1 to 3: not reproduced: y\n"
    );
    assert_eq!(verdict("up_to", &[29.0, 40.0]), format!("up to 3, here 2.9 to 4: {missed}"));
}

/// A ratio of runs with different seeds would be one of loads, too. Caches' results are read as they are written.
#[test]
fn ratios_are_of_runs_with_the_same_seed() {
    let ran = |case: &str, policy: &str, seed: u64| {
        let text = format!(
            "name = \"c\"\nkind = \"cache\"\nload = \"u.toml\"\npolicy = \"{policy}\"\nlocal_percent = 25\nseed = {seed}\n"
        );
        let recipe =
            "kind = \"ycsb\"\nworkload = \"a\"\nlayout = \"scattered\"\nrecords = 200\noperations = 900\n";
        let experiment = p4rack_sim::CacheExperiment::parse(&text, "c.toml").unwrap();
        let outcome =
            experiment.read_load(&|_| Ok(recipe.to_owned()), &|name| name.into()).unwrap().run().unwrap();
        let seed = seed.to_string();
        json!({ "sweep": "fig", "settings": { "case": case, "seed": seed }, "ratios": [], "outcome": outcome })
    };
    let seeds = [1, 2, 3];
    let mut results: Vec<Value> =
        seeds.iter().flat_map(|seed| [ran("a", "fifo", *seed), ran("b", "kona", *seed)]).collect();
    let ratio =
        json!({ "figure": "amat_ns", "of": "a", "by": "b", "says": 1.0, "mean": true, "source": "x" });
    let amat = |result: &Value| result["outcome"]["amat_ns"].as_f64().unwrap();
    let expected: Vec<f64> = results.chunks(2).map(|pair| amat(&pair[0]) / amat(&pair[1])).collect();
    results.iter_mut().step_by(2).for_each(|result| result["ratios"] = json!([ratio]));
    assert_eq!(comparisons(&results)[0].judged(), expected);
}

/// "From 128 B to 4 KB": the denominator has a setting of its own.
#[test]
fn ratios_may_be_of_two_settings_of_one_case() {
    let mut results = [run("a", "l2", "h2", 20.0, json!([])), run("a", "l2", "h3", 50.0, json!([]))];
    let ratio = json!({
        "figure": "goodput_gbps", "of": "a", "by": "a", "by_at": { "traffic.0.senders": "h2" }, "says": 2.4, "source": "x"
    });
    results[1]["ratios"] = json!([ratio]);
    let text = comparisons(&results)[0].text();
    assert_eq!(text, "fig, goodput, Gb/s: a / a, senders h2: the paper 2.4, here 2.5: as the paper says\n");
}

/// A case that has nothing left is no reason to leave its ratio out.
#[test]
fn a_ratio_to_nothing_is_above_every_bound() {
    let mut results = [run("a", "l2", "h2", 23.0, json!([])), run("b", "l2", "h2", 0.0, json!([]))];
    let ratio = json!({ "figure": "goodput_gbps", "of": "a", "by": "b", "says": 1.4, "at_most": true, "source": "x" });
    results[0]["ratios"] = json!([ratio]);
    assert!(
        comparisons(&results)[0].text().ends_with("at most 1.4, here ∞: not reproduced: no reason found\n")
    );
    results[0]["outcome"]["goodput_gbps"] = json!(0.0);
    assert!(comparisons(&results)[0].text().ends_with("here –: no figures\n"));
}

#[test]
fn figures_of_one_name_are_told_apart_by_their_cases() {
    let results = [
        run("a", "l2", "h2", 97.0, says(80.0)),
        run("b", "l2", "h2", 50.0, json!([])),
        run("b", "l2", "h2+h3", 51.0, says(50.0)),
    ];
    let titles: Vec<String> = comparisons(&results).into_iter().map(|one| one.title).collect();
    assert_eq!(titles, ["goodput, Gb/s, b, senders 2 hosts", "goodput, Gb/s, a, senders h2"]);
}

#[test]
fn the_latency_of_no_message_is_no_figure() {
    let path = "traffic.0.latency_ns.p99";
    let outcome = |count: u64| json!({ "traffic": [{ "latency_ns": { "count": count, "p99": 7 } }] });
    assert_eq!((measured(&outcome(0), path), measured(&outcome(1), path)), (None, Some(7.0)));
    assert_eq!(measured(&json!({ "goodput_gbps": 0.0 }), "goodput_gbps"), Some(0.0));
}
