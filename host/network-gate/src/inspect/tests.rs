use portcullis_decision::request::HttpHead;

use super::client_hello::tests::hello;
use super::server_hello::tests::{accepting, retrying};
use super::*;

fn inspector(host: &str) -> Inspector {
    watcher(host, Stages::default())
}

/// Returns an inspector with stages that need a decision.
fn watcher(host: &str, stages: Stages) -> Inspector {
    Inspector::new(&HostName::parse(host).unwrap(), 80, Checks::default(), stages)
}

/// Returns the forwarded bytes when `bytes` arrive in pieces of `step`.
fn forwarded(host: &str, bytes: &[u8], step: usize) -> Result<Vec<u8>, Stop> {
    let mut inspector = inspector(host);
    let mut all = Vec::new();
    for piece in bytes.chunks(step) {
        all.extend(inspector.push(piece)?);
    }
    Ok(all)
}

fn is_forbidden(result: &Result<Vec<u8>, Stop>) -> bool {
    matches!(result, Err(Stop::Forbidden(_)))
}

#[test]
fn honest_streams_pass_whole_however_they_come() {
    let requests = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\nPOST /x HTTP/1.1\r\nHost: A.test:80\r\nContent-Length: 5\r\n\r\n\
                    helloPUT / HTTP/1.1\r\nhost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
                    GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for bytes in [
        requests.as_bytes(),
        b"EHLO me\r\nMAIL FROM:<a>\r\n",
        b"\0\0\0\x08\x04\xd2\x16/psql",
        b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9\r\n/ HTTP/1.\r\n",
        b"\r\n \r\n{ x }\n",
        b"\x0f\n!\n",
        b"STOMP\nhost:/\n\n\0",
        b"STOMP\nhost:a.test\n\n\0",
    ] {
        for step in [1, 2, 7, bytes.len()] {
            assert_eq!(forwarded("a.test", bytes, step).as_deref(), Ok(bytes), "{step}");
        }
    }
}

#[test]
fn another_name_is_forbidden_and_nothing_of_it_is_forwarded() {
    for bytes in [
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test.evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "WHATEVER / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ] {
        for step in [1, bytes.len()] {
            let mut inspector = inspector("a.test");
            let pushed: Vec<_> = bytes.as_bytes().chunks(step).map(|piece| inspector.push(piece)).collect();
            assert!(pushed.iter().any(is_forbidden), "{bytes}");
            assert!(pushed.iter().flatten().all(Vec::is_empty), "{bytes}");
        }
    }
    assert!(is_forbidden(&forwarded("a.test", &hello("evil.test"), 1)));
    assert!(is_forbidden(&forwarded("a.test", &hello("a.test.evil.test"), 9999)));
    assert!(is_forbidden(&forwarded("a.test", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 3)));
}

#[test]
fn what_some_servers_take_for_a_request_never_gets_whole() {
    for bytes in [
        "PROPFIND /\r\nHost: evil.test\r\n\r\n",
        "\r\nMKCOL /\r\nHost: evil.test\r\n\r\n",
        "!X / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "1 /\nHost: evil.test\n\n",
        "\0GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GE(T / HTTP/1.1\nHost: evil.test\n\n",
        "A /\0 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "\u{1}\r/ HTTP/1.1\nHost: evil.test\n\n",
        "\u{1} / HTTP/1.1\rHost: evil.test\r\r",
        "PUBLISH /x y\r\nHost: evil.test\r\n\r\n",
        "MKCOL /x HTTP-1.1\r\nHost: evil.test\r\n\r\n",
        "(X /x y\r\nHost: evil.test\r\n\r\n",
        "(X /x HTTP/+1.1\r\nHost: evil.test\r\n\r\n",
        "{\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "X\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "\0\0\0\0 / z\r\nHost: evil.test\r\n\r\n",
    ] {
        for step in [1, 3, bytes.len()] {
            let mut inspector = inspector("a.test");
            let pushed: Vec<_> = bytes.as_bytes().chunks(step).map(|piece| inspector.push(piece)).collect();
            assert!(pushed.iter().any(Result::is_err), "{bytes:?}");
            let before: Vec<u8> = pushed.into_iter().map_while(Result::ok).flatten().collect();
            let text = String::from_utf8_lossy(&before);
            assert!(!text.trim_start().contains("\r\n") && !text.contains("evil"), "{bytes:?}: {text:?}");
        }
    }
}

#[test]
fn a_line_that_names_another_server_stops_whatever_it_is_in() {
    let long = format!("(X a:{} y\r\nhOST\t: evil.test\r\n\r\n", "b".repeat(70_000));
    for bytes in [
        "EHLO a:b y\r\nHost: evil.test\r\n\r\n",
        "EHLO x\nhost:evil.test\n\n",
        "EHLO x\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
        "EHLO x\r\nHost: a.test:81\r\n\r\n",
        "EHLO x\r\nHost: a.test, evil.test\r\n\r\n",
        "EHLO x\r\nHost:\r\n evil.test\r\n\r\n",
        &long,
    ] {
        for step in [1, bytes.len()] {
            assert!(is_forbidden(&forwarded("a.test", bytes.as_bytes(), step)), "{bytes:.50}");
        }
    }
}

#[test]
fn once_the_server_has_answered_otherwise_lines_are_anything() {
    let mail = b"DATA\r\nHost: evil.test\r\n";
    let mut greeted = inspector("a.test");
    greeted.answered(b"220 ready\r\n").unwrap();
    assert_eq!(greeted.push(mail).unwrap(), mail);
    assert!(greeted.is_free());

    let mut later = inspector("a.test");
    later.push(b"*1\r\n").unwrap();
    assert!(!later.is_free());
    later.answered(b"+OK\r\n").unwrap();
    assert_eq!(later.push(mail).unwrap(), mail);

    for answer in ["HTTP/1.1 404 Not Found\r\n", "rtsp/1.0 200 OK\r\n"] {
        let mut taken = inspector("a.test");
        taken.push(b"EHLO x y\r\n\r\n").unwrap();
        assert!(!taken.answered(&answer.as_bytes()[..2]).unwrap());
        assert!(matches!(taken.answered(&answer.as_bytes()[2..]), Err(Stop::Malformed(_))), "{answer}");
    }
}

#[test]
fn a_later_request_is_looked_at_as_well() {
    let mut inspector = inspector("a.test");
    let first = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    assert_eq!(inspector.push(first).unwrap(), first);
    assert!(is_forbidden(&inspector.push(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n")));
}

#[test]
fn a_request_hidden_in_another_is_malformed() {
    for bytes in [
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
        "GET / HTTP/1.1\nHost: a.test\n\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\n z\r\n\r\n",
        "GET /\r\n\r\n",
        "GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET\x0c/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "\x0bGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "PROPFIND /\x01 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "SOURCE / ICE/1.0\r\nHost: evil.test\r\n\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 80\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ] {
        let result = forwarded("a.test", bytes.as_bytes(), bytes.len());
        assert!(matches!(result, Err(Stop::Malformed(_))), "{bytes:?}: {result:?}");
    }
}

#[test]
fn hidden_and_missing_names_follow_the_rule() {
    // A client hello without any extension.
    let bare = [&[22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    assert!(is_forbidden(&forwarded("a.test", &bare, 999)));
    let checks = Checks { hidden_names: true, ..Checks::default() };
    let mut inspector = Inspector::new(&HostName::parse("a.test").unwrap(), 443, checks, Stages::default());
    assert_eq!(inspector.push(&bare).unwrap(), bare);
    assert!(inspector.answered(&accepting()).unwrap());
    assert!(inspector.is_free());
}

/// Sends a client hello for the allowed name, then `answer` from the server; returns what is forwarded of `rest`.
fn greeted(answer: &[u8], rest: &[u8], step: usize) -> Result<Vec<u8>, Stop> {
    let mut inspector = inspector("a.test");
    let greeting = hello("a.test");
    assert_eq!(inspector.push(&[greeting.as_slice(), &rest[..2]].concat()).unwrap(), greeting);
    assert!(inspector.awaits_answer());
    for piece in answer.chunks(step) {
        assert_eq!(inspector.push(&[]).unwrap(), b"", "nothing before the server has answered");
        inspector.answered(piece)?;
    }
    let mut all = Vec::new();
    for piece in rest[2..].chunks(step) {
        all.extend(inspector.push(piece)?);
    }
    Ok(all)
}

#[test]
fn after_a_hello_the_server_decides_whether_another_follows() {
    let finish = b"\x14\x03\x03\0\x01\x01\x16\x03\x03\0\x03\x01\xff\xff".to_vec();
    let early = b"\x14\x03\x03\0\x01\x01\x17\x03\x03\0\x02xx".to_vec();
    let warning = b"\x15\x03\x01\0\x02\x01\x70".to_vec();
    let another = |name: &str| [early.clone(), hello(name)].concat();
    for step in [1, 3, 999] {
        assert_eq!(greeted(&accepting(), &finish, step).as_ref(), Ok(&finish), "{step}");
        for answer in [retrying(), [warning.clone(), retrying()].concat()] {
            assert_eq!(greeted(&answer, &another("a.test"), step), Ok(another("a.test")));
            assert!(is_forbidden(&greeted(&answer, &another("evil.test"), step)));
            assert!(is_forbidden(&greeted(&answer, &hello("evil.test"), step)));
            assert!(matches!(greeted(&answer, b"GET / HTTP/1.1\r\n\r\n", step), Err(Stop::Malformed(_))));
        }
        for answer in [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), &warning, &retrying()[..30]] {
            assert_eq!(greeted(answer, &another("evil.test"), step).as_deref(), Ok(b"".as_slice()));
        }
    }
}

#[test]
fn a_server_that_ends_answers_nothing_any_more() {
    let mut waiting = inspector("a.test");
    waiting.push(&hello("a.test")).unwrap();
    assert!(waiting.server_has_ended());
    assert!(!waiting.answered(&accepting()).unwrap());
    assert!(!inspector("a.test").server_has_ended());
}

#[test]
fn a_record_before_the_hello_is_malformed() {
    let early = [b"\x15\x03\x01\0\x02\x01\x5a".to_vec(), hello("evil.test")].concat();
    for step in [1, 7, 999] {
        assert!(matches!(forwarded("a.test", &early, step), Err(Stop::Malformed(_))));
    }
    assert!(is_forbidden(&forwarded("a.test", b"\x80\x2e\x01\x03\x01", 1)), "SSL 2 names nobody");
}

#[test]
fn names_are_free_where_an_address_was_allowed() {
    let request = |line: &str| format!("{line} HTTP/1.1\r\nHost: whatever.test\r\n\r\n");
    for (host, line) in [
        ("192.0.2.1", "GET /http://other.test/"),
        ("192.0.2.1", "GET http://192.0.2.1/x"),
        ("192.0.2.1", "CONNECT 192.0.2.1:80"),
        ("2001:db8::1", "GET http://[2001:DB8::1]:80/x"),
        ("127.0.0.1", "OPTIONS *"),
        ("127.0.0.1", "GET http://localhost/x"),
        ("127.0.0.1", "GET http://app.localhost:80/x"),
        ("127.0.0.1", "CONNECT [::1]:80"),
        ("::1", "GET http://127.0.0.1/x"),
    ] {
        for step in [1, 999] {
            let bytes = request(line);
            assert_eq!(forwarded(host, bytes.as_bytes(), step).as_deref(), Ok(bytes.as_bytes()), "{line}");
        }
    }
    for free in [hello("evil.test"), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()] {
        let mut inspector = inspector("192.0.2.1");
        assert_eq!(inspector.push(&free).unwrap(), free);
        assert!(inspector.is_free());
    }
    let mut other = inspector("192.0.2.1");
    assert_eq!(other.push(b"EHLO me\r\nHost: evil.test\r\n").unwrap(), b"EHLO me\r\nHost: evil.test\r\n");
    other.answered(b"220 ready\r\n").unwrap();
    assert!(other.is_free());
    let unchecked = Checks { names_match: false, ..Checks::default() };
    let address = HostName::parse("192.0.2.1").unwrap();
    assert!(Inspector::new(&address, 80, unchecked, Stages::default()).is_free());
}

#[test]
fn no_connection_to_an_address_names_a_host_whose_requests_are_limited() {
    let limited = vec![HostName::parse("evil.test").unwrap()];
    let request = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_vec();
    for checks in [Checks::default(), Checks { names_match: false, ..Checks::default() }] {
        let at = |host: &str| Inspector::new(&HostName::parse(host).unwrap(), 80, checks, Stages::default());
        for bytes in [hello("evil.test"), hello("EVIL.test"), request.clone()] {
            let mut free = at("192.0.2.1").without(Vec::new());
            assert_eq!(free.push(&bytes).unwrap(), bytes, "the control");
            let stopped = at("192.0.2.1").without(limited.clone()).push(&bytes);
            assert!(matches!(stopped, Err(Stop::Forbidden(_))), "{stopped:?}");
        }
        for bytes in [hello("other.test"), b"EHLO me\r\n".to_vec()] {
            assert_eq!(at("192.0.2.1").without(limited.clone()).push(&bytes).unwrap(), bytes);
        }
        assert!(at("evil.test").without(limited.clone()).push(&hello("evil.test")).is_ok(), "itself");
    }
}

#[test]
fn no_proxy_at_an_allowed_address_is_asked_for_another_server() {
    for (host, line) in [
        ("192.0.2.1", "GET http://other.test/"),
        ("192.0.2.1", "GET HTTPS://192.0.2.1/"),
        ("192.0.2.1", "GET http://192.0.2.1:8080/"),
        ("192.0.2.1", "GET http://192.0.2.2/"),
        ("192.0.2.1", "GET http://localhost/"),
        ("192.0.2.1", "CONNECT other.test:80"),
        ("192.0.2.1", "CONNECT 192.0.2.1:443"),
        ("192.0.2.1", "CONNECT 192.0.2.1"),
        ("127.0.0.1", "GET http://localhost:81/"),
        ("127.0.0.1", "GET http://localhost.test/"),
        ("127.0.0.1", "CONNECT notlocalhost:80"),
    ] {
        let honest = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let asked = format!("{line} HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n");
        for before in ["", "\r\n", &honest] {
            let result = forwarded(host, [before, &asked].concat().as_bytes(), 7);
            assert!(is_forbidden(&result), "{line}: {result:?}");
        }
    }
    for odd in [
        "GET http://other.test/ HTTP/1.1\nHost: 192.0.2.1\n\n",
        "GET\thttp://other.test/ HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
        "connect other.test:80 HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
        "GET ftp://other.test/ HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n",
        "(X http://other.test/ HTTP/1.1\r\n\r\n",
        "PROXY TCP4 1.2.3.4 1.2.3.4 1 80\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        let result = forwarded("192.0.2.1", odd.as_bytes(), 1);
        assert!(matches!(result, Err(Stop::Malformed(_))), "{odd}: {result:?}");
    }
}

#[test]
fn after_an_offer_the_server_decides_how_it_goes_on() {
    let offer = |protocol: &str| {
        format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n")
            .into_bytes()
    };
    let evil = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";

    let mut accepted = inspector("a.test");
    assert_eq!(accepted.push(&offer("websocket")).unwrap(), offer("websocket"));
    assert!(accepted.awaits_answer());
    assert_eq!(accepted.push(b"\x81frame").unwrap(), b"");
    assert!(!accepted.answered(b"HTTP/1.1 ").unwrap());
    assert!(accepted.answered(b"101 Switching").unwrap());
    assert_eq!(accepted.push(b"").unwrap(), b"\x81frame");

    let mut declined = inspector("a.test");
    declined.push(&offer("websocket")).unwrap();
    assert!(declined.answered(b"HTTP/1.1 200 OK\r\n").unwrap());
    assert!(is_forbidden(&declined.push(evil)));

    let mut hiding = inspector("a.test");
    hiding.push(&offer("h2c")).unwrap();
    assert!(matches!(hiding.answered(b"HTTP/1.1 101 Switching"), Err(Stop::Forbidden(_))));

    let mut free = inspector("192.0.2.1");
    free.push(&offer("h2c")).unwrap();
    assert!(free.answered(b"HTTP/1.1 101 Switching").unwrap() && free.is_free());

    let mut late = inspector("a.test");
    late.push(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    assert!(matches!(late.push(&offer("websocket")), Err(Stop::Malformed(_))));
}

proptest::proptest! {
    #[test]
    fn nothing_makes_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), step in 1_usize..20) {
        drop(forwarded("a.test", &bytes, step));
    }

    /// Models servers that end lines at CR or LF, and require neither a method nor a version.
    #[test]
    fn no_lenient_server_reads_another_name(
        text in "([A-Z({\\x00\n ]{0,3}[ \t\n]){0,2}(/|\\*|b://c|x)[ \t]?(HTTP/|H|y)?\\+?(1.1)?(\r\n|\n|\r)[Hh]ost[ \t]?:[ ]?b(\r\n|\n|\r){1,2}",
        step in 1_usize..9,
    ) {
        if let Ok(bytes) = forwarded("a.test", text.as_bytes(), step) {
            proptest::prop_assert!(!String::from_utf8_lossy(&bytes).ends_with(['\r', '\n']), "{text:?}");
        }
    }

    #[test]
    fn pieces_make_no_difference(cut in 0_usize..80, text in "(GET|POST) (/|http://(a|b).test/) HTTP/1.[01]\r\nHost: [ab].test(\r\nContent-Length: [0-3])?\r\n\r\n.{0,4}") {
        let whole = forwarded("a.test", text.as_bytes(), text.len());
        let mut inspector = inspector("a.test");
        let (first, second) = text.as_bytes().split_at(cut.min(text.len()));
        let pieces = inspector.push(first).and_then(|mut all| {
            all.extend(inspector.push(second)?);
            Ok(all)
        });
        proptest::prop_assert_eq!(whole.is_ok(), pieces.is_ok());
        if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
            proptest::prop_assert_eq!(whole, pieces);
        }
    }
}

fn http(method: &str, url: &str, names: &[&str]) -> Stage {
    let header_names = names.iter().map(|&name| name.to_owned()).collect();
    Stage::Http(HttpHead { method: method.to_owned(), url: url.to_owned(), header_names })
}

#[test]
fn what_somebody_wants_to_decide_about_waits_for_that() {
    let stages = Stages { http: true, client_hello: true, resolved: false };
    let first = b"GET /a HTTP/1.1\r\nHost: A.test\r\nX-Y: z\r\n\r\n".as_slice();
    let second =
        b"POST http://a.test:80/b?c HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi".as_slice();
    for step in [1, 9, 9999] {
        let mut watcher = watcher("a.test", stages);
        let all = [first, second].concat();
        let pushed: Vec<Vec<u8>> = all.chunks(step).map(|piece| watcher.push(piece).unwrap()).collect();
        assert!(pushed.iter().all(Vec::is_empty), "nothing goes on before it is decided");
        assert_eq!(watcher.seen(), Some(http("GET", "http://a.test/a", &["host", "x-y"])));
        assert_eq!(watcher.push(&[]).unwrap(), b"");
        watcher.clear();
        assert_eq!(watcher.push(&[]).unwrap(), first);
        assert_eq!(watcher.seen(), Some(http("POST", "http://a.test:80/b?c", &["host", "content-length"])));
        watcher.clear();
        assert_eq!(watcher.push(&[]).unwrap(), second);
        assert_eq!(watcher.seen(), None);
    }
    let mut tls = watcher("a.test", stages);
    let hello = hello("a.test");
    assert_eq!(tls.push(&hello).unwrap(), b"");
    assert_eq!(tls.seen(), Some(Stage::ClientHello("a.test".to_owned())));
    tls.clear();
    assert_eq!(tls.push(b"more").unwrap(), hello);
    assert!(tls.answered(&accepting()).unwrap());
    assert_eq!(tls.push(&[]).unwrap(), b"more");
    assert!(tls.is_free());
    // The second hello needs a decision as well.
    let mut again = watcher("a.test", stages);
    again.push(&hello).unwrap();
    again.clear();
    again.push(&[]).unwrap();
    again.answered(&retrying()).unwrap();
    assert_eq!(again.push(&hello).unwrap(), b"");
    assert!(again.seen().is_some());
}

/// A name that is not compared is still shown to the policies.
#[test]
fn a_connection_to_an_address_is_looked_at_for_those_who_want_to() {
    let stages = Stages { http: true, ..Stages::default() };
    let mut requests = watcher("192.0.2.1", stages);
    let request = b"GET / HTTP/1.1\r\nHost: whatever.test\r\n\r\n";
    assert_eq!(requests.push(request).unwrap(), b"");
    assert_eq!(requests.seen(), Some(http("GET", "http://whatever.test/", &["host"])));
    // This stage needs no decision.
    let mut tls = watcher("192.0.2.1", stages);
    let hello = hello("whatever.test");
    assert_eq!(tls.push(&hello).unwrap(), hello);
}
