use proptest::prelude::*;

use super::*;

fn check(text: &str, expected: &str) {
    assert_eq!(mask_text(text), expected, "{text}");
}

#[test]
fn secrets_are_masked() {
    check("export API_KEY=abc123 && run", "export API_KEY=[masked] && run");
    check("API_KEY='p@ss w!rd'; x", "API_KEY=[masked]; x");
    check("PASSWORD=p@ss!w:rd; x", "PASSWORD=[masked]; x");
    check(
        "curl -H \"Authorization: Bearer abcdefgh12.x/y\" u",
        "curl -H \"Authorization: Bearer [masked]\" u",
    );
    check("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "curl -H 'Authorization: Basic [masked]'");
    check("{\"password\": \"hunter2\", \"a\": 1}", "{\"password\": \"[masked]\", \"a\": 1}");
    check("x --token abc --verbose", "x --token [masked] --verbose");
    check("x --token=abc y", "x --token=[masked] y");
    check("git clone https://u:secret@host/a", "git clone https://[masked]@host/a");
    check("https://ghp_0123456789abcdefghij@host", "https://[masked]@host");
    check("echo ghp_0123456789abcdefghij", "echo [masked]");
    check("aws AKIAIOSFODNN7EXAMPLE x", "aws [masked] x");
    check("a eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.sig b", "a [masked] b");
    check("f /a/ghp_0123456789abcdefghij/b", "f /a/[masked]/b");
    check("echo aB3dEfGhIjKlMnOpQrStUvWxYz012345", "echo [masked]");
    check("x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y", "x [masked] y");
    check("-----BEGIN PRIVATE KEY-----\nabc", "[masked]");
    check("curl -H 'Authorization: token s3cr3t' u", "curl -H 'Authorization: token [masked]' u");
    check("curl -H 'Cookie: a=1; session=2' u", "curl -H 'Cookie: [masked]' u");
    check("curl -u ann:hunter2 https://x", "curl -u [masked] https://x");
    check("sshpass -p hunter2 ssh x", "sshpass -p [masked] ssh x");
    check("u?X-Amz-Signature=0a1b&b=c", "u?X-Amz-Signature=[masked]&b=c");
    check("GH_PAT=x MYSQL_PWD=y DB_PASS=z run", "GH_PAT=[masked] MYSQL_PWD=[masked] DB_PASS=[masked] run");
    check("https://hooks.slack.com/services/T0/B0/xyz", "https://hooks.slack.com/services/[masked]");
    check(r#"{"password": "a\"b", "c": 1}"#, r#"{"password": "[masked]", "c": 1}"#);
    check(r#""{\"password\": \"a b\"}" c"#, r#""{\"password\": \"[masked]\"}" c"#);
}

#[test]
fn values_are_masked_to_their_ends() {
    for (text, expected) in [
        ("TOKEN=a,b) x", "TOKEN=[masked]) x"),
        (r"TOKEN='it'\''s' x", "TOKEN=[masked] x"),
        (r"TOKEN=a\ b x", "TOKEN=[masked] x"),
        ("TOKEN=$'x y' z", "TOKEN=[masked] z"),
        ("TOKEN=${X:-x y} z", "TOKEN=[masked] z"),
        ("TOKEN=$(cat a b) z", "TOKEN=[masked] z"),
        ("TOKEN=\"$A x\" z", "TOKEN=[masked] z"),
        ("export TOKEN=\"a b\"; c", "export TOKEN=[masked]; c"),
        ("docker run -e \"TOKEN=a b\" c", "docker run -e \"TOKEN=[masked]\" c"),
        ("bash -c 'a; TOKEN=x run' c", "bash -c 'a; TOKEN=[masked] run' c"),
        (r#"bash -c "a; TOKEN=\"x y\" run" c"#, r#"bash -c "a; TOKEN=[masked] run" c"#),
        ("curl -H 'Authorization: ApiKey x y' u", "curl -H 'Authorization: ApiKey [masked]' u"),
        ("curl -H 'Authorization: SSWS x' u", "curl -H 'Authorization: SSWS [masked]' u"),
        (
            "curl -H 'Authorization: Digest username=\"a\", response=\"b\"' u",
            "curl -H 'Authorization: Digest [masked]' u",
        ),
        ("curl -H 'X-Auth-Key: a b' u", "curl -H 'X-Auth-Key: [masked]' u"),
        ("curl -uann:pw u", "curl -u[masked] u"),
        ("curl --user=ann:pw u", "curl --user=[masked] u"),
        ("curl -u \"$U:pw\" u", "curl -u [masked] u"),
        ("x -token abc y", "x -token [masked] y"),
        ("curl --oauth2-bearer abc u", "curl --oauth2-bearer [masked] u"),
        ("https://h/a?sig=abc&b=c", "https://h/a?sig=[masked]&b=c"),
        (r#"{"pass":"a","auth":"b","c":1}"#, r#"{"pass":"[masked]","auth":"[masked]","c":1}"#),
        (r#""{\"password\": \"a\\\"b\", \"c\": 1}""#, r#""{\"password\": \"[masked]\", \"c\": 1}""#),
        (r#"["--token", "abc", "d"]"#, r#"["--token", [masked] "d"]"#),
        ("sshpass -phunter2 ssh x", "sshpass -p[masked] ssh x"),
        ("x --password= pw; y", "x --password= [masked]; y"),
        ("OPENAI_KEY=pw STRIPE_KEY=pw x", "OPENAI_KEY=[masked] STRIPE_KEY=[masked] x"),
        ("curl \"https://h/x?key=pw&a=1\"", "curl \"https://h/x?key=[masked]&a=1\""),
        ("docker login -u a -p pw r", "docker login -u a -p [masked] r"),
        ("mysql -uroot -ppw db", "mysql -uroot -p[masked] db"),
        ("redis-cli -h x -a pw ping; ls -a x", "redis-cli -h x -a [masked] ping; ls -a x"),
        ("aws configure set aws_secret_access_key pw", "aws configure set aws_secret_access_key [masked]"),
        ("set -x API_TOKEN pw", "set -x API_TOKEN [masked]"),
        ("x \"Server=h;Uid=u;Pwd=pw;\" y", "x \"Server=h;Uid=u;Pwd=[masked];\" y"),
        (
            "mysql -e \"ALTER USER u IDENTIFIED BY 'pw'\" x",
            "mysql -e \"ALTER USER u IDENTIFIED BY [masked]\" x",
        ),
        ("curl \"https://user:pa/pw@h/\" x", "curl \"https://[masked]@h/\" x"),
        ("curl https://user:pa#pw@h/ x", "curl https://[masked]@h/ x"),
    ] {
        check(text, expected);
    }
}

#[test]
fn words_are_masked_by_the_words_before_them() {
    let words = |words: &[&str]| mask(json!(words));
    assert_eq!(words(&["x", "--token", "a b", "c"]), json!(["x", "--token", MASK, "c"]));
    assert_eq!(words(&["x", "--token", "--verbose"]), json!(["x", "--token", "--verbose"]));
    assert_eq!(words(&["curl", "-u", "ann:pw", "u"]), json!(["curl", "-u", MASK, "u"]));
    assert_eq!(words(&["sshpass", "-p", "pw", "ssh"]), json!(["sshpass", "-p", MASK, "ssh"]));
    assert_eq!(words(&["x", "--password=", "pw"]), json!(["x", "--password=", MASK]));
    assert_eq!(words(&["docker", "login", "-p", "pw", "r"]), json!(["docker", "login", "-p", MASK, "r"]));
    assert_eq!(words(&["mysql", "-u", "a", "-ppw"]), json!(["mysql", "-u", "a", "-p[masked]"]));
    assert_eq!(words(&["redis-cli", "-a", "pw"]), json!(["redis-cli", "-a", MASK]));
    assert_eq!(words(&["env", "TOKEN=a b", "c"]), json!(["env", "TOKEN=[masked]", "c"]));
    assert_eq!(words(&["-H", "Authorization: Bearer a b"]), json!(["-H", "Authorization: Bearer [masked]"]));
    assert_eq!(words(&["-H", "X-Api-Key: a b"]), json!(["-H", "X-Api-Key: [masked]"]));
    assert_eq!(words(&["grep", "-rn", "token", "."]), json!(["grep", "-rn", "token", "."]));
}

#[test]
fn a_parsed_command_keeps_no_secret_that_its_script_has_not() {
    let word = |text: &str| json!({ "value": text, "literal": true });
    let masked = mask(json!({
        "argv": [word("mysql"), word("--password"), word("hunter2"), word("--execute"), word("select 1")],
        "assignments": [["API_KEY", word("abc 123")], ["HOME", word("/h")]],
        "environment": [{ "name": "API_KEY", "value": "abc" }, { "name": "HOME", "value": "/h" }],
        "token": { "value": "abc", "expires": 5 },
    }));
    assert_eq!(
        masked,
        json!({
            "argv": [word("mysql"), word("--password"), word(MASK), word("--execute"), word("select 1")],
            "assignments": [["API_KEY", word(MASK)], ["HOME", word("/h")]],
            "environment": [{ "name": "API_KEY", "value": MASK }, { "name": "HOME", "value": "/h" }],
            "token": { "value": MASK, "expires": MASK },
        })
    );
}

#[test]
fn ordinary_text_is_kept() {
    for text in [
        "cargo test -p portcullis-audit -- --nocapture",
        "git show 0123456789abcdef0123456789abcdef01234567",
        "cat src/tokens.rs && ls ~/.config",
        "https://example.com/a?b=c",
        "https://example.com:8443/x@y",
        "/usr/lib/x86_64-linux-gnu/libFoo.so.1.2.3",
        "grep -rn token .",
        "PWD=/home/u OLDPWD=/ ls",
        "tail -u 1 --user x",
        "sk-short",
        "mkdir -p a/b && docker run -p 80:80 x && mysql -p db",
        "ssh-keygen -f key --public-key x; zip -P",
        "curl https://h:8443/?a=b&keys=1",
        "set -eu; sort --key 2",
        "-----BEGIN CERTIFICATE-----\nabc",
        "",
        "grüße: 1",
    ] {
        check(text, text);
    }
}

#[test]
fn values_are_masked_by_key_and_by_length() {
    let long = "x".repeat(LONGEST_TEXT + 1);
    let masked = mask(json!({
        "env": { "GITHUB_TOKEN": "x", "HOME": "/h", "tokens": ["a", 1], "api-key": 5 },
        "content": long,
    }));
    assert_eq!(
        masked,
        json!({
            "env": { "GITHUB_TOKEN": MASK, "HOME": "/h", "tokens": [MASK, 1], "api-key": MASK },
            "content": { "length": LONGEST_TEXT + 1, "sha256": sha256(long.as_bytes()) },
        })
    );
}

#[test]
fn what_a_tool_is_called_with_is_a_document() {
    let input =
        json!({ "headers": [{ "name": "Authorization", "value": "pw" }], "args": ["login", "-p", "pw"] });
    let masked = mask(json!({ "tool": { "name": "t", "input": input.to_string() } }));
    let text = masked.pointer("/tool/input").and_then(Value::as_str).unwrap();
    let expected =
        json!({ "headers": [{ "name": "Authorization", "value": MASK }], "args": ["login", "-p", MASK] });
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), expected);
    assert_eq!(mask(json!({ "input": "x --token pw" })), json!({ "input": "x --token [masked]" }));
}

/// The pieces of the random texts: punctuation, and words that mark their neighbours as secrets.
const PIECES: &str = "(ghp_0123456789abcdefghij|ghp_x|aB3dEfGhIjKlMnOpQrStUvWxYz012345|Ab1|hooks\\.slack\\.com/services/|T0/B0\
                      |--token|--user|-u|-ppw|-p|mysql|sshpass|set|identified by|Bearer|basic|password|API_KEY|key|Pwd\
                      |https://|ann:pw@|-----BEGIN |PRIVATE KEY|é|/|~|\\+|\\.|-|_|=|:|\"|'|\\\\| |;|\n|[a-zA-Z0-9]{1,9})";

proptest! {
    #[test]
    fn a_text_that_is_kept_at_once_has_no_secret(pieces in proptest::collection::vec(PIECES, 0..7)) {
        let text = pieces.concat();
        prop_assert_eq!(masked(&text).unwrap_or_else(|| text.clone()), text::scanned(&text));
    }

    #[test]
    fn one_word_is_no_other_where_it_is_kept_at_once(
        text in "(ghp_|gho|sk-|eyJ|[a-zA-Z0-9]{1,20}|hooks.slack.com/services|discord.com/api/webhooks|/|_|-|\\.|~){0,6}",
    ) {
        prop_assert_eq!(masked(&text).unwrap_or_else(|| text.clone()), text::scanned(&text));
    }

    #[test]
    fn never_panics_and_ends(text in "\\PC{0,120}") {
        let masked = mask_text(&text);
        prop_assert!(masked.len() <= text.len().saturating_mul(MASK.len()) + MASK.len());
    }

    #[test]
    fn a_token_never_survives(before in "[a-z =:\"'/]{0,12}", after in "[ \"';/]{1}[a-z ]{0,12}") {
        let token = "ghp_0123456789abcdefghijABCDEF";
        let text = format!("{before} {token}{after}");
        prop_assert!(!mask_text(&text).contains(token), "{text}");
    }
}
