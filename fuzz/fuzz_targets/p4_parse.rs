//! Any text goes through the preprocessor, lexer and parser without a panic, and every message about
//! it can be rendered. The preprocessor's output parses to the same tree when it is preprocessed
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_p4::Diagnostics;
use p4rack_p4::parser;
use p4rack_p4::preprocess::{self, Options};
use std::io;
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    // The text behind the first NUL is the content of every included file.
    let (main, included) = text.split_once('\0').unwrap_or((&text, ""));
    let loader = |_: &std::path::Path| -> io::Result<String> {
        if included.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(included.to_owned()) }
    };
    let options = Options::default();
    let sources = match preprocess::run_with(main, "main.p4", &options, &loader) {
        Ok(sources) => Arc::new(sources),
        Err(errors) => {
            assert!(errors.has_errors());
            render(&errors);
            return;
        }
    };
    let (program, errors) = parser::parse(&sources);

    // Annotations can contain nearly anything, including lines that look like directives.
    let plain =
        !text.contains(['"', '\\']) && sources.text().lines().all(|l| !l.trim_start().starts_with('#'));
    if errors.is_empty() && plain {
        let again = preprocess::run_with(&sources.to_marked_text(), "main.p4", &options, &loader);
        let again = again.expect("nothing is left to preprocess");
        let (program_again, errors) = parser::parse(&again);
        assert!(errors.is_empty());
        assert_eq!(program.decls.len(), program_again.decls.len());
        for (decl, decl_again) in program.decls.iter().zip(&program_again.decls) {
            let (at, at_again) = (sources.locate(decl.span), again.locate(decl_again.span));
            assert_eq!((at.file, at.line), (at_again.file, at_again.line));
        }
    }
    render(&Diagnostics::new(sources, errors));
});

fn render(errors: &Diagnostics) {
    let plain = errors.render(false);
    assert!(!plain.contains('\x1b'));
    errors.render(true);
    errors.to_json();
}
