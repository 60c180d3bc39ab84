//! The report: one self-contained HTML file.

mod parts;
mod plots;
mod store;
mod tables;

use crate::results::Results;
use crate::workload::BUCKET_NS;
use crate::worlds;
use p4rack_codegen::Arch;
use p4rack_codegen::rack::WorkloadKind;
use p4rack_report::{Colour, Page, document, escape, figure, legend, put, text};
use parts::{each_scheme, head, repeat, scheme_legend, section};
use tables::{figures, promises};

/// Renders the whole file: one rack after the other.
pub fn html(results: &[Results]) -> String {
    let names: Vec<&str> = results.iter().map(|results| results.rack.as_str()).collect();
    let body: String = results.iter().map(of_rack).collect();
    document(&Page { title: &format!("{} – p4rack", names.join(", ")), style: "", body: &body, script: "" })
}

fn of_rack(results: &Results) -> String {
    if results.setting.kind == WorkloadKind::Store {
        return store::page(results);
    }
    [
        head(results, &traffic(results)),
        section("Figures", "", &figures(results)),
        worlds_section(results),
        latency_section(results),
        each_scheme(
            results,
            "Depth of the congested queue",
            &format!(
                "Full frames of {} waiting in the switch for {}, the maximum of each few milliseconds. The same \
                 logarithmic axis for all; the measured window is shaded.",
                text::bytes(results.setting.mtu_frame_bytes),
                match results.setting.kind {
                    WorkloadKind::Incast | WorkloadKind::Store => escape(&results.setting.one),
                    WorkloadKind::Outcast => "the receiver for which most waited".to_owned(),
                }
            ),
            "",
            plots::queue,
        ),
        each_scheme(
            results,
            "Goodput by host",
            &format!(
                "What {}, in Ethernet payload, stacked. A frame counts in the {} ms in \
                 which the program read it. After a pause of the program that stretch holds what waited in its \
                 socket as well, so a peak above the port’s rate follows a dip of the same size.",
                match results.setting.kind {
                    WorkloadKind::Incast | WorkloadKind::Store => format!("{} received of each sender", escape(&results.setting.one)),
                    WorkloadKind::Outcast => format!("each host received of {}", escape(&results.setting.one)),
                },
                BUCKET_NS / 1_000_000
            ),
            &host_legend(results),
            plots::goodput,
        ),
        section("Promises", "", &promises(results)),
        section("Repeat it", "", &repeat(results)),
    ]
    .concat()
}

/// The hosts' traffic, in sentences.
fn traffic(results: &Results) -> String {
    let setting = &results.setting;
    let (one, many, load) = (escape(&setting.one), setting.many.len(), setting.load_percent);
    let rate = text::rate(setting.port_rate_bps as f64);
    let traffic = match setting.kind {
        WorkloadKind::Incast | WorkloadKind::Store => {
            format!("{many} hosts send {load} % of what {one}’s {rate} port takes")
        }
        WorkloadKind::Outcast => format!("{one} sends {many} hosts {load} % of what its {rate} port takes"),
    };
    let client = setting.client.as_ref().map_or(String::new(), |client| {
        format!(", while a client on {} reads values over TCP", escape(client))
    });
    format!(
        "{traffic}{client}. Measured for {} s under each scheme, after {} s of warm-up.",
        results.duration_s, setting.warm_up_s
    )
}

fn worlds_section(results: &Results) -> String {
    let agreements = worlds::agreements(results);
    if agreements.is_empty() {
        return String::new();
    }
    let mut out = String::from("<ul>");
    for agreement in agreements {
        let (class, word) =
            if agreement.holds { ("good", "the same order") } else { ("bad", "another order") };
        put(
            &mut out,
            format_args!(
                "<li>{}: <span class={class}>{word}</span> of schemes</li>",
                escape(&agreement.figure)
            ),
        );
    }
    out.push_str("</ul>");
    worlds::WHY.iter().for_each(|why| put(&mut out, format_args!("<p>{why}</p>")));
    let program = match results.setting.arch {
        Arch::V1model => "the same program,",
        Arch::Tna | Arch::T2na => "v1model’s program, the same",
    };
    let lead = format!(
        "The simulated columns are {program} machines and workload under one simulated clock. Figures within 10 % count as equal."
    );
    section("Real and simulated", &lead, &out)
}

fn latency_section(results: &Results) -> String {
    let sizes: std::collections::BTreeSet<u32> =
        results.schemes.iter().flat_map(|scheme| scheme.rpc.iter().map(|value| value.value_bytes)).collect();
    if sizes.is_empty() {
        return String::new();
    }
    let mut out = format!("{}<div class='plots two'>", scheme_legend(results));
    for size in sizes {
        let what = format!("{size}-byte requests answered");
        let plot =
            plots::latency(results, &what, |scheme| scheme.rpc_of(size).map(|value| value.cdf.as_slice()));
        out += &figure(&format!("{} values", text::bytes(u64::from(size))), &plot.svg());
    }
    out.push_str("</div>");
    let lead = format!(
        "From request to the last byte of the answer, as the application on {} saw it. A request that was \
         still waiting at the end counts as the whole window.",
        escape(results.setting.client.as_deref().unwrap_or_default())
    );
    section("Request latency", &lead, &out)
}

fn host_legend(results: &Results) -> String {
    let hosts = results.setting.many.iter().enumerate();
    legend(hosts.map(|(nth, host)| (host.as_str(), Colour::Host(nth), None)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::SchemeResult;
    use crate::results::tests::{good_cached, good_results, good_store};

    fn judged() -> Results {
        let mut results = good_results();
        results.promises = crate::promises::judge(&results);
        results
    }

    #[test]
    fn the_report_needs_nothing_from_outside() {
        let html = html(&[judged()]);
        for outside in ["http:", "https:", "//", "src=", "@import", "url(", "<link", "<script"] {
            assert!(!html.contains(outside), "{outside} in the report");
        }
        // Every element that is opened is closed.
        for element in ["section", "table", "svg", "figure", "details", "div", "tr", "thead", "tbody", "p"] {
            let opened =
                html.matches(&format!("<{element}>")).count() + html.matches(&format!("<{element} ")).count();
            assert_eq!(opened, html.matches(&format!("</{element}>")).count(), "<{element}>");
        }
    }

    #[test]
    fn every_scheme_has_a_colour_of_its_own() {
        let mut results = judged();
        results.schemes[1].name = "edm-matched+pl2-clock".to_owned();
        let html = html(&[results]);
        let latency = html.split("<h2>Request latency</h2>").nth(1).unwrap().split("</p>").nth(1).unwrap();
        for class in ["key series-0", "key series-1", "key series-2"] {
            assert_eq!(latency.matches(class).count(), 1, "{class} in {latency}");
        }
    }

    /// On a narrow screen a row is a card, whose cells say what they are.
    #[test]
    fn each_figure_names_its_scheme() {
        let html = html(&[judged()]);
        let figures = html.split("<h2>Figures</h2>").nth(1).unwrap().split("</table>").next().unwrap();
        assert_eq!(figures.matches("<td data-h='").count(), figures.matches("<td").count() - 1);
    }

    #[test]
    fn it_has_every_plot_and_says_how_to_repeat_the_run() {
        let html = html(&[judged()]);
        // Two value sizes, a queue and a goodput plot for each of three schemes.
        assert_eq!(html.matches("<svg").count(), 2 + 3 + 3);
        for expected in
            ["17 of 17 promises kept", "p4rack up examples/pl2-incast.toml --seed 1", "kill", "reset"]
        {
            assert!(html.contains(expected), "{expected}");
        }
        assert!(!html.contains("NaN") && !html.contains("inf "));
    }

    #[test]
    fn names_from_the_description_cannot_break_out() {
        let mut results = judged();
        results.rack = "<img onerror=x>".to_owned();
        results.setting.many[0] = "\"'><b>".to_owned();
        let html = html(&[results]);
        assert!(!html.contains("<img") && !html.contains("<b>"));
    }

    #[test]
    fn a_store_has_a_distribution_for_each_mix() {
        let mut results = good_store();
        results.promises = crate::promises::judge(&results);
        let page = html(&[results.clone()]);
        assert_eq!(page.matches("<svg").count(), 2 + 2, "two mixes; the queue under two schemes");
        assert!(page.contains("Mix A") && page.contains("Mix C") && page.contains("9 of 9 promises kept"));
        assert!(page.contains("h2, h3, h4, h5 use a key-value store on h1") && !page.contains("NaN"));
        for scheme in &mut results.schemes {
            scheme.store = None;
        }
        assert!(!html(&[results]).contains("NaN"));
    }

    #[test]
    fn stores_in_regions_have_lines_by_local_memory() {
        let mut results = good_cached();
        results.promises = crate::promises::judge(&results);
        let page = html(&[results.clone()]);
        assert_eq!(
            page.matches("<svg").count(),
            2 + 2 + 2,
            "by local memory; two steps; the queue by two ways"
        );
        for expected in
            ["By local memory", "Mix B, 10 %", "policy runs", "memory of m1 and m2", "1900 ms, lease 2000 ms"]
        {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(!page.contains("NaN"));
        for scheme in &mut results.schemes {
            scheme.store = None;
        }
        assert!(!html(&[results]).contains("NaN"));
    }

    #[test]
    fn a_run_without_figures_still_gives_a_report() {
        let mut results = judged();
        for scheme in &mut results.schemes {
            *scheme = SchemeResult { name: scheme.name.clone(), ..SchemeResult::default() };
        }
        assert!(!html(&[results]).contains("NaN"));
    }
}
