use hyper::Request;

use super::super::placeholders::new_placeholder;
use super::super::well_formed::of_this_connection_only;
use super::*;
use portcullis_decision::pattern::RequestPattern;

const REAL: &str = "real-credential-0123";

fn pattern(text: &str) -> RequestPattern {
    RequestPattern::parse(text).unwrap()
}

fn host(form: Form, requests: Option<RequestLimits>) -> BrokeredHost {
    let credential = Credential {
        name: "forge".to_owned(),
        placeholder: new_placeholder().unwrap(),
        form,
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

fn placeholder(host: &BrokeredHost) -> &str {
    &host.credentials[0].placeholder
}

/// Builds a request, with `PLACEHOLDER` and `BASIC` replaced in it.
fn request(host: &BrokeredHost, method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let put = |text: &str| {
        let basic = basic::encode("me", placeholder(host));
        text.replace("PLACEHOLDER", placeholder(host)).replace("BASIC", &basic)
    };
    let mut builder = Request::builder().method(method).uri(put(target));
    for (name, value) in headers {
        builder = builder.header(put(name), put(value));
    }
    builder.body(()).unwrap().into_parts().0
}

/// Judges a request and returns the rule that refuses it, or the name of the credential.
fn judged(
    host: &BrokeredHost,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Result<Option<String>, String> {
    let known =
        host.credentials.iter().map(|one| (one.placeholder.clone(), Some(one.name.clone()))).collect();
    let placeholders = Placeholders::new(known);
    let destination = Destination { host, placeholders: &placeholders };
    let accepted = destination.judge(&request(host, method, target, headers));
    accepted
        .map(|accepted| accepted.credential.map(|used| used.credential.name.clone()))
        .map_err(|refusal| refusal.rule)
}

const FORGE: (&str, &str) = ("host", "forge.test");
const BEARER: (&str, &str) = ("authorization", "Bearer PLACEHOLDER");

#[test]
fn a_placeholder_in_its_place_gets_the_credential() {
    let bearer = host(Form::Bearer, None);
    let used = Ok(Some("forge".to_owned()));
    assert_eq!(judged(&bearer, "GET", "/a?b=c", &[FORGE, BEARER]), used);
    assert_eq!(judged(&bearer, "GET", "/a", &[FORGE, ("authorization", "token PLACEHOLDER")]), used);
    assert_eq!(judged(&bearer, "POST", "/mine/a", &[("host", "FORGE.test:443"), BEARER]), used);
    assert_eq!(judged(&bearer, "GET", "https://forge.test/a", &[FORGE, BEARER]), used);
    let basic = host(Form::Basic { user: None }, None);
    assert_eq!(judged(&basic, "GET", "/a", &[FORGE, ("authorization", "basic BASIC")]), used);
    let header = host(Form::Header("x-key".to_owned()), None);
    assert_eq!(judged(&header, "GET", "/a", &[FORGE, ("X-Key", "PLACEHOLDER")]), used);
    assert_eq!(judged(&header, "DELETE", "/a", &[FORGE]), Ok(None), "without one it goes as it is");
}

#[test]
fn a_placeholder_anywhere_else_is_stopped() {
    let bearer = host(Form::Bearer, None);
    for (target, headers) in [
        ("/PLACEHOLDER", vec![FORGE]),
        ("/a?token=PLACEHOLDER", vec![FORGE]),
        ("/a?token=PLACEHOLDER", vec![FORGE, BEARER]),
        ("/a", vec![FORGE, ("x-key", "PLACEHOLDER")]),
        ("/a", vec![FORGE, BEARER, ("x-key", "PLACEHOLDER")]),
        ("/a", vec![FORGE, ("x-PLACEHOLDER", "a")]),
        ("/a", vec![FORGE, ("cookie", "a=PLACEHOLDER")]),
        ("/a", vec![FORGE, ("authorization", "Basic BASIC")]),
        ("/a", vec![FORGE, ("authorization", "Digest PLACEHOLDER")]),
        ("/a", vec![FORGE, ("authorization", "Bearer PLACEHOLDER, Bearer PLACEHOLDER")]),
        ("/a", vec![FORGE, ("authorization", "Bearer xPLACEHOLDER")]),
        ("/a", vec![FORGE, ("proxy-authorization", "Bearer PLACEHOLDER")]),
        ("/a", vec![FORGE, ("trailer", "PLACEHOLDER")]),
    ] {
        assert_eq!(
            judged(&bearer, "GET", target, &headers),
            Err("host.placeholder".to_owned()),
            "{target} {headers:?}"
        );
    }
}

#[test]
fn requests_that_two_parsers_could_read_differently_are_refused() {
    let bearer = host(Form::Bearer, None);
    for (method, target, headers, rule) in [
        ("CONNECT", "forge.test:443", vec![FORGE], "host.malformed"),
        ("GET", "/a", vec![], "host.malformed"),
        ("GET", "/a", vec![FORGE, FORGE], "host.malformed"),
        ("GET", "/a", vec![FORGE, ("host", "evil.test")], "host.malformed"),
        ("GET", "/a", vec![("host", "evil.test"), BEARER], "host.other-server"),
        ("GET", "/a", vec![("host", "forge.test.evil.test"), BEARER], "host.other-server"),
        ("GET", "/a", vec![("host", "forge.test@evil.test"), BEARER], "host.other-server"),
        ("GET", "/a", vec![("host", "forge.test:8443"), BEARER], "host.other-server"),
        ("GET", "https://evil.test/a", vec![FORGE, BEARER], "host.other-server"),
        ("GET", "https://forge.test@evil.test/a", vec![FORGE, BEARER], "host.other-server"),
        ("GET", "http://forge.test/a", vec![FORGE, BEARER], "host.other-server"),
        ("GET", "/a", vec![FORGE, BEARER, BEARER], "host.malformed"),
        ("GET", "/a", vec![FORGE, BEARER, ("authorization", "Bearer other")], "host.malformed"),
        (
            "POST",
            "/mine/a",
            vec![FORGE, BEARER, ("content-length", "1"), ("content-length", "2")],
            "host.malformed",
        ),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("transfer-encoding", "gzip, chunked")], "host.malformed"),
        (
            "POST",
            "/mine/a",
            vec![FORGE, BEARER, ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
            "host.malformed",
        ),
        ("GET", "/a", vec![FORGE, BEARER, ("upgrade", "websocket")], "host.brokered-upgrade"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("x-http-method-override", "DELETE")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("script_name", "/mine")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("Path-Info", "/other")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("x_http_method", "DELETE")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("x.http.method.override", "DELETE")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("content_type", "text/plain")], "host.malformed"),
        ("POST", "/mine/a?.method=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?%5bmethod=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?+%20_method=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?_method%00x=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?a=1&_method[]=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?_HttpMethod=PATCH", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?method=delete", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?http_method=delete", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?methodOverride=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?[_method]=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a?%u005fmethod=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("x-http-verb", "DELETE")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("x_method", "DELETE")], "host.malformed"),
        ("GET", "/a", vec![FORGE, BEARER, ("x-forwarded-host", "other.test")], "host.malformed"),
        ("POST", "/mine/a?x-method-override=DELETE", vec![FORGE, BEARER], "host.malformed"),
        ("GET", "/a", vec![FORGE, BEARER, ("X-Original-URL", "/other")], "host.malformed"),
        ("POST", "/mine/a", vec![FORGE, BEARER, ("content_length", "9")], "host.malformed"),
        ("GET", "/a", vec![FORGE, BEARER, ("connection", "authorization")], "host.malformed"),
        ("GET", "/a", vec![FORGE, BEARER, ("connection", "close, Host")], "host.malformed"),
        ("GET", "/a", vec![FORGE, ("connection", "close"), ("connection", "x-a")], "host.malformed"),
    ] {
        assert_eq!(
            judged(&bearer, method, target, &headers),
            Err(rule.to_owned()),
            "{method} {target} {headers:?}"
        );
    }
}

#[test]
fn a_credential_is_for_its_purpose_only() {
    let bearer = host(Form::Bearer, None);
    let (purpose, path) = ("host.credential-purpose", "host.ambiguous-path");
    for (method, target, rule) in [
        ("POST", "/other", purpose),
        ("DELETE", "/mine/a", purpose),
        ("POST", "/mine/../other", path),
        ("POST", "/mine/%2e%2e/other", path),
        ("POST", "/mine/..%2fother", path),
        ("POST", "/mine//other", path),
        ("post", "/mine/a", purpose),
    ] {
        let refused = Err(rule.to_owned());
        assert_eq!(judged(&bearer, method, target, &[FORGE, BEARER]), refused, "{method} {target}");
    }
}

fn limits() -> RequestLimits {
    RequestLimits {
        allow: vec![pattern("GET,POST /**")],
        headers: vec!["x-wanted".to_owned()],
        body_max: Some(10),
        own_account_only: true,
    }
}

#[test]
fn limits_of_a_host_hold() {
    let limited = host(Form::Bearer, Some(limits()));
    let wanted = ("x-wanted", "1");
    assert_eq!(judged(&limited, "GET", "/a", &[FORGE, wanted]), Ok(None));
    assert_eq!(
        judged(&limited, "POST", "/mine/a", &[FORGE, wanted, BEARER, ("content-length", "10")]),
        Ok(Some("forge".to_owned()))
    );
    for (method, target, headers, rule) in [
        ("PUT", "/a", vec![FORGE, wanted], "host.request-rule"),
        ("GET", "/a", vec![FORGE], "host.request-rule"),
        ("GET", "/a/../b", vec![FORGE, wanted], "host.ambiguous-path"),
        ("POST", "/mine/a", vec![FORGE, wanted, BEARER, ("content-length", "11")], "host.request-rule"),
        ("POST", "/mine/a", vec![FORGE, wanted], "host.other-account"),
        // The server would not see the header.
        ("GET", "/a", vec![FORGE, wanted, ("connection", "x-wanted")], "host.malformed"),
    ] {
        assert_eq!(judged(&limited, method, target, &headers), Err(rule.to_owned()), "{method} {target}");
    }
}

/// Ways of carrying data to another account at an allowed host.
#[test]
fn other_credentials_do_not_pass() {
    let limited =
        host(Form::Header("x-key".to_owned()), Some(RequestLimits { headers: Vec::new(), ..limits() }));
    let key = "sk-ant-REDACTED";
    let headers = [
        ("authorization", "Bearer other-account"),
        ("authorization", "Basic b3RoZXI6cGFzc3dvcmQ="),
        ("authorization", "token other"),
        ("authorization", "Digest username=other"),
        ("authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE"),
        ("proxy-authorization", "Basic b3RoZXI6cGFzc3dvcmQ="),
        ("cookie", "session=other"),
        ("cookie", "a=b"),
        ("x-api-key", "other"),
        ("api-key", "other"),
        ("apikey", "other"),
        ("private-token", "other"),
        ("job-token", "other"),
        ("deploy-token", "other"),
        ("x-auth-token", "other"),
        ("x-access-token", "other"),
        ("x-amz-security-token", "other"),
        ("x-goog-api-key", "other"),
        ("x-goog-iam-authorization-token", "other"),
        ("x-csrf-token", "other"),
        ("x-secret", "other"),
        ("x-password", "other"),
        ("x-vault-token", "other"),
        ("x-note", key),
        ("x-session", "other"),
        ("x-session-id", "other"),
        ("x-auth", "other"),
        ("x-jwt-assertion", "other"),
        ("x-tableau-auth", "other"),
        ("ticket", "other"),
        ("dpop", "other"),
        ("x-wsse", "other"),
        ("x-jfrog-art-api", "other"),
        ("x-otp-code", "other"),
        ("npm-otp", "other"),
        ("key", "other"),
        ("sudo", "other"),
        ("remote-user", "other"),
        ("x-forwarded-user", "other"),
        ("x-user", "other"),
        ("x-account", "other"),
    ];
    let named = format!("/a?{key}");
    let targets = [
        named.as_str(),
        "/a?sudo=other",
        "/a?key=other",
        "/a?a[key]=other",
        "/a?pwd=other",
        "/a?PHPSESSID=other",
        "/a?SAMLResponse=other",
        "/a;jsessionid=other",
        "/a;b=c;token=other/d",
        "/a?api_key=other",
        "/a?apikey=other",
        "/a?access_token=other",
        "/a?token=other",
        "/a?sig=other",
        "/a?signature=other",
        "/a?X-Amz-Signature=other",
        "/a?X-Amz-Credential=other",
        "/a?X-Goog-Signature=other",
        "/a?auth=other",
        "/a?password=other",
        "/a?client_secret=other",
        "/a?b=c;private_token=other",
        "/a?%6bey=other",
        "/a?jwt=other",
        "/a?appid=other",
        "/a?client_id=other",
    ];
    let mut count = 0;
    for header in headers {
        count += 1;
        let refused = judged(&limited, "GET", "/a", &[FORGE, header]);
        assert_eq!(refused, Err("host.other-account".to_owned()), "{header:?}");
    }
    for target in targets {
        count += 1;
        assert_eq!(
            judged(&limited, "GET", target, &[FORGE]),
            Err("host.other-account".to_owned()),
            "{target}"
        );
    }
    for target in
        ["/a?after[key]=other", "/a?%2563ursor=other", "/a?sort=ghp_0123456789abcdefghijklmnopqrstuvwxyz"]
    {
        count += 1;
        let refused = judged(&limited, "GET", target, &[FORGE]);
        assert_eq!(refused, Err("host.other-account".to_owned()), "{target}");
    }
    assert_eq!(count, 70);
    let own = ("x-key", "PLACEHOLDER");
    assert_eq!(
        judged(&limited, "GET", "/a?page=2&name=b", &[FORGE, own, ("accept", "*/*")]),
        Ok(Some("forge".to_owned()))
    );
    // npm sends these with every request.
    let of_npm = [("npm-session", "1f2e"), ("npm-auth-type", "web"), ("npm-command", "install")];
    let usual: Vec<_> = [FORGE].into_iter().chain(of_npm).collect();
    assert_eq!(judged(&limited, "GET", "/a", &usual), Ok(None));
    // Tags of caches and positions in lists are values that the server itself has made.
    let tag = ("if-none-match", "W/\"1f4-kR9uWqE0b1vXoZ3nT7yHs5LpJ2A\"");
    let token = "kR9uWqE0b1vXoZ3nT7yHs5LpJ2AkR9uWqE0b1vXoZ3nT7y";
    for name in ["cursor", "after", "pageToken", "page%5Bafter%5D", "page[number]"] {
        let target = format!("/a?{name}={token}&limit=3");
        assert_eq!(judged(&limited, "GET", &target, &[FORGE, tag]), Ok(None), "{target}");
    }
}

#[test]
fn the_credential_is_put_where_the_placeholder_stood() {
    let secret = Secret::new(Zeroizing::new(REAL.to_owned())).unwrap();
    for (form, header, name, wanted) in [
        (Form::Bearer, ("authorization", "bearer PLACEHOLDER"), "authorization", format!("Bearer {REAL}")),
        (Form::Bearer, ("authorization", "token PLACEHOLDER"), "authorization", format!("token {REAL}")),
        (
            Form::Basic { user: None },
            ("authorization", "Basic BASIC"),
            "authorization",
            format!("Basic {}", *basic::encode("me", REAL)),
        ),
        (
            Form::Basic { user: Some("you".to_owned()) },
            ("authorization", "Basic BASIC"),
            "authorization",
            format!("Basic {}", *basic::encode("you", REAL)),
        ),
        (Form::Header("x-key".to_owned()), ("x-key", "PLACEHOLDER"), "x-key", REAL.to_owned()),
    ] {
        let host = host(form, None);
        let placeholders = Placeholders::new(vec![(placeholder(&host).to_owned(), None)]);
        let mut request = request(&host, "GET", "/a", &[FORGE, header, ("accept-encoding", "gzip")]);
        let destination = Destination { host: &host, placeholders: &placeholders };
        let used = destination.judge(&request).unwrap().credential.unwrap();
        used.fill(&secret, &mut request.headers).unwrap();
        let filled = request.headers.get(name).unwrap();
        assert_eq!(filled.to_str().unwrap(), wanted);
        assert!(filled.is_sensitive() && !format!("{:?}", request.headers).contains(REAL));
        assert!(!request.headers.values().any(|value| placeholders.found_in(value.as_bytes()).is_some()));
    }
}

#[test]
fn a_placeholder_is_not_passed_on_as_the_user_name() {
    let basic = host(Form::Basic { user: None }, None);
    let both = basic::encode(placeholder(&basic), placeholder(&basic));
    let header = ("authorization", format!("Basic {}", *both));
    let headers = [FORGE, (header.0, header.1.as_str())];
    assert_eq!(judged(&basic, "GET", "/a", &headers), Err("host.placeholder".to_owned()));
}

#[test]
fn a_method_in_a_query_counts_only_where_it_is_one() {
    let bearer = host(Form::Bearer, None);
    for target in ["/a?method=artist.getInfo", "/a?methods=DELETE", "/a?b=_method", "/a?method=get"] {
        assert_eq!(judged(&bearer, "GET", target, &[FORGE]), Ok(None), "{target}");
    }
}

#[test]
fn a_foreign_key_is_not_passed_on_as_the_user_name() {
    let key = format!("ghp_{}", "0aB1cD2eF3".repeat(4).chars().take(36).collect::<String>());
    for (user, name, is_sent) in [(None, "me", true), (None, key.as_str(), false), (Some("me"), &key, true)] {
        let basic = host(Form::Basic { user: user.map(str::to_owned) }, None);
        let sent = format!("Basic {}", *basic::encode(name, placeholder(&basic)));
        let passed = judged(&basic, "GET", "/a", &[FORGE, ("authorization", &sent)]);
        assert_eq!(passed.is_ok(), is_sent, "{user:?} {name}: {passed:?}");
    }
}

#[test]
fn a_user_name_can_be_the_key_of_another_account() {
    let limits = || RequestLimits { headers: Vec::new(), body_max: None, ..limits() };
    let judge = |user: Option<&str>, name: &str, limits| {
        let basic = host(Form::Basic { user: user.map(str::to_owned) }, Some(limits));
        let sent = format!("Basic {}", *basic::encode(name, placeholder(&basic)));
        judged(&basic, "GET", "/mine/a", &[FORGE, ("authorization", &sent)]).map(drop)
    };
    let refused = Err("host.other-account".to_owned());
    for name in ["0123456789abcdef0123456789abcdef", "live_x", "key-1", "someone"] {
        assert_eq!(judge(None, name, limits()), refused, "{name}");
        assert_eq!(judge(Some("me"), name, limits()), Ok(()), "{name}: the declared name is sent");
        let of_all = RequestLimits { own_account_only: false, ..limits() };
        assert_eq!(judge(None, name, of_all), Ok(()), "{name}");
    }
    for name in ["x-access-token", "oauth2", "git", "AWS", ""] {
        assert_eq!(judge(None, name, limits()), Ok(()), "{name}");
    }
}

#[test]
fn headers_of_one_connection_are_not_passed_on() {
    let host = host(Form::Bearer, None);
    let named = ("connection", "keep-alive, x-hop");
    let mut request = request(
        &host,
        "GET",
        "/a",
        &[FORGE, BEARER, named, ("x-hop", "1"), ("te", "trailers"), ("x-end", "2")],
    );
    of_this_connection_only(&mut request.headers);
    let names: Vec<&str> = request.headers.keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["host", "authorization", "x-end"]);
}

#[test]
fn operations_of_graphql_are_found_out_from_the_body() {
    let allow = vec![pattern("GET /**"), pattern("POST /graphql query:* mutation:createIssue")];
    let mut limited = host(Form::Bearer, Some(RequestLimits { allow, ..RequestLimits::default() }));
    let json = ("content-type", "application/json");
    let accepted = |host: &BrokeredHost, target: &str, headers: &[(&str, &str)], body: &str| {
        let placeholders = Placeholders::new(Vec::new());
        let destination = Destination { host, placeholders: &placeholders };
        let accepted =
            destination.judge(&request(host, "POST", target, headers)).map_err(|refusal| refusal.rule)?;
        let operations = accepted.operations.expect("operations");
        operations.judge(body.as_bytes()).map_err(|refusal| refusal.rule)
    };
    let (reads, writes) = (r#"{"query": "{ a }"}"#, r#"{"query": "mutation { deleteIssue { id } }"}"#);
    let refused = |rule: &str| Err(rule.to_owned());
    assert_eq!(accepted(&limited, "/graphql", &[FORGE, json], reads), Ok(()));
    assert_eq!(accepted(&limited, "/graphql", &[FORGE, json], writes), refused("host.request-rule"));
    for (target, headers) in [
        ("/graphql", vec![FORGE]),
        ("/graphql", vec![FORGE, ("content-type", "application/graphql")]),
        ("/graphql", vec![FORGE, ("content-type", "application/json; charset=utf-16")]),
        ("/graphql", vec![FORGE, json, json]),
        ("/graphql", vec![FORGE, json, ("content-encoding", "gzip")]),
        ("/graphql", vec![FORGE, json, ("content-encoding", "identity")]),
        ("/graphql?query=mutation%7Ba%7D", vec![FORGE, json]),
        ("/other", vec![FORGE, json]),
    ] {
        assert_eq!(
            accepted(&limited, target, &headers, reads),
            refused("host.request-rule"),
            "{target} {headers:?}"
        );
    }
    // The credential has a purpose of its own.
    assert_eq!(
        accepted(&limited, "/graphql", &[FORGE, json, BEARER], reads),
        refused("host.credential-purpose")
    );
    limited.credentials[0].purpose = vec![pattern("POST /graphql query:viewer")];
    assert_eq!(
        accepted(&limited, "/graphql", &[FORGE, json, BEARER], reads),
        refused("host.credential-purpose")
    );
    let viewer = r#"{"query": "{ viewer { login } }"}"#;
    assert_eq!(accepted(&limited, "/graphql", &[FORGE, json, BEARER], viewer), Ok(()));
}

#[test]
fn a_second_path_needs_a_rule_for_every_path() {
    let mut bearer = host(Form::Bearer, None);
    let copies = ("x-amz-copy-source", "/other/object");
    let purpose = Err("host.credential-purpose".to_owned());
    assert_eq!(judged(&bearer, "GET", "/a", &[FORGE, BEARER, copies]), purpose);
    assert_eq!(judged(&bearer, "GET", "/a", &[FORGE, copies]), Ok(None), "nothing is limited");
    bearer.credentials[0].purpose = vec![pattern("* /**")];
    assert_eq!(judged(&bearer, "PUT", "/a", &[FORGE, BEARER, copies]), Ok(Some("forge".to_owned())));
    let allow = vec![pattern("* /mine/**"), pattern("GET /**")];
    bearer.requests = Some(RequestLimits { allow, ..RequestLimits::default() });
    for (method, target, headers) in [
        ("MOVE", "/mine/a", vec![FORGE, BEARER, ("destination", "https://forge.test/b")]),
        ("PUT", "/mine/a", vec![FORGE, copies]),
        ("POST", "/mine/uploads/?mount=sha256:0&from=other", vec![FORGE]),
    ] {
        assert_eq!(
            judged(&bearer, method, target, &headers),
            Err("host.request-rule".to_owned()),
            "{target}"
        );
    }
    assert_eq!(
        judged(&bearer, "PUT", "/mine/a", &[FORGE, BEARER]),
        Ok(Some("forge".to_owned())),
        "the control"
    );
}

#[test]
fn operations_are_not_sent_in_another_way() {
    let allow = vec![pattern("GET,PUT /**"), pattern("POST /graphql query:*")];
    let mut bearer =
        host(Form::Bearer, Some(RequestLimits { allow: allow.clone(), ..RequestLimits::default() }));
    bearer.credentials[0].purpose = vec![pattern("* /**")];
    let refused = |rule: &str| Err(rule.to_owned());
    let query = "/graphql?query=mutation%7BdeleteRepository%7D";
    assert_eq!(judged(&bearer, "GET", query, &[FORGE]), refused("host.request-rule"));
    let body = ("content-length", "9");
    assert_eq!(judged(&bearer, "PUT", "/graphql", &[FORGE, body]), refused("host.request-rule"));
    assert_eq!(judged(&bearer, "GET", "/graphql", &[FORGE]), Ok(None), "the page");
    assert_eq!(judged(&bearer, "GET", "/other?query=a", &[FORGE]), Ok(None), "the control");
    bearer.requests = None;
    bearer.credentials[0].purpose = allow;
    assert_eq!(judged(&bearer, "GET", query, &[FORGE, BEARER]), refused("host.credential-purpose"));
}
