//! Parts of pages.

use crate::colour::Colour;
use crate::{STYLE, put};

/// A page without anything from outside.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Its title, plain text.
    pub title: &'a str,
    /// Rules beside [`STYLE`].
    pub style: &'a str,
    /// Content, HTML.
    pub body: &'a str,
    /// A script that runs when the content is loaded; empty if there is none.
    pub script: &'a str,
}

/// The page as a file.
pub fn document(page: &Page<'_>) -> String {
    let Page { style, body, script, .. } = page;
    let title = escape(page.title);
    let script = if script.is_empty() { String::new() } else { format!("<script>\n{script}</script>\n") };
    format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content='width=device-width,initial-scale=1'>\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style></head>\n<body>\n{body}{script}</body></html>\n"
    )
}

/// A plot with its caption, plain text.
pub fn figure(caption: &str, svg: &str) -> String {
    format!("<figure><figcaption>{}</figcaption>{svg}</figure>", escape(caption))
}

/// Names with their colours, and the rows that show and hide them; see [`Line::row`](crate::Line::row).
pub fn legend<'a>(entries: impl Iterator<Item = (&'a str, Colour, Option<usize>)>) -> String {
    let mut out = String::from("<p class=legend>");
    for (name, colour, row) in entries {
        let row = row.map_or(String::new(), |row| format!(" data-row={row}"));
        put(
            &mut out,
            format_args!("<span{row}><i class='key {}'></i>{}</span>", colour.class(), escape(name)),
        );
    }
    out + "</p>"
}

/// An attribute with a space before it; nothing if the value is empty.
pub fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}='{}'", escape(value)) }
}

/// Text that a pointer over the surrounding element shows.
pub(crate) fn hover(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<title>{}</title>", escape(text)) }
}

/// Escapes text for HTML elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOST_COLOURS, SERIES_COLOURS};

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let page = Page { title: "a & <b>", style: ".x {}", body: "<p>y</p>", script: "" };
        let html = document(&page);
        assert!(html.contains("<title>a &amp; &lt;b&gt;</title>") && html.contains(".x {}"), "{html}");
        assert!(!html.contains("<script"));
        for outside in ["http:", "https:", "//", "src=", "@import", "url(", "<link"] {
            assert!(!html.contains(outside), "{outside} in the page");
        }
        assert!(document(&Page { script: "f();\n", ..page }).contains("<script>\nf();\n</script>"));
    }

    /// A line without a colour can't be seen.
    #[test]
    fn the_style_sheet_has_every_colour() {
        let all = (0..SERIES_COLOURS).map(Colour::Series).chain((0..HOST_COLOURS).map(Colour::Host));
        for class in all.map(Colour::class) {
            assert_eq!(STYLE.matches(&format!(".{class} {{")).count(), 1, "{class}");
        }
        assert_eq!(Colour::Series(SERIES_COLOURS).class(), Colour::Series(0).class() + " again");
        assert!(STYLE.contains(".again .line {") && STYLE.contains(".key.again {"));
    }

    #[test]
    fn legends_name_their_rows() {
        let legend = legend([("a<b", Colour::Series(1), Some(7)), ("c", Colour::Host(0), None)].into_iter());
        assert!(legend.contains("<span data-row=7><i class='key series-1'></i>a&lt;b</span>"), "{legend}");
        assert!(legend.contains("<span><i class='key host-0'>"), "{legend}");
    }
}
