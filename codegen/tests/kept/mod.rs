//! The readable part of generated files that `tests/golden/` keeps for reviewers.
//!
//! ```text
//! golden/SCHEME/FILE             the text: programs, and other files of few lines
//! golden/SCHEME/outlines.txt     of longer files: lines, digest, and what P4Info and entries contain
//! golden/SCHEME-t2na/differences.txt   the lines that differ from TNA's files
//! ```

mod outline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files with more lines are kept as an outline, unless they are programs.
const LINES_MAX: usize = 400;
/// The architecture of which only the differences from another one are kept.
const DERIVED: (&str, &str) = ("-t2na", "-tna");
/// Programs that are kept whole nevertheless, since the switch's tests run them.
const WHOLE: [&str; 1] = ["l2-t2na/pl2-incast.p4"];

/// Generated files: the scheme's folder and the file's name, and the text.
pub type Files = BTreeMap<PathBuf, String>;

/// The kept part of `generated`, by path below the folder of golden files.
pub fn kept(generated: &Files) -> Files {
    let mut kept = Files::new();
    let mut add = |folder: &Path, file: &str, text: &str| {
        let all: &mut String = kept.entry(folder.join(file)).or_default();
        all.push_str(text);
    };
    for (path, text) in generated {
        let folder = path.parent().unwrap_or(Path::new(""));
        if is_whole(path, text) {
            add(folder, &name(path), text);
        } else if let Some(origin) = origin(path) {
            let differences = differences(&generated[&origin], text);
            if !differences.is_empty() {
                add(folder, "differences.txt", &format!("{}, from {}:\n", name(path), origin.display()));
                add(folder, "differences.txt", &(differences + "\n"));
            }
        } else {
            add(folder, "outlines.txt", &outline::outline(&name(path), text, generated, folder));
        }
    }
    kept.values_mut().for_each(|text| text.truncate(text.trim_end().len() + 1));
    kept
}

/// Whether the text of a file is kept as it is.
pub fn is_whole(path: &Path, text: &str) -> bool {
    let is_program = path.extension().is_some_and(|ending| ending == "p4");
    let is_short = is_program || text.lines().count() <= LINES_MAX;
    is_short && origin(path).is_none() || WHOLE.iter().any(|whole| path == Path::new(whole))
}

/// The file of the other architecture that a file is compared with.
fn origin(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?.to_str()?.strip_suffix(DERIVED.0)?;
    Some(Path::new(&format!("{folder}{}", DERIVED.1)).join(name(path)))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The lines of `old` and `new` that differ, each group behind the number of its line in `old`.
fn differences(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (mut at, mut to, mut text) = (0, 0, String::new());
    while at < old.len() || to < new.len() {
        // The next lines that agree, or both ends.
        let agree = |(gone, come): &(usize, usize)| old.get(at + gone) == new.get(to + come);
        let skipped = (0..).find_map(|sum| (0..=sum).map(|gone| (gone, sum - gone)).find(agree));
        let (gone, come) = skipped.unwrap_or_default();
        if gone + come > 0 {
            let (until, then) = ((at + gone).min(old.len()), (to + come).min(new.len()));
            text.push_str(&format!("@ {}\n", at + 1));
            old[at..until].iter().for_each(|line| text.push_str(&format!("- {line}\n")));
            new[to..then].iter().for_each(|line| text.push_str(&format!("+ {line}\n")));
        }
        (at, to) = (at + gone + 1, to + come + 1);
    }
    text
}
