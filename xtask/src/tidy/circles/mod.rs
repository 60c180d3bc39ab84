//! Sibling modules of a crate depend on each other without circles.
//!
//! A module depends on another if a path in it, or in a module inside it, names something that the other, or
//! a module inside that, defines. Re-exports are followed to the definition and are no dependencies
//! themselves. Between a module and one inside it, both directions are allowed: a parent calls its children,
//! which may use its types. Tests are left out. Method calls contain no path, so only the type they are
//! called on counts.

mod module;

use super::Source;
use crate::picture::Uses;
use module::Module;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// Modules from the crate's root: `["arch", "v1model"]`. Empty for `lib.rs` and `main.rs`.
type Place = Vec<String>;
/// Maximum re-exports followed from one path.
const HOPS_MAX: usize = 8;

/// The circles of all crates, each with the names that tie it.
pub(super) fn problems(sources: &[Source]) -> Vec<String> {
    circles(sources).iter().map(Circle::to_string).collect()
}

/// Modules that depend on each other.
struct Circle {
    /// Folder of the crate.
    folder: PathBuf,
    modules: Vec<String>,
    /// Ties: which file uses which name from which file.
    ties: Vec<String>,
}

impl Display for Circle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: a circle of {}", self.folder.display(), self.modules.join(", "))?;
        self.ties.iter().try_for_each(|tie| write!(f, "\n     {tie}"))
    }
}

/// For each crate, by folder: its top-level modules, and those that each of them uses. Crates of a single module have none.
pub(super) fn uses(sources: &[Source]) -> BTreeMap<String, Uses> {
    let name = |place: &Place| (place.len() == 1).then(|| place[0].clone());
    let of_crate = |(folder, one): (PathBuf, Crate)| {
        let mut uses: Uses =
            one.modules.keys().filter_map(name).map(|name| (name, BTreeSet::new())).collect();
        for (from, to) in one.arrows().iter().filter_map(|(from, to)| Some((name(from)?, to))) {
            uses.entry(from).or_default().extend(to.keys().filter_map(name));
        }
        (!uses.is_empty()).then(|| (folder.display().to_string(), uses))
    };
    crates(sources).into_iter().filter_map(of_crate).collect()
}

/// The circles of all crates.
fn circles(sources: &[Source]) -> Vec<Circle> {
    crates(sources).iter().flat_map(|(folder, one)| one.circles(folder)).collect()
}

/// The modules of all crates, by folder.
fn crates(sources: &[Source]) -> BTreeMap<PathBuf, Crate> {
    let mut crates: BTreeMap<PathBuf, Crate> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.ends_in(&["rs"]) && !source.is_test()) {
        if let Some((folder, place)) = place_of(&source.path) {
            let module = crates.entry(folder).or_default().modules.entry(place).or_default();
            // `lib.rs` and `main.rs` of a crate are its root together.
            module.read(&source.text);
            module.file = source.path.display().to_string();
        }
    }
    crates
}

/// The crate's folder, and the place of the file in the crate.
fn place_of(path: &Path) -> Option<(PathBuf, Place)> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let src = parts.iter().position(|part| *part == "src")?;
    let mut place: Place = parts[src + 1..].iter().map(|part| part.trim_end_matches(".rs").into()).collect();
    if place.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        place.pop();
    }
    Some((parts[..src].iter().collect(), place))
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Place, Module>,
}

/// The siblings that each place depends on, with the ties.
type Arrows = BTreeMap<Place, BTreeMap<Place, BTreeSet<String>>>;

impl Crate {
    fn circles(&self, folder: &Path) -> Vec<Circle> {
        let arrows = self.arrows();
        let reached: BTreeMap<&Place, BTreeSet<&Place>> =
            arrows.keys().map(|from| (from, reached(&arrows, from))).collect();
        let mut left: BTreeSet<&Place> = arrows.keys().collect();
        let mut found = Vec::new();
        while let Some(start) = left.pop_first() {
            let returns = |place: &&&Place| reached.get(**place).is_some_and(|seen| seen.contains(start));
            let circle: BTreeSet<&Place> = reached[start].iter().filter(returns).copied().collect();
            if !circle.is_empty() {
                left.retain(|place| !circle.contains(place));
                let arrows = circle.iter().flat_map(|from| &arrows[*from]);
                let ties = arrows.filter(|(to, _)| circle.contains(to)).flat_map(|(_, ties)| ties.clone());
                found.push(Circle {
                    folder: folder.to_owned(),
                    ties: ties.collect(),
                    modules: circle.iter().map(|place| place.join("::")).collect(),
                });
            }
        }
        found
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, module) in &self.modules {
            for path in module.dependencies() {
                if let Some((to, name)) = self.definition(from, path, 0)
                    && let Some((from_sibling, to_sibling)) = siblings(from, &to)
                {
                    let tie = format!("{} takes {name} from {}", module.file, self.modules[&to].file);
                    arrows.entry(from_sibling).or_default().entry(to_sibling).or_default().insert(tie);
                }
            }
        }
        arrows
    }

    /// The place that defines the target of a path in `from`, and its name. `None` for modules and for other crates.
    fn definition(&self, from: &Place, path: &[String], hops: usize) -> Option<(Place, String)> {
        let mut place = from.clone();
        for (index, name) in path.iter().enumerate() {
            let mut child = place.clone();
            child.push(name.clone());
            match name.as_str() {
                "crate" => place.clear(),
                "self" => {}
                "super" => {
                    place.pop()?;
                }
                "*" => return Some((place, name.clone())),
                _ if self.modules.contains_key(&child) => place = child,
                _ if hops < HOPS_MAX => {
                    let module = self.modules.get(&place)?;
                    if module.defines.contains(name) {
                        return Some((place, name.clone()));
                    }
                    let follow = |target: &[String], rest: &[String]| {
                        self.definition(&place, &[target, rest].concat(), hops + 1)
                    };
                    return module.imports.iter().find_map(|import| match import.path.split_last() {
                        Some((glob, folder)) if glob == "*" => {
                            follow(folder, &path[index..]).filter(|(_, name)| name != "*")
                        }
                        _ if import.name == *name => follow(&import.path, &path[index + 1..]),
                        _ => None,
                    });
                }
                _ => return None,
            }
        }
        None
    }
}

/// The two siblings that contain `from` and `to`. `None` if one of them is inside the other.
fn siblings(from: &Place, to: &Place) -> Option<(Place, Place)> {
    let shared = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    let inside = shared == from.len() || shared == to.len();
    (!inside).then(|| (from[..=shared].to_vec(), to[..=shared].to_vec()))
}

fn reached<'a>(arrows: &'a Arrows, from: &'a Place) -> BTreeSet<&'a Place> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(place) = next.pop() {
        next.extend(arrows.get(place).into_iter().flat_map(BTreeMap::keys).filter(|to| seen.insert(*to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source { path: path.into(), text: (*text).into() };
        let sources: Vec<Source> = files.iter().map(source).collect();
        circles(&sources).iter().map(Circle::to_string).collect()
    }

    #[test]
    fn a_circle_names_what_ties_it() {
        let files = [
            ("x/src/lib.rs", "mod a; mod b; mod c;"),
            ("x/src/a.rs", "use crate::b::{self, Two};\npub fn one() {}"),
            ("x/src/b.rs", "pub struct Two; fn f() { crate::a::one(); }"),
            ("x/src/c.rs", "use crate::a; fn f() { a::one() }"),
        ];
        let expected = "x: a circle of a, b\n     x/src/a.rs takes Two from x/src/b.rs\n     x/src/b.rs takes one from x/src/a.rs";
        assert_eq!(found(&files), [expected]);
    }

    #[test]
    fn modules_inside_count_for_their_parents() {
        let files = |inner: &'static str| {
            let child = ("x/src/a/inner.rs", inner);
            found(&[
                ("x/src/a/mod.rs", "mod inner; pub fn go() { inner::f() }"),
                child,
                ("x/src/b.rs", "use crate::a::go; pub struct B;"),
            ])
        };
        assert!(files("use super::go; pub fn f() {}").is_empty(), "a child may use its parent");
        assert_eq!(files("use crate::b::B; pub fn f() {}").len(), 1);
    }

    #[test]
    fn re_exports_are_followed_and_are_no_use_themselves() {
        let files = |lib: &'static str| {
            found(&[
                ("x/src/lib.rs", lib),
                ("x/src/a.rs", "pub struct A; use crate::B;"),
                ("x/src/b.rs", "pub struct B; use crate::A;"),
            ])
            .len()
        };
        assert_eq!(files("mod a; mod b; pub use a::A; pub use b::B;"), 1);
        assert_eq!(files("mod a; mod b; pub use a::*; pub use b::*;"), 1);
        let handing_on = [
            ("x/src/a.rs", "pub use crate::b::B; pub struct A;"),
            ("x/src/b.rs", "pub struct B; use crate::a::A;"),
        ];
        assert!(found(&handing_on).is_empty());
    }

    #[test]
    fn tests_comments_and_other_crates_tie_nothing() {
        let files =
            |text| found(&[("x/src/a.rs", "pub struct A; use crate::b::B;"), ("x/src/b.rs", text)]).len();
        assert_eq!(files("pub struct B; use crate::a::A;"), 1);
        assert_eq!(
            files("pub struct B; // use crate::a::A;\n/* crate::a::A */ const X: &str = \"crate::a::A\";"),
            0
        );
        assert_eq!(files("pub struct B; #[cfg(test)] mod tests { use crate::a::A; }"), 0);
        assert_eq!(files("pub struct B; use other::a::A; use std::fmt;"), 0);
    }
}
