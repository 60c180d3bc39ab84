//! Parses every `.p4` file of a folder and counts the accepted ones.
//!
//! ```text
//! cargo run --release -p p4rack-p4 --example parse_folder -- [-I DIR]... [-D NAME=VALUE]... [--errors] FOLDER
//! ```
//!
//! Lists the files refused with their first error; with `--errors`, where refusal is expected, those
//! accepted.

use p4rack_p4::Diagnostics;
use p4rack_p4::preprocess::{self, Options};
use p4rack_p4::{parser, source::SourceMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

fn main() -> std::io::Result<()> {
    let mut options = Options::default();
    let mut folder = PathBuf::from(".");
    let mut expect_errors = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-I" => options.include_dirs.extend(args.next().map(PathBuf::from)),
            "-D" => options.defines.extend(args.next().map(|define| match define.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (define, "1".to_owned()),
            })),
            "--errors" => expect_errors = true,
            other => folder = PathBuf::from(other),
        }
    }

    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)?.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "p4"));
    paths.sort();

    // A developers' measurement: the library itself never reads a clock.
    #[allow(clippy::disallowed_methods)]
    let started = Instant::now();
    let (mut accepted, mut lines) = (0, 0);
    for path in &paths {
        match parse(path, &options) {
            Ok(sources) => {
                accepted += 1;
                lines += sources.text().lines().count();
                if expect_errors {
                    println!("accepted: {}", path.display());
                }
            }
            Err(errors) if !expect_errors => {
                println!("refused: {}", path.display());
                let text = errors.render(false);
                println!("{}", text.split("\n\n").next().unwrap_or_default());
            }
            Err(_) => {}
        }
    }
    println!(
        "{} files, {accepted} accepted, {} refused; {lines} lines in {} ms",
        paths.len(),
        paths.len() - accepted,
        started.elapsed().as_millis()
    );
    Ok(())
}

fn parse(path: &Path, options: &Options) -> Result<Arc<SourceMap>, Diagnostics> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let sources = Arc::new(preprocess::run(&text, &path.to_string_lossy(), options)?);
    let (_, errors) = parser::parse(&sources);
    if errors.is_empty() { Ok(sources) } else { Err(Diagnostics::new(sources, errors)) }
}
