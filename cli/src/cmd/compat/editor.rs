//! Lines from a terminal, with completion by the tab key and a history by the arrow keys.

use p4rack_lab::sys::Keys;
use std::io::{self, Read, Write};

/// Candidates for a word that has begun, behind the words before it.
type Complete<'c> = &'c dyn Fn(&[&str], &str) -> Vec<String>;

/// Longest line; further characters are ignored.
const LINE_MAX: usize = 64 << 10;
/// Lines that the history keeps.
const HISTORY: usize = 1000;

/// A line that is being written.
#[derive(Debug, Default)]
struct Draft {
    text: Vec<char>,
    /// Position of the next character.
    at: usize,
}

/// Reads lines.
#[derive(Debug, Default)]
pub struct Editor {
    history: Vec<String>,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Character(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    Clear,
    Discard,
    Leave,
    Other,
}

/// Reads a key; `None` at the end of the input.
fn key(input: &mut impl Read) -> io::Result<Option<Key>> {
    let mut byte = [0];
    let mut next =
        |input: &mut dyn Read| Ok::<_, io::Error>((input.read(&mut byte)? == 1).then_some(byte[0]));
    let Some(first) = next(input)? else { return Ok(None) };
    Ok(Some(match first {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Tab,
        8 | 127 => Key::Backspace,
        1 => Key::Home,
        3 => Key::Discard,
        4 => Key::Leave,
        5 => Key::End,
        21 => Key::Clear,
        // ESC [ LETTER, or ESC [ DIGITS ~.
        27 => {
            if !matches!(next(input)?, Some(b'[' | b'O')) {
                return Ok(Some(Key::Other));
            }
            let mut last = next(input)?;
            let first = last;
            while matches!(last, Some(b'0'..=b'9' | b';')) {
                last = next(input)?;
            }
            match (first, last) {
                (_, Some(b'A')) => Key::Up,
                (_, Some(b'B')) => Key::Down,
                (_, Some(b'C')) => Key::Right,
                (_, Some(b'D')) => Key::Left,
                (_, Some(b'H')) | (Some(b'1' | b'7'), Some(b'~')) => Key::Home,
                (_, Some(b'F')) | (Some(b'4' | b'8'), Some(b'~')) => Key::End,
                (Some(b'3'), Some(b'~')) => Key::Delete,
                _ => Key::Other,
            }
        }
        0..=31 => Key::Other,
        first => {
            let mut bytes = vec![first];
            let more = match first {
                0..0xc0 => 0,
                0xc0..0xe0 => 1,
                0xe0..0xf0 => 2,
                _ => 3,
            };
            for _ in 0..more {
                bytes.extend(next(input)?);
            }
            String::from_utf8(bytes)
                .ok()
                .and_then(|text| text.chars().next())
                .map_or(Key::Other, Key::Character)
        }
    }))
}

impl Draft {
    fn of(text: &str) -> Draft {
        let text: Vec<char> = text.chars().collect();
        Draft { at: text.len(), text }
    }

    fn insert(&mut self, text: &str) {
        for one in text.chars().filter(|_| self.text.len() < LINE_MAX).collect::<Vec<char>>() {
            self.text.insert(self.at, one);
            self.at += 1;
        }
    }

    /// Completes the word before the cursor as far as all candidates agree. Returns them if there is more than one.
    fn complete(&mut self, complete: Complete<'_>) -> Vec<String> {
        let before: String = self.text[..self.at].iter().collect();
        let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let words: Vec<&str> = before[..start].split_whitespace().collect();
        let begun = &before[start..];
        let found = complete(&words, begun);
        let Some(first) = found.first() else { return found };
        let agrees = |length: &usize| {
            found.iter().all(|name| name.chars().take(*length).eq(first.chars().take(*length)))
        };
        let length = (0..=first.chars().count()).rev().find(agrees).unwrap_or(0);
        let mut common: String = first.chars().take(length).collect();
        if found.len() == 1 {
            common.push(' ');
        }
        // A candidate may have been found by its last part: then it replaces what was written.
        if found.len() == 1 || common.starts_with(begun) {
            let begun = begun.chars().count();
            self.text.drain(self.at - begun..self.at);
            self.at -= begun;
            self.insert(&common);
        }
        if found.len() == 1 { Vec::new() } else { found }
    }

    /// Carries out a key that changes the line or moves in it.
    fn edit(&mut self, key: Key) {
        match key {
            Key::Character(one) => self.insert(one.encode_utf8(&mut [0; 4])),
            Key::Backspace if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            Key::Delete if self.at < self.text.len() => drop(self.text.remove(self.at)),
            Key::Left => self.at = self.at.saturating_sub(1),
            Key::Right => self.at = (self.at + 1).min(self.text.len()),
            Key::Home => self.at = 0,
            Key::End => self.at = self.text.len(),
            Key::Clear => *self = Draft::default(),
            _ => {}
        }
    }

    /// Shows the line anew, with the cursor at its place.
    fn show(&self, output: &mut impl Write, prompt: &str) -> io::Result<()> {
        let text: String = self.text.iter().collect();
        write!(output, "\r{prompt}{text}\x1b[K")?;
        match self.text.len() - self.at {
            0 => {}
            back => write!(output, "\x1b[{back}D")?,
        }
        output.flush()
    }
}

impl Editor {
    /// Reads a line from the terminal; `None` at its end, or with Ctrl-D in an empty line. Ctrl-C discards the line.
    pub fn read(&mut self, prompt: &str, complete: Complete<'_>) -> io::Result<Option<String>> {
        let _keys = Keys::take()?;
        self.read_from(&mut io::stdin().lock(), &mut io::stdout(), prompt, complete)
    }

    fn read_from(
        &mut self,
        input: &mut impl Read,
        output: &mut impl Write,
        prompt: &str,
        complete: Complete<'_>,
    ) -> io::Result<Option<String>> {
        let mut draft = Draft::default();
        let mut past = self.history.len();
        loop {
            draft.show(output, prompt)?;
            match key(input)? {
                None => return Ok(None),
                Some(Key::Leave) if draft.text.is_empty() => {
                    writeln!(output)?;
                    return Ok(None);
                }
                Some(Key::Discard) => {
                    writeln!(output, "^C")?;
                    draft = Draft::default();
                }
                Some(Key::Enter) => {
                    writeln!(output)?;
                    let text: String = draft.text.into_iter().collect();
                    self.remember(&text);
                    return Ok(Some(text));
                }
                Some(Key::Tab) => {
                    let found = draft.complete(complete);
                    if !found.is_empty() {
                        writeln!(output, "\n{}", found.join("  "))?;
                    }
                }
                Some(key @ (Key::Up | Key::Down)) => {
                    let last = self.history.len();
                    past = if key == Key::Up { past.saturating_sub(1) } else { (past + 1).min(last) };
                    draft = Draft::of(self.history.get(past).map_or("", String::as_str));
                }
                Some(key) => draft.edit(key),
            }
        }
    }

    fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(text.to_owned());
    }
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

    /// The lines that keys make, and what the terminal shows.
    fn typed(keys: &str) -> (Vec<String>, String) {
        let (mut editor, mut shown) = (Editor::default(), Vec::new());
        let (mut input, mut lines) = (keys.as_bytes(), Vec::new());
        while let Some(line) = editor.read_from(&mut input, &mut shown, "> ", &names).unwrap() {
            lines.push(line);
        }
        (lines, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn keys_edit_a_line() {
        for (keys, line) in [
            ("abc\n", "abc"),
            ("abd\x7fc\n", "abc"),
            ("bc\x1b[D\x1b[Da\x1b[F!\n", "abc!"),
            ("xabc\x01\x1b[3~\n", "abc"),
            ("old\x15new\n", "new"),
            ("caf\u{e9}\n", "caf\u{e9}"),
            ("lost\x03kept\n", "kept"),
        ] {
            assert_eq!(typed(keys).0, [line], "{keys:?}");
        }
        assert_eq!(typed("one\ntwo\n\x1b[A\x1b[A\x1b[B\n").0, ["one", "two", "two"]);
        assert!(typed("\x04after\n").0.is_empty());
    }

    #[test]
    fn the_tab_key_completes_as_far_as_names_agree() {
        assert_eq!(typed("mc\t\n").0, ["mc_dump "]);
        assert_eq!(typed("ta\ta\trou\t=>\n").0, ["table_add I.routes =>"]);
        let (lines, shown) = typed("ta\t\t\n");
        assert_eq!(lines, ["table_"]);
        assert!(shown.contains("table_add  table_clear"), "{shown}");
        assert_eq!(typed("zz\t\n").0, ["zz"]);
    }
}
