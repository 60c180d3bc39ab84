//! Tables of pages: a column per scheme, and the promises.

use super::plots;
use crate::results::Results;
use crate::table;
use p4rack_report::{escape, put, text};

/// A cell per scheme for the head of a table.
fn scheme_heads(results: &Results) -> String {
    let mut out = String::new();
    for (name, scheme) in results.columns() {
        let (name, class) = (escape(&name), plots::scheme_colour(results, &scheme.name).class());
        put(&mut out, format_args!("<th scope=col><i class='key {class}'></i>{name}</th>"));
    }
    out
}

/// The figures, and below them lost frames by reason.
pub fn figures(results: &Results) -> String {
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
    for skipped in &results.skipped {
        put(&mut out, format_args!("<p>{}</p>\n", escape(&skipped.sentence())));
    }
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

/// The promises, with the measurements.
pub fn promises(results: &Results) -> String {
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
