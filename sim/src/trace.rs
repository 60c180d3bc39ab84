//! Traces: messages with their times, read from CSV.

use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// Maximum lines of a trace.
const LINES_MAX: usize = 10_000_000;
/// Columns, in any order.
const COLUMNS: [&str; 4] = ["time_ns", "from", "to", "bytes"];

/// A message of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time at which the sending thread has it.
    pub time: Nanos,
    /// Index of its pair.
    pub pair: usize,
    /// Size in bytes.
    pub bytes: u32,
}

/// A trace of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Pairs of sender and receiver that occur.
    pub pairs: Vec<(usize, usize)>,
    /// Messages, sorted by time.
    pub entries: Vec<Entry>,
}

impl Trace {
    /// Reads a trace. `file` appears in errors; `host` maps a host's name to its index.
    pub fn parse(text: &str, file: &str, host: impl Fn(&str) -> Option<usize>) -> Result<Trace, String> {
        let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
        let mut lines = lines.by_ref().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let header = "the first line names the columns: time_ns,from,to,bytes";
        let (at, first) = lines.next().ok_or_else(|| format!("{file}:1: is empty; {header}"))?;
        let names: Vec<&str> = first.split(',').map(str::trim).collect();
        let column = |name: &str| {
            let place = names.iter().position(|known| *known == name);
            place.ok_or_else(|| format!("{file}:{at}: column `{name}` is missing; {header}"))
        };
        let mut places = [0; COLUMNS.len()];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            *place = column(name)?;
        }
        let (mut trace, mut known) = (Trace::default(), BTreeMap::new());
        for (at, line) in lines {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let bad = |what: String| format!("{file}:{at}: {what}");
            if cells.len() != names.len() {
                return Err(bad(format!("has {} cells, the first line {}", cells.len(), names.len())));
            }
            let cell = |nth: usize| cells.get(places[nth]).copied().unwrap_or_default();
            let number = |nth: usize, most: u64| {
                let value = cell(nth).parse::<u64>().ok().filter(|value| *value <= most);
                value.ok_or_else(|| {
                    bad(format!("{} `{}`: write a number up to {most}", COLUMNS[nth], cell(nth)))
                })
            };
            let end = |nth: usize| {
                host(cell(nth))
                    .ok_or_else(|| bad(format!("{} `{}`: is no host of the rack", COLUMNS[nth], cell(nth))))
            };
            let (time, from, to, bytes) =
                (number(0, 3_600_000_000_000)?, end(1)?, end(2)?, number(3, 4_000_000_000)?);
            if from == to {
                return Err(bad(format!("`{}` sends to itself", cell(1))));
            }
            if bytes == 0 {
                return Err(bad("bytes is 0; a message has at least one byte".into()));
            }
            if trace.entries.len() == LINES_MAX {
                return Err(bad(format!("is more than {LINES_MAX} messages; split the trace")));
            }
            let pair = *known.entry((from, to)).or_insert_with(|| {
                trace.pairs.push((from, to));
                trace.pairs.len() - 1
            });
            trace.entries.push(Entry { time: Nanos(time), pair, bytes: bytes as u32 });
        }
        if trace.entries.is_empty() {
            return Err(format!("{file}:{at}: has no message after its first line"));
        }
        trace.entries.sort_by_key(|entry| entry.time);
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Trace, String> {
        Trace::parse(text, "t.csv", |name| ["a", "b", "c"].iter().position(|known| *known == name))
    }

    #[test]
    fn lines_are_read_in_the_order_of_their_times() {
        let trace =
            parse("bytes,from,to,time_ns\n100,a,b,20\n\n# no message\n200, b ,a,10\n300,a,b,10\n").unwrap();
        assert_eq!(trace.pairs, [(0, 1), (1, 0)]);
        let entry = |time, pair, bytes| Entry { time: Nanos(time), pair, bytes };
        assert_eq!(trace.entries, [entry(10, 1, 200), entry(10, 0, 300), entry(20, 0, 100)]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let head = "time_ns,from,to,bytes\n";
        for (text, named) in [
            (String::new(), "t.csv:1: is empty"),
            ("time,from,to,bytes\n".into(), "t.csv:1: column `time_ns` is missing"),
            (head.into(), "no message"),
            (format!("{head}1,a,b,5\n2,a,d,5\n"), "t.csv:3: to `d`: is no host"),
            (format!("{head}1,a,b\n"), "t.csv:2: has 3 cells"),
            (format!("{head}x,a,b,5\n"), "t.csv:2: time_ns `x`"),
            (format!("{head}1,a,a,5\n"), "sends to itself"),
            (format!("{head}1,a,b,0\n"), "at least one byte"),
            (format!("{head}1,a,b,-5\n"), "bytes `-5`"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(named), "{error} lacks {named}");
        }
    }
}
