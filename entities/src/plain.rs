//! Writes of plain table entries, read from the request's bytes in place.
//!
//! Nearly all that is written in numbers are entries of a key and an action. Their bytes go straight to the words that
//! the table stores. Everything else, and all that could be refused, takes the general path: this one never refuses, it
//! only reports that an update is not plain.
//!
//! ```text
//!  bytes ─▶ Request::decode ─┬─ Step::Plain    words of key, mask, arguments ─▶ Switch::write_plain
//!                            │                     refused? ─▶ decoded again, work::change says why
//!                            └─ Step::Message  an Update ─▶ work::change
//! ```

mod read;

pub use read::Entries;

use p4rack_p4::ir::{MatchKind, TableId};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::p4::v1::{Update, WriteRequest, update};
use p4rack_p4rt::raw::{Field, Fields};
use p4rack_switch::{FieldLayout, PlainUpdate, PlainVerb, Switch, TableLayout};
use prost::bytes::Bytes;
use prost::encoding::{self, DecodeContext};
use prost::{DecodeError, Message};
use std::ops::Range;

/// Maximum fields of a key, and parameters of an action; tracked as bits of a word.
pub(crate) const MOST_FIELDS: usize = 64;

/// Field number of `updates` in a `WriteRequest`.
const UPDATES: u32 = 4;

/// An action that entries can have.
#[derive(Debug)]
pub(crate) struct Action {
    /// P4Info id.
    pub id: u32,
    /// Position in the table's list.
    pub position: u32,
    /// Parameter ids and layouts.
    pub params: Vec<(u32, FieldLayout)>,
}

/// A table that can have plain entries.
#[derive(Debug)]
pub(crate) struct Plan {
    /// P4Info id of the table.
    pub info_id: u32,
    pub table: TableId,
    pub layout: TableLayout,
    /// Ids of the key's fields.
    pub fields: Vec<u32>,
    pub actions: Vec<Action>,
}

impl Plan {
    /// Words of an entry: value, mask, arguments.
    fn words(&self) -> usize {
        self.args_at() + self.layout.arg_words
    }

    fn args_at(&self) -> usize {
        if self.layout.is_exact { self.layout.key_words } else { 2 * self.layout.key_words }
    }
}

/// The tables of a program that can have plain entries.
#[derive(Debug, Default)]
pub struct Plans {
    /// Plans, sorted by table id.
    tables: Vec<Plan>,
}

impl Plans {
    /// The plans of a program's tables.
    pub(crate) fn new(mut tables: Vec<Plan>) -> Plans {
        tables.sort_by_key(|plan| plan.info_id);
        Plans { tables }
    }

    /// P4Info id of a plain update's table.
    pub fn table_id(&self, plain: &Plain) -> u32 {
        self.tables.get(plain.plan).map_or(0, |plan| plan.info_id)
    }

    fn find(&self, info_id: u64) -> Option<usize> {
        self.tables.binary_search_by_key(&info_id, |plan| u64::from(plan.info_id)).ok()
    }
}

/// A plain update.
#[derive(Clone, Debug)]
pub struct Plain {
    verb: PlainVerb,
    /// Index of the table's plan.
    plan: usize,
    rank: i32,
    action: u32,
    /// Position of its first word.
    words: usize,
    /// Position in the request.
    bytes: Range<usize>,
}

/// An update as decoded.
#[derive(Clone, Debug)]
pub enum Step {
    /// An update of a plain entry.
    Plain(Plain),
    /// Any other update.
    Message(Box<Update>),
    /// An update that is rejected without being tried.
    Refused(UpdateError),
}

/// A decoded Write.
#[derive(Clone, Debug)]
pub struct Request {
    /// The updates, in order.
    pub steps: Vec<Step>,
    words: Vec<u64>,
    bytes: Bytes,
}

impl Request {
    /// Decodes the updates of a request whose [`head`] has been read. Errors are those of the general
    /// decoder.
    pub fn decode(bytes: Bytes, plans: &Plans) -> Result<Request, DecodeError> {
        let message = |update: &[u8]| Some(Step::Message(Box::new(Update::decode(update).ok()?)));
        if let Some(request) = plans.request(&bytes, message) {
            return Ok(request);
        }
        let updates = WriteRequest::decode(bytes.clone())?.updates;
        let steps = updates.into_iter().map(|update| Step::Message(Box::new(update))).collect();
        Ok(Request { steps, words: Vec::new(), bytes })
    }

    /// As [`Request::decode`], where all updates are plain: those of a short request are read in no time. `None`:
    /// others are among them, or it is malformed.
    pub fn decode_plain(bytes: &Bytes, plans: &Plans) -> Option<Request> {
        plans.request(bytes, |_| None)
    }

    /// All updates as messages.
    pub fn updates(&self) -> Vec<Update> {
        // It has been decoded before, in parts.
        WriteRequest::decode(self.bytes.clone()).map_or_else(|_| Vec::new(), |request| request.updates)
    }

    /// A plain update as a message.
    pub fn message(&self, plain: &Plain) -> Update {
        let bytes = self.bytes.get(plain.bytes.clone()).unwrap_or(&[]);
        Update::decode(bytes).unwrap_or_default()
    }

    /// Applies a plain update. Returns false without changing anything if it is refused;
    /// [`Request::message`] gives the update for which the general way says why.
    pub(crate) fn apply(&self, plain: &Plain, plans: &Plans, switch: &mut Switch) -> bool {
        let Some(plan) = plans.tables.get(plain.plan) else { return false };
        let Some(words) = self.words.get(plain.words..plain.words + plan.words()) else { return false };
        let (key, args) = words.split_at(plan.args_at());
        let (value, mask) = key.split_at(plan.layout.key_words);
        let Plain { verb, rank, action, .. } = *plain;
        switch.write_plain(plan.table, &PlainUpdate { verb, value, mask, rank, action, args })
    }
}

impl Plans {
    /// Decodes a request; `other` decodes updates that are not plain. `None` if something needs the general decoder, is
    /// malformed, or is not decoded by `other`.
    fn request(&self, bytes: &Bytes, other: impl Fn(&[u8]) -> Option<Step>) -> Option<Request> {
        let (mut steps, mut words) = (Vec::new(), Vec::new());
        let mut fields = Fields::of(bytes);
        loop {
            match fields.next()? {
                Field::End => break,
                Field::Bytes(UPDATES, update) => {
                    let end = bytes.len() - fields.rest().len();
                    let at = words.len();
                    steps.push(match self.update(update, &mut words) {
                        Some(plain) => Step::Plain(Plain { bytes: end - update.len()..end, ..plain }),
                        None => {
                            words.truncate(at);
                            other(update)?
                        }
                    });
                }
                Field::Number(UPDATES, _) => return None,
                // The head.
                _ => {}
            }
        }
        Some(Request { steps, words, bytes: bytes.clone() })
    }

    /// Decodes an update with all fields in the expected form, and appends its words.
    fn update(&self, bytes: &[u8], words: &mut Vec<u64>) -> Option<Plain> {
        const TABLE_ENTRY: u32 = 2;
        let (mut kind, mut entity) = (0, None);
        let mut fields = Fields::of(bytes);
        loop {
            match fields.next()? {
                Field::End => break,
                Field::Number(1, number) => kind = number,
                Field::Bytes(2, bytes) if entity.is_none() => entity = Some(bytes),
                _ => return None,
            }
        }
        let verb = match update::Type::try_from(i32::try_from(kind).ok()?).ok()? {
            update::Type::Insert => PlainVerb::Insert,
            update::Type::Modify => PlainVerb::Modify,
            update::Type::Delete => PlainVerb::Delete,
            update::Type::Unspecified => return None,
        };
        self.entry(verb, only(entity?, TABLE_ENTRY)?, words)
    }

    fn entry(&self, verb: PlainVerb, bytes: &[u8], words: &mut Vec<u64>) -> Option<Plain> {
        const ACTION: u32 = 1;
        let mut fields = Fields::of(bytes);
        // An unexpected order of fields is not worth a search.
        let Field::Number(1, id) = fields.next()? else { return None };
        let number = self.find(id)?;
        let plan = &self.tables[number];
        let from = words.len();
        words.resize(from + plan.words(), 0);
        let (key, args) = words[from..].split_at_mut(plan.args_at());
        let (value, mask) = key.split_at_mut(plan.layout.key_words);
        let (mut seen, mut rank, mut action, mut priority) = (0, 0, None, 0);
        loop {
            match fields.next()? {
                Field::End => break,
                Field::Bytes(2, bytes) => plan.field(bytes, value, mask, &mut rank, &mut seen)?,
                Field::Bytes(3, bytes) if action.is_none() => {
                    action = Some(plan.action(only(bytes, ACTION)?, args)?);
                }
                Field::Number(4, number) => priority = i32::try_from(number).ok()?,
                _ => return None,
            }
        }
        let given = |position: usize| seen & 1 << position != 0;
        let mut keys = plan.layout.keys.iter().enumerate();
        if keys.any(|(position, (kind, _))| *kind == MatchKind::Exact && !given(position)) {
            return None;
        }
        match (plan.layout.needs_priority, priority) {
            (true, 1..) => rank = priority,
            (false, 0) => {}
            _ => return None,
        }
        let action = match (verb, action) {
            (_, Some(action)) => action,
            (PlainVerb::Delete, None) => 0,
            (_, None) => return None,
        };
        Some(Plain { verb, plan: number, rank, action, words: from, bytes: 0..0 })
    }
}

impl Plan {
    /// Decodes a field of the key.
    #[inline]
    fn field(
        &self,
        bytes: &[u8],
        value: &mut [u64],
        mask: &mut [u64],
        rank: &mut i32,
        seen: &mut u64,
    ) -> Option<()> {
        const EXACT: u32 = 2;
        const TERNARY: u32 = 3;
        const LPM: u32 = 4;
        const OPTIONAL: u32 = 7;
        let (mut id, mut given) = (0, None);
        let mut fields = Fields::of(bytes);
        loop {
            match fields.next()? {
                Field::End => break,
                Field::Number(1, number) => id = number,
                Field::Bytes(kind, bytes) if given.is_none() => given = Some((kind, bytes)),
                _ => return None,
            }
        }
        let position = self.fields.iter().position(|field| u64::from(*field) == id)?;
        if *seen & 1 << position != 0 {
            return None;
        }
        *seen |= 1 << position;
        let (kind, place) = self.layout.keys[position];
        let (form, bytes) = given?;
        match (kind, form) {
            (MatchKind::Exact, EXACT) | (MatchKind::Optional, OPTIONAL) => {
                place.put_prefix(mask, place.width);
                place.put(value, only(bytes, 1)?).then_some(())
            }
            (MatchKind::Lpm, LPM) => {
                let (number, length) = pair(bytes)?;
                let Second::Number(length) = length else { return None };
                let length =
                    u32::try_from(length).ok().filter(|length| (1..=place.width).contains(length))?;
                place.put_prefix(mask, length);
                *rank = length as i32;
                (place.put(value, number) && is_within(place, value, mask)).then_some(())
            }
            (MatchKind::Ternary, TERNARY) => {
                let (number, bits) = pair(bytes)?;
                let Second::Bytes(bits) = bits else { return None };
                let all_there = place.put(value, number) && place.put(mask, bits);
                let cares = place.of(mask).iter().any(|word| *word != 0);
                (all_there && cares && is_within(place, value, mask)).then_some(())
            }
            _ => None,
        }
    }

    /// Decodes an action with its arguments. Returns its position.
    #[inline]
    fn action(&self, bytes: &[u8], args: &mut [u64]) -> Option<u32> {
        let mut fields = Fields::of(bytes);
        let Field::Number(1, id) = fields.next()? else { return None };
        let action = self.actions.iter().find(|action| u64::from(action.id) == id)?;
        let (mut seen, mut count) = (0u64, 0);
        loop {
            match fields.next()? {
                Field::End => break,
                Field::Bytes(4, bytes) => {
                    let mut fields = Fields::of(bytes);
                    let (Field::Number(2, id), Field::Bytes(3, value), Field::End) =
                        (fields.next()?, fields.next()?, fields.next()?)
                    else {
                        return None;
                    };
                    let position = action.params.iter().position(|(param, _)| u64::from(*param) == id)?;
                    if seen & 1 << position != 0 || !action.params[position].1.put(args, value) {
                        return None;
                    }
                    seen |= 1 << position;
                    count += 1;
                }
                _ => return None,
            }
        }
        (count == action.params.len()).then_some(action.position)
    }
}

/// A serialised `WriteRequest` without its updates, and their number. Skips over the updates, so this is fast
/// compared with decoding them. Errors: it is malformed; for a short one the general decoder says where.
pub fn head(request: &[u8]) -> Result<(WriteRequest, usize), DecodeError> {
    const SHORT: usize = 4 << 10;
    parts(request).or_else(|error| {
        if request.len() <= SHORT {
            WriteRequest::decode(request)?;
        }
        Err(error)
    })
}

fn parts(request: &[u8]) -> Result<(WriteRequest, usize), DecodeError> {
    let (mut head, mut count, mut rest) = (Vec::new(), 0, request);
    while !rest.is_empty() {
        let from = rest;
        let (number, kind) = encoding::decode_key(&mut rest)?;
        encoding::skip_field(kind, number, &mut rest, DecodeContext::default())?;
        match number {
            UPDATES => count += 1,
            _ => head.extend_from_slice(&from[..from.len() - rest.len()]),
        }
    }
    Ok((WriteRequest::decode(&head[..])?, count))
}

/// Number of entities in a serialised `ReadRequest`, up to where it is malformed.
pub fn count_entities(mut request: &[u8]) -> usize {
    const ENTITIES: u32 = 2;
    let mut count = 0;
    while let Ok((number, kind)) = encoding::decode_key(&mut request) {
        if encoding::skip_field(kind, number, &mut request, DecodeContext::default()).is_err() {
            break;
        }
        count += usize::from(number == ENTITIES);
    }
    count
}

/// The second field of a match.
enum Second<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Value of a match, and its mask or prefix length.
fn pair(bytes: &[u8]) -> Option<(&[u8], Second<'_>)> {
    let mut fields = Fields::of(bytes);
    let Field::Bytes(1, value) = fields.next()? else { return None };
    let second = match fields.next()? {
        Field::Number(2, number) => Second::Number(number),
        Field::Bytes(2, bytes) => Second::Bytes(bytes),
        _ => return None,
    };
    matches!(fields.next()?, Field::End).then_some((value, second))
}

/// Bytes of a message's only field.
#[inline]
fn only(bytes: &[u8], number: u32) -> Option<&[u8]> {
    let mut fields = Fields::of(bytes);
    match (fields.next()?, fields.next()?) {
        (Field::Bytes(found, bytes), Field::End) if found == number => Some(bytes),
        _ => None,
    }
}

/// Whether no bit is set outside of the mask.
fn is_within(place: FieldLayout, value: &[u64], mask: &[u64]) -> bool {
    place.of(value).iter().zip(place.of(mask)).all(|(value, mask)| value & !mask == 0)
}

#[cfg(test)]
mod tests;
