//! Prints the graph of uses: crates, and the modules of each crate. Each is below all of its dependencies, so a circle
//! has no place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Dependencies of each name.
pub type Uses = BTreeMap<String, BTreeSet<String>>;

/// The names in layers: a name's dependencies are in layers above it. Errors: a circle, by its names and those that
/// use them.
fn layers(uses: &Uses) -> Result<Vec<Vec<&str>>, String> {
    let names = uses.keys().chain(uses.values().flatten());
    let mut left: BTreeSet<&str> = names.map(String::as_str).collect();
    let mut layers = Vec::new();
    while !left.is_empty() {
        let free =
            |name: &&&str| uses.get(**name).is_none_or(|used| used.iter().all(|one| !left.contains(&**one)));
        let layer: Vec<&str> = left.iter().filter(free).copied().collect();
        if layer.is_empty() {
            return Err(format!("a circle: {}", left.into_iter().collect::<Vec<_>>().join(", ")));
        }
        left.retain(|name| !layer.contains(name));
        layers.push(layer);
    }
    Ok(layers)
}

/// The picture as text, one line per name.
pub fn draw(title: &str, uses: &Uses) -> Result<String, String> {
    let mut text = format!("{title}\n");
    for (depth, layer) in layers(uses).map_err(|circle| format!("{title}: {circle}"))?.iter().enumerate() {
        for name in layer {
            let used =
                uses.get(*name).into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
            let arrow = if used.is_empty() { "" } else { "→" };
            let _ = writeln!(text, "{}", format!("  {depth}  {name:<14} {arrow} {used}").trim_end());
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(arrows: &[(&str, &str)]) -> Uses {
        let mut uses = Uses::new();
        for (from, to) in arrows {
            uses.entry((*from).into()).or_default().insert((*to).into());
        }
        uses
    }

    #[test]
    fn each_name_stands_below_what_it_uses() {
        let drawn = draw("x", &uses(&[("c", "a"), ("b", "a"), ("c", "b")])).unwrap();
        assert_eq!(drawn, "x\n  0  a\n  1  b              → a\n  2  c              → a, b\n");
    }

    #[test]
    fn a_circle_is_an_error_that_names_it() {
        assert_eq!(draw("x", &uses(&[("a", "b"), ("b", "a"), ("b", "c")])), Err("x: a circle: a, b".into()));
    }
}
