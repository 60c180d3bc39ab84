//! Aliases of P4Info objects: short names that mean one object each.

use std::collections::{BTreeSet, HashMap};

/// The aliases of a program's objects.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    /// How many names have this end, in whole components.
    ends: HashMap<String, usize>,
}

impl Aliases {
    /// For objects with these full names. A name that occurs twice counts once: objects of two kinds may share it.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Aliases {
        let mut aliases = Aliases::default();
        let names: BTreeSet<&str> = names.into_iter().collect();
        for end in names.into_iter().flat_map(ends) {
            *aliases.ends.entry(end.to_owned()).or_default() += 1;
        }
        aliases
    }

    /// The shortest end of a full name, in whole components, that no other name has; the name itself if another one ends in it.
    pub fn of<'a>(&self, name: &'a str) -> &'a str {
        ends(name).find(|end| self.ends.get(*end).is_none_or(|names| *names < 2)).unwrap_or(name)
    }
}

/// The ends of a name in whole components, the shortest first.
fn ends(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]).chain([name])
}

#[cfg(test)]
mod tests {
    use super::Aliases;

    #[test]
    fn an_alias_is_the_shortest_end_that_is_unambiguous() {
        let aliases =
            Aliases::new(["I.pl2.starts", "I.edm.starts", "I.drops", "E.I.drops", "I.drops", "I.hosts"]);
        let of =
            ["I.pl2.starts", "I.edm.starts", "E.I.drops", "I.drops", "I.hosts"].map(|name| aliases.of(name));
        assert_eq!(of, ["pl2.starts", "edm.starts", "E.I.drops", "I.drops", "hosts"]);
    }
}
