//! Tests of the search in files.

use super::*;

/// Letters and digits without a pattern.
fn random(length: usize, alphabet: &[u8], seed: u32) -> String {
    let mut state = u64::from(seed) << 32 | 88_172_645;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(*alphabet.get(usize::try_from(state >> 40).unwrap() % alphabet.len()).unwrap())
    })
    .take(length)
    .collect()
}

const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_OF_URLS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[test]
fn known_tokens_and_private_keys_are_found() {
    let token = format!("TOKEN=ghp_{}\n", "aB3".repeat(12));
    assert_eq!(secret_in_file(token.as_bytes()), Some("a GitHub token"));
    for kind in ["", "RSA ", "OPENSSH ", "ENCRYPTED "] {
        let key = format!("x\n-----BEGIN {kind}PRIVATE KEY-----\nMII");
        assert_eq!(secret_in_file(key.as_bytes()), Some("a private key"));
    }
    for key in [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\r\n",
        "PuTTY-User-Key-File-2: ssh-rsa",
        "PuTTY-User-Key-File-3: ssh-ed25519",
        "sk------BEGIN PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\nMII\n-----BEGIN PRIVATE KEY-----",
    ] {
        assert_eq!(secret_in_file(key.as_bytes()), Some("a private key"), "{key}");
    }
}

#[test]
fn tokens_of_services_are_found() {
    let random = |length| random(length, BASE64.get(..62).unwrap(), 5);
    for (token, kind) in [
        ("AKIAIOSFODNN7EXAMPLE".to_owned(), "an AWS access key"),
        ("aws=ASIAIOSFODNN7EXAMPLE".to_owned(), "an AWS access key"),
        (format!("sk-{}", random(48)), "an OpenAI key"),
        (format!("sk-proj-{}", random(48)), "an OpenAI key"),
        (format!("sk-ant-api03-{}", random(93)), "an Anthropic key"),
        (format!("npm_{}", random(36)), "an npm token"),
        (format!("hf_{}", random(34)), "a Hugging Face token"),
    ] {
        assert_eq!(secret_in_file(token.as_bytes()), Some(kind), "{token}");
        assert_eq!(secret_in_file(format!("MY_{token}").as_bytes()), Some(kind), "MY_{token}");
    }
    for before in ["GHTOKEN_", "x", "9", "token"] {
        let text = format!("{before}ghp_{}", random(36));
        assert_eq!(secret_in_file(text.as_bytes()), Some("a GitHub token"), "{text}");
    }
}

#[test]
fn other_texts_are_not() {
    for text in [
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----",
        "-----BEGIN CERTIFICATE-----\nPRIVATE KEY-----",
        "PuTTY-User-Key-File-Format",
        "ghp_short",
        "pk_live_pypi-rk_live_shpat_sk-sk_live_sk_test_xapp-xoxa-xoxb-xoxp-xoxs-ya29.",
        "sk-learn and scikit-learn",
        "ASIA_PACIFIC_SOUTHEAST_REGION_1",
        "EURASIAPACIFIC1REGION2NAMES3",
        "npm_config_registry_of_all_projects_in_this_directory",
        "shelf_life_of_something_with_a_long_name_in_snake_case",
        "task-ant-colony-optimization-for-routing-problems-in-graphs",
        "task-9F86D081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "sk-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    ] {
        assert_eq!(secret_in_file(text.as_bytes()), None, "{text}");
    }
    for seed in 1..9 {
        for alphabet in [BASE64, BASE64_OF_URLS, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdef"] {
            let text = random(200_000, alphabet, seed);
            assert_eq!(secret_in_file(text.as_bytes()), None, "{seed}");
            let lines: Vec<&[u8]> = text.as_bytes().chunks(76).collect();
            assert_eq!(secret_in_file(&lines.join(&b'\n')), None, "{seed}");
        }
    }
    let inside = format!("{}ghp_{}", random(30, BASE64_OF_URLS, 3), random(400, BASE64_OF_URLS, 4));
    assert_eq!(secret_in_file(inside.as_bytes()), None, "in a long random text: {inside}");
}

#[test]
fn files_in_utf_16_are_searched() {
    let text = format!("# \u{e4}\u{20ac}\nTOKEN=ghp_{}", "aB3".repeat(12));
    let wide =
        |text: &str, bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let wide = wide(&text, bytes);
        assert_eq!(secret_in_file(&wide), Some("a GitHub token"));
        let marked: Vec<u8> = bytes(0xfeff).into_iter().chain(wide).collect();
        assert_eq!(secret_in_file(&marked), Some("a GitHub token"));
    }
    let names = b"npm_\0abcdefgh\0ghp_\0ijklmnopqrstuvwxyz\0a0123456789\0abcdefghijkl\0";
    assert_eq!(secret_in_file(names), None, "a table of names");
    assert_eq!(secret_in_file(&[0; 5000]), None);
}
