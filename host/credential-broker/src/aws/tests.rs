use std::time::{Duration, SystemTime};

use hyper::Request;
use hyper::http::request::Parts;
use zeroize::Zeroizing;

use super::canonical::{PathForm, canonical};
use super::names::*;
use super::scope::Scope;
use super::signature::{hash, signature};
use super::*;

const SUITE: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const OF_S3: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// 2015-08-30 12:36:00 UTC.
const SUITE_TIME: Duration = Duration::from_secs(1_440_938_160);
const SUITE_DATE: &str = "20150830T123600Z";

fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn scope(day: &str, service: &str) -> Scope {
    Scope { day: day.to_owned(), region: "us-east-1".to_owned(), service: service.to_owned() }
}

/// Signs a request with all of its headers.
fn signed_with(secret: &str, scope: &Scope, payload: &str, request: &Parts) -> String {
    let mut names: Vec<String> = request.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    let date = request.headers.get(DATE).unwrap().to_str().unwrap();
    signature(secret, date, scope, &canonical(request, &names, payload, PathForm::AsSent).unwrap())
}

/// The values are those of AWS's test suite of signature version 4, and of its documentation of S3 and IAM.
#[test]
fn published_signatures_are_found() {
    let example = [("host", "example.amazonaws.com"), ("x-amz-date", SUITE_DATE)];
    for (method, uri, wanted) in [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    ] {
        let found = signed_with(SUITE, &scope("20150830", "service"), EMPTY, &request(method, uri, &example));
        assert_eq!(found, wanted, "{method} {uri}");
    }
    let iam = [
        ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
        ("host", "iam.amazonaws.com"),
        ("x-amz-date", SUITE_DATE),
    ];
    let iam = request("GET", "/?Action=ListUsers&Version=2010-05-08", &iam);
    let wanted = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
    assert_eq!(signed_with(SUITE, &scope("20150830", "iam"), EMPTY, &iam), wanted);

    let of_file = hash(b"Welcome to Amazon S3.");
    let host = ("host", "examplebucket.s3.amazonaws.com");
    let date = (DATE, "20130524T000000Z");
    let put = [
        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
        host,
        (PAYLOAD, &of_file),
        date,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let get = [host, (PAYLOAD, EMPTY), date];
    let part = [host, ("range", "bytes=0-9"), (PAYLOAD, EMPTY), date];
    for (request, payload, wanted) in [
        (
            request("GET", "/test.txt", &part),
            EMPTY,
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            request("PUT", "/test%24file.text", &put),
            of_file.as_str(),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            request("GET", "/?lifecycle", &get),
            EMPTY,
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            request("GET", "/?max-keys=2&prefix=J", &get),
            EMPTY,
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ] {
        assert_eq!(signed_with(OF_S3, &scope("20130524", "s3"), payload, &request), wanted);
    }
}

fn placeholders() -> AwsPlaceholders {
    AwsPlaceholders::of("pcx_0123456789012345678901234567890123456789")
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + SUITE_TIME
}

fn limits() -> AwsLimits {
    AwsLimits { services: vec!["s3".to_owned(), "sts".to_owned()], regions: vec!["us-east-1".to_owned()] }
}

const HOST: (&str, &str) = ("host", "bucket.test");
const TIME: (&str, &str) = (DATE, SUITE_DATE);
const HASH: (&str, &str) = (PAYLOAD, EMPTY);

/// Signs like a client, with the placeholders.
fn client_signed(method: &str, uri: &str, headers: &[(&str, &str)], scope: &Scope) -> Parts {
    let mut request = request(method, uri, headers);
    let payload = request.headers.get(PAYLOAD).map_or(EMPTY, |value| value.to_str().unwrap()).to_owned();
    let signature = signed_with(&placeholders().secret, scope, &payload, &request);
    let mut names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let value = format!(
        "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={signature}",
        placeholders().id,
        scope.text(),
        names.join(";")
    );
    request.headers.insert("authorization", value.parse().unwrap());
    request
}

fn checked(request: &Parts, at: SystemTime) -> Result<Option<Verified>, String> {
    let signed = Signed::of(request, &placeholders(), &limits(), at).map_err(|refusal| refusal.reason)?;
    let Some(signed) = signed else { return Ok(None) };
    let body = signed.needs_body().then_some(b"".as_slice());
    signed.verify(request, body, &placeholders()).map(Some).map_err(|refusal| refusal.reason)
}

fn keys(token: Option<&str>) -> AwsKeys {
    let token = token.map(|token| Zeroizing::new(token.to_owned()));
    AwsKeys::new("AKIAIOSFODNN7EXAMPLE", Zeroizing::new(OF_S3.to_owned()), token).unwrap()
}

#[test]
fn a_request_is_signed_anew_with_the_real_keys() {
    let token = placeholders().token;
    let with_token = [HOST, HASH, TIME, (TOKEN, token.as_str()), ("x-amz-acl", "private")];
    for (headers, real) in [
        (&with_token[..3], Some("the-real-token-1")),
        (&with_token, None),
        (&with_token, Some("the-real-token-1")),
    ] {
        let mut request = client_signed("PUT", "/a%20b?x=1", headers, &scope("20150830", "s3"));
        let verified = checked(&request, now()).unwrap().unwrap();
        // A day later: the user was asked, and the signature is made with the time of the answer.
        verified.sign(&keys(real), &mut request, now() + Duration::from_secs(86_400)).unwrap();
        let value = request.headers.remove("authorization").unwrap();
        assert!(value.is_sensitive());
        let wanted = signed_with(OF_S3, &scope("20150831", "s3"), EMPTY, &request);
        let value = value.to_str().unwrap();
        assert!(value.ends_with(&format!("Signature={wanted}")), "{value}");
        assert!(
            value.contains("Credential=AKIAIOSFODNN7EXAMPLE/20150831/us-east-1/s3/aws4_request"),
            "{value}"
        );
        assert_eq!(request.headers.get(TOKEN).map(|value| value.to_str().unwrap()), real);
        assert!(!format!("{request:?}{value}").contains("pcx_"));
    }
}

#[test]
fn a_body_without_a_stated_hash_is_hashed() {
    let headers = [HOST, TIME];
    let request = client_signed("POST", "/", &headers, &scope("20150830", "sts"));
    let signed = Signed::of(&request, &placeholders(), &limits(), now()).unwrap().unwrap();
    assert!(signed.needs_body());
    assert!(signed.verify(&request, Some(b""), &placeholders()).is_ok());
    assert!(signed.verify(&request, Some(b"other"), &placeholders()).is_err());
    assert!(signed.verify(&request, None, &placeholders()).is_err(), "it was not read");
}

#[test]
fn what_was_changed_after_it_was_signed_is_refused() {
    let original = || {
        client_signed(
            "GET",
            "/a?x=1",
            &[HOST, HASH, TIME, ("x-amz-acl", "private")],
            &scope("20150830", "s3"),
        )
    };
    assert!(checked(&original(), now()).unwrap().is_some(), "the control");
    let changes: [fn(&mut Parts); 12] = [
        |request| request.method = "PUT".parse().unwrap(),
        |request| request.uri = "/b?x=1".parse().unwrap(),
        |request| request.uri = "/a?x=2".parse().unwrap(),
        |request| request.uri = "/a?x=1&y".parse().unwrap(),
        |request| drop(request.headers.insert("host", "other.test".parse().unwrap())),
        |request| drop(request.headers.insert(PAYLOAD, "UNSIGNED-PAYLOAD".parse().unwrap())),
        |request| drop(request.headers.insert(DATE, "20150830T123700Z".parse().unwrap())),
        |request| drop(request.headers.insert("x-amz-acl", "public-read".parse().unwrap())),
        |request| drop(request.headers.remove("x-amz-acl")),
        |request| assert!(request.headers.append("x-amz-acl", "public-read".parse().unwrap())),
        |request| drop(request.headers.insert("x-amz-tagging", "a=b".parse().unwrap())),
        |request| {
            let mut value = request.headers.get("authorization").unwrap().to_str().unwrap().to_owned();
            let last = value.pop();
            value.push(if last == Some('0') { '1' } else { '0' });
            request.headers.insert("authorization", value.parse().unwrap());
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut request = original();
        change(&mut request);
        assert!(checked(&request, now()).is_err(), "change {number}");
    }
}

#[test]
fn what_the_gate_cannot_sign_is_refused_with_the_reason() {
    let s3 = scope("20150830", "s3");
    let all = [HOST, HASH, TIME];
    let with = |header: (&'static str, &'static str)| client_signed("GET", "/", &[HOST, TIME, header], &s3);
    let replaced = |from: &str, to: &str| {
        let mut request = client_signed("GET", "/", &all, &s3);
        let value = request.headers.get("authorization").unwrap().to_str().unwrap().replace(from, to);
        request.headers.insert("authorization", value.parse().unwrap());
        request
    };
    let presigned =
        format!("/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-%43redential={}%2F20150830", placeholders().id);
    let cases = [
        (client_signed("GET", "/", &all, &scope("20150830", "iam")), "the service `iam`"),
        (
            client_signed("GET", "/", &all, &Scope { region: "r-1".to_owned(), ..s3.clone() }),
            "the region `r-1`",
        ),
        (client_signed("GET", "/", &all, &scope("20150829", "s3")), "another than the day of its scope"),
        (client_signed("GET", "/", &[HASH, TIME], &s3), "`host` is not signed"),
        (
            replaced("SignedHeaders=host;x-amz-content-sha256;", "SignedHeaders=host;"),
            "`x-amz-content-sha256` is not signed",
        ),
        (replaced("SignedHeaders=host;", "SignedHeaders=x-amz-date;host;"), "not sorted"),
        (replaced("SignedHeaders=host;", "SignedHeaders=host;host;"), "not sorted"),
        (replaced("SignedHeaders=host;", "SignedHeaders=absent;host;"), "a header that is signed is missing"),
        (replaced("SignedHeaders=host;", "SignedHeaders=authorization;host;"), "cannot be signed"),
        (replaced("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), "algorithm AWS4-HMAC-SHA256 only"),
        (replaced("AWS4-HMAC-SHA256 Credential=", "AWS "), "algorithm AWS4-HMAC-SHA256 only"),
        (replaced("/aws4_request", "/aws4_request/x"), "not as AWS defines it"),
        (replaced("Credential=", "Credential=AKIA, Credential="), "not as AWS defines it"),
        (
            with((PAYLOAD, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")),
            "AWS_REQUEST_CHECKSUM_CALCULATION=when_required",
        ),
        (with((TOKEN, "somebody-else")), "session token is not the placeholder"),
        (with(("range", "bytes=0-9")), "a part of an object"),
        (request("GET", &presigned, &[HOST]), "a presigned URL"),
        (
            {
                let mut twice = client_signed("GET", "/", &all, &s3);
                twice.headers.append(DATE, SUITE_DATE.parse().unwrap());
                twice
            },
            "is there twice",
        ),
    ];
    for (request, wanted) in cases {
        let refusal = checked(&request, now());
        assert!(refusal.as_ref().is_err_and(|reason| reason.contains(wanted)), "{wanted}: {refusal:?}");
    }
    let good = client_signed("GET", "/", &all, &s3);
    let minutes = |count: u64| Duration::from_secs(count * 60);
    for at in [now() + minutes(16), now() - minutes(16)] {
        assert!(checked(&good, at).is_err_and(|reason| reason.contains("15 minutes")));
    }
    for at in [now() + minutes(14), now() - minutes(14)] {
        assert!(checked(&good, at).unwrap().is_some());
    }
    assert_eq!(checked(&request("GET", "/", &[HOST]), now()), Ok(None), "it is not signed");
}

#[test]
fn bodies_that_are_not_hashed_are_signed_as_such() {
    for payload in ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
        let headers = [HOST, TIME, (PAYLOAD, payload)];
        let mut request = client_signed("PUT", "/a", &headers, &scope("20150830", "s3"));
        let verified = checked(&request, now()).unwrap().unwrap();
        verified.sign(&keys(None), &mut request, now()).unwrap();
        let value = request.headers.remove("authorization").unwrap();
        let wanted = signed_with(OF_S3, &scope("20150830", "s3"), payload, &request);
        assert!(value.to_str().unwrap().ends_with(&wanted));
    }
}

#[test]
fn both_forms_of_a_path_are_known() {
    let headers = [HOST, TIME];
    let mut request = request("GET", "/a%20b", &headers);
    let names = ["host".to_owned(), DATE.to_owned()];
    let scope = scope("20150830", "sts");
    for form in [PathForm::AsSent, PathForm::EncodedAgain] {
        let text = canonical(&request, &names, EMPTY, form).unwrap();
        assert_eq!(text.contains("/a%2520b"), form == PathForm::EncodedAgain);
        let signature = signature(&placeholders().secret, SUITE_DATE, &scope, &text);
        let value = format!(
            "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders=host;x-amz-date, Signature={signature}",
            placeholders().id,
            scope.text()
        );
        request.headers.insert("authorization", value.parse().unwrap());
        let verified = checked(&request, now()).unwrap().unwrap();
        assert!(format!("{verified:?}").contains(&format!("{form:?}")));
    }
}

#[test]
fn keys_that_are_none_are_refused_and_none_is_shown() {
    let made = |id: &str, secret: &str, token: Option<&str>| {
        AwsKeys::new(
            id,
            Zeroizing::new(secret.to_owned()),
            token.map(|token| Zeroizing::new(token.to_owned())),
        )
    };
    for (id, secret, token) in [
        ("", OF_S3, None),
        ("AKIA/IOSFODNN7EXAMPLE", OF_S3, None),
        ("AKIAIOSFODNN7EXAMPLE", "short", None),
        ("AKIAIOSFODNN7EXAMPLE", "with a space in its middle", None),
        ("AKIAIOSFODNN7EXAMPLE", OF_S3, Some("two\nlines-of-a-token")),
    ] {
        assert!(made(id, secret, token).is_err(), "{id}");
    }
    let good = made("AKIAIOSFODNN7EXAMPLE", OF_S3, None).unwrap();
    assert!(!format!("{good:?}").contains("wJalr"));
    assert!(!good.have_expired(now()));
    let until =
        |at: &str| made("AKIAIOSFODNN7EXAMPLE", OF_S3, None).unwrap().expiring(at).have_expired(now());
    assert!(until("2015-08-30T12:00:00Z") && !until("2015-08-30T13:00:00+00:00"));
    assert!(!until("yesterday") && !until(""));
}
