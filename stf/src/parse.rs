//! Parses STF text, one statement per line.

use crate::command::{Call, Command, Compare, EntryAction, Index, KeyText, Number, Pattern, Statement};
use crate::{MAX_DIGITS, MAX_STATEMENTS, StfError};
use num_bigint::BigUint;
use std::str::FromStr;

/// Reads a whole file.
pub fn parse(text: &str) -> Result<Vec<Statement>, StfError> {
    let mut statements = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index as u32 + 1;
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        if statements.len() >= MAX_STATEMENTS {
            return Err(StfError::new(
                number,
                format!("more than {MAX_STATEMENTS} statements: split the file"),
            ));
        }
        let command = statement(line).map_err(|what| StfError::new(number, what))?;
        statements.push(Statement { line: number, command });
    }
    Ok(statements)
}

type Result2<T> = Result<T, String>;

fn statement(line: &str) -> Result2<Command> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let mut words = Words { words: rest.split_whitespace(), usage: "" };
    let keyword = word.to_ascii_lowercase();
    let command = match keyword.as_str() {
        "packet" => {
            words.usage = "packet PORT HEX";
            let port = words.number()?;
            Command::Packet { port, bytes: frame(words.rest())? }
        }
        "expect" => {
            words.usage = "expect PORT [HEX with * for any digit and $ at the end]";
            let port = words.number()?;
            let digits: String = words.rest();
            let pattern = (!digits.is_empty()).then(|| pattern(&digits)).transpose()?;
            Command::Expect { port, pattern }
        }
        "no_packet" => Command::NoPacket,
        "wait" => {
            words.rest();
            Command::Wait
        }
        "add" => return add(rest),
        "remove" => {
            words.usage = "remove all";
            match words.word()? {
                "all" => Command::RemoveAll,
                other => return Err(format!("`remove {other}` is not known; write `remove all`")),
            }
        }
        "setdefault" => {
            let mut text = Text(rest);
            let table = text.name()?;
            let call = text.call()?;
            text.end()?;
            return Ok(Command::SetDefault { table, call });
        }
        "check_counter" => return check_counter(rest),
        "check_register" => return check_register(rest),
        "counter_read" => {
            words.usage = "counter_read NAME INDEX";
            Command::CounterRead(words.word()?.into(), words.number()?)
        }
        "counter_write" => {
            words.usage = "counter_write NAME INDEX PACKETS BYTES";
            Command::CounterWrite(words.word()?.into(), words.number()?, words.number()?, words.number()?)
        }
        "register_read" => {
            words.usage = "register_read NAME INDEX";
            Command::RegisterRead(words.word()?.into(), words.number()?)
        }
        "register_write" => {
            words.usage = "register_write NAME INDEX VALUE";
            let (name, index) = (words.word()?.into(), words.number()?);
            Command::RegisterWrite(name, index, whole(words.word()?)?)
        }
        "register_reset" => {
            words.usage = "register_reset NAME";
            Command::RegisterReset(words.word()?.into())
        }
        "meter_get_rates" => {
            words.usage = "meter_get_rates NAME INDEX";
            Command::MeterGet(words.word()?.into(), words.number()?)
        }
        "meter_set_rates" | "meter_array_set_rates" => {
            words.usage = "meter_set_rates NAME INDEX RATE:BURST RATE:BURST (rates in units a microsecond)";
            let meter = words.word()?.into();
            let index = if keyword == "meter_set_rates" { Some(words.number()?) } else { None };
            let rates = [rate(words.word()?)?, rate(words.word()?)?];
            Command::MeterSet { meter, index, rates }
        }
        "mirroring_add" => {
            words.usage = "mirroring_add SESSION PORT";
            Command::MirrorPort(words.number()?, words.number()?)
        }
        "mirroring_add_mc" => {
            words.usage = "mirroring_add_mc SESSION GROUP";
            Command::MirrorGroup(words.number()?, words.number()?)
        }
        "mirroring_delete" => {
            words.usage = "mirroring_delete SESSION";
            Command::MirrorDelete(words.number()?)
        }
        "mirroring_get" => {
            words.usage = "mirroring_get SESSION";
            Command::MirrorGet(words.number()?)
        }
        "mc_mgrp_create" => {
            words.usage = "mc_mgrp_create GROUP";
            Command::GroupCreate(words.number()?)
        }
        "mc_node_create" => {
            words.usage = "mc_node_create RID PORT …";
            Command::NodeCreate(words.number()?, words.numbers()?)
        }
        "mc_node_update" => {
            words.usage = "mc_node_update NODE PORT …";
            Command::NodeUpdate(words.number()?, words.numbers()?)
        }
        "mc_node_associate" => {
            words.usage = "mc_node_associate GROUP NODE";
            Command::NodeAssociate(words.number()?, words.number()?)
        }
        "member_add" => {
            let mut text = Text(rest);
            let profile = text.name()?;
            let member = text.number()?;
            let call = text.call()?;
            text.end()?;
            return Ok(Command::MemberAdd { profile, member, call });
        }
        "group_add" => {
            words.usage = "group_add PROFILE GROUP MEMBER …";
            let (profile, group) = (words.word()?.into(), words.number()?);
            Command::GroupAdd { profile, group, members: words.numbers()? }
        }
        "value_set_add" => {
            words.usage = "value_set_add SET VALUE …";
            let set = words.word()?.to_string();
            let keys: Result2<Vec<KeyText>> = words.words.by_ref().map(key_text).collect();
            Command::ValueSetAdd(set, keys?)
        }
        _ => {
            return Err(format!(
                "`{word}` is not a statement; known ones are packet, expect, no_packet, wait, add, remove, setdefault, check_counter, \
                 check_register, counter_*, register_*, meter_*, mirroring_*, mc_*, member_add, group_add, value_set_add"
            ));
        }
    };
    words.end()?;
    Ok(command)
}

/// The words of a line, with the expected syntax for messages.
struct Words<'a> {
    words: std::str::SplitWhitespace<'a>,
    usage: &'static str,
}

impl<'a> Words<'a> {
    fn word(&mut self) -> Result2<&'a str> {
        self.words.next().ok_or_else(|| format!("something is missing; write `{}`", self.usage))
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Result2<T> {
        let word = self.word()?;
        small(word).map_err(|what| format!("{what}; write `{}`", self.usage))
    }

    fn numbers<T: TryFrom<u64>>(&mut self) -> Result2<Vec<T>> {
        self.words.by_ref().map(small).collect()
    }

    fn rest(&mut self) -> String {
        self.words.by_ref().collect()
    }

    fn end(&mut self) -> Result2<()> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is one too many; write `{}`", self.usage)),
        }
    }
}

/// The rest of a line, for statements with brackets.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Text up to the first of these characters, which is not consumed.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let at = self.0.find(|c: char| ends.contains(&c) || c.is_whitespace()).unwrap_or(self.0.len());
        let (found, rest) = self.0.split_at(at);
        self.0 = rest.trim_start();
        found
    }

    fn name(&mut self) -> Result2<String> {
        if let Some(rest) = self.0.strip_prefix('"') {
            let (name, rest) = rest.split_once('"').ok_or("a name starts with \" and never ends")?;
            self.0 = rest.trim_start();
            return Ok(name.into());
        }
        let name = self.until(&['(', ')', ':', ',', '=']);
        if name.is_empty() { Err(format!("a name is missing before `{}`", self.0)) } else { Ok(name.into()) }
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Result2<T> {
        small(self.until(&['(', ')', ':', ',', '=']))
    }

    fn expect(&mut self, mark: char) -> Result2<()> {
        match self.0.strip_prefix(mark) {
            Some(rest) => {
                self.0 = rest.trim_start();
                Ok(())
            }
            None => Err(format!("`{mark}` is missing before `{}`", self.0)),
        }
    }

    fn call(&mut self) -> Result2<Call> {
        let action = self.name()?;
        self.expect('(')?;
        let mut args = Vec::new();
        while !self.0.starts_with(')') {
            if !args.is_empty() {
                self.expect(',')?;
            }
            let name = self.name()?;
            self.expect(':')?;
            args.push((name, whole(self.until(&[',', ')']))?));
        }
        self.expect(')')?;
        Ok(Call { action, args })
    }

    fn end(&self) -> Result2<()> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("`{}` is not understood here", self.0)) }
    }
}

fn add(rest: &str) -> Result2<Command> {
    let mut text = Text(rest);
    let table = text.name()?;
    let mut priority = None;
    let mut keys = Vec::new();
    if text.0.starts_with(|c: char| c.is_ascii_digit()) {
        priority = Some(text.number()?);
    }
    // A key's name is followed by a colon, an action's by a bracket.
    loop {
        let mark = text.0.find([':', '(']).ok_or("an action with its arguments in brackets is missing")?;
        if text.0[mark..].starts_with('(') {
            break;
        }
        let name = text.name()?;
        text.expect(':')?;
        keys.push((name, key_text(text.until(&[]))?));
    }
    let word = text.0.split('(').next().unwrap_or("").trim();
    let target = match word {
        "member" | "group" => {
            text.name()?;
            text.expect('(')?;
            let number = text.number()?;
            text.expect(')')?;
            if word == "member" { EntryAction::Member(number) } else { EntryAction::Group(number) }
        }
        _ => EntryAction::Call(text.call()?),
    };
    let mut handle = None;
    if text.0.starts_with('=') {
        text.expect('=')?;
        handle = Some(text.name()?.trim_start_matches('$').to_string());
    }
    text.end()?;
    Ok(Command::Add { table, priority, keys, target, handle })
}

fn check_counter(rest: &str) -> Result2<Command> {
    let mut text = Text(rest);
    let counter = text.name()?;
    text.expect('(')?;
    let word = text.until(&[')']);
    text.expect(')')?;
    let index = match small(word) {
        Ok(number) => Index::Number(number),
        Err(_) => Index::Handle(word.trim_start_matches('$').to_string()),
    };
    let (mut bytes, mut compare, mut value) = (false, Compare::Equal, 0);
    if !text.0.is_empty() {
        bytes = match text.until(&['=', '<', '>', '!']) {
            "packets" => false,
            "bytes" => true,
            other => return Err(format!("`{other}` is neither packets nor bytes")),
        };
        compare = comparison(&mut text)?;
        value = text.number()?;
    }
    text.end()?;
    Ok(Command::CheckCounter { counter, index, bytes, compare, value })
}

fn check_register(rest: &str) -> Result2<Command> {
    let mut text = Text(rest);
    let register = text.name()?;
    text.expect('(')?;
    let index = text.number()?;
    text.expect(')')?;
    let compare = comparison(&mut text)?;
    let value = whole(text.until(&[]))?;
    text.end()?;
    Ok(Command::CheckRegister { register, index, compare, value })
}

fn comparison(text: &mut Text<'_>) -> Result2<Compare> {
    let all = [
        ("==", Compare::Equal),
        ("!=", Compare::NotEqual),
        ("<=", Compare::AtMost),
        (">=", Compare::AtLeast),
        ("<", Compare::Less),
        (">", Compare::Greater),
    ];
    for (symbol, compare) in all {
        if let Some(rest) = text.0.strip_prefix(symbol) {
            text.0 = rest.trim_start();
            return Ok(compare);
        }
    }
    Err(format!("one of == != < <= > >= is missing before `{}`", text.0))
}

/// A number that fits the type.
fn small<T: TryFrom<u64>>(word: &str) -> Result2<T> {
    let value = whole(word)?;
    let value = u64::try_from(&value).ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| format!("{word} is too large here"))
}

/// A number without `*`.
fn whole(word: &str) -> Result2<BigUint> {
    let number = number(word)?;
    if number.mask.is_some() { Err(format!("{word}: `*` has no place here")) } else { Ok(number.value) }
}

fn number(word: &str) -> Result2<Number> {
    let prefixed = |two: &str| {
        let (head, tail) = word.split_at_checked(2)?;
        head.eq_ignore_ascii_case(two).then_some(tail)
    };
    let (digits, radix, bits) = match (prefixed("0x"), prefixed("0b"), prefixed("0o")) {
        (Some(digits), _, _) => (digits, 16, 4),
        (_, Some(digits), _) => (digits, 2, 1),
        (_, _, Some(digits)) => (digits, 8, 3),
        _ => (word, 10, 0),
    };
    let wrong = || format!("`{word}` is not a number");
    if digits.is_empty() {
        return Err(wrong());
    }
    if digits.len() > MAX_DIGITS {
        return Err(format!("a number has more than {MAX_DIGITS} digits"));
    }
    let stars = digits.bytes().filter(|&digit| digit == b'*').count();
    let parse = |text: &str| BigUint::parse_bytes(text.as_bytes(), radix).ok_or_else(wrong);
    if !digits.bytes().all(|digit| digit == b'*' || char::from(digit).is_digit(radix)) {
        return Err(wrong());
    }
    if stars > 0 && bits == 0 {
        return Err(format!("`{word}`: `*` needs a number that starts with 0x or 0b"));
    }
    let mask = (stars > 0).then(|| {
        let largest = char::from_digit(radix - 1, radix).unwrap_or('1');
        digits.chars().map(|digit| if digit == '*' { '0' } else { largest }).collect::<String>()
    });
    Ok(Number {
        value: parse(&digits.replace('*', "0"))?,
        mask: mask.map(|mask| parse(&mask)).transpose()?,
        bits: (bits > 0).then(|| (digits.len() - stars) as u32 * bits),
    })
}

fn key_text(word: &str) -> Result2<KeyText> {
    if word == "*" {
        return Ok(KeyText::Any);
    }
    if let Some((value, length)) = word.split_once('/') {
        return Ok(KeyText::Prefix(number(value)?, small(length)?));
    }
    if let Some((value, mask)) = word.split_once("&&&") {
        return Ok(KeyText::Mask(number(value)?, number(mask)?));
    }
    if let Some((lo, hi)) = word.split_once("..").or_else(|| word.split_once("->")) {
        return Ok(KeyText::Range(number(lo)?, number(hi)?));
    }
    Ok(KeyText::Value(number(word)?))
}

/// `RATE:BURST`, with the rate in units per microsecond. Returns units per second.
fn rate(word: &str) -> Result2<(u64, u64)> {
    let wrong = || format!("`{word}` is not RATE:BURST");
    let (rate, burst) = word.split_once(':').ok_or_else(wrong)?;
    let (whole, fraction) = rate.split_once('.').unwrap_or((rate, ""));
    let digits = fraction.bytes().all(|digit| digit.is_ascii_digit());
    if !digits || fraction.len() > 6 {
        return Err(format!("{}; a rate has at most six digits after the point", wrong()));
    }
    let fraction = format!("{fraction:0<6}");
    let whole = u64::from_str(whole).ok().and_then(|whole| whole.checked_mul(1_000_000));
    let rate = whole.and_then(|whole| whole.checked_add(u64::from_str(&fraction).ok()?)).ok_or_else(wrong)?;
    Ok((rate, small(burst)?))
}

fn frame(digits: String) -> Result2<Vec<u8>> {
    let pattern = pattern(&digits)?;
    if pattern.digits.len() % 2 != 0 {
        return Err(format!("a frame of {} hex digits is not whole bytes", pattern.digits.len()));
    }
    let bytes = pattern.digits.chunks_exact(2).map(|pair| Some(pair[0]? << 4 | pair[1]?));
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.filter(|_| !pattern.whole).ok_or_else(|| "`*` and `$` belong to expect, not to packet".into())
}

fn pattern(digits: &str) -> Result2<Pattern> {
    let (digits, whole) = match digits.strip_suffix('$') {
        Some(digits) => (digits, true),
        None => (digits, false),
    };
    if digits.len() > MAX_DIGITS * 16 {
        return Err(format!("a frame has more than {} hex digits", MAX_DIGITS * 16));
    }
    let digit = |c: char| match c {
        '*' => Ok(None),
        _ => c.to_digit(16).map(|digit| Some(digit as u8)).ok_or_else(|| format!("`{c}` is not a hex digit")),
    };
    Ok(Pattern { digits: digits.chars().map(digit).collect::<Result2<_>>()?, whole })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
