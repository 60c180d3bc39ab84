//! Digests: the program's reports, collected into lists; repeats are held back until acknowledged.
//!
//! ```text
//!  message ── known and unacknowledged? ── yes ─▶ held back
//!                    │ no
//!                    ▼
//!              list of its digest ── full, or oldest waited max_timeout ─▶ sent, list_id
//!                                                   ack, or ack_timeout ─▶ forgotten
//! ```
//!
//! Without I/O and clock: time is a parameter.

use super::{Checked, refuse};
use num_bigint::BigUint;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::digest_entry::Config;
use p4rack_p4rt::p4::v1::update;
use p4rack_switch::DigestMessage;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Maximum waiting messages of a digest, and maximum of its waiting and unacknowledged ones together. Further ones are lost.
const LIMIT: usize = 65_536;

/// State of a digest that a controller has subscribed to.
#[derive(Debug)]
struct Wanted {
    config: Config,
    waiting: Vec<Vec<BigUint>>,
    /// Arrival time of the oldest of these.
    since: Nanos,
    /// Messages that are waiting, or were sent and are not acknowledged.
    known: HashSet<Vec<BigUint>>,
    /// Lists sent: their contents and when they expire.
    sent: HashMap<u64, (Vec<Vec<BigUint>>, Nanos)>,
    /// The same lists, the next one to expire first.
    expiries: BTreeSet<(Nanos, u64)>,
}

/// State of all digests of a program.
#[derive(Debug, Default)]
pub struct Digests {
    wanted: BTreeMap<u32, Wanted>,
    lists: u64,
    /// Messages without a subscriber, or for which there was no room.
    pub lost: u64,
}

fn nanos(value: i64) -> Nanos {
    Nanos(u64::try_from(value).unwrap_or(0))
}

impl Wanted {
    fn due(&self) -> Option<Nanos> {
        (!self.waiting.is_empty()).then(|| self.since.saturating_add(nanos(self.config.max_timeout_ns)))
    }

    fn is_full(&self) -> bool {
        self.config.max_list_size > 0 && self.waiting.len() >= self.config.max_list_size as usize
    }

    /// Drops lists that were not acknowledged in time.
    fn expire(&mut self, now: Nanos) {
        while let Some(&(until, list)) = self.expiries.first()
            && until <= now
        {
            self.forget(list);
        }
    }

    /// Forgets a list that was sent: its messages may be sent again.
    fn forget(&mut self, list: u64) {
        let Some((messages, until)) = self.sent.remove(&list) else { return };
        self.expiries.remove(&(until, list));
        for message in &messages {
            self.known.remove(message);
        }
    }
}

impl Digests {
    /// Starts, changes or ends the subscription of a digest.
    pub fn configure(&mut self, kind: update::Type, digest: u32, config: Option<Config>) -> Checked<()> {
        let exists = self.wanted.contains_key(&digest);
        match (kind, exists) {
            (update::Type::Insert, true) => {
                return refuse(Code::AlreadyExists, "the digest is reported already; modify it");
            }
            (update::Type::Modify | update::Type::Delete, false) => {
                return refuse(Code::NotFound, "the digest is not reported; insert it first");
            }
            (update::Type::Delete, true) => {
                self.wanted.remove(&digest);
                return Ok(());
            }
            _ => {}
        }
        let Some(config) = config else {
            return refuse(Code::InvalidArgument, "the digest's config is not set");
        };
        if config.max_timeout_ns < 0 || config.ack_timeout_ns < 0 || config.max_list_size < 0 {
            return refuse(Code::InvalidArgument, "a digest's timeouts and list size can't be negative");
        }
        match self.wanted.get_mut(&digest) {
            Some(wanted) => wanted.config = config,
            None => {
                let wanted = Wanted {
                    config,
                    waiting: Vec::new(),
                    since: Nanos::ZERO,
                    known: HashSet::new(),
                    sent: HashMap::new(),
                    expiries: BTreeSet::new(),
                };
                self.wanted.insert(digest, wanted);
            }
        }
        Ok(())
    }

    /// Configurations by number of the digest.
    pub fn configured(&self) -> impl Iterator<Item = (u32, Config)> + '_ {
        self.wanted.iter().map(|(digest, wanted)| (*digest, wanted.config))
    }

    /// The configuration of a digest.
    pub fn config(&self, digest: u32) -> Option<Config> {
        self.wanted.get(&digest).map(|wanted| wanted.config)
    }

    /// Restores a configuration.
    pub fn restore(&mut self, digest: u32, config: Option<Config>) {
        let (kind, exists) = (update::Type::Insert, self.wanted.contains_key(&digest));
        let kind = match (&config, exists) {
            (None, false) => return,
            (None, true) => update::Type::Delete,
            (Some(_), true) => update::Type::Modify,
            (Some(_), false) => kind,
        };
        // It was accepted before.
        let _ = self.configure(kind, digest, config);
    }

    /// Handles a digest that the program sent.
    pub fn handle_message(&mut self, message: DigestMessage, now: Nanos) {
        let Some(wanted) = self.wanted.get_mut(&message.digest) else {
            self.lost += 1;
            return;
        };
        wanted.expire(now);
        if wanted.known.contains(&message.values) {
            return;
        }
        if wanted.waiting.len() >= LIMIT || wanted.known.len() >= LIMIT {
            self.lost += 1;
            return;
        }
        if wanted.waiting.is_empty() {
            wanted.since = now;
        }
        // Without an acknowledgement timeout, duplicates are not suppressed.
        if wanted.config.ack_timeout_ns > 0 {
            wanted.known.insert(message.values.clone());
        }
        wanted.waiting.push(message.values);
    }

    /// Handles the acknowledgement of a list.
    pub fn handle_ack(&mut self, digest: u32, list: u64) -> Checked<()> {
        let Some(wanted) = self.wanted.get_mut(&digest) else {
            return refuse(Code::NotFound, "the digest is not reported");
        };
        // A late acknowledgement, of a list that has expired, is no error.
        wanted.forget(list);
        Ok(())
    }

    /// The next list to send: number of the digest, number of the list, contents.
    pub fn poll_list(&mut self, now: Nanos) -> Option<(u32, u64, Vec<Vec<BigUint>>)> {
        let ready = |wanted: &Wanted| wanted.is_full() || wanted.due().is_some_and(|due| due <= now);
        let (&digest, wanted) = self.wanted.iter_mut().find(|(_, wanted)| ready(wanted))?;
        let count = match wanted.config.max_list_size {
            0 => wanted.waiting.len(),
            most => wanted.waiting.len().min(most as usize),
        };
        let rest = wanted.waiting.split_off(count);
        let list = std::mem::replace(&mut wanted.waiting, rest);
        self.lists += 1;
        if wanted.config.ack_timeout_ns > 0 {
            let until = now.saturating_add(nanos(wanted.config.ack_timeout_ns));
            wanted.sent.insert(self.lists, (list.clone(), until));
            wanted.expiries.insert((until, self.lists));
        } else {
            // They came before a change that took the timeout away: nothing else would end the suppression of repeats.
            list.iter().for_each(|message| {
                wanted.known.remove(message);
            });
        }
        Some((digest, self.lists, list))
    }

    /// The next time at which [`Digests::poll_list`] has something.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.wanted.values().filter_map(Wanted::due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn reporting(max_timeout_ms: u64, max_list_size: i32, ack_timeout_ms: u64) -> Digests {
        let mut digests = Digests::default();
        let config = Config {
            max_timeout_ns: (max_timeout_ms * MS) as i64,
            max_list_size,
            ack_timeout_ns: (ack_timeout_ms * MS) as i64,
        };
        digests.configure(update::Type::Insert, 0, Some(config)).unwrap();
        digests
    }

    fn say(digests: &mut Digests, value: u32, ms: u64) {
        let values = vec![BigUint::from(value)];
        digests.handle_message(
            DigestMessage { digest: 0, values, time: Nanos(ms * MS), pipe: 0 },
            Nanos(ms * MS),
        );
    }

    /// List number and values.
    fn heard(digests: &mut Digests, ms: u64) -> Option<(u64, Vec<u32>)> {
        let (_, number, list) = digests.poll_list(Nanos(ms * MS))?;
        Some((
            number,
            list.iter().map(|values| values[0].to_u32_digits().first().copied().unwrap_or(0)).collect(),
        ))
    }

    #[test]
    fn lists_are_sent_when_full_or_when_the_oldest_has_waited() {
        let mut digests = reporting(10, 2, 0);
        say(&mut digests, 1, 0);
        assert_eq!((heard(&mut digests, 9), digests.next_timeout()), (None, Some(Nanos(10 * MS))));
        say(&mut digests, 2, 9);
        say(&mut digests, 3, 9);
        assert_eq!(heard(&mut digests, 9), Some((1, vec![1, 2])));
        assert_eq!(heard(&mut digests, 9), None);
        assert_eq!(
            heard(&mut digests, 10),
            Some((2, vec![3])),
            "the rest has not waited longer than it should"
        );
    }

    #[test]
    fn without_a_timeout_each_is_sent_at_once_and_without_a_size_lists_grow() {
        let mut digests = reporting(0, 0, 0);
        (0..5).for_each(|value| say(&mut digests, value, 0));
        assert_eq!(heard(&mut digests, 0), Some((1, vec![0, 1, 2, 3, 4])));
    }

    #[test]
    fn repeats_are_held_back_until_acknowledged_or_timed_out() {
        let mut digests = reporting(0, 1, 100);
        say(&mut digests, 7, 0);
        say(&mut digests, 7, 0);
        assert_eq!((heard(&mut digests, 0), heard(&mut digests, 0)), (Some((1, vec![7])), None));
        say(&mut digests, 7, 50);
        assert_eq!(heard(&mut digests, 50), None);
        digests.handle_ack(0, 1).unwrap();
        say(&mut digests, 7, 51);
        assert_eq!(heard(&mut digests, 51), Some((2, vec![7])));
        say(&mut digests, 7, 151);
        assert_eq!(heard(&mut digests, 151), Some((3, vec![7])), "list 2 was not acknowledged in time");
    }

    #[test]
    fn digests_without_a_request_and_too_many_are_counted() {
        let mut digests = Digests::default();
        say(&mut digests, 1, 0);
        assert_eq!(digests.lost, 1);
        let mut digests = reporting(1_000, 0, 0);
        (0..LIMIT as u32 + 3).for_each(|value| say(&mut digests, value, 0));
        assert_eq!(digests.lost, 3);
    }

    #[test]
    fn configurations_are_checked() {
        let mut digests = reporting(1, 1, 1);
        let code = |result: Checked<()>| result.unwrap_err().code;
        let config = digests.config(0);
        assert_eq!(code(digests.configure(update::Type::Insert, 0, config)), Code::AlreadyExists);
        assert_eq!(code(digests.configure(update::Type::Modify, 1, config)), Code::NotFound);
        assert_eq!(code(digests.configure(update::Type::Modify, 0, None)), Code::InvalidArgument);
        assert_eq!(code(digests.handle_ack(1, 1)), Code::NotFound);
        digests.configure(update::Type::Delete, 0, None).unwrap();
        assert_eq!(digests.configured().count(), 0);
    }

    #[test]
    fn timeouts_and_sizes_are_not_negative() {
        let config = |max_timeout_ns, max_list_size, ack_timeout_ns| Config {
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        };
        for (config, is_accepted) in [
            (config(0, 0, 0), true),
            (config(-1, 0, 0), false),
            (config(0, -1, 0), false),
            (config(0, 0, -1), false),
        ] {
            let outcome = Digests::default().configure(update::Type::Insert, 0, Some(config));
            assert_eq!(outcome.is_ok(), is_accepted, "{config:?}: {outcome:?}");
        }
    }

    #[test]
    fn without_acknowledgements_repeats_are_sent() {
        let mut digests = reporting(10, 2, 0);
        say(&mut digests, 7, 0);
        say(&mut digests, 7, 1);
        assert_eq!(heard(&mut digests, 1), Some((1, vec![7, 7])));
        digests.handle_ack(0, 1).unwrap();
        say(&mut digests, 7, 5);
        assert_eq!(digests.next_timeout(), Some(Nanos(15 * MS)), "its wait begins with itself");
    }

    /// Of lists that expire or are acknowledged; those of others are still held back.
    #[test]
    fn repeats_are_held_back_list_by_list() {
        let mut digests = reporting(0, 1, 100);
        say(&mut digests, 1, 0);
        assert_eq!(heard(&mut digests, 0), Some((1, vec![1])));
        say(&mut digests, 2, 50);
        assert_eq!(heard(&mut digests, 50), Some((2, vec![2])));
        say(&mut digests, 1, 99);
        say(&mut digests, 2, 100);
        assert_eq!(heard(&mut digests, 100), None);
        say(&mut digests, 1, 100);
        assert_eq!(heard(&mut digests, 100), Some((3, vec![1])));
        digests.handle_ack(0, 3).unwrap();
        say(&mut digests, 2, 101);
        assert_eq!(heard(&mut digests, 101), None);
        assert!(digests.handle_ack(0, 1).is_ok(), "a late one is no error");
    }

    #[test]
    fn unacknowledged_lists_are_limited() {
        let mut digests = reporting(0, 1, 1_000);
        for value in 0..LIMIT as u32 {
            say(&mut digests, value, 0);
            assert!(heard(&mut digests, 0).is_some());
        }
        say(&mut digests, LIMIT as u32, 0);
        assert_eq!((heard(&mut digests, 0), digests.lost), (None, 1));
        digests.handle_ack(0, 5).unwrap();
        say(&mut digests, LIMIT as u32, 0);
        assert!(heard(&mut digests, 0).is_some());
    }

    /// Messages that lists share: a long list counts as all of its messages.
    #[test]
    fn unacknowledged_messages_are_limited_whatever_their_lists() {
        let mut digests = reporting(0, LIMIT as i32 / 2, 1_000);
        for value in 0..LIMIT as u32 {
            say(&mut digests, value, 0);
        }
        assert!(heard(&mut digests, 0).is_some() && heard(&mut digests, 0).is_some());
        say(&mut digests, LIMIT as u32, 0);
        assert_eq!(digests.lost, 1);
        digests.handle_ack(0, 1).unwrap();
        say(&mut digests, LIMIT as u32, 0);
        assert_eq!(digests.lost, 1);
    }

    #[test]
    fn repeats_are_sent_again_once_the_timeout_is_taken_away() {
        let mut digests = reporting(10, 0, 100);
        say(&mut digests, 7, 0);
        let config = Config { max_timeout_ns: 10 * MS as i64, max_list_size: 0, ack_timeout_ns: 0 };
        digests.configure(update::Type::Modify, 0, Some(config)).unwrap();
        assert_eq!(heard(&mut digests, 10), Some((1, vec![7])));
        say(&mut digests, 7, 20);
        assert_eq!(heard(&mut digests, 30), Some((2, vec![7])));
    }

    #[test]
    fn digests_wait_on_their_own() {
        let mut digests = reporting(10, 0, 0);
        let config = Config { max_timeout_ns: 3 * MS as i64, max_list_size: 0, ack_timeout_ns: 0 };
        digests.configure(update::Type::Insert, 1, Some(config)).unwrap();
        assert_eq!(digests.next_timeout(), None);
        for digest in [0, 1] {
            let values = vec![BigUint::from(digest)];
            digests.handle_message(DigestMessage { digest, values, time: Nanos::ZERO, pipe: 0 }, Nanos::ZERO);
        }
        assert_eq!(digests.next_timeout(), Some(Nanos(3 * MS)));
        let of = |list: Option<(u32, u64, Vec<Vec<BigUint>>)>| list.map(|(digest, ..)| digest);
        assert_eq!([9, 9, 10].map(|ms| of(digests.poll_list(Nanos(ms * MS)))), [Some(1), None, Some(0)]);
        assert_eq!(digests.configured().map(|(digest, _)| digest).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_configuration_is_restored() {
        let first = Config { max_timeout_ns: 1, max_list_size: 1, ack_timeout_ns: 1 };
        let second = Config { max_list_size: 2, ..first };
        let mut digests = Digests::default();
        for config in [None, Some(first), Some(second), None, None] {
            digests.restore(3, config);
            assert_eq!(digests.config(3), config);
        }
    }
}
