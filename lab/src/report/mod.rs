//! The report: one self-contained HTML file.

mod plots;
mod svg;

use crate::results::{Results, SchemeResult};
use crate::workload::BUCKET_NS;
use crate::{table, text, worlds};
use p4rack_codegen::Arch;
use p4rack_codegen::rack::WorkloadKind;
use std::fmt::Write;
pub use svg::escape;

/// Style sheet of all reports.
pub const STYLE: &str = include_str!("style.css");

/// Number of host colours in the style sheet. Further hosts reuse them.
const HOST_COLOURS: usize = 8;

/// Renders the whole file: one rack after the other.
pub fn html(results: &[Results]) -> String {
    let names = results.iter().map(|results| escape(&results.rack)).collect::<Vec<_>>().join(", ");
    let style = STYLE;
    let body: String = results.iter().map(of_rack).collect();
    format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content='width=device-width,initial-scale=1'>\
         <title>{names} – p4rack</title>\n<style>\n{style}</style></head>\n<body>\n{body}</body></html>\n"
    )
}

fn of_rack(results: &Results) -> String {
    if results.setting.kind == WorkloadKind::Store {
        return of_store(results);
    }
    [
        head(results),
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

/// The report of a store.
fn of_store(results: &Results) -> String {
    let queue = format!(
        "Full frames of {} waiting in the switch for {}, the maximum of each few milliseconds. The same logarithmic axis for \
         all; the measured window is shaded.",
        text::bytes(results.setting.mtu_frame_bytes),
        escape(&results.setting.one)
    );
    [
        head(results),
        section("Figures", "", &figures(results)),
        mixes_section(results),
        each_scheme(results, "Depth of the server’s queue", &queue, "", plots::queue),
        section("Promises", "", &promises(results)),
        section("Repeat it", "", &repeat(results)),
    ]
    .concat()
}

fn store_head(results: &Results, kept: usize, all: usize, class: &str) -> String {
    let setting = &results.setting;
    let (one, many) = (escape(&setting.one), escape(&setting.many.join(", ")));
    let rate = text::rate(setting.port_rate_bps as f64);
    let beside = setting.bulk.as_ref().map_or_else(String::new, |bulk| {
        format!("Beside {} writing to {one} as fast as it can, ", escape(&bulk.host))
    });
    let under_way = match setting.depth {
        None | Some(1) => "one operation at a time".to_owned(),
        Some(depth) => format!("up to {depth} operations under way"),
    };
    let what = match &setting.log {
        None => format!(
            "{beside}{many} use a key-value store on {one}, each with {under_way}, over links of {rate}. Under schemes with \
             EDM the values live in {one}’s memory, where the clients read and write them; under the others a server on {one} \
             answers over TCP."
        ),
        Some(log) => format!(
            "A thread on {many} owns a key-value store whose newest part, {} % of the records’ room, is in local memory, and the \
             older part in {one}’s, over links of {rate}. It has {under_way}, one under rdma-sync. It sleeps until a frame of RDMA's \
             comes, and looks for Cowbird's answers every 200 µs.",
            log.memory_percent
        ),
    };
    format!(
        "<header><h1>{}</h1><p class='verdict {class}'>{kept} of {all} promises kept</p>\
         <p>{what} Measured for {} s under each scheme, all mixes together.</p></header>\n",
        escape(&results.rack),
        results.duration_s,
    )
}

/// Latency of the store's operations by mix.
fn mixes_section(results: &Results) -> String {
    let Some(store) = results.schemes.iter().find_map(|scheme| scheme.store.as_ref()) else {
        return String::new();
    };
    let mut out = format!("{}<div class='plots two'>", scheme_legend(results));
    for mix in &store.mixes {
        let plot = plots::latency(results, &format!("operations of mix {}", mix.mix), |scheme| {
            scheme.mix_of(&mix.mix).map(|figures| figures.cdf.as_slice())
        });
        put(
            &mut out,
            format_args!("<figure><figcaption>Mix {}</figcaption>{plot}</figure>", escape(&mix.mix)),
        );
    }
    out.push_str("</div>");
    let lead = "From the start of an operation until its client knows the result: a value that was checked, or that its write is \
                there. YCSB’s mixes: A half reads, half writes; B 95 % reads; C reads; F half reads, half reads \
                followed by a write of the same record.";
    section("Latency of operations", lead, &out)
}

fn section(title: &str, lead: &str, content: &str) -> String {
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=lead>{lead}</p>") };
    format!("<section><h2>{title}</h2>{lead}\n{content}</section>\n")
}

fn head(results: &Results) -> String {
    let setting = &results.setting;
    let kept = results.promises.iter().filter(|promise| promise.holds).count();
    let all = results.promises.len();
    let class = if kept == all { "good" } else { "bad" };
    let (one, many, load) = (escape(&setting.one), setting.many.len(), setting.load_percent);
    let rate = text::rate(setting.port_rate_bps as f64);
    let traffic = match setting.kind {
        WorkloadKind::Store => return store_head(results, kept, all, class),
        WorkloadKind::Incast => format!("{many} hosts send {load} % of what {one}’s {rate} port takes"),
        WorkloadKind::Outcast => format!("{one} sends {many} hosts {load} % of what its {rate} port takes"),
    };
    let client = setting.client.as_ref().map_or(String::new(), |client| {
        format!(", while a client on {} reads values over TCP", escape(client))
    });
    format!(
        "<header><h1>{}</h1><p class='verdict {class}'>{kept} of {all} promises kept</p>\
         <p>{traffic}{client}. Measured for {} s under each scheme, after {} s of warm-up.</p></header>\n",
        escape(&results.rack),
        results.duration_s,
        setting.warm_up_s,
    )
}

fn scheme_heads(results: &Results) -> String {
    let mut out = String::new();
    for (name, scheme) in results.columns() {
        let (name, class) = (escape(&name), plots::scheme_class(results, &scheme.name));
        put(&mut out, format_args!("<th scope=col><i class='key {class}'></i>{name}</th>"));
    }
    out
}

fn figures(results: &Results) -> String {
    let mut out = format!(
        "<div class=scroll><table><thead><tr><td></td>{}</tr></thead><tbody>\n",
        scheme_heads(results)
    );
    for (label, figure) in table::rows(results) {
        put(&mut out, format_args!("<tr><th scope=row>{}</th>", escape(&label)));
        for (name, scheme) in results.columns() {
            put(&mut out, format_args!("<td data-h='{}'>{}</td>", escape(&name), escape(&figure(scheme))));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    let drops = drops(results);
    if !drops.is_empty() {
        put(
            &mut out,
            format_args!("<details><summary>Lost frames by place and reason</summary>{drops}</details>"),
        );
    }
    out
}

fn drops(results: &Results) -> String {
    let reasons: std::collections::BTreeSet<&String> =
        results.columns().into_iter().flat_map(|(_, scheme)| scheme.drops.keys()).collect();
    if reasons.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<div class=scroll><table><thead><tr><td></td>{}</tr></thead><tbody>\n",
        scheme_heads(results)
    );
    for reason in reasons {
        put(&mut out, format_args!("<tr><th scope=row><code>{}</code></th>", escape(reason)));
        for (name, scheme) in results.columns() {
            let count = scheme.drops.get(reason).copied().unwrap_or(0);
            put(&mut out, format_args!("<td data-h='{}'>{}</td>", escape(&name), text::count(count)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    out
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
        put(
            &mut out,
            format_args!(
                "<figure><figcaption>{} values</figcaption>{}</figure>",
                text::bytes(u64::from(size)),
                plots::latency(results, &format!("{size}-byte requests answered"), |scheme| scheme
                    .rpc_of(size)
                    .map(|value| value.cdf.as_slice()))
            ),
        );
    }
    out.push_str("</div>");
    let lead = format!(
        "From request to the last byte of the answer, as the application on {} saw it. A request that was \
         still waiting at the end counts as the whole window.",
        escape(results.setting.client.as_deref().unwrap_or_default())
    );
    section("Request latency", &lead, &out)
}

fn each_scheme(
    results: &Results,
    title: &str,
    lead: &str,
    legend: &str,
    plot: fn(&Results, &SchemeResult) -> String,
) -> String {
    let mut out = format!("{legend}<div class='plots three'>");
    for scheme in &results.schemes {
        put(
            &mut out,
            format_args!(
                "<figure><figcaption>{}</figcaption>{}</figure>",
                escape(&scheme.name),
                plot(results, scheme)
            ),
        );
    }
    out.push_str("</div>");
    section(title, lead, &out)
}

fn scheme_legend(results: &Results) -> String {
    let mut legend = String::from("<p class=legend>");
    for scheme in &results.schemes {
        let (name, class) = (escape(&scheme.name), plots::scheme_class(results, &scheme.name));
        put(&mut legend, format_args!("<span><i class='key {class}'></i>{name}</span>"));
    }
    legend.push_str("</p>");
    legend
}

fn host_legend(results: &Results) -> String {
    let mut out = String::from("<p class=legend>");
    for (index, host) in results.setting.many.iter().enumerate() {
        let colour = index % HOST_COLOURS;
        put(&mut out, format_args!("<span><i class='key host-{colour}'></i>{}</span>", escape(host)));
    }
    out.push_str("</p>");
    out
}

fn promises(results: &Results) -> String {
    let mut out = String::from(
        "<div class=scroll><table class=left><thead><tr><td></td><th scope=col>scheme</th><th scope=col>promise</th>\
         <th scope=col>promised</th><th scope=col>measured</th></tr></thead><tbody>\n",
    );
    for promise in &results.promises {
        let (class, mark, word) =
            if promise.holds { ("good", "✓", "kept") } else { ("bad", "✗", "not kept") };
        put(
            &mut out,
            format_args!(
                "<tr><td class={class}><span aria-label='{word}'>{mark}</span></td><td>{}</td><td>{}</td><td data-h=promised>{}</td>\
                 <td data-h=measured>{}</td></tr>\n",
                escape(&promise.scheme),
                escape(&promise.what),
                escape(&promise.promised),
                escape(&promise.measured)
            ),
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

fn repeat(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "<pre><code>{}</code></pre><p>Seed {}; P4 for {}; TCP {}; Linux {}; {} CPUs{}; p4rack {}. {}.</p>",
        escape(&results.command),
        results.seed,
        results.setting.arch,
        escape(&results.tcp),
        escape(&machine.kernel),
        machine.cpus,
        if machine.cpu_model.is_empty() {
            String::new()
        } else {
            format!(" ({})", escape(&machine.cpu_model))
        },
        env!("CARGO_PKG_VERSION"),
        escape(&capitalized(&results.context())),
    )
}

fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{good_results, good_store};

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

    /// A line without a colour is not there.
    #[test]
    fn every_scheme_and_host_has_a_colour() {
        let mut results = judged();
        results.schemes[1].name = "edm-matched+pl2-clock".to_owned();
        let html = html(&[results]);
        let classes: std::collections::BTreeSet<&str> = html
            .split(['\'', '"', ' ', '>'])
            .map(|word| word.trim_start_matches("class="))
            .filter(|word| word.starts_with("scheme-") || word.starts_with("host-"))
            .collect();
        assert_eq!(classes.iter().filter(|class| class.starts_with("scheme-")).count(), 3, "{classes:?}");
        for class in classes {
            assert!(STYLE.contains(&format!(".{class} {{")), "{class}");
        }
        for number in 0..plots::SCHEME_COLOURS {
            assert!(STYLE.contains(&format!(".scheme-{number} {{")), "{number}");
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
    fn a_run_without_figures_still_gives_a_report() {
        let mut results = judged();
        for scheme in &mut results.schemes {
            *scheme = SchemeResult { name: scheme.name.clone(), ..SchemeResult::default() };
        }
        assert!(!html(&[results]).contains("NaN"));
    }
}
