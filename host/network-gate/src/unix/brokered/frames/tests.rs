use super::*;

const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

fn frame(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], content].concat()
}

fn greeted(now: Instant) -> Frames {
    let mut frames = Frames::new(now, Arc::default());
    frames.push(GREETING, now).unwrap();
    frames.push(&frame(SETTINGS, 0, &[]), now).unwrap();
    frames
}

/// Returns how many of these frames pass at once.
fn passing(one: &[u8]) -> usize {
    let now = Instant::now();
    let mut frames = greeted(now);
    (0..1_000_000).take_while(|_| frames.push(one, now).is_ok()).count()
}

#[test]
fn frames_that_carry_nothing_are_counted() {
    let bound = usize::try_from(EMPTY.0).unwrap() - 1;
    for (kind, flags, content) in [
        (SETTINGS, 0, &[][..]),
        (SETTINGS, 1, &[]),
        (PING, 0, &[0; 8]),
        (PING, 1, &[0; 8]),
        (PRIORITY, 0, &[0; 5]),
        (DATA, 0, &[]),
        (DATA, 8, &[]),
        (CONTINUATION, 0, &[]),
        (CONTINUATION, 0, &[0x82; 10]),
        (7, 0, &[0; 8]),
        (5, 4, &[0; 8]),
        (0xab, 0, &[0; 100]),
    ] {
        assert_eq!(passing(&frame(kind, flags, content)), bound, "{kind} {flags}");
    }
    assert_eq!(passing(&frame(RESET, 0, &[0; 4])), usize::try_from(RESETS.0).unwrap());
}

#[test]
fn frames_of_requests_are_not() {
    for (kind, flags, content) in
        [(HEADERS, END_HEADERS, &[0x82][..]), (DATA, END_STREAM, &[]), (WINDOW_UPDATE, 0, &[0, 0, 1, 0])]
    {
        assert_eq!(passing(&frame(kind, flags, content)), 1_000_000, "{kind} {flags}");
    }
}

#[test]
fn pieces_of_bodies_may_come_while_they_are_read() {
    let now = Instant::now();
    let unread = Arc::new(Unread::default());
    let mut frames = Frames::new(now, Arc::clone(&unread));
    frames.push(GREETING, now).unwrap();
    for one in [&b"x"[..], b"content"] {
        for _ in 0..100_000 {
            frames.push(&frame(DATA, 0, one), now).unwrap();
            unread.read();
        }
    }
    let count = passing(&frame(DATA, 0, b"x"));
    assert!((1000..20_000).contains(&count), "{count}");
}

#[test]
fn with_time_more_may_come() {
    let now = Instant::now();
    let mut allowance = Allowance::new(RESETS, now);
    let mut takes = |after: Duration| (0..1_000_000).take_while(|_| allowance.take(now + after)).count();
    let (most, each_second) = (usize::try_from(RESETS.0).unwrap(), usize::try_from(RESETS.1).unwrap());
    assert_eq!(takes(Duration::ZERO), most);
    assert_eq!(takes(Duration::from_millis(900)), 0);
    assert_eq!(takes(Duration::from_secs(2)), 2 * each_second);
    assert_eq!(takes(Duration::from_secs(1_000_000_000)), most);
}

#[test]
fn frames_are_found_however_the_bytes_are_cut() {
    let now = Instant::now();
    let pings = frame(PING, 0, &[0; 8]).repeat(usize::try_from(EMPTY.0).unwrap());
    let stream = [GREETING, &frame(DATA, 0, &[7; 300]), &pings].concat();
    for size in [1, 2, 3, 7, 8, 9, 10, 24, 25, 1000, stream.len()] {
        let mut frames = Frames::new(now, Arc::default());
        stream.chunks(size).for_each(|piece| frames.push(piece, now).unwrap());
        assert!(frames.push(&frame(PING, 0, &[0; 8]), now).is_err(), "pieces of {size}");
    }
}

#[test]
fn a_head_is_noticed_from_its_first_byte_to_its_last() {
    let now = Instant::now();
    let mut frames = Frames::new(now, Arc::default());
    assert!(frames.head_until().is_some(), "a client that says nothing");
    frames.push(&GREETING[..23], now).unwrap();
    assert!(frames.head_until().is_some());
    frames.push(&GREETING[23..], now).unwrap();
    frames.push(&frame(SETTINGS, 0, &[]), now).unwrap();
    assert!(frames.head_until().is_none());
    let (begun, more) = (frame(HEADERS, 0, &[0x82; 20]), frame(CONTINUATION, 0, &[0x82; 20]));
    let last = frame(CONTINUATION, END_HEADERS, &[0x82; 20]);
    for (bytes, is_in_head) in [
        (&begun[..10], true),
        (&begun[10..], true),
        (&more, true),
        (&last[..5], true),
        (&last[5..28], true),
        (&last[28..], false),
    ] {
        frames.push(bytes, now).unwrap();
        assert_eq!(frames.head_until().is_some(), is_in_head, "{bytes:?}");
    }
    frames.push(&frame(DATA, 0, &[0; 100])[..50], now).unwrap();
    assert!(frames.head_until().is_none(), "a slow upload");
}
