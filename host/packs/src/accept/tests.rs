//! Tests of each refusal. Each changes one thing in a pack that is otherwise accepted.

use ssh_key::private::{Ed25519Keypair, PrivateKey};

use super::*;
use crate::signature::{PURPOSE, Signatures};

const NOW: Seconds = 1_798_761_600;
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

fn private(seed: u8) -> PrivateKey {
    PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]))
}

fn public(seed: u8) -> String {
    private(seed).public_key().to_openssh().unwrap()
}

/// Returns the bytes of a pack.
fn pack(id: &str, version: &str, more: &str) -> Vec<u8> {
    let text = format!(
        "[policy]\nid = '{id}'\nversion = '{version}'\ntitle = 'T'\n[contract]\nversion = '0.1'\n{more}"
    );
    Pack { manifest: Manifest::parse(&text).unwrap(), ..Pack::default() }.embed(EMPTY).unwrap()
}

/// Signs bytes with several keys for a purpose.
fn signed(bytes: &[u8], seeds: &[u8], purpose: &str) -> Signatures {
    let one = |seed: &u8| {
        let signature = private(*seed).sign(purpose, ssh_key::HashAlg::Sha512, bytes).unwrap();
        signature.to_pem(ssh_key::LineEnding::LF).unwrap()
    };
    Signatures::parse(&seeds.iter().map(one).collect::<Vec<_>>().join("\n"), "").unwrap()
}

/// A trust file in which key 1 signs for `acme:` and key 2 for `other:`.
fn trust(more: &str) -> Trust {
    let publisher = |name: &str, seed: u8| {
        let key = public(seed);
        format!(
            "[[publisher]]\nname = '{name}'\nnamespaces = ['{name}']\n[[key]]\npublisher = '{name}'\nkey = '{key}'\n"
        )
    };
    let text = format!("{}{}{more}", publisher("acme", 1), publisher("other", 2));
    Trust::parse(&text, &|_| Ok(String::new())).unwrap()
}

struct Case {
    bytes: Vec<u8>,
    signatures: Signatures,
    trust: Trust,
    lock: Lock,
    approval: Approval,
    wanted: Option<&'static str>,
    version: Option<Version>,
    pinned: Option<String>,
    described: Described,
    source: &'static str,
}

/// A case that is accepted.
fn good(id: &str, version: &str) -> Case {
    let bytes = pack(id, version, "");
    Case {
        signatures: signed(&bytes, &[1], PURPOSE),
        bytes,
        trust: trust(""),
        lock: Lock::default(),
        approval: Approval::default(),
        wanted: None,
        version: None,
        pinned: None,
        described: Described { id: id.to_owned(), version: version.to_owned() },
        source: "oci://localhost:5000/acme/guard",
    }
}

impl Case {
    fn judge(&self) -> Result<Locked, PackRefusal> {
        let candidate = Candidate {
            bytes: &self.bytes,
            signatures: &self.signatures,
            describe: &|| Ok(self.described.clone()),
            wanted: self.wanted,
            version: self.version.as_ref(),
            pinned: self.pinned.as_deref(),
            source: self.source,
        };
        accept(&candidate, &self.trust, &self.lock, &self.approval, NOW)
    }

    fn after(mut self, version: &str) -> Self {
        self.lock.put(good("acme:guard", version).judge().unwrap());
        self
    }
}

/// Checks that the pack is accepted without the change (the control), and that the refusal after it contains
/// `said`.
fn assert_refused(said: &str, change: impl Fn(&mut Case)) {
    let mut case = good("acme:guard", "1.2.0");
    case.judge().unwrap();
    change(&mut case);
    check(said, &case);
}

fn check(said: &str, case: &Case) {
    let error = case.judge().unwrap_err();
    let text = format!(
        "{error}{}",
        std::error::Error::source(&error).map(|it| format!(": {it}")).unwrap_or_default()
    );
    assert!(text.contains(said), "{text}");
}

#[test]
fn signatures_over_other_bytes_are_found() {
    let (old, new) = (pack("acme:guard", "1.0.0", ""), pack("acme:guard", "1.0.1", ""));
    let named = private(1).public_key().fingerprint(ssh_key::HashAlg::Sha256).to_string();
    // The key need not be known.
    assert_eq!(signed(&old, &[1], PURPOSE).over_other_bytes(&new, &[]), [named.as_str()]);
    assert_eq!(signed(&old, &[1], PURPOSE).over_other_bytes(&old, &[]), Vec::<String>::new());
    assert_eq!(signed(&old, &[1], "git").over_other_bytes(&old, &[]), [named.as_str()], "another purpose");
    assert!(Signatures::default().over_other_bytes(&new, &[]).is_empty());
}

#[test]
fn signatures() {
    assert_refused("is not over these bytes", |case| {
        // Flips one bit in a text without meaning, so that only the signature detects it.
        let place = case.bytes.windows(5).position(|bytes| bytes == b"title").unwrap() + 9;
        case.bytes[place] ^= 1;
    });
    assert_refused("there is no signature", |case| case.signatures = Signatures::default());
    assert_refused("is not theirs", |case| case.signatures = signed(&case.bytes, &[2], PURPOSE));
    assert_refused("is not theirs", |case| case.signatures = signed(&case.bytes, &[9], PURPOSE));
    assert_refused("was made for `git`", |case| case.signatures = signed(&case.bytes, &[1], "git"));
    assert_refused("was revoked: lost", |case| {
        case.trust = trust(&format!("[[revoked]]\nkey = '{}'\nreason = 'lost'", public(1)));
    });
    assert_refused("has expired", |case| {
        let text = format!(
            "[[publisher]]\nname = 'acme'\nnamespaces = ['acme']\n[[key]]\npublisher = 'acme'\nkey = '{}'\nvalid-before = '2027-01-01'",
            public(1)
        );
        case.trust = Trust::parse(&text, &|_| Ok(String::new())).unwrap();
    });
    assert_refused("is signed by `acme`", |case| {
        // The right key, in a namespace that does not belong to the publisher.
        case.bytes = pack("nobody:guard", "1.2.0", "");
        case.described.id = "nobody:guard".to_owned();
        case.signatures = signed(&case.bytes, &[1], PURPOSE);
    });
    assert_refused("must be signed by `other`", |case| {
        case.bytes = pack("other:guard", "1.2.0", "");
        case.signatures = signed(&case.bytes, &[1], PURPOSE);
    });
}

#[test]
fn several_keys() {
    let text = |threshold: usize| {
        let key = |seed: u8| format!("[[key]]\npublisher = 'acme'\nkey = '{}'\n", public(seed));
        format!(
            "[[publisher]]\nname = 'acme'\nnamespaces = ['acme']\nthreshold = {threshold}\n{}{}",
            key(1),
            key(3)
        )
    };
    let mut case = good("acme:guard", "1.2.0");
    case.trust = Trust::parse(&text(2), &|_| Ok(String::new())).unwrap();
    check("1 of them", &case);
    // The same key twice counts once.
    case.signatures = signed(&case.bytes, &[1, 1], PURPOSE);
    check("1 of them", &case);
    case.signatures = signed(&case.bytes, &[1, 3], PURPOSE);
    assert_eq!(case.judge().unwrap().signed_by.len(), 2);
    // A foreign or broken signature beside good ones does no harm.
    case.signatures = signed(&case.bytes, &[9, 1, 3], PURPOSE);
    assert!(case.judge().is_ok());
}

#[test]
fn names() {
    assert_refused("`acme:other` was asked for", |case| case.wanted = Some("acme:other"));
    assert_refused("version 1.3.0 was asked for", |case| case.version = Some(Version::new(1, 3, 0)));
    assert_refused("its code says `acme:other`", |case| case.described.id = "acme:other".to_owned());
    assert_refused("its code says `9.9.9`", |case| case.described.version = "9.9.9".to_owned());
    for name in ["acme:9uard", "acme:guard-", "acme:gu-ard", "acme:guarcl"] {
        let mut case = good(name, "1.0.0").after("1.2.0");
        match name {
            "acme:9uard" => assert!(case.judge().is_ok(), "a control: that is another name"),
            _ => check("looks like `acme:guard`", &case),
        }
        case.approval.similar = true;
        assert!(case.judge().is_ok(), "{name}");
    }
    for (namespace, like) in [("portcu11is", "portcullis"), ("acrne", "acme"), ("port-cullis", "portcullis")]
    {
        let mut case = good(&format!("{namespace}:guard"), "1.0.0");
        case.approval.unsigned = true;
        case.signatures = Signatures::default();
        check(&format!("looks like `{like}:"), &case);
    }
    let mut own = good("portcullis:workspace", "9.0.0");
    own.approval.unsigned = true;
    own.signatures = Signatures::default();
    check("it is unsigned", &own);
}

#[test]
fn versions() {
    assert!(good("acme:guard", "1.3.0").after("1.2.0").judge().is_ok());
    assert!(good("acme:guard", "1.2.0").after("1.2.0").judge().is_ok());
    let mut older = good("acme:guard", "1.1.9").after("1.2.0");
    check("older than 1.2.0", &older);
    older.approval.older = true;
    assert!(older.judge().is_ok());
    let preview = good("acme:guard", "1.2.0-rc.1").after("1.2.0");
    check("older than 1.2.0", &preview);
    let mut removed = good("acme:guard", "1.1.9").after("1.2.0");
    removed.lock.remove("acme:guard");
    check("older than 1.2.0", &removed);
    let mut replaced = good("acme:guard", "1.2.0").after("1.2.0");
    replaced.bytes = pack("acme:guard", "1.2.0", "[tests]\nfiles = ['other.toml']");
    replaced.signatures = signed(&replaced.bytes, &[1], PURPOSE);
    check("has other bytes", &replaced);
}

#[test]
fn what_nobody_has_signed() {
    let unsigned = |version: &str| {
        let mut case = good("mine:guard", version);
        case.signatures = Signatures::default();
        case.source = FROM_FILE;
        case
    };
    let mut case = unsigned("1.0.0");
    check("`--unsigned` trusts exactly these bytes", &case);
    case.approval.unsigned = true;
    let taken = case.judge().unwrap();
    assert!(taken.signed_by.is_empty());
    // Trusted by its digest.
    let mut trusted = unsigned("1.0.0");
    trusted.trust = trust(&format!("[[trusted]]\ndigest = '{}'", taken.digest));
    assert!(trusted.judge().is_ok());
    trusted.bytes = pack("mine:guard", "1.0.0", "[tests]\nfiles = ['x']");
    check("it is unsigned", &trusted);
    // The machine requires signatures.
    let machine = Trust::parse("require-signature = true", &|_| Ok(String::new())).unwrap();
    case.trust = trust("").under(machine);
    check("here it must be signed", &case);
    // A policy that was signed once must stay signed.
    let mut lost = unsigned("1.1.0");
    lost.approval.unsigned = true;
    lost.lock.put(Locked { signed_by: vec!["SHA256:x".to_owned()], ..taken.clone() });
    check("here it must be signed", &lost);
    // A new build of the same version is accepted for local files, and refused for published packs.
    let mut again = unsigned("1.0.0");
    again.approval.unsigned = true;
    again.lock.put(taken);
    again.bytes = pack("mine:guard", "1.0.0", "[tests]\nfiles = ['x']");
    assert!(again.judge().is_ok());
    again.source = "oci://localhost/x";
    check("has other bytes", &again);
    // A pack with an unknown signature does not count as unsigned.
    let mut foreign = unsigned("1.0.0");
    foreign.signatures = signed(&foreign.bytes, &[9], PURPOSE);
    check("which you do not trust", &foreign);
}

#[test]
fn what_it_may_do() {
    let wants = |version: &str, more: &str| {
        let mut case = good("acme:guard", version);
        case.bytes = pack("acme:guard", version, more);
        case.signatures = signed(&case.bytes, &[1], PURPOSE);
        case
    };
    let rewrites = "[capabilities]\nrewrites = true";
    let mut first = wants("1.0.0", "[capabilities]\nrewrites = true\noutput = true");
    check("it wants output,rewrites; agree with `--allow output,rewrites`", &first);
    first.approval.capabilities = BTreeSet::from(["rewrites".to_owned()]);
    check("it wants output;", &first);
    first.approval.capabilities.insert("output".to_owned());
    let agreed = first.judge().unwrap();
    // The same capabilities need no new approval. Additional ones do.
    let mut next = wants("1.1.0", rewrites);
    next.lock.put(agreed.clone());
    assert!(next.judge().is_ok());
    let mut grown = wants("1.1.0", "[capabilities]\nrewrites = true\nstate = 'project'");
    grown.lock.put(agreed.clone());
    check("it wants state-project", &grown);
    // Unsigned bytes do not inherit capabilities from other bytes.
    let unsigned = |bytes: Vec<u8>| {
        let mut case = good("mine:guard", "1.0.0");
        case.bytes = bytes;
        case.signatures = Signatures::default();
        case.described.id = "mine:guard".to_owned();
        case.approval.unsigned = true;
        case.source = FROM_FILE;
        case
    };
    let mut own = unsigned(pack("mine:guard", "1.0.0", rewrites));
    own.approval.capabilities = BTreeSet::from(["rewrites".to_owned()]);
    let agreed_unsigned = own.judge().unwrap();
    let mut same = unsigned(own.bytes.clone());
    same.lock.put(agreed_unsigned.clone());
    assert!(same.judge().is_ok(), "control: the very same bytes");
    let mut other =
        unsigned(pack("mine:guard", "1.0.0", "[capabilities]\nrewrites = true\n[tests]\nfiles = ['x']"));
    other.lock.put(agreed_unsigned);
    check("it wants rewrites", &other);
    // A removed and added pack needs a new approval.
    let mut removed = wants("1.1.0", rewrites);
    removed.lock.put(agreed);
    removed.lock.remove("acme:guard");
    check("it wants rewrites", &removed);
}

#[test]
fn bytes() {
    let digest = format!("sha256:{}", crate::digest::digest(&good("acme:guard", "1.2.0").bytes));
    let mut pinned = good("acme:guard", "1.2.0");
    pinned.pinned = Some(digest.clone());
    assert!(pinned.judge().is_ok());
    assert_refused("these are other bytes", |case| case.pinned = Some(format!("sha256:{}", "0".repeat(64))));
    assert_refused("was revoked: bad day", |case| {
        case.trust = trust(&format!("[[revoked]]\ndigest = '{digest}'\nreason = 'bad day'"));
    });
    assert_refused("it carries no manifest", |case| case.bytes = EMPTY.to_vec());
    assert_refused("no WebAssembly component", |case| case.bytes = b"hello".to_vec());
    assert_refused("damaged", |case| case.bytes.truncate(40));
    assert_refused("512 KiB", |case| {
        let name = b"portcullis:readme";
        let mut body = vec![u8::try_from(name.len()).unwrap()];
        body.extend_from_slice(name);
        body.resize(600 << 10, b'x');
        let size = body.len();
        let leb = [size & 0x7f | 0x80, size >> 7 & 0x7f | 0x80, size >> 14];
        case.bytes.push(0);
        case.bytes.extend(leb.map(|part| u8::try_from(part).unwrap()));
        case.bytes.extend(body);
    });
}

#[test]
fn nothing_unsigned_is_run() {
    let case = good("acme:guard", "1.2.0");
    let ran = std::cell::Cell::new(false);
    let describe = || {
        ran.set(true);
        Ok(case.described.clone())
    };
    let candidate = |signatures| Candidate {
        bytes: &case.bytes,
        signatures,
        describe: &describe,
        wanted: None,
        version: None,
        pinned: None,
        source: case.source,
    };
    let none = Signatures::default();
    assert!(accept(&candidate(&none), &case.trust, &case.lock, &case.approval, NOW).is_err());
    assert!(!ran.get());
    assert!(accept(&candidate(&case.signatures), &case.trust, &case.lock, &case.approval, NOW).is_ok());
    assert!(ran.get());
}

#[test]
fn files_are_vouched_for_by_their_digest_or_by_the_owner_of_their_name() {
    let mine = pack("mine:guard", "1.0.0", "");
    let theirs = pack("acme:guard", "1.0.0", "");
    let none = Signatures::default();
    let digest = |bytes: &[u8]| format!("sha256:{}", crate::digest::digest(bytes));
    let by_digest = |bytes: &[u8]| trust(&format!("[[trusted]]\ndigest = '{}'", digest(bytes)));
    let revoked = |bytes: &[u8]| trust(&format!("[[revoked]]\ndigest = '{}'", digest(bytes)));
    let keyless = |found: Option<Voucher>| found.map(|found| matches!(found, Voucher::Digest));
    let say = |bytes: &[u8], signatures: &Signatures, trust: &Trust| {
        keyless(vouched(bytes, signatures, trust, NOW))
    };
    for (bytes, signatures, trust, expected) in [
        (&mine, &none, trust(""), None),
        (&mine, &none, by_digest(&mine), Some(true)),
        (&mine, &none, by_digest(&theirs), None),
        (&mine, &signed(&mine, &[1], PURPOSE), trust(""), None),
        (&theirs, &none, trust(""), None),
        (&theirs, &signed(&theirs, &[1], PURPOSE), trust(""), Some(false)),
        (&theirs, &signed(&theirs, &[2], PURPOSE), trust(""), None),
        (&theirs, &signed(&theirs, &[1], "git"), trust(""), None),
        (&theirs, &signed(&mine, &[1], PURPOSE), trust(""), None),
        (&theirs, &signed(&theirs, &[1], PURPOSE), revoked(&theirs), None),
    ] {
        assert_eq!(say(bytes, signatures, &trust), expected, "{trust:?}");
    }
    let bare: &[u8] = EMPTY;
    assert_eq!(say(bare, &none, &trust("")), None);
    assert_eq!(say(bare, &none, &by_digest(bare)), Some(true));
    let mut strict = by_digest(bare);
    strict.require_signature = true;
    assert_eq!(say(bare, &none, &strict), None);
}
