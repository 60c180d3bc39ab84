//! Typed access to a TOML table that collects every mistake with its line.

use crate::text;
use p4rack_p4rt::nearest::nearest;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Everything that is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackError {
    /// Mistakes in the file's order; never empty.
    pub errors: Vec<FieldError>,
}

/// A mistake in a description.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FieldError {
    /// Name of the file.
    pub file: String,
    /// Line number, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Name of the field, e.g. `host[2].mac`; empty if there is none.
    pub field: String,
    /// The problem.
    pub message: String,
    /// Advice to the user.
    pub help: String,
}

impl RackError {
    /// The file cannot be read.
    pub(crate) fn unreadable(file: String, error: &std::io::Error) -> RackError {
        let help = "give the path of a rack description, e.g. examples/two-hosts.toml".to_owned();
        RackError::of_file(file, text::unreadable(error), help)
    }

    /// The same mistakes at the lines that they have in `written`; those that it lacks are mistakes of `file`, and have
    /// no line.
    pub(crate) fn placed(mut self, written: Option<&RackError>, file: &str) -> RackError {
        for error in &mut self.errors {
            let is_same =
                |other: &&FieldError| (&other.field, &other.message) == (&error.field, &error.message);
            match written.and_then(|written| written.errors.iter().find(is_same)) {
                Some(other) => error.clone_from(other),
                None => (error.file, error.line) = (file.to_owned(), 0),
            }
        }
        self.errors.sort_by_key(|error| error.line);
        self
    }

    /// The file as a whole is wrong.
    pub(crate) fn of_file(file: String, message: String, help: String) -> RackError {
        RackError { errors: vec![FieldError { file, line: 0, field: String::new(), message, help }] }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = if self.line > 0 { format!("{}:", self.line) } else { String::new() };
        let places = [format!("{}:{line}", self.file), format!("{}:", self.field)];
        // Values have no file, and a file as a whole has no field.
        for place in places.iter().filter(|place| *place != ":") {
            write!(f, "{place} ")?;
        }
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl fmt::Display for RackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RackError {}

/// Collects mistakes.
#[derive(Debug)]
pub struct Sink<'t> {
    file: &'t str,
    text: &'t str,
    /// Position of each field that was read.
    places: BTreeMap<String, Range<usize>>,
    errors: Vec<FieldError>,
}

impl<'t> Sink<'t> {
    pub(crate) fn new(text: &'t str, file: &'t str) -> Self {
        Sink { file, text, places: BTreeMap::new(), errors: Vec::new() }
    }

    /// For values that come from no text.
    pub(crate) fn of_values() -> Self {
        Sink::new("", "")
    }

    /// Positions of fields that were read from something other than TOML.
    pub(crate) fn have_read(&mut self, places: BTreeMap<String, Range<usize>>) {
        self.places.extend(places);
    }

    /// Records a mistake in the first of these fields that the text has; if it has none, in the first of all,
    /// at the position of its table.
    pub fn refuse(&mut self, fields: &[&str], message: String, help: impl Into<String>) {
        let given = fields.iter().find(|field| self.places.contains_key(**field));
        let field = *given.or(fields.first()).unwrap_or(&"");
        let mut place = Some(field);
        while let Some(path) = place {
            if let Some(span) = self.places.get(path).cloned() {
                return self.error(&span, field, message, help);
            }
            place = path.rfind(['.', '[']).map(|end| &path[..end]);
        }
        let (file, field) = (self.file.to_owned(), field.to_owned());
        self.errors.push(FieldError { file, line: 0, field, message, help: help.into() });
    }

    /// Records a mistake at a position in the text.
    pub fn error(&mut self, span: &Range<usize>, field: &str, message: String, help: impl Into<String>) {
        let line = self.line(span);
        let (file, field) = (self.file.to_owned(), field.to_owned());
        self.errors.push(FieldError { file, line, field, message, help: help.into() });
    }

    /// Line of a position, from 1.
    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Name of the file, and the line of each field that was read.
    pub(crate) fn into_lines(self) -> (String, BTreeMap<String, usize>) {
        let ends: Vec<usize> = self.text.match_indices('\n').map(|(at, _)| at).collect();
        let line = |span: Range<usize>| ends.partition_point(|end| *end < span.start) + 1;
        (self.file.to_owned(), self.places.into_iter().map(|(field, span)| (field, line(span))).collect())
    }

    /// Whether a mistake of this field was recorded.
    pub(crate) fn reported(&self, field: &str) -> bool {
        self.errors.iter().any(|error| error.field == field)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn into_error(mut self) -> RackError {
        self.errors.sort_by_key(|error| error.line);
        RackError { errors: self.errors }
    }
}

/// A value and its position.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Position in the text, in bytes.
    pub span: Range<usize>,
    /// Full name of its field.
    pub field: String,
}

/// A table of the description. Each getter names a key that may occur in it; [`Section::finish`] rejects all
/// others.
#[derive(Debug)]
pub struct Section<'a, 'i> {
    path: String,
    span: Range<usize>,
    table: Cow<'a, DeTable<'i>>,
    known: Vec<&'static str>,
}

impl<'a, 'i> Section<'a, 'i> {
    pub(crate) fn root(table: &'a Spanned<DeTable<'i>>) -> Self {
        Section { path: String::new(), span: 0..0, table: Cow::Borrowed(table.get_ref()), known: Vec::new() }
    }

    /// Full name of a key.
    pub fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn get(&mut self, key: &'static str) -> Option<Spanned<DeValue<'i>>> {
        self.known.push(key);
        self.table.get(key).cloned()
    }

    /// Whether the key is present, valid or not.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether the key's value is a string.
    pub fn is_text(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|value| value.get_ref().as_str().is_some())
    }

    /// Records that a key without default is missing.
    pub fn missing(&self, sink: &mut Sink<'_>, key: &str, example: &str) {
        sink.error(&self.span, &self.field(key), "is missing".to_owned(), format!("add {key} = {example}"));
    }

    fn typed<T>(
        &mut self,
        sink: &mut Sink<'_>,
        key: &'static str,
        wanted: &str,
        read: impl FnOnce(&DeValue<'i>) -> Option<T>,
    ) -> Option<At<T>> {
        let value = self.get(key)?;
        let (span, field) = (value.span(), self.field(key));
        sink.places.insert(field.clone(), span.clone());
        match read(value.get_ref()) {
            Some(value) => Some(At { value, span, field }),
            None => {
                let message = format!("is {}", article(value.get_ref().type_str()));
                sink.error(&span, &field, message, format!("write {wanted}"));
                None
            }
        }
    }

    /// A string. `wanted` says what to write instead of anything else.
    pub fn string(&mut self, sink: &mut Sink<'_>, key: &'static str, wanted: &str) -> Option<At<String>> {
        self.typed(sink, key, wanted, |value| value.as_str().map(str::to_owned))
    }

    /// A boolean.
    pub fn boolean(&mut self, sink: &mut Sink<'_>, key: &'static str) -> Option<At<bool>> {
        self.typed(sink, key, "true or false", DeValue::as_bool)
    }

    /// An integer within `range`, inclusive.
    pub fn integer(&mut self, sink: &mut Sink<'_>, key: &'static str, range: (u64, u64)) -> Option<At<u64>> {
        let wanted = format!("an integer from {} to {}", range.0, range.1);
        let read = self.typed(sink, key, &wanted, |value| {
            value
                .as_integer()
                .map(|integer| (i128::from_str_radix(integer.as_str(), integer.radix()), integer.to_string()))
        })?;
        match read.value.0 {
            Ok(value) if (i128::from(range.0)..=i128::from(range.1)).contains(&value) => {
                Some(At { value: value as u64, span: read.span, field: read.field })
            }
            _ => {
                let message = format!("{} is out of range", read.value.1);
                sink.error(&read.span, &read.field, message, format!("write {wanted}"));
                None
            }
        }
    }

    /// A number (integer or decimal) within `range`, inclusive.
    pub fn number(&mut self, sink: &mut Sink<'_>, key: &'static str, range: (f64, f64)) -> Option<At<f64>> {
        let wanted = format!("a number from {} to {}", range.0, range.1);
        let read = self.typed(sink, key, &wanted, as_number)?;
        if (range.0..=range.1).contains(&read.value) {
            return Some(read);
        }
        // Not with hundreds of digits.
        let message = match read.value.abs() < 1e15 {
            true => format!("{} is out of range", read.value),
            false => format!("{:e} is out of range", read.value),
        };
        sink.error(&read.span, &read.field, message, format!("write {wanted}"));
        None
    }

    /// A string that `parse` accepts. Its error is the message; `help` says what to do.
    pub fn parsed<T>(
        &mut self,
        sink: &mut Sink<'_>,
        key: &'static str,
        help: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<At<T>> {
        let text = self.string(sink, key, help.strip_prefix("write ").unwrap_or(help))?;
        match parse(&text.value) {
            Ok(value) => Some(At { value, span: text.span, field: text.field }),
            Err(message) => {
                sink.error(&text.span, &text.field, message, help);
                None
            }
        }
    }

    /// A list, each element with its position.
    pub fn list<T>(
        &mut self,
        sink: &mut Sink<'_>,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&DeValue<'i>) -> Option<T>,
    ) -> Option<At<Vec<At<T>>>> {
        let array = self.typed(sink, key, wanted, |value| value.as_array().cloned())?;
        let mut items = Vec::new();
        for (i, item) in array.value.iter().enumerate() {
            let (span, field) = (item.span(), format!("{}[{i}]", array.field));
            sink.places.insert(field.clone(), span.clone());
            match read(item.get_ref()) {
                Some(value) => items.push(At { value, span, field }),
                None => {
                    let message = format!("is {}", article(item.get_ref().type_str()));
                    sink.error(&span, &field, message, format!("write {wanted}"));
                }
            }
        }
        Some(At { value: items, span: array.span, field: array.field })
    }

    /// A table within this one.
    pub fn section(&mut self, sink: &mut Sink<'_>, key: &'static str) -> Option<Section<'a, 'i>> {
        let wanted = format!("a table: [{}] or {key} = {{ … }}", self.field(key));
        let table = self.typed(sink, key, &wanted, |value| value.as_table().cloned())?;
        Some(Section {
            path: table.field,
            span: table.span,
            table: Cow::Owned(table.value),
            known: Vec::new(),
        })
    }

    /// An array of tables.
    pub(crate) fn sections(&mut self, sink: &mut Sink<'_>, key: &'static str) -> Vec<Section<'a, 'i>> {
        let wanted = format!("one [[{}]] table each", self.field(key));
        let items = self.list(sink, key, &wanted, |value| value.as_table().cloned());
        let items = items.map(|items| items.value).unwrap_or_default();
        let section = |item: At<DeTable<'i>>| Section {
            path: item.field,
            span: item.span,
            table: Cow::Owned(item.value),
            known: Vec::new(),
        };
        items.into_iter().map(section).collect()
    }

    /// Rejects a key with a message of its own.
    pub fn refuse(&mut self, sink: &mut Sink<'_>, key: &'static str, message: &str, help: &str) {
        if let Some(value) = self.get(key) {
            sink.error(&value.span(), &self.field(key), message.to_owned(), help);
        }
    }

    /// Rejects keys that no getter has named.
    pub fn finish(self, sink: &mut Sink<'_>) {
        for (key, _) in self.table.iter() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) {
                continue;
            }
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", self.known.join(", ")),
            };
            sink.error(&key.span(), &self.field(name), "is unknown".to_owned(), help);
        }
    }
}

fn as_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
        _ => None,
    }
}

/// For [`Section::list`]: an element that is a string.
pub(crate) fn as_string(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// For [`Section::list`]: an element that is an integer from 1 to `max`.
pub(crate) fn as_integer_to(max: u32) -> impl Fn(&DeValue<'_>) -> Option<u32> {
    move |value| {
        let integer = value.as_integer()?;
        u32::from_str_radix(integer.as_str(), integer.radix()).ok().filter(|n| (1..=max).contains(n))
    }
}

fn article(kind: &str) -> String {
    match kind.as_bytes().first() {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
