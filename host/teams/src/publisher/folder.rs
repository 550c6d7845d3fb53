//! A publisher's folder: its roots, bundles and timestamp, and drafting the next of each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use portcullis_packs::{Key, Seconds};

use super::counting::is_complete;
use super::documents::Documents;
use super::draft::{BUNDLE_FILE, BundleDraft, DAY, PackFile, TEMPLATE};
use super::error::FolderError;
use crate::bundle::{Bundle, Yanked};
use crate::document::{RoleKeys, SignedText, is_team_name};
use crate::refusal::TeamRefusal;
use crate::root::{ROOT, Roles, Root, RootText};
use crate::source::DocumentName;
use crate::timestamp::{BundleAt, EARLIER_MAX, TIMESTAMP, Timestamp};
use crate::update::PackBytes;

/// How long a root is valid.
const ROOT_VALID: Seconds = 365 * DAY;
/// How long a timestamp is valid.
const TIMESTAMP_VALID: Seconds = 14 * DAY;

/// A publisher's folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    pub(super) documents: Documents,
    pub(super) roots: Vec<Root>,
    pub(super) root_texts: Vec<SignedText>,
    /// All bundles, in the order of their versions, signed or not.
    pub(super) bundles: Vec<(Bundle, SignedText)>,
}

/// The keys of a new team.
#[derive(Debug, Clone)]
pub struct NewTeam {
    /// The name.
    pub team: String,
    /// Public keys for roots and bundles.
    pub keys: Vec<String>,
    /// How many of them must sign.
    pub threshold: usize,
    /// Public keys for timestamps, of which one must sign. The keys for bundles if there are none.
    pub timestamp_keys: Vec<String>,
}

/// A change of the keys.
#[derive(Debug, Clone, Default)]
pub struct Rotation {
    /// Public keys that are added for roots and bundles.
    pub add: Vec<String>,
    /// Public keys that are added for timestamps only.
    pub add_timestamp: Vec<String>,
    /// Fingerprints of the keys that are removed from all roles.
    pub remove: Vec<String>,
    /// How many keys must sign roots and bundles from now on.
    pub threshold: Option<usize>,
}

/// What was drafted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Drafted {
    /// The version of the new bundle.
    pub bundle: Option<u64>,
    /// The version of the new timestamp.
    pub timestamp: Option<u64>,
}

impl Folder {
    /// Makes a folder with the first root.
    ///
    /// # Errors
    /// When there is a folder already, or a key or the threshold is invalid.
    pub fn create(path: &Path, new: &NewTeam, now: Seconds) -> Result<Self, FolderError> {
        let documents = Documents::of(path);
        let file = path.join(BUNDLE_FILE);
        if file.exists() || documents.directory.exists() {
            return Err(FolderError::Value(format!("`{}` is a team's folder already", path.display())));
        }
        if !is_team_name(&new.team) {
            let name = new.team.escape_debug();
            return Err(FolderError::Value(format!(
                "`{name}` is no name of a team: lower-case letters, digits and `-`, at most 40"
            )));
        }
        let (keys, own) = read_keys(&new.keys)?;
        let (more, online) = read_keys(&new.timestamp_keys)?;
        let both = RoleKeys { threshold: new.threshold, keys: own };
        let timestamp =
            if online.is_empty() { both.clone() } else { RoleKeys { threshold: 1, keys: online } };
        let text = RootText {
            role: ROOT.to_owned(),
            team: new.team.clone(),
            version: 1,
            expires_at: now + ROOT_VALID,
            keys: keys.into_iter().chain(more).collect(),
            roles: Roles { root: both.clone(), bundle: both, timestamp },
        };
        let signed = drafted(&text)?;
        Root::read(&signed, &new.team).map_err(|refusal| FolderError::Documents(path.to_owned(), refusal))?;
        documents.write(&DocumentName::Root(1), &signed)?;
        portcullis_packs::write(&file, TEMPLATE.as_bytes())?;
        Self::open(path)
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// When it is no publisher's folder, or a document in it is damaged.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let documents = Documents::of(path);
        let root_texts = documents.series(DocumentName::Root)?;
        let refused = |refusal| FolderError::Documents(path.to_owned(), refusal);
        let Some(first) = root_texts.first() else {
            return Err(FolderError::Value(format!(
                "`{}` is no team's folder; `portcullis team new` makes one",
                path.display()
            )));
        };
        let team = serde_json::from_str::<RootText>(&first.text);
        let team = team.map_err(|error| FolderError::Value(format!("the first root: {error}")))?.team;
        let read = |signed: &SignedText| Root::read(signed, &team).map_err(refused);
        let roots: Vec<Root> = root_texts.iter().map(read).collect::<Result<_, _>>()?;
        let bundles = documents.series(DocumentName::Bundle)?;
        let bundle = |signed: SignedText| match serde_json::from_str::<Bundle>(&signed.text) {
            Ok(bundle) => Ok((bundle, signed)),
            Err(error) => Err(FolderError::Value(format!("a bundle in the folder: {error}"))),
        };
        let bundles = bundles.into_iter().map(bundle).collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_owned(), documents, roots, root_texts, bundles })
    }

    /// Returns the newest root.
    ///
    /// # Panics
    /// Never: a folder without a root cannot be opened.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a folder without a root cannot be opened")]
    pub fn root(&self) -> &Root {
        self.roots.last().expect("a folder has a root")
    }

    /// Returns the digest of the newest root, which members pin.
    #[must_use]
    pub fn pin(&self) -> String {
        self.root_texts.last().map(SignedText::digest).unwrap_or_default()
    }

    /// Returns the newest bundle, signed or not.
    #[must_use]
    pub fn newest(&self) -> Option<&Bundle> {
        self.bundles.last().map(|(bundle, _)| bundle)
    }

    /// Reads the content of the next bundle.
    ///
    /// # Errors
    /// When a file is missing or has a mistake.
    pub fn draft(&self) -> Result<BundleDraft, FolderError> {
        BundleDraft::read(&self.path, &self.root().team)
    }

    /// Drafts a bundle if the content differs from the newest one or `renew` is set, and a timestamp for it.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn next(&mut self, draft: &BundleDraft, renew: bool, now: Seconds) -> Result<Drafted, FolderError> {
        let yanked: Vec<u64> = self.yanks().iter().map(|one| one.version).collect();
        let same = |bundle: &Bundle| content(bundle) == content(&draft.bundle);
        // After a yank the files still have the bad content, until they are changed.
        let is_bad = self.bundles.iter().any(|(old, _)| yanked.contains(&old.version) && same(old));
        let mut drafted = Drafted::default();
        let unchanged = self.newest().filter(|newest| is_bad || same(newest));
        let next = match unchanged {
            Some(newest) => renew.then(|| newest.clone()),
            None => Some(draft.bundle.clone()),
        };
        if let Some(bundle) = next {
            drafted.bundle = Some(self.add_bundle(bundle, draft.valid, self.yanks(), now)?);
        }
        drafted.timestamp = self.next_timestamp(false, now)?;
        Ok(drafted)
    }

    /// Drafts a bundle that takes a version back: it has the content of the newest good one before.
    ///
    /// # Errors
    /// When there is no such version, or none before it.
    pub fn yank(&mut self, version: u64, reason: &str, now: Seconds) -> Result<Drafted, FolderError> {
        let mut yanked = self.yanks();
        if !self.bundles.iter().any(|(bundle, _)| bundle.version == version) {
            return Err(FolderError::Value(format!("there is no bundle {version}")));
        }
        if !yanked.iter().any(|one| one.version == version) {
            yanked.push(Yanked { version, reason: reason.to_owned() });
        }
        let is_good = |bundle: &Bundle| {
            bundle.version < version && !yanked.iter().any(|one| one.version == bundle.version)
        };
        let good = self.bundles.iter().rev().find(|(bundle, _)| is_good(bundle));
        let Some((good, _)) = good else {
            return Err(FolderError::Value(format!(
                "there is no good bundle before {version}; change the content and publish a new one"
            )));
        };
        let good = good.clone();
        let valid = self.draft().map_or(90 * DAY, |draft| draft.valid);
        let bundle = self.add_bundle(good, valid, yanked, now)?;
        let timestamp = self.next_timestamp(false, now)?;
        Ok(Drafted { bundle: Some(bundle), timestamp })
    }

    /// Drafts the next root, with other keys or only a later expiry.
    ///
    /// # Errors
    /// When a key or the threshold is invalid.
    pub fn rotate(&mut self, rotation: &Rotation, now: Seconds) -> Result<u64, FolderError> {
        let text = self.root_texts.last().map(|signed| signed.text.as_str()).unwrap_or_default();
        let mut text: RootText =
            serde_json::from_str(text).map_err(|error| FolderError::Value(error.to_string()))?;
        let follows = text.roles.timestamp.keys == text.roles.root.keys;
        let (keys, added) = read_keys(&rotation.add)?;
        let (more, online) = read_keys(&rotation.add_timestamp)?;
        let removed: BTreeSet<String> = rotation.remove.iter().cloned().collect();
        for role in [&mut text.roles.root, &mut text.roles.bundle] {
            role.keys.extend(added.iter().cloned());
            role.threshold = rotation.threshold.unwrap_or(role.threshold);
        }
        let timestamp = &mut text.roles.timestamp;
        timestamp.keys.extend(online);
        if follows {
            timestamp.keys.extend(added);
            timestamp.threshold = rotation.threshold.unwrap_or(timestamp.threshold);
        }
        for role in [&mut text.roles.root, &mut text.roles.bundle, timestamp] {
            role.keys.retain(|key| !removed.contains(key));
        }
        text.keys.extend(keys.into_iter().chain(more));
        let is_left = |line: &String| Key::parse(line).is_ok_and(|key| !removed.contains(key.fingerprint()));
        text.keys.retain(is_left);
        text.version += 1;
        text.expires_at = now + ROOT_VALID;
        let signed = drafted(&text)?;
        let root = Root::read(&signed, &text.team).map_err(|refusal| self.refused(refusal))?;
        self.documents.write(&DocumentName::Root(text.version), &signed)?;
        self.roots.push(root);
        self.root_texts.push(signed);
        Ok(text.version)
    }

    /// Drafts a new timestamp: if the newest bundle is another one, or `again` is set.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn next_timestamp(&mut self, again: bool, now: Seconds) -> Result<Option<u64>, FolderError> {
        let Some((newest, signed)) = self.bundles.last() else { return Ok(None) };
        let before = match self.documents.read(&DocumentName::Timestamp)? {
            None => None,
            Some(signed) => serde_json::from_str::<Timestamp>(&signed.text).ok(),
        };
        let bundle = at(newest, signed);
        if !again && before.as_ref().is_some_and(|before| before.bundle == bundle) {
            return Ok(None);
        }
        let is_good = |(old, signed): &&(Bundle, SignedText)| {
            old.version < newest.version
                && !newest.yanked.iter().any(|one| one.version == old.version)
                && is_complete(self.root(), &DocumentName::Bundle(old.version), signed)
        };
        let earlier = self.bundles.iter().rev().filter(is_good).take(EARLIER_MAX);
        let timestamp = Timestamp {
            role: TIMESTAMP.to_owned(),
            team: newest.team.clone(),
            version: before.map_or(0, |before| before.version) + 1,
            expires_at: now + TIMESTAMP_VALID,
            bundle,
            earlier: earlier.map(|(bundle, signed)| at(bundle, signed)).collect(),
        };
        self.documents.write(&DocumentName::Timestamp, &drafted(&timestamp)?)?;
        Ok(Some(timestamp.version))
    }

    /// Returns all documents that have their signatures, for publishing.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn complete(&self) -> Result<Vec<(DocumentName, SignedText)>, FolderError> {
        let mut complete = Vec::new();
        for (root, signed) in self.roots.iter().zip(&self.root_texts) {
            complete.push((DocumentName::PinnedRoot(signed.digest()), signed.clone()));
            complete.push((DocumentName::Root(root.version), signed.clone()));
        }
        for (bundle, signed) in &self.bundles {
            let name = DocumentName::Bundle(bundle.version);
            if is_complete(self.root(), &name, signed) {
                complete.push((name, signed.clone()));
            }
        }
        if let Some(signed) = self.documents.read(&DocumentName::Timestamp)? {
            complete.push((DocumentName::Timestamp, signed));
        }
        Ok(complete)
    }

    /// Returns the packs of a draft that the newest bundle names.
    #[must_use]
    pub fn packs_of(&self, draft: BundleDraft) -> Vec<PackBytes> {
        let is_named = |pack: &PackFile| {
            self.bundles.iter().any(|(bundle, _)| bundle.packs.iter().any(|one| one.digest == pack.digest))
        };
        draft.packs.into_iter().filter(is_named).map(|pack| (pack.digest, pack.bytes)).collect()
    }

    /// Reads the documents again, after signatures were added.
    pub(super) fn reload(&mut self) -> Result<(), FolderError> {
        *self = Self::open(&self.path)?;
        Ok(())
    }

    pub(super) fn refused(&self, refusal: TeamRefusal) -> FolderError {
        FolderError::Documents(self.path.clone(), refusal)
    }

    fn yanks(&self) -> Vec<Yanked> {
        self.newest().map(|bundle| bundle.yanked.clone()).unwrap_or_default()
    }

    fn add_bundle(
        &mut self,
        mut bundle: Bundle,
        valid: Seconds,
        yanked: Vec<Yanked>,
        now: Seconds,
    ) -> Result<u64, FolderError> {
        let version = self.newest().map_or(0, |bundle| bundle.version) + 1;
        (bundle.version, bundle.expires_at, bundle.yanked) = (version, now + valid, yanked);
        let signed = drafted(&bundle)?;
        self.documents.write(&DocumentName::Bundle(version), &signed)?;
        self.bundles.push((bundle, signed));
        Ok(version)
    }
}

/// Returns the content of a bundle, without what differs between two versions of the same content.
fn content(bundle: &Bundle) -> Bundle {
    Bundle { version: 0, expires_at: 0, yanked: Vec::new(), ..bundle.clone() }
}

fn at(bundle: &Bundle, signed: &SignedText) -> BundleAt {
    BundleAt { version: bundle.version, digest: signed.digest(), size: signed.text.len() as u64 }
}

fn drafted(document: &impl serde::Serialize) -> Result<SignedText, FolderError> {
    let text =
        serde_json::to_string_pretty(document).map_err(|error| FolderError::Value(error.to_string()))?;
    Ok(SignedText { text, signatures: String::new() })
}

/// Reads public keys: returns their lines, and their fingerprints.
fn read_keys(lines: &[String]) -> Result<(Vec<String>, BTreeSet<String>), FolderError> {
    let mut fingerprints = BTreeSet::new();
    for line in lines {
        let key =
            Key::parse(line).map_err(|error| FolderError::Value(format!("the key `{line}`: {error}")))?;
        fingerprints.insert(key.fingerprint().to_owned());
    }
    Ok((lines.iter().map(|line| line.trim().to_owned()).collect(), fingerprints))
}
