use super::super::fields::Fields;
use super::super::hashes::Hashes;
use super::super::memcached::Memcached;
use super::super::redis::Redis;
use super::*;
use proptest::prelude::*;

const VALUE_BYTES: usize = 16;
const KEY: u32 = 7;

/// A value of the key, as another client writes it.
fn value(stamp: u64) -> Vec<u8> {
    let mut value = vec![0; VALUE_BYTES];
    fill(KEY.into(), stamp, &mut value);
    value
}

fn asked(what: Purpose) -> PendingRequest {
    PendingRequest { token: 3, key: KEY, what, number: 1, until: Nanos(0) }
}

/// Next step after an answer. However it is cut, it is not complete before its last byte.
fn next(protocol: &mut impl Protocol, what: Purpose, answer: &[u8]) -> Next {
    for bytes in 0..answer.len() {
        let cut = protocol.answer(asked(what), &answer[..bytes]).unwrap();
        assert_eq!(cut, None, "after {bytes} bytes of {}", answer.escape_ascii());
    }
    let followed = [answer, b"+more"].concat();
    let (next, bytes) = protocol.answer(asked(what), &followed).unwrap().unwrap();
    assert_eq!(bytes, answer.len());
    assert!(bytes <= protocol.answer_bytes_max());
    next
}

fn refused(protocol: &mut impl Protocol, what: Purpose, answer: &[u8]) -> String {
    protocol.answer(asked(what), answer).unwrap_err().to_string()
}

#[test]
fn redis_answers_with_versions() {
    let mut redis = Redis::new(VALUE_BYTES, 1);
    let record = |value: &[u8]| [b"*2\r\n$2\r\n12\r\n$16\r\n", value, b"\r\n"].concat();
    assert_eq!(next(&mut redis, Purpose::Get, &record(&value(9))), Next::Ended(Ended::Found(12)));
    let mut torn = value(9);
    torn[12] ^= 1;
    assert_eq!(next(&mut redis, Purpose::Get, &record(&torn)), Next::Ended(Ended::Wrong));
    assert_eq!(next(&mut redis, Purpose::Get, b"*2\r\n$-1\r\n$-1\r\n"), Next::Ended(Ended::Wrong));
    let put = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:13\r\n+OK\r\n";
    assert_eq!(next(&mut redis, Purpose::Put(None), put), Next::Ended(Ended::Wrote(13)));
    assert_eq!(next(&mut redis, Purpose::Put(Some(12)), b":0\r\n"), Next::Ended(Ended::Changed));
    assert_eq!(next(&mut redis, Purpose::Put(Some(12)), b":13\r\n"), Next::Ended(Ended::Wrote(13)));
    assert_eq!(next(&mut redis, Purpose::Put(Some(12)), b":14\r\n"), Next::Ended(Ended::Wrong));
}

/// The number of a request decides its field, for the request and its answer.
#[test]
fn redis_answers_with_versions_of_fields() {
    let new = || Hashes::new(KEY + 1, Fields::new(10, VALUE_BYTES, 1));
    let (mut redis, mut out) = (new(), Vec::new());
    let field = Fields::new(10, VALUE_BYTES, 1).of(asked(Purpose::Get).number);
    redis.ask(asked(Purpose::Get), &mut out);
    let name = format!("f{field}");
    assert!(out.ends_with(format!("HMGET\r\n$2\r\nr7\r\n$1\r\nn\r\n$2\r\n{name}\r\n").as_bytes()));
    let record = |of: u32| {
        let mut value = Vec::new();
        Fields::new(10, VALUE_BYTES, 8).append(KEY, of, &mut value);
        [b"*2\r\n$2\r\n12\r\n$16\r\n", value.as_slice(), b"\r\n"].concat()
    };
    assert_eq!(next(&mut redis, Purpose::Get, &record(field)), Next::Ended(Ended::Found(12)));
    assert_eq!(
        next(&mut redis, Purpose::Get, &record(field ^ 1)),
        Next::Ended(Ended::Wrong),
        "another field"
    );
    let put = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:13\r\n:0\r\n";
    assert_eq!(next(&mut redis, Purpose::Put(None), put), Next::Ended(Ended::Wrote(13)));
    assert_eq!(next(&mut redis, Purpose::Put(Some(12)), b":13\r\n"), Next::Ended(Ended::Wrote(13)));
    assert_eq!(next(&mut redis, Purpose::Put(Some(12)), b":0\r\n"), Next::Ended(Ended::Changed));
    // The first write of a record has all fields, and the next one a single one.
    for (count, only) in [(10, None), (1, Some(name.as_str()))] {
        out.clear();
        redis.ask(asked(Purpose::Put(None)), &mut out);
        let text = out.escape_ascii().to_string();
        assert_eq!(text.matches("\\r\\n$16\\r\\n").count(), count, "{text}");
        assert!(only.is_none_or(|name| text.contains(name)), "{text}");
    }
}

#[test]
fn memcached_answers_with_versions() {
    let mut memcached = Memcached::new(VALUE_BYTES, 1);
    let record = |value: &[u8]| [b"VA 2\r\n12\r\nVA 16 c45\r\n", value, b"\r\n"].concat();
    assert_eq!(next(&mut memcached, Purpose::Get, &record(&value(9))), Next::Ended(Ended::Found(12)));
    // A conditional put names the value that its token has read.
    let mut out = Vec::new();
    memcached.ask(asked(Purpose::Put(Some(12))), &mut out);
    assert!(out.starts_with(b"ms v7 16 C45\r\n") && out.ends_with(b"\r\n"), "{}", out.escape_ascii());
    assert_eq!(
        next(&mut memcached, Purpose::Get, &record(&value(9)[..15].repeat(2)[..16])),
        Next::Ended(Ended::Wrong)
    );
    assert_eq!(next(&mut memcached, Purpose::Get, b"EN\r\nEN\r\n"), Next::Ended(Ended::Wrong));
    assert_eq!(
        next(&mut memcached, Purpose::Put(None), b"HD\r\nVA 2\r\n13\r\n"),
        Next::Ended(Ended::Wrote(13))
    );
    assert_eq!(next(&mut memcached, Purpose::Put(Some(12)), b"HD\r\n"), Next::Ask(Purpose::Count));
    assert_eq!(next(&mut memcached, Purpose::Count, b"VA 2\r\n13\r\n"), Next::Ended(Ended::Wrote(13)));
    assert_eq!(next(&mut memcached, Purpose::Put(Some(12)), b"EX\r\n"), Next::Ended(Ended::Changed));
}

/// A value that was never written is not taken for one of its key.
#[test]
fn zeros_are_no_value() {
    let values = Values::new(VALUE_BYTES, 1);
    assert!(values.is_one(KEY, &value(1)) && !values.is_one(KEY, &[0; VALUE_BYTES]));
    assert!(!values.is_one(KEY + 1, &value(1)) && !values.is_one(KEY, &value(1)[..8]));
    let zeros = b"VA 2\r\n12\r\nVA 16 c45\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n";
    assert_eq!(next(&mut Memcached::new(VALUE_BYTES, 1), Purpose::Get, zeros), Next::Ended(Ended::Wrong));
}

/// The request that follows from an answer leaves before the client waits: one wait takes the operation to its end.
#[test]
fn a_request_that_follows_from_an_answer_leaves_before_the_wait() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HD\r\n").unwrap();
        let (mut got, mut piece) = (Vec::new(), [0; 256]);
        while !got.windows(5).any(|bytes| bytes == b"ma n7") {
            let bytes = stream.read(&mut piece).unwrap();
            assert!(bytes > 0, "it closed without asking: {}", got.escape_ascii());
            got.extend_from_slice(&piece[..bytes]);
        }
        stream.write_all(b"VA 2\r\n13\r\n").unwrap();
        // Until the client closes.
        while stream.read(&mut piece).is_ok_and(|bytes| bytes > 0) {}
    });
    let mut store = PipedStore::connect(to, Memcached::new(VALUE_BYTES, 1)).unwrap();
    let limit = clock::now() + Nanos::from_secs(60);
    // The first answer has arrived before the client waits.
    while store.stream.peek(&mut [0; 4]).unwrap_or(0) < 4 {
        assert!(clock::now() < limit, "the server says nothing");
        std::thread::yield_now();
    }
    store.put(3, KEY, Some(12), limit).unwrap();
    let mut ended = Vec::new();
    assert!(store.wait(limit, &mut |token, how| ended.push((token, how))).unwrap());
    assert_eq!(ended, [(3, Ended::Wrote(13))]);
    drop(store);
    server.join().unwrap();
}

/// A server without memory reports that; an error shows bytes that are no answer.
#[test]
fn failures_of_a_server_end_its_client() {
    let mut redis = Redis::new(VALUE_BYTES, 1);
    let said = refused(&mut redis, Purpose::Put(Some(1)), b"-OOM command not allowed\r\n");
    assert!(said.contains("an error: `-OOM command not allowed`"), "{said}");
    let said = refused(&mut redis, Purpose::Get, b"*2\r\n$99999999999999999999\r\n");
    assert!(said.contains("no number"), "{said}");
    let said = refused(&mut redis, Purpose::Get, &[b'x'; 2_000]);
    assert!(said.contains("a line without an end"), "{said}");
    let mut memcached = Memcached::new(VALUE_BYTES, 1);
    let said = refused(&mut memcached, Purpose::Put(None), b"SERVER_ERROR out of memory storing object\r\n");
    assert!(said.contains("SERVER_ERROR out of memory"), "{said}");
    let said = refused(&mut memcached, Purpose::Get, b"VA 2\r\n12345\r\n");
    assert!(said.contains("bytes without an end"), "{said}");
}

/// A server that floods its client is given up, and so is one that closes.
#[test]
fn a_client_keeps_no_more_of_its_server_than_an_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let flood = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Until the client closes.
        while stream.write_all(&[b'$'; 4_096]).is_ok() {}
    });
    let mut store = PipedStore::connect(to, Redis::new(VALUE_BYTES, 1)).unwrap();
    let limit = clock::now() + Nanos::from_secs(60);
    let failed = loop {
        match store.wait(limit, &mut |_, _| {}) {
            Err(error) => break error.to_string(),
            Ok(_) => assert!(clock::now() < limit, "the flood was taken"),
        }
    };
    assert!(failed.contains("what it was not asked"), "{failed}");
    drop(store);
    flood.join().unwrap();
}

/// Bytes as servers send them: pieces of answers in any order, some of them damaged.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 20] = [
        b"\r\n",
        b"\r",
        b"+OK\r\n",
        b"+QUEUED\r\n",
        b"*2\r\n",
        b":13\r\n",
        b":0\r\n",
        b"$2\r\n12\r\n",
        b"$16\r\n",
        b"$-1\r\n",
        b"$18446744073709551615\r\n",
        b"-OOM\r\n",
        b"VA 2\r\n12\r\n",
        b"VA 16 c45\r\n",
        b"VA 18446744073709551615\r\n",
        b"VA\r\n",
        b"EN\r\n",
        b"HD\r\n",
        b"EX\r\n",
        b"SERVER_ERROR\r\n",
    ];
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES.to_vec()).prop_map(<[u8]>::to_vec),
        2 => (0u64..3).prop_map(value),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => Just(vec![b'x'; 1_030]),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Results for all prefixes of an input, one byte longer each.
fn grows(protocol: &mut impl Protocol, what: Purpose, input: &[u8]) -> Result<(), TestCaseError> {
    let mut before = None;
    for length in 0..=input.len() {
        let now = protocol.answer(asked(what), &input[..length]).map_err(|error| error.to_string());
        match (&before, &now) {
            // An answer is complete with its last byte.
            (None | Some(Ok(None)), Ok(Some((_, bytes)))) => prop_assert_eq!(*bytes, length),
            (None | Some(Ok(None)), _) => {}
            // A complete or an invalid answer stays so. A line that has no end yet is shown by its beginning.
            (Some(before), now) => prop_assert_eq!(before, now),
        }
        before = Some(now);
    }
    Ok(())
}

proptest! {
    /// However an answer is cut into pieces, it means the same, and no bytes are more than a refusal.
    #[test]
    fn any_bytes_mean_the_same_however_they_come(input in answers()) {
        for what in [Purpose::Get, Purpose::Put(None), Purpose::Put(Some(12)), Purpose::Count] {
            grows(&mut Redis::new(VALUE_BYTES, 1), what, &input)?;
            grows(&mut Memcached::new(VALUE_BYTES, 1), what, &input)?;
            grows(&mut Hashes::new(KEY + 1, Fields::new(10, VALUE_BYTES, 1)), what, &input)?;
        }
    }
}
