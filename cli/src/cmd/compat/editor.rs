//! Lines from a terminal, with completion by the tab key and a history by the arrow keys.

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

/// Completes words: gives candidates for one that has begun, behind the words before it.
struct Words<F>(F);

impl<F: Fn(&[&str], &str) -> Vec<String>> Completer for Words<F> {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..at).unwrap_or(line);
        let begun = before.rsplit(char::is_whitespace).next().unwrap_or(before);
        let start = before.len() - begun.len();
        let words: Vec<&str> = before[..start].split_whitespace().collect();
        let mut candidates = (self.0)(&words, begun);
        if let [only] = &mut candidates[..] {
            only.push(' ');
        }
        Ok((start, candidates))
    }
}

impl<F> Hinter for Words<F> {
    type Hint = String;
}
impl<F> Highlighter for Words<F> {}
impl<F> Validator for Words<F> {}
impl<F: Fn(&[&str], &str) -> Vec<String>> Helper for Words<F> {}

/// Reads lines.
pub struct Editor<F: Fn(&[&str], &str) -> Vec<String>>(rustyline::Editor<Words<F>, MemHistory>);

impl<F: Fn(&[&str], &str) -> Vec<String>> Editor<F> {
    /// A reader that takes candidates for a word that has begun, behind the words before it, from `complete`. Errors: the terminal
    /// can't be used.
    pub fn new(complete: F) -> Result<Editor<F>, String> {
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
        let mut editor = rustyline::Editor::with_history(config, MemHistory::new()).map_err(of_terminal)?;
        editor.set_helper(Some(Words(complete)));
        Ok(Editor(editor))
    }

    /// The next line; `None` at the end. Ctrl-C begins a new one.
    pub fn read(&mut self, prompt: &str) -> Result<Option<String>, String> {
        loop {
            match self.0.readline(prompt) {
                Ok(line) => return Ok(Some(line)),
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(of_terminal(error)),
            }
        }
    }
}

fn of_terminal(error: ReadlineError) -> String {
    format!("the terminal: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], begun: &str) -> Vec<String> {
        let all: &[&str] = match words {
            [] => &["table_add", "table_clear", "mc_dump"],
            ["table_add"] => &["I.routes", "I.acl"],
            _ => &[],
        };
        let fits = |name: &&&str| {
            name.starts_with(begun) || name.rsplit('.').next().is_some_and(|last| last.starts_with(begun))
        };
        all.iter().filter(fits).map(|name| (*name).to_owned()).collect()
    }

    fn completed(line: &str) -> (usize, Vec<String>) {
        let history = MemHistory::new();
        Words(names).complete(line, line.len(), &Context::new(&history)).unwrap()
    }

    #[test]
    fn words_are_completed_behind_those_before_them() {
        assert_eq!(completed("mc"), (0, vec!["mc_dump ".to_owned()]));
        assert_eq!(completed("ta"), (0, vec!["table_add".to_owned(), "table_clear".to_owned()]));
        assert_eq!(completed("table_add  rou"), (11, vec!["I.routes ".to_owned()]));
        assert_eq!(completed("table_add "), (10, vec!["I.routes".to_owned(), "I.acl".to_owned()]));
        assert_eq!(completed("zz"), (0, Vec::new()));
        assert_eq!(completed("caf\u{e9}\u{2003}").0, 8);
    }
}
