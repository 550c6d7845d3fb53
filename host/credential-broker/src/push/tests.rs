use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

use super::commands::Id;
use super::*;

const COMMIT: u8 = 1;
const BLOB: u8 = 3;

fn rule(refs: &[&str]) -> PushRule {
    PushRule {
        requests: vec![RequestPattern::parse("POST /me/proj.git/git-receive-pack").unwrap()],
        refs: refs.iter().map(|text| RefPattern::parse(text).unwrap()).collect(),
        force: false,
        delete: false,
        secrets: false,
        bytes_max: 1 << 20,
    }
}

fn agent() -> PushRule {
    rule(&["refs/heads/agent/*"])
}

fn hex(id: &Id) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn commit(parents: &[Id]) -> (Vec<u8>, Id) {
    let parents: String = parents.iter().map(|id| format!("parent {}\n", hex(id))).collect();
    let text = format!("tree {}\n{parents}author a <a> 0 +0000\n\nm\n", "1".repeat(40)).into_bytes();
    let mut hash = Sha1::new_with_prefix(format!("commit {}\0", text.len()));
    hash.update(&text);
    (text, Id::from(hash.finalize()))
}

fn pack(objects: &[(u8, &[u8])]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(objects.len()).unwrap().to_be_bytes());
    for (kind, text) in objects {
        let (mut left, mut byte) = (text.len() >> 4, kind << 4 | u8::try_from(text.len() & 15).unwrap());
        while left > 0 {
            pack.push(byte | 0x80);
            (byte, left) = (u8::try_from(left & 0x7f).unwrap(), left >> 7);
        }
        pack.push(byte);
        let mut zlib = ZlibEncoder::new(&mut pack, Compression::fast());
        zlib.write_all(text).unwrap();
        zlib.finish().unwrap();
    }
    pack.extend(Sha1::digest(&pack));
    pack
}

fn body(updates: &[(&Id, &Id, &str)], pack: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (number, (old, new, name)) in updates.iter().enumerate() {
        let capabilities = if number == 0 { "\0 report-status atomic object-format=sha1" } else { "" };
        let line = format!("{} {} {name}{capabilities}", hex(old), hex(new));
        body.extend(format!("{:04x}{line}", line.len() + 4).into_bytes());
    }
    body.extend(b"0000");
    body.extend(pack);
    body
}

/// Returns why a push is refused, empty if it is not.
fn judged(rules: Vec<PushRule>, body: &[u8]) -> String {
    let judged = Push { rules }.judge(body);
    judged.err().map(|refusal| refusal.text).unwrap_or_default()
}

const ZERO: Id = [0; 20];
const OLD: Id = [7; 20];

#[test]
fn only_what_a_rule_permits_is_sent() {
    let (first, one) = commit(&[OLD]);
    let (second, two) = commit(&[one]);
    let (loose, other) = commit(&[]);
    let objects = pack(&[(COMMIT, &second), (COMMIT, &first), (COMMIT, &loose)]);
    let agent_ref = "refs/heads/agent/a";
    let with = |change: fn(&mut PushRule)| {
        let mut rule = agent();
        change(&mut rule);
        vec![rule]
    };
    for (rules, body, wanted) in [
        (vec![agent()], body(&[(&ZERO, &two, agent_ref)], &objects), ""),
        (vec![agent()], body(&[(&OLD, &two, agent_ref)], &objects), ""),
        (vec![agent()], body(&[(&OLD, &other, agent_ref)], &objects), "does not follow"),
        (with(|rule| rule.force = true), body(&[(&OLD, &other, agent_ref)], &objects), ""),
        (vec![agent()], body(&[(&OLD, &two, agent_ref)], &pack(&[(COMMIT, &second)])), "does not follow"),
        (vec![agent()], body(&[(&OLD, &ZERO, agent_ref)], b""), "would be deleted"),
        (with(|rule| rule.delete = true), body(&[(&OLD, &ZERO, agent_ref)], b""), ""),
        (with(|rule| rule.delete = true), body(&[(&OLD, &ZERO, agent_ref)], &objects), "has objects"),
        (vec![agent()], body(&[(&OLD, &two, "refs/heads/main")], &objects), "no rule"),
        (
            vec![agent()],
            body(&[(&OLD, &two, agent_ref), (&OLD, &two, "refs/heads/main")], &objects),
            "no rule",
        ),
        (vec![agent(), rule(&["refs/heads/main"])], body(&[(&OLD, &two, "refs/heads/main")], &objects), ""),
        (with(|rule| rule.bytes_max = 9), body(&[(&ZERO, &two, agent_ref)], &objects), "larger"),
        (vec![agent()], body(&[], b""), ""),
        (vec![agent()], body(&[], &objects), "no reference"),
    ] {
        let why = judged(rules, &body);
        assert!(if wanted.is_empty() { why.is_empty() } else { why.contains(wanted) }, "{wanted}: {why}");
    }
    // A permission for deletions comes from the rule of this reference, not from another one.
    let mut deleting = rule(&["refs/tags/*"]);
    deleting.delete = true;
    assert!(judged(vec![agent(), deleting], &body(&[(&OLD, &ZERO, agent_ref)], b"")).contains("deleted"));
}

#[test]
fn a_pack_that_cannot_be_read_is_refused() {
    let (text, id) = commit(&[OLD]);
    let good = pack(&[(COMMIT, &text)]);
    let push = |pack: &[u8]| judged(vec![agent()], &body(&[(&OLD, &id, "refs/heads/agent/a")], pack));
    assert_eq!(push(&good), "", "the control");
    for end in 0..good.len() {
        assert!(push(&good[..end]).contains("cannot be read"), "cut at {end}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(push(&longer).contains("cannot be read"));
    let mut version = good.clone();
    version[7] = 3;
    assert!(push(&version).contains("cannot be read"));
    let mut many = good.clone();
    many[8] = 0xff;
    assert!(push(&many).contains("objects"));
    for kind in [0, 5] {
        assert!(push(&pack(&[(kind, &text)])).contains("cannot be read"), "kind {kind}");
    }
    // Its size says less than what unpacks.
    let mut lying = good;
    lying[12] -= 1;
    assert!(push(&lying).contains("cannot be read"));
}

/// Makes a pack of a commit and `count` differences to it that each repeat the whole of it.
fn repeated(text: &[u8], count: u32) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    let number = |mut rest: u32| {
        let mut bytes = Vec::new();
        while rest > 0x7f {
            bytes.push(0x80 | u8::try_from(rest & 0x7f).unwrap());
            rest >>= 7;
        }
        bytes.push(u8::try_from(rest).unwrap());
        bytes
    };
    let copy = [&[0xf0][..], &length.to_le_bytes()[..3]].concat();
    let difference = [number(length), number(length), copy].concat();
    let mut pack = pack(&[(COMMIT, text)]);
    pack.truncate(pack.len() - 20);
    let base = 12;
    pack[8..12].copy_from_slice(&(count + 1).to_be_bytes());
    for _ in 0..count {
        let back = pack.len() - base;
        let mut offset = vec![u8::try_from(back & 0x7f).unwrap()];
        let mut rest = back >> 7;
        while rest > 0 {
            rest -= 1;
            offset.insert(0, 0x80 | u8::try_from(rest & 0x7f).unwrap());
            rest >>= 7;
        }
        pack.push(6 << 4 | u8::try_from(difference.len()).unwrap());
        pack.extend(offset);
        let mut zlib = ZlibEncoder::new(&mut pack, Compression::fast());
        zlib.write_all(&difference).unwrap();
        zlib.finish().unwrap();
    }
    pack.extend(Sha1::digest(&pack));
    pack
}

#[test]
fn a_small_push_cannot_stand_for_much_memory() {
    let mut text = commit(&[OLD]).0;
    text.resize(1 << 19, b'x');
    let mut hash = Sha1::new_with_prefix(format!("commit {}\0", text.len()));
    hash.update(&text);
    let id = Id::from(hash.finalize());
    let push =
        |count| judged(vec![agent()], &body(&[(&OLD, &id, "refs/heads/agent/a")], &repeated(&text, count)));
    assert_eq!(push(100), "", "the control");
    assert!(push(200).contains("its commits are too large"), "{}", push(200));
}

#[test]
fn credentials_in_files_are_found() {
    let (text, id) = commit(&[OLD]);
    let file = format!("{}TOKEN=ghp_{}\n", "line\n".repeat(5000), "aB3d".repeat(9));
    let objects = pack(&[(COMMIT, &text), (BLOB, file.as_bytes())]);
    let push = body(&[(&OLD, &id, "refs/heads/agent/a")], &objects);
    assert!(judged(vec![agent()], &push).contains("a GitHub token"));
    let free = PushRule { secrets: true, ..agent() };
    assert_eq!(judged(vec![free], &push), "");
    let clean = pack(&[(COMMIT, &text), (BLOB, b"ghp_short")]);
    assert_eq!(judged(vec![agent()], &body(&[(&OLD, &id, "refs/heads/agent/a")], &clean)), "");
}

/// Returns the rule that refuses a request, `push` for one that is judged by its body, or `other`.
fn kind(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut builder = hyper::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let parts = builder.body(()).unwrap().into_parts().0;
    match Push::of(&[agent()], &parts, RequestPath::parse(path).as_ref()) {
        Ok(Some(_)) => "push".to_owned(),
        Ok(None) => "other".to_owned(),
        Err(refusal) => refusal.rule,
    }
}

#[test]
fn a_push_is_recognized_in_every_form() {
    let pushing = ("content-type", "application/x-git-receive-pack-request");
    assert_eq!(kind("POST", "/me/proj.git/git-receive-pack", &[pushing]), "push");
    assert_eq!(kind("POST", "/me/proj.git/git-receive-pack", &[]), "push");
    for (method, path, headers) in [
        ("POST", "/me/other.git/git-receive-pack", vec![pushing]),
        ("POST", "/me/proj.git/git-receive-pack", vec![pushing, ("content-encoding", "gzip")]),
        ("POST", "/me/proj.git/elsewhere", vec![pushing]),
        ("POST", "/me/proj.git/git-receive-pack/", vec![]),
        ("POST", "/me/proj.git/GIT-RECEIVE-PACK", vec![]),
        ("POST", "/me/proj.git/git%2Dreceive%2Dpack/x", vec![]),
        ("POST", "/me//git%2Dreceive%2Dpack", vec![]),
        ("PUT", "/me/proj.git/git-receive-pack", vec![]),
        ("PUT", "/me/proj.git/refs/heads/main", vec![]),
        ("MOVE", "/me/proj/objects/aa", vec![]),
        ("DELETE", "/me/proj.git", vec![]),
        ("PUT", "/me/proj.GIT/x", vec![]),
        ("PUT", "/git/bare/config", vec![]),
        ("PUT", "/git/bare/hooks/post-receive", vec![]),
        ("MOVE", "/git/upload", vec![("destination", "https://a.test/me/proj.git/refs/heads/main")]),
        ("COPY", "/git/upload", vec![]),
        ("GET", "/git/upload", vec![("destination", "/me/proj.git/refs/heads/main")]),
        ("MKCOL", "/git/x", vec![]),
        ("LOCK", "/git/x", vec![]),
    ] {
        assert_eq!(kind(method, path, &headers), "host.push-rule", "{method} {path}");
    }
    for (method, path) in [
        ("GET", "/me/proj.git/info/refs"),
        ("POST", "/me/proj.git/git-upload-pack"),
        ("PATCH", "/api/issues/1"),
        ("PATCH", "/repos/me/proj/hooks/1"),
        ("PUT", "/repos/me/proj/contents/a.txt"),
        ("GET", "/me//proj"),
    ] {
        assert_eq!(kind(method, path, &[]), "other", "{method} {path}");
    }
}
