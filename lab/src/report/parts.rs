//! Parts of every page.

use super::plots;
use crate::results::{Results, SchemeResult};
use p4rack_report::{Plot, escape, figure, legend};

/// A section: title and content, HTML, and a paragraph that leads to it.
pub fn section(title: &str, lead: &str, content: &str) -> String {
    let lead = if lead.is_empty() { String::new() } else { format!("<p class=lead>{lead}</p>") };
    format!("<section><h2>{title}</h2>{lead}\n{content}</section>\n")
}

/// The head of a rack's part: its name, its verdict and `what` was done, HTML.
pub fn head(results: &Results, what: &str) -> String {
    let kept = results.promises.iter().filter(|promise| promise.holds).count();
    let all = results.promises.len();
    let class = if kept == all { "good" } else { "bad" };
    format!(
        "<header><h1>{}</h1><p class='verdict {class}'>{kept} of {all} promises kept</p>\
         <p>{what}</p></header>\n",
        escape(&results.rack),
    )
}

/// A section with a plot for each scheme.
pub fn each_scheme(
    results: &Results,
    title: &str,
    lead: &str,
    legend: &str,
    plot: fn(&Results, &SchemeResult) -> Plot,
) -> String {
    let mut out = format!("{legend}<div class='plots three'>");
    for scheme in &results.schemes {
        out += &figure(&scheme.name, &plot(results, scheme).svg());
    }
    out.push_str("</div>");
    section(title, lead, &out)
}

/// The schemes with their colours.
pub fn scheme_legend(results: &Results) -> String {
    let names = results.schemes.iter().map(|scheme| scheme.name.as_str());
    legend(names.map(|name| (name, plots::scheme_colour(results, name), None)))
}

/// How to repeat the run, and on which machine it was.
pub fn repeat(results: &Results) -> String {
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
