//! Entries that are written as they come: from BFRuntime's bytes to P4Runtime's, without messages in between. Unusual
//! entries are left to the messages, and with them every error.

use super::{ActionPlan, KeyPlan, TablePlan};
use crate::p4runtime::PRIORITIES;
use crate::schema::MatchType;
use crate::value::length;
use prost::encoding::{self, WireType};

/// Longest value.
const MOST_BYTES: usize = 64;

/// A part of a message.
pub(in crate::p4runtime) enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Part<'a> {
    fn number(self) -> Option<u64> {
        match self {
            Part::Number(number) => Some(number),
            Part::Bytes(_) => None,
        }
    }

    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Part::Number(_) => None,
            Part::Bytes(bytes) => Some(bytes),
        }
    }

    pub fn id(self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }
}

/// The fields of a message; the last item is `None` if it is malformed.
pub(in crate::p4runtime) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn read(&mut self) -> Option<(u32, Part<'a>)> {
        let (number, kind) = encoding::decode_key(&mut self.0).ok()?;
        match kind {
            WireType::Varint => Some((number, Part::Number(encoding::decode_varint(&mut self.0).ok()?))),
            WireType::LengthDelimited => {
                let length = usize::try_from(encoding::decode_varint(&mut self.0).ok()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Some((number, Part::Bytes(bytes)))
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u32, Part<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_none() {
            // A decoder leaves a refused value in place.
            self.0 = &[];
        }
        Some(field)
    }
}

/// Two fields of a message.
type Pair<'a> = (Option<Part<'a>>, Option<Part<'a>>);

/// Fields 1 and 2 of a message that has no others, each at most once.
pub(in crate::p4runtime) fn pair(message: &[u8]) -> Option<Pair<'_>> {
    let (mut first, mut second) = (None, None);
    for field in Fields(message) {
        let (number, part) = field?;
        let place = match number {
            1 => &mut first,
            2 => &mut second,
            _ => return None,
        };
        if place.replace(part).is_some() {
            return None;
        }
    }
    Some((first, second))
}

/// Room for the parts of an update.
#[derive(Debug, Default)]
pub struct Scratch {
    matches: Vec<u8>,
    params: Vec<u8>,
}

/// A field's key and length.
fn open(out: &mut Vec<u8>, number: u32, length: usize) {
    encoding::encode_key(number, WireType::LengthDelimited, out);
    encoding::encode_varint(length as u64, out);
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    encoding::encode_key(field, WireType::Varint, out);
    encoding::encode_varint(value, out);
}

/// Bytes of a length-delimited field with a small number.
fn delimited_len(length: usize) -> usize {
    1 + encoding::encoded_len_varint(length as u64) + length
}

fn number_len(value: u64) -> usize {
    1 + encoding::encoded_len_varint(value)
}

/// A value of a field of `width` bits in P4Runtime's form: without zeros in front, but at least one byte.
fn shortest(value: &[u8], width: u32) -> Option<&[u8]> {
    if value.len() != length(width) {
        return None;
    }
    let spare = value.len() as u32 * 8 - width;
    value.first().is_some_and(|first| first.leading_zeros() >= spare).then(|| trimmed(value))
}

fn trimmed(value: &[u8]) -> &[u8] {
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    &value[zeros.min(value.len().saturating_sub(1))..]
}

impl KeyPlan {
    /// Appends P4Runtime's match for one of BFRuntime's, if that restricts anything.
    fn direct(&self, kind: u32, matched: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (first, second) = pair(matched)?;
        let value = first?.bytes()?;
        let plain = shortest(value, self.width)?;
        let mut room = [0; MOST_BYTES];
        let own = room.get_mut(..value.len())?;
        own.copy_from_slice(value);
        match (self.match_type, kind, second) {
            (MatchType::Exact, 2, None) => {
                self.open(out, kind, delimited_len(plain.len()));
                open(out, 1, plain.len());
                out.extend_from_slice(plain);
            }
            (MatchType::Ternary, 3, Some(mask)) => {
                let mask = mask.bytes()?;
                let short = shortest(mask, self.width)?;
                own.iter_mut().zip(mask).for_each(|(byte, mask)| *byte &= mask);
                let own = trimmed(own);
                if short != [0] {
                    self.open(out, kind, delimited_len(own.len()) + delimited_len(short.len()));
                    for (number, value) in [(1, own), (2, short)] {
                        open(out, number, value.len());
                        out.extend_from_slice(value);
                    }
                }
            }
            (MatchType::Lpm, 4, Some(prefix)) => {
                let prefix = prefix.id().filter(|prefix| *prefix <= self.width && *prefix > 0)?;
                crate::entry::clear_behind(own, self.width, prefix);
                let own = trimmed(own);
                self.open(out, kind, delimited_len(own.len()) + number_len(prefix.into()));
                open(out, 1, own.len());
                out.extend_from_slice(own);
                number(out, 2, prefix.into());
            }
            _ => return None,
        }
        Some(())
    }

    /// Begins a match: a field of the entry, its id, and a matched value of this length.
    fn open(&self, out: &mut Vec<u8>, kind: u32, length: usize) {
        open(out, 2, number_len(self.p4_id.into()) + delimited_len(length));
        number(out, 1, self.p4_id.into());
        open(out, kind, length);
    }
}

impl ActionPlan {
    /// Appends P4Runtime's parameters for fields of BFRuntime's data, which begins with the action's number.
    fn direct(&self, data: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut seen = 0u64;
        for field in Fields(data) {
            let (2, Part::Bytes(field)) = field? else { continue };
            let (id, value) = pair(field)?;
            let id = id?.id()?;
            let at = self.params.iter().position(|param| param.id == id)?;
            let param = &self.params[at];
            let value = shortest(value?.bytes()?, param.width)?;
            let bit = 1u64.checked_shl(at as u32)?;
            if seen & bit != 0 {
                return None;
            }
            seen |= bit;
            open(out, 4, number_len(param.p4_id.into()) + delimited_len(value.len()));
            number(out, 2, param.p4_id.into());
            open(out, 3, value.len());
            out.extend_from_slice(value);
        }
        (seen.count_ones() as usize == self.params.len()).then_some(())
    }
}

impl TablePlan {
    /// Appends P4Runtime's update with an entry of this key, and of this data if it is not empty.
    pub(in crate::p4runtime) fn direct(
        &self,
        kind: u64,
        key: &[u8],
        data: Option<&[u8]>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let Scratch { matches, params } = scratch;
        matches.clear();
        params.clear();
        let (mut seen, mut smallest_wins) = (0u64, None);
        for field in Fields(key) {
            let (1, Part::Bytes(field)) = field? else { return None };
            let (mut id, mut matched) = (None, None);
            for part in Fields(field) {
                match part? {
                    (1, given) if id.is_none() => id = given.id(),
                    (kind, Part::Bytes(given)) if matched.is_none() => matched = Some((kind, given)),
                    _ => return None,
                }
            }
            let (id, (kind, matched)) = (id?, matched?);
            if Some(id) == self.priority {
                let (Some(value), None) = pair(matched)? else { return None };
                let value = u32::from_be_bytes(value.bytes()?.try_into().ok()?);
                if kind != 2 || smallest_wins.replace(value).is_some() {
                    return None;
                }
                continue;
            }
            let at = self.keys.iter().position(|key| key.id == id)?;
            let bit = 1u64.checked_shl(at as u32)?;
            if seen & bit != 0 {
                return None;
            }
            seen |= bit;
            self.keys[at].direct(kind, matched, matches)?;
        }
        if seen.count_ones() as usize != self.keys.len() {
            return None;
        }
        let priority = match self.priority {
            None => 0,
            Some(_) => PRIORITIES - smallest_wins.unwrap_or(0).min(PRIORITIES),
        };
        if self.priority.is_some() && priority == 0 {
            return None;
        }
        let mut action_id = None;
        if let Some(data) = data {
            let mut ids = Fields(data).filter_map(|field| field.filter(|(number, _)| *number == 1));
            let id = ids.next()?.1.id()?;
            let plan = self.actions.iter().find(|plan| plan.id == id)?;
            let is_other = |field: Option<(u32, Part<'_>)>| {
                !matches!(field, Some((1, Part::Number(_)) | (2, Part::Bytes(_))))
            };
            if ids.next().is_some() || Fields(data).any(is_other) {
                return None;
            }
            plan.direct(data, params)?;
            action_id = Some(u64::from(plan.p4_id));
        }
        let action = action_id.map(|id| number_len(id) + params.len());
        let entry = number_len(self.p4_id.into())
            + matches.len()
            + action.map_or(0, |action| delimited_len(delimited_len(action)))
            + if priority == 0 { 0 } else { number_len(priority.into()) };
        let entity = delimited_len(entry);
        open(out, 4, number_len(kind) + delimited_len(entity));
        number(out, 1, kind);
        open(out, 2, entity);
        open(out, 2, entry);
        number(out, 1, self.p4_id.into());
        out.extend_from_slice(matches);
        if let (Some(id), Some(length)) = (action_id, action) {
            open(out, 3, delimited_len(length));
            open(out, 1, length);
            number(out, 1, id);
            out.extend_from_slice(params);
        }
        if priority != 0 {
            number(out, 4, priority.into());
        }
        Some(())
    }
}
