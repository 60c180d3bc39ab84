//! Messages of the front end about programs with mistakes: one golden text a file in
//! `tests/errors`. `cargo xtask bless` writes them again.

use p4rack_p4::Diagnostics;
use p4rack_p4::parser;
use p4rack_p4::preprocess::{self, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors")
}

fn messages(name: &str) -> Diagnostics {
    let text = std::fs::read_to_string(folder().join(name)).expect("the file was just listed");
    let loader = |path: &Path| std::fs::read_to_string(folder().join(path));
    let options = Options { include_dirs: vec!["include".into()], defines: Vec::new() };
    match preprocess::run_with(&text, name, &options, &loader) {
        Err(errors) => errors,
        Ok(sources) => {
            let sources = Arc::new(sources);
            let (_, errors) = parser::parse(&sources);
            Diagnostics::new(sources, errors)
        }
    }
}

#[test]
fn messages_are_as_agreed() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder is part of the crate")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".p4"))
        .collect();
    names.sort();
    assert!(names.len() >= 7);
    for name in names {
        let errors = messages(&name);
        assert!(errors.has_errors(), "{name}");
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name.trim_end_matches(".p4").to_owned(), errors.render(false));
        });
    }
}
