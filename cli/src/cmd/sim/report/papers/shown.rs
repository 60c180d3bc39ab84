//! Comparisons with papers, as text and as part of a page.

use super::{Comparison, Kind};
use crate::cmd::sim::report::value::mean;
use p4rack_report::{escape, put, text};

impl Comparison {
    /// Whether it was reproduced, in words.
    fn verdict(&self) -> String {
        match self.reproduced() {
            None => "no figures".to_owned(),
            Some(true) => "as the paper says".to_owned(),
            Some(false) => {
                let why = self.why.as_deref().unwrap_or("no reason found");
                format!("not reproduced{}: {why}", self.by_column())
            }
        }
    }

    /// Where it was not reproduced, and where it was, if that depends on the settings.
    fn by_column(&self) -> String {
        let agrees = |at: usize| {
            let judged = self.rows.iter().filter(|row| row.judged[at]).flat_map(|row| row.cells[at].iter());
            let mut judged = judged.peekable();
            judged.peek().is_some().then(|| judged.all(|value| self.agrees(*value)))
        };
        let names = |wanted: bool| {
            let columns = self.columns.iter().enumerate().filter(|(at, _)| agrees(*at) == Some(wanted));
            columns.map(|(_, column)| column.as_str()).collect::<Vec<_>>().join("; ")
        };
        match (names(false), names(true)) {
            (off, same) if off.is_empty() || same.is_empty() => String::new(),
            (off, same) => format!(" at {off} (as the paper says at {same})"),
        }
    }

    fn says(&self) -> String {
        let word = match self.kind {
            Kind::Equal => "",
            Kind::AtMost => "at most ",
            Kind::AtLeast => "at least ",
            Kind::UpTo => "up to ",
            Kind::Mean => "on average ",
        };
        format!("{word}{}", number(self.says))
    }

    /// The figures of which the paper speaks.
    fn here(&self) -> String {
        let judged = self.judged();
        match (self.kind, mean(&judged)) {
            (Kind::Mean, Some(mean)) if judged.len() > 1 => {
                format!("{} on average, {}", number(mean), range(&judged))
            }
            _ => range(&judged),
        }
    }

    /// As lines of text.
    pub fn text(&self) -> String {
        let here = self.here();
        format!(
            "{}, {}: the paper {}, here {here}: {}\n",
            self.experiment,
            self.title,
            self.says(),
            self.verdict()
        )
    }

    /// As part of a page.
    pub fn html(&self) -> String {
        let class = if self.reproduced() == Some(true) { "good" } else { "bad" };
        let mut out = format!(
            "<details><summary>{}: {}: the paper {}, here {}; <span class=\"{class}\">{}</span></summary>\
             <p class=\"lead\">{}</p><div class=\"scroll\"><table><thead><tr><td>case</td>",
            escape(&self.experiment),
            escape(&self.title),
            self.says(),
            self.here(),
            escape(&self.verdict()),
            escape(&self.source),
        );
        for column in &self.columns {
            let column = if column.is_empty() { "all runs" } else { column };
            put(&mut out, format_args!("<th scope=\"col\">{}</th>", escape(column)));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            put(&mut out, format_args!("<tr><th scope=\"row\">{}</th>", escape(&row.case)));
            for ((cell, judged), column) in row.cells.iter().zip(&row.judged).zip(&self.columns) {
                let off = *judged && !cell.iter().all(|value| self.agrees(*value));
                let (class, column) = (if off { "off" } else { "" }, escape(column));
                put(&mut out, format_args!("<td data-h=\"{column}\" class=\"{class}\">{}</td>", range(cell)));
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div></details>\n");
        out
    }
}

/// Least and greatest of some figures.
fn range(values: &[f64]) -> String {
    let low = number(values.iter().copied().fold(f64::INFINITY, f64::min));
    let high = number(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    match values {
        [] => "–".to_owned(),
        _ if low == high => low,
        _ => format!("{low} to {high}"),
    }
}

fn number(value: f64) -> String {
    text::number(value, 3)
}
