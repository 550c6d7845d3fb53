use hyper::Request;
use hyper::header::AUTHORIZATION;
use portcullis_decision::pattern::RequestPattern;
use portcullis_decision::request::Endpoint;

use super::super::host::{BrokeredHost, Credential, Form, RequestLimits};
use super::super::placeholders::{Placeholders, new_placeholder};
use super::super::push::PushRule;
use super::super::request::Destination;
use super::*;

fn host(requests: Option<RequestLimits>) -> BrokeredHost {
    let pattern = |text: &str| RequestPattern::parse(text).unwrap();
    let credential = Credential {
        name: "forge".to_owned(),
        placeholder: new_placeholder().unwrap(),
        form: Form::Bearer,
        purpose: vec![pattern("GET /**"), pattern("POST /mine/**")],
    };
    BrokeredHost {
        host: Endpoint::Domain("forge.test".to_owned()),
        port: 443,
        credentials: vec![credential],
        requests,
        pushes: Vec::new(),
    }
}

/// Makes a request of HTTP/2 as the library hands it over, with `PLACEHOLDER` replaced in it.
fn request(host: &BrokeredHost, method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let put = |text: &str| text.replace("PLACEHOLDER", &host.credentials[0].placeholder);
    let mut builder = Request::builder().version(Version::HTTP_2).method(method).uri(put(uri));
    for (name, value) in headers {
        builder = builder.header(*name, put(value));
    }
    builder.body(()).unwrap().into_parts().0
}

/// Judges a request and returns the rule that refuses it, or the name of the credential.
fn judged(
    host: &BrokeredHost,
    (method, uri): (&str, &str),
    headers: &[(&str, &str)],
    follows: Follows,
) -> Result<Option<String>, String> {
    let known =
        host.credentials.iter().map(|one| (one.placeholder.clone(), Some(one.name.clone()))).collect();
    let placeholders = Placeholders::new(known);
    let mut parts = request(host, method, uri, headers);
    in_first_version(&mut parts, follows).map_err(|refusal| refusal.rule)?;
    let accepted = Destination { host, placeholders: &placeholders }.judge(&parts);
    accepted
        .map(|accepted| accepted.credential.map(|used| used.credential.name.clone()))
        .map_err(|refusal| refusal.rule)
}

const URI: &str = "https://forge.test/mine/a";
const BEARER: (&str, &str) = ("authorization", "Bearer PLACEHOLDER");

#[test]
fn a_request_gets_the_form_of_the_first_version() {
    let headers = [("cookie", "a=1"), ("x-a", "1"), ("cookie", "b=2"), ("cookie", "c=3"), ("te", "trailers")];
    let mut parts = request(&host(None), "POST", URI, &headers);
    in_first_version(&mut parts, Follows::Content).unwrap();
    assert_eq!(parts.version, Version::HTTP_11);
    assert_eq!(parts.headers[HOST], "forge.test");
    assert_eq!(parts.headers[TRANSFER_ENCODING], "chunked");
    let cookies: Vec<_> = parts.headers.get_all(COOKIE).iter().collect();
    assert_eq!(cookies, ["a=1; b=2; c=3"]);

    let mut parts = request(&host(None), "POST", URI, &[("content-length", "3"), ("host", "forge.test")]);
    in_first_version(&mut parts, Follows::Content).unwrap();
    assert!(!parts.headers.contains_key(TRANSFER_ENCODING));
    assert_eq!(parts.headers.get_all(HOST).iter().count(), 1);

    let mut parts = request(&host(None), "GET", URI, &[]);
    in_first_version(&mut parts, Follows::Nothing).unwrap();
    assert!(!parts.headers.contains_key(TRANSFER_ENCODING) && !parts.headers.contains_key(AUTHORIZATION));
}

#[test]
fn a_request_of_the_first_version_is_left_as_it_is() {
    let headers = [("connection", "close"), ("cookie", "a=1"), ("cookie", "b=2")];
    let mut parts = request(&host(None), "GET", "/a", &headers);
    parts.version = Version::HTTP_10;
    in_first_version(&mut parts, Follows::Content).unwrap();
    assert_eq!(parts.version, Version::HTTP_10);
    assert_eq!(parts.headers.len(), 3);
}

#[test]
fn both_versions_are_judged_alike() {
    let free = host(None);
    let used = Ok(Some("forge".to_owned()));
    let check = |line: (&str, &str), headers: &[(&str, &str)], wanted: Result<Option<String>, &str>| {
        let refused = judged(&free, line, headers, Follows::Nothing);
        assert_eq!(refused, wanted.map_err(str::to_owned), "{line:?} {headers:?}");
    };
    check(("GET", URI), &[BEARER], used.clone());
    check(("GET", "https://FORGE.test:443/a"), &[BEARER], used.clone());
    check(("GET", URI), &[BEARER, ("host", "forge.test")], used.clone());
    check(("GET", URI), &[("te", "trailers")], Ok(None));
    for (line, headers, rule) in [
        (("GET", "/a"), vec![], "host.malformed"),
        (("GET", "/a"), vec![("host", "forge.test")], "host.malformed"),
        (("OPTIONS", "*"), vec![], "host.malformed"),
        (("GET", "https://evil.test/a"), vec![], "host.other-server"),
        (("GET", "https://forge.test.evil.test/a"), vec![], "host.other-server"),
        (("GET", "https://me@forge.test/a"), vec![], "host.other-server"),
        (("GET", "https://forge.test:8443/a"), vec![], "host.other-server"),
        (("GET", "http://forge.test/a"), vec![], "host.other-server"),
        (("GET", URI), vec![("host", "evil.test")], "host.other-server"),
        (("GET", URI), vec![("host", "forge.test"), ("host", "forge.test")], "host.malformed"),
        (("GET", "https://evil.test/a"), vec![("host", "forge.test")], "host.other-server"),
        (("CONNECT", "forge.test:443"), vec![], "host.malformed"),
        (("CONNECT", URI), vec![], "host.malformed"),
        (("GET", URI), vec![("connection", "close")], "host.malformed"),
        (("GET", URI), vec![("connection", "authorization"), BEARER], "host.malformed"),
        (("GET", URI), vec![("keep-alive", "timeout=5")], "host.malformed"),
        (("GET", URI), vec![("proxy-connection", "close")], "host.malformed"),
        (("POST", URI), vec![("transfer-encoding", "chunked")], "host.malformed"),
        (("GET", URI), vec![("upgrade", "websocket")], "host.malformed"),
        (("GET", URI), vec![("te", "gzip")], "host.malformed"),
        (("GET", URI), vec![("te", "trailers"), ("te", "gzip")], "host.malformed"),
        (("GET", URI), vec![("x-a", " a")], "host.malformed"),
        (("GET", URI), vec![("x-a", "a\t")], "host.malformed"),
        (("POST", URI), vec![("content-length", "1"), ("content-length", "1")], "host.malformed"),
        (("GET", URI), vec![BEARER, BEARER], "host.malformed"),
        (("POST", URI), vec![BEARER, ("x-http-method-override", "DELETE")], "host.malformed"),
        (("POST", URI), vec![("content_length", "9")], "host.malformed"),
        (("GET", "https://forge.test/a?_method=put"), vec![], "host.malformed"),
        (("POST", "https://forge.test/theirs"), vec![BEARER], "host.credential-purpose"),
        (("POST", "https://forge.test/mine/../theirs"), vec![BEARER], "host.ambiguous-path"),
        (("GET", "https://forge.test/PLACEHOLDER"), vec![], "host.placeholder"),
        (("GET", URI), vec![("cookie", "a=1"), ("cookie", "b=PLACEHOLDER")], "host.placeholder"),
        (("GET", URI), vec![("authorization", "Basic PLACEHOLDER")], "host.placeholder"),
        (("GET", URI), vec![("x-a", "PLACEHOLDER")], "host.placeholder"),
    ] {
        check(line, &headers, Err(rule));
    }
}

/// HTTP/2 has bodies without a header that says so.
#[test]
fn a_body_that_no_header_announces_counts_as_one() {
    let limited = host(Some(RequestLimits {
        allow: vec![RequestPattern::parse("GET,POST /**").unwrap()],
        own_account_only: true,
        ..RequestLimits::default()
    }));
    let line = ("GET", URI);
    assert_eq!(judged(&limited, line, &[], Follows::Nothing), Ok(None));
    assert_eq!(judged(&limited, line, &[], Follows::Content), Err("host.other-account".to_owned()));
    assert_eq!(judged(&limited, line, &[BEARER], Follows::Content), Ok(Some("forge".to_owned())));
    let cookie = [("cookie", "a=1")];
    assert_eq!(judged(&limited, line, &cookie, Follows::Nothing), Err("host.other-account".to_owned()));
}

#[test]
fn a_push_is_one_in_both_versions() {
    let mut fenced = host(None);
    fenced.pushes = vec![PushRule {
        requests: vec![RequestPattern::parse("POST /mine/a.git/git-receive-pack").unwrap()],
        refs: Vec::new(),
        force: false,
        delete: false,
        secrets: false,
        bytes_max: 1,
    }];
    let push = "https://forge.test/mine/b.git/git-receive-pack";
    assert_eq!(judged(&fenced, ("POST", push), &[], Follows::Content), Err("host.push-rule".to_owned()));
    let mkcol = ("MKCOL", "https://forge.test/mine/a.git/x");
    assert_eq!(judged(&fenced, mkcol, &[], Follows::Nothing), Err("host.push-rule".to_owned()));
    assert_eq!(judged(&fenced, ("GET", push), &[], Follows::Nothing), Ok(None));
}
