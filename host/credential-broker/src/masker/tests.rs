//! Tests of the masker.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::*;

const TEXT: &str = "s3cr3t+v4lue/Xyz";

/// How many characters of a doubly encoded credential are masked at least.
fn in_base64_twice_at_least() -> usize {
    TEXT.len() * 4 / 3 - 4
}

fn masker(texts: &[&str]) -> Masker {
    let secret = |text: &&str| Secret::new(Zeroizing::new((*text).to_owned())).unwrap();
    let secrets: Vec<Secret> = texts.iter().map(secret).collect();
    let wanted = Wanted::default();
    wanted.set(secrets.iter());
    Masker::new(&wanted)
}

fn in_pieces(mut masker: Masker, text: &str, size: usize) -> String {
    let mut out: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| masker.push(piece)).collect();
    out.extend(masker.finish());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_credential_is_masked_however_the_stream_is_cut() {
    let text = format!("a s3cr3 {TEXT}{TEXT} s3 s3cr3t+ end s3cr3t+v4lu");
    let wanted = text.replace(TEXT, "****************");
    for size in 1..text.len() {
        assert_eq!(in_pieces(masker(&[TEXT]), &text, size), wanted, "pieces of {size}");
    }
}

#[test]
fn what_an_answer_has_of_a_long_beginning_is_masked() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let in_hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    for (text, least) in
        [(secret, 20), (&STANDARD.encode(secret), 27), (&in_hex, 40), ("s3cr3t+v4lue/Xyz", 12)]
    {
        for length in 1..text.len() {
            for size in [1, 5, 100] {
                let cut = text.get(..length).unwrap();
                let out = in_pieces(masker(&[secret, TEXT]), &format!("a {cut}!"), size);
                let masked = out.matches('*').count();
                // The last characters of base64 depend on what comes behind the credential.
                let is_right = if length >= least { masked + 3 >= length } else { masked == 0 };
                assert!(is_right, "{length} of {text}, pieces of {size}: {out}");
            }
        }
    }
}

/// A command that has a server repeat its guesses learns nothing from which of them are masked.
#[test]
fn what_follows_a_long_beginning_is_masked_right_or_wrong() {
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYWRtaW4ifQ.Zx9_Qm4-TtR0aB7kLpWc2VdYhJf5NsGe8UoXiCq1MnE";
    for secret in [token, "ghp_0123456789abcdefghijklmnopqrstuvwxyz", "a b\"c<d>e&f%g\\h'i,j;k l"] {
        for length in secret.len().div_ceil(2).max(16) + 3..=secret.len() {
            let right = secret.get(..length).unwrap();
            for other in ["x", "0", "-"] {
                let wrong = format!("{}{other}", right.get(..length - 1).unwrap());
                let outs = [right, &wrong].map(|guess| {
                    let each = |escape: fn(u8) -> String| guess.bytes().map(escape).collect::<String>();
                    let (in_hex, escaped) =
                        (each(|byte| format!("{byte:02x}")), each(|byte| format!("%{byte:02X}")));
                    let text = format!("{guess}\n\"{in_hex}\" \"{}\" \"{escaped}\"", STANDARD.encode(guess));
                    in_pieces(masker(&[secret]), &text, 7).replace(|one| one != '*', "-")
                });
                assert_eq!(outs[0], outs[1], "{right} and {wrong}");
            }
        }
    }
    let out = in_pieces(
        masker(&[token]),
        r#"{"cut": "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYWRtaW4ifQ.Zx", "b": 1}"#,
        9,
    );
    assert!(out.starts_with(r#"{"cut": "****"#) && out.ends_with(r#"", "b": 1}"#), "{out}");
    let other = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoidXNlciJ9.abcdefghijklmnopqrstuvwxyz";
    assert_eq!(in_pieces(masker(&[token]), other, 9), other, "another token of the kind");
}

#[test]
fn its_usual_encodings_are_masked_too() {
    let encoded = STANDARD.encode(format!("user:{TEXT}"));
    let in_hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let basic = format!("Basic {encoded}");
    for twice in
        [STANDARD.encode(&basic), STANDARD.encode(&encoded), in_hex(&basic), encoded.replace('=', "%3D")]
    {
        let out = in_pieces(masker(&[TEXT]), &twice, 11);
        let left = out.chars().filter(|one| *one != '*').count();
        assert!(
            out.len() == twice.len() && left <= twice.len() - in_base64_twice_at_least(),
            "{twice}: {out}"
        );
    }
    let each = |escape: fn(char) -> String| TEXT.chars().map(escape).collect::<String>();
    let forms = [
        encoded,
        "s3cr3t%2Bv4lue%2FXyz".to_owned(),
        "s3cr3t%2bv4lue%2fXyz".to_owned(),
        "s3cr3t%252Bv4lue%252FXyz".to_owned(),
        "7333637233742b76346c75652f58797a".to_owned(),
        "7333637233742B76346C75652F58797A".to_owned(),
        "s3cr3t+v4lue\\/Xyz".to_owned(),
        "s3cr3t\\u002bv4lue\\u002FXyz".to_owned(),
        "s3cr3t\\x2bv4lue\\x2FXyz".to_owned(),
        "s3cr3t&#43;v4lue&#x2F;Xyz".to_owned(),
        "s3cr3t&#43;v4lue&#x2f;Xyz".to_owned(),
        "S3CR3T+V4LUE/XYZ".to_owned(),
        "S3cr3T+v4lUe/xyz".to_owned(),
        each(|one| format!("%{:02x}", u32::from(one))),
        each(|one| format!("\\u{:04X}", u32::from(one))),
        each(|one| format!("&#{};", u32::from(one))),
        each(|one| format!("&#{:07};", u32::from(one))),
        each(|one| format!("&#x{:08x};", u32::from(one))),
        each(|one| format!("\\\\u{:04x}", u32::from(one))),
        each(|one| format!("\\\\\\\\u{:04x}", u32::from(one))),
        "s3cr3t+v4lue\\\\\\/Xyz".to_owned(),
    ];
    for text in forms {
        for size in [1, 7, 1000] {
            let out = in_pieces(masker(&[TEXT]), &text, size);
            let is_masked = out.len() == text.len() && out.matches('*').count() + 6 >= text.len();
            assert!(is_masked || text.starts_with("dXNl") && out.contains("**********"), "{text}: {out}");
        }
    }
}

#[test]
fn names_of_characters_are_masked_where_html_has_them() {
    let out = in_pieces(masker(&["a\"b&c<d e"]), "a&quot;b&amp;c&lt;d+e a%22b%26c%3cd%20e", 3);
    assert_eq!(out, "********************* *****************");
    // As PHP's `htmlentities` and npm's `entities` write it, and as browsers read it.
    for text in ["ghp&lowbar;a&sol;b", "ghp&UnderBar;a/b", "ghp&#95a&#x00000000002f;b", "ghp&#95;a&#47;b"] {
        let out = in_pieces(masker(&["ghp_a/b"]), text, 3);
        assert_eq!(out, "*".repeat(text.len()), "{text}");
    }
}

#[test]
fn of_two_credentials_the_longer_one_is_masked_as_a_whole() {
    for size in 1..20 {
        assert_eq!(
            in_pieces(masker(&["abcdef", "abcdefgh-i"]), "abcdefgh-i abcdefg", size),
            "********** ******g"
        );
    }
}

/// A piece that ends with the beginning of a credential is passed on like one that ends with another text.
#[test]
fn the_pieces_do_not_show_how_a_credential_begins() {
    for length in 1..TEXT.len() {
        let guess = TEXT.get(..length).unwrap();
        let other: String = guess.chars().map(|one| if one == 'z' { 'a' } else { 'z' }).collect();
        let lengths = |guess: &str| {
            let mut masker = masker(&[TEXT]);
            [format!("data: {guess}"), " next".to_owned(), format!("x{guess}"), "\n".to_owned()]
                .map(|piece| masker.push(piece.as_bytes()).len())
        };
        assert_eq!(lengths(guess), lengths(&other), "{guess}");
    }
}

#[test]
fn what_is_encoded_in_parts_is_masked_in_one_piece() {
    let digits: Vec<String> = TEXT.bytes().map(|byte| format!("{byte:02x}")).collect();
    let lines = STANDARD.encode(TEXT).replace("v", "v\r\n").replace("W", "W\n ");
    for text in [digits.join(" "), digits.join(":"), lines] {
        let mut bytes = format!("before {text} after").into_bytes();
        assert!(masker(&[TEXT]).mask(&mut bytes), "{text}");
        let out = String::from_utf8(bytes).unwrap();
        assert!(
            out.starts_with("before *") && out.ends_with(" after") && out.matches('*').count() > 15,
            "{out}"
        );
    }
}

#[test]
fn a_credential_that_is_read_later_is_masked_in_an_open_stream() {
    let secrets = ["first-credential", "renewed-credential"]
        .map(|text| Secret::new(Zeroizing::new(text.to_owned())).unwrap());
    let wanted = Wanted::default();
    wanted.set(secrets.iter().take(1));
    let mut masker = Masker::new(&wanted);
    assert_eq!(masker.push(b"first-credential \n"), b"**************** \n");
    assert_eq!(masker.push(b"renewed-credential \n"), b"renewed-credential \n", "the control");
    wanted.set(secrets.iter());
    assert_eq!(
        masker.push(b"renewed-credential first-credential \n"),
        b"****************** **************** \n"
    );
}

#[test]
fn other_bytes_stay_as_they_are() {
    let mut state = 1_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(300_000)
    .collect();
    for size in [1000, 16_384] {
        let mut masker = masker(&[TEXT, "another-credential-0123"]);
        let mut out: Vec<u8> = bytes.chunks(size).flat_map(|piece| masker.push(piece)).collect();
        out.extend(masker.finish());
        assert!(out == bytes, "pieces of {size}");
    }
}

#[test]
fn whole_lines_are_passed_on_at_once() {
    let mut masker = masker(&[TEXT]);
    assert_eq!(masker.push(b"data: {\"a\":\"s3c\"}\n\n"), b"data: {\"a\":\"s3c\"}\n\n");
    let most = masker.wanted.forms().longest() - 1;
    assert_eq!(masker.push(&[b'a'; 1000]).len(), 1000 - most);
}

/// `&dollar;` and the like can be the first character of a credential, or of its form in base64.
#[test]
fn the_first_character_is_masked_by_its_name() {
    for (first, reference) in [
        ('$', "&dollar;"),
        ('+', "&plus;"),
        ('_', "&lowbar;"),
        ('|', "&VerticalLine;"),
        ('`', "&DiacriticalGrave;"),
        ('^', "&Hat;"),
        (';', "&semi;"),
        ('<', "&lt"),
        ('$', "&amp;dollar;"),
        ('$', "&amp;#36;"),
    ] {
        let text = format!("{reference}3cret-one");
        let out = in_pieces(masker(&[&format!("{first}3cret-one")]), &text, 3);
        assert_eq!(out, "*".repeat(text.len()), "{text}");
    }
    for (first, sign, reference) in [('?', '/', "&sol;"), ('~', '+', "&plus;")] {
        let secret = format!("{first}3cret-credential");
        let encoded = STANDARD.encode(format!("ab{secret}"));
        assert_eq!(encoded.chars().nth(3), Some(sign));
        let text = encoded.replace(sign, reference);
        let out = in_pieces(masker(&[&secret]), &text, 3);
        // The last character depends on what comes behind the credential.
        assert_eq!(
            out.trim_end_matches("A=="),
            format!("{}{}", encoded.get(..3).unwrap(), "*".repeat(text.len() - 6)),
            "{text}"
        );
    }
}

/// As APIs answer with the content of a file: base64 with line breaks, in a string of JSON or in a form.
#[test]
fn line_breaks_in_encoded_texts_can_be_escaped() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let breaks = ["\\n", "\\r\\n", "\\\\n", "\\u000a", "\\u000D\\u000A", "%0A", "%0D%0a", "%250A"];
    let references =
        ["&#10;", "&#13;&#10;", "&#xA;", "&#x0a;", "&NewLine;", "&amp;#10;", "\\\n", "\n", "\r\n"];
    let encoded = STANDARD.encode(format!("token={secret}\n"));
    let digits: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    for (text, lost) in [(encoded, 12), (digits, 0)] {
        for line_break in breaks.iter().chain(&references) {
            for width in [1, 7, 60] {
                let lines: Vec<&str> =
                    text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
                let text = format!("{}!", lines.join(line_break));
                // Lines are passed on at once: of raw ones, the beginning may be gone when the rest comes.
                let smallest = if line_break.ends_with('\n') { 5000 } else { 1 };
                for size in [1, 11, 5000].into_iter().filter(|size| *size >= smallest) {
                    let out = in_pieces(masker(&[secret]), &text, size);
                    let left = lost * (1 + line_break.len()) + 1;
                    assert!(out.bytes().filter(|byte| *byte != b'*').count() <= left, "{text:?}: {out:?}");
                }
            }
        }
    }
    let escaped = r"x\nghp_01234567\n89abcdefghijkl";
    assert_eq!(in_pieces(masker(&[secret]), escaped, 4), escaped, "a text is not broken by lines");
}

#[test]
fn utf_16_is_masked_in_whatever_answer() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    for text in [secret.to_owned(), STANDARD.encode(format!("abc{secret}"))] {
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for size in [1, 2, 7, 1000] {
            let mut masker = masker(&[secret]);
            let mut out: Vec<u8> = wide.chunks(size).flat_map(|piece| masker.push(piece)).collect();
            out.extend(masker.finish());
            assert!(out.iter().filter(|byte| **byte != b'*').count() <= 20, "pieces of {size}: {out:?}");
        }
    }
}

/// Otherwise the time that an answer takes would show how much of a guess is right.
#[test]
fn right_and_wrong_guesses_of_a_beginning_are_the_same_work() {
    let secret = "ghp_Zx81kQmT4vWb7NcR2yLd9PfSaHgE3uJoKi5T";
    let work = |guess: &str, end: &str| {
        work::take();
        in_pieces(masker(&[secret]), &format!("{guess}{end}").repeat(20), 997);
        work::take()
    };
    // Behind `x`, the end of a guess is no beginning of another form.
    for end in [format!("xx{}!", "\0".repeat(400)), "xx\n0 ".to_owned(), "xx".repeat(40) + "!"] {
        for length in 3..20 {
            let right = secret.get(..length).unwrap();
            let wrong = format!("{}{}", secret.get(..length - 1).unwrap(), "9");
            assert_eq!(work(right, &end), work(&wrong, &end), "{right} before {end:?}");
        }
    }
}

#[test]
fn a_key_is_masked_without_the_word_before_it() {
    let out = in_pieces(masker(&["ApiKey Zx81kQmT4vWb7NcR2yLd"]), "your key is Zx81kQmT4vWb7NcR2yLd", 9);
    assert_eq!(out, "your key is ********************");
}

/// Once, all that was held was searched again with each piece.
#[test]
fn small_pieces_are_no_more_work_than_large_ones() {
    let mut state = 1_u32;
    let secret: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_digit((state >> 16) % 36, 36).unwrap()
    })
    .take(2021)
    .collect();
    let beginning = secret.get(..15).unwrap().repeat(2700);
    let whole = secret.repeat(10);
    for text in [beginning.as_str(), &whole, &"&".repeat(20_000), &"\\".repeat(20_000)] {
        let work = |size: usize| {
            work::take();
            in_pieces(masker(&[&secret]), text, size);
            work::take()
        };
        let (small, large) = (work(1), work(16_384));
        assert!(small <= 2 * large + 4 * text.len(), "{small} and {large} for {}", text.len());
        assert!(small <= 40 * text.len(), "{small} for {}", text.len());
    }
}

#[test]
fn what_follows_in_the_next_line_is_masked_too() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let encoded = STANDARD.encode(format!("abc{secret}def"));
    let mut masker = masker(&[secret]);
    let (first, second) = encoded.split_at(40);
    assert_eq!(masker.push(format!("{first}\n").as_bytes()), format!("YWJj{}\n", "*".repeat(36)).as_bytes());
    assert_eq!(masker.push(format!("{second}\n").as_bytes()), b"*****************mRlZg==\n");
}

proptest::proptest! {
    /// Without line breaks, which are passed on at once, it does not matter where a stream is cut.
    #[test]
    fn random_pieces_are_masked_like_the_whole(
        parts in proptest::collection::vec((0_usize..9, 0_usize..44), 1..12),
        sizes in proptest::collection::vec(1_usize..50, 1..20),
    ) {
        let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
        let whole: String = parts.iter().map(|(kind, from)| {
            let rest = secret.get(*from..).unwrap_or("&\\%");
            match kind {
                0 => rest.to_owned(),
                1 => STANDARD.encode(format!("{}{secret}", rest.get(..3).unwrap_or_default())),
                2 => secret.bytes().map(|byte| format!("{byte:02x}\\n")).collect(),
                3 => secret.chars().map(|one| format!("&#{};", u32::from(one))).collect(),
                4 => rest.replace('_', "&lowbar;"),
                5 => STANDARD.encode(secret).replace('I', "I%0A"),
                6 => secret.replace('_', "\\u005f"),
                7 => secret.get(..*from).unwrap_or_default().to_owned(),
                _ => TEXT.replace('/', "%2F"),
            }
        }).collect();
        let masked = in_pieces(masker(&[secret, TEXT]), &whole, whole.len().max(1));
        let (mut masker, mut rest, mut out) = (masker(&[secret, TEXT]), whole.as_bytes(), Vec::new());
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.len().min(*size));
            out.extend(masker.push(piece));
            rest = after;
        }
        out.extend(masker.finish());
        proptest::prop_assert_eq!(String::from_utf8(out).unwrap(), masked.clone(), "{}", whole);
        proptest::prop_assert!(!masked.contains(secret.get(..24).unwrap()), "{}", masked);
    }
}
