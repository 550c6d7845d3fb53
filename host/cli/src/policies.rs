//! The policies of a session: found, loaded, configured.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use portcullis_config::{AllowLists, PolicyMode, PolicySource, Resolved, ResolvedPolicy, is_policy_name};
use portcullis_decision::{Chain, Combine, Member, Mode};
use portcullis_packs::{Locked, Seconds, Store, Trust, Voucher, digest, signatures_beside, vouched};
use portcullis_policy_runtime::{CachePlace, Limits, Runtime, read_component};
use serde_json::{Map, Value};

use crate::{manifest, surroundings, trusted};

/// The policies that come with the program; CI proves that they are what their sources build.
const SHIPPED: [(&str, &[u8]); 5] = [
    ("workspace", include_bytes!("../../../policies/workspace/policy.wasm")),
    ("guard", include_bytes!("../../../policies/guard/policy.wasm")),
    ("git-guard", include_bytes!("../../../policies/git-guard/policy.wasm")),
    ("secrets", include_bytes!("../../../policies/secrets/policy.wasm")),
    ("bosun", include_bytes!("../../../policies/bosun/policy.wasm")),
];

/// Loads the chain: the policies named on the command line, or those of the settings.
/// Says whether one of them takes the allow lists.
pub(crate) fn load(
    resolved: &Resolved,
    named: &[PathBuf],
    cache: &Path,
    agent_directory: &Path,
) -> anyhow::Result<(Chain, AllowLists)> {
    let runtime = Runtime::new(Limits::default(), &CachePlace::Directory(cache.to_owned()))?;
    let shelf = Shelf::open(agent_directory)?;
    let mut loader = Loader { runtime, resolved, lists: AllowLists::Unheard };
    let mut members = Vec::new();
    if named.is_empty() {
        for policy in &resolved.policies {
            let component = shelf
                .component(&policy.source)
                .with_context(|| format!("loading policy `{}`", policy.name))?;
            let mode = component.origin.at_most(mode_of(policy.mode));
            members.push(loader.member(&policy.name, &component, &policy.config, mode)?);
        }
    } else {
        for file in named {
            // Whoever names a file on the command line trusts it.
            let component = shelf.file(file)?;
            let name = unique(&members, file)?;
            members.push(loader.member(&name, &component, &Map::new(), Mode::Enforce)?);
        }
    }
    let combine = if named.is_empty() { resolved.combine.clone() } else { Combine::Strictest };
    Ok((Chain { members, combine, stopwatch: surroundings::stopwatch }, loader.lists))
}

/// Where components come from.
struct Shelf {
    store: Store,
    trust: Trust,
}

/// A component, and who says what it may do.
struct Component {
    bytes: Cow<'static, [u8]>,
    origin: Origin,
}

enum Origin {
    /// It comes with the program.
    Shipped,
    /// A file that the user has named: its own manifest speaks for it. Who vouches for it.
    File(PathBuf, Option<Voucher>),
    /// A pack: what the user has agreed to when it was added.
    Pack(Box<Locked>),
}

impl Origin {
    /// The weight of its answers: a file that nobody vouches for can only tighten.
    fn at_most(&self, mode: Mode) -> Mode {
        match (self, mode) {
            (Self::File(_, None), Mode::Enforce) => Mode::Tighten,
            (Self::Shipped | Self::Pack(_) | Self::File(..), mode) => mode,
        }
    }

    /// In words, for who looks at the settings.
    fn words(&self) -> String {
        match self {
            Self::Shipped => "comes with Portcullis".to_owned(),
            Self::File(_, Some(Voucher::Digest)) => "a file, trusted by its digest".to_owned(),
            Self::File(_, Some(Voucher::Keys(keys))) => format!("a file, signed by {}", keys.join(", ")),
            Self::File(_, None) => UNVOUCHED.to_owned(),
            Self::Pack(locked) if locked.signed_by.is_empty() => "a pack, trusted by its digest".to_owned(),
            Self::Pack(locked) => format!("a pack, signed by {}", locked.signed_by.join(", ")),
        }
    }
}

/// What is said of a file that only its place speaks for.
pub(crate) const UNVOUCHED: &str =
    "a file that nobody vouches for: it can only tighten; `portcullis policy trust file` trusts its digest";

/// A policy of the settings, for who looks at them.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Shown {
    /// Its name.
    pub(crate) name: String,
    /// `sha256:...` of the component.
    pub(crate) digest: String,
    /// How its answers count: `enforce`, `tighten` or `observe`.
    pub(crate) mode: Mode,
    /// Whose it is and who vouches for it.
    pub(crate) origin: String,
}

/// Finds the policies of the settings, and runs none of them. What cannot be found is said in place of its origin.
pub(crate) fn shown(resolved: &Resolved, agent_directory: &Path) -> anyhow::Result<Vec<Shown>> {
    let shelf = Shelf::open(agent_directory)?;
    let of = |policy: &ResolvedPolicy| {
        let mode = mode_of(policy.mode);
        let name = policy.name.clone();
        match shelf.component(&policy.source) {
            Ok(Component { bytes, origin }) => Shown {
                name,
                digest: format!("sha256:{}", digest(&bytes)),
                mode: origin.at_most(mode),
                origin: origin.words(),
            },
            Err(error) => Shown { name, digest: String::new(), mode, origin: format!("{error:#}") },
        }
    };
    Ok(resolved.policies.iter().map(of).collect())
}

/// Says who vouches for the component of a file.
pub(crate) fn vouching(file: &Path, bytes: &[u8], trust: &Trust) -> Option<Voucher> {
    // What cannot be read vouches for nothing.
    let signatures = signatures_beside(file).unwrap_or_default();
    vouched(bytes, &signatures, trust, seconds())
}

/// Who vouches for the component of a file, in words.
pub(crate) fn vouching_words(file: &Path, bytes: &[u8], agent_directory: &Path) -> anyhow::Result<String> {
    let trust = trusted::read(agent_directory)?;
    Ok(Origin::File(file.to_owned(), vouching(file, bytes, &trust)).words())
}

/// Seconds since 1970.
fn seconds() -> Seconds {
    let since = surroundings::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn mode_of(mode: PolicyMode) -> Mode {
    match mode {
        PolicyMode::Enforce => Mode::Enforce,
        PolicyMode::Tighten => Mode::Tighten,
        PolicyMode::Observe => Mode::Observe,
    }
}

impl Shelf {
    fn open(agent_directory: &Path) -> anyhow::Result<Self> {
        let store = Store::new(&agent_directory.join("sandbox"));
        Ok(Self { store, trust: trusted::read(agent_directory)? })
    }

    fn component(&self, source: &PolicySource) -> anyhow::Result<Component> {
        match source {
            PolicySource::Shipped(name) => match SHIPPED.iter().find(|(shipped, _)| shipped == name) {
                Some((_, component)) => {
                    Ok(Component { bytes: Cow::Borrowed(component), origin: Origin::Shipped })
                }
                None => {
                    let names: Vec<_> = SHIPPED.iter().map(|(name, _)| format!("`{name}`")).collect();
                    bail!("there is no policy `{name}`; {} come with Portcullis", names.join(", "))
                }
            },
            PolicySource::Pack(id) => self.pack(id),
            PolicySource::File(path) => self.file(path),
        }
    }

    fn file(&self, path: &Path) -> anyhow::Result<Component> {
        let bytes = read_component(path)?;
        self.check(&format!("sha256:{}", digest(&bytes)), &[])?;
        let voucher = vouching(path, &bytes, &self.trust);
        Ok(Component { bytes: bytes.into(), origin: Origin::File(path.to_owned(), voucher) })
    }

    /// The digest in the lock is what counts; the file only has to have it.
    fn pack(&self, id: &str) -> anyhow::Result<Component> {
        let lock = self.store.lock()?;
        let locked = lock.find(id).with_context(|| {
            format!(
                "`{id}` is not in `{}`; `portcullis policy add` takes it there",
                self.store.lock_file().display()
            )
        })?;
        self.check(&locked.digest, &locked.signed_by)?;
        let bytes = self.store.component(locked)?;
        Ok(Component { bytes: bytes.into(), origin: Origin::Pack(Box::new(locked.clone())) })
    }

    /// What was revoked since it was taken is not used any more.
    fn check(&self, digest: &str, keys: &[String]) -> anyhow::Result<()> {
        for what in std::iter::once(digest).chain(keys.iter().map(String::as_str)) {
            if let Some(reason) = self.trust.revoked(what) {
                return Err(Revoked { what: what.to_owned(), reason: reason.to_owned() }.into());
            }
        }
        Ok(())
    }
}

/// Something that is in use was revoked.
#[derive(Debug)]
pub(crate) struct Revoked {
    what: String,
    reason: String,
}

impl std::fmt::Display for Revoked {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "`{}` was revoked: {}", self.what, self.reason)
    }
}

impl std::error::Error for Revoked {}

struct Loader<'a> {
    runtime: Runtime,
    resolved: &'a Resolved,
    lists: AllowLists,
}

impl Loader<'_> {
    fn member(
        &mut self,
        name: &str,
        component: &Component,
        config: &Map<String, Value>,
        mode: Mode,
    ) -> anyhow::Result<Member> {
        let context = || format!("loading policy `{name}`");
        let Component { bytes, origin } = component;
        let description = self.runtime.describe(bytes).with_context(context)?;
        let (config, lists) = configuration(self.resolved, &description.config_schema, config)?;
        if lists == AllowLists::Heard && mode == Mode::Enforce {
            self.lists = AllowLists::Heard;
        }
        let policy = self.runtime.load(name, bytes, &config).with_context(context)?;
        let rewrites = match origin {
            Origin::Shipped => false,
            Origin::File(file, _) => manifest::of(bytes, file, &description.id)
                .with_context(context)?
                .is_some_and(|manifest| manifest.capabilities.rewrites),
            Origin::Pack(locked) => locked.capabilities.contains("rewrites"),
        };
        let policy = if rewrites { policy.rewriting() } else { policy };
        // A pack is what was agreed to when it was added; most of them export everything, because SDKs do.
        let is_blind = matches!(origin, Origin::Pack(locked) if !locked.capabilities.contains("output"));
        let policy = if is_blind { policy.without_output() } else { policy };
        Ok(Member { policy: Arc::new(policy), mode })
    }
}

/// The configuration for a policy: what the settings give it, and of the allow lists those that its
/// schema declares.
fn configuration(
    resolved: &Resolved,
    schema: &str,
    given: &Map<String, Value>,
) -> anyhow::Result<(String, AllowLists)> {
    let schema: Value = match schema {
        "" => Value::Null,
        text => serde_json::from_str(text).context("reading the policy's own schema of its configuration")?,
    };
    let declares = |key: &str| schema.pointer(&format!("/properties/{key}")).is_some();
    let domains: Vec<String> = resolved.allowed_domains.iter().map(ToString::to_string).collect();
    let lists = [
        ("allowRead", serde_json::to_value(&resolved.allow_read)?),
        ("allowWrite", serde_json::to_value(&resolved.allow_write)?),
        ("allowedDomains", serde_json::to_value(domains)?),
        ("strictAllowlist", Value::Bool(resolved.strict_allowlist)),
    ];
    let mut config = given.clone();
    let takes = |key: &str| declares(key) && !given.contains_key(key);
    let takes_all = ["allowRead", "allowWrite", "allowedDomains"].into_iter().all(takes);
    for (key, value) in lists {
        if takes(key) {
            config.insert(key.to_owned(), value);
        }
    }
    let heard = if takes_all { AllowLists::Heard } else { AllowLists::Unheard };
    Ok((Value::Object(config).to_string(), heard))
}

/// The file's name without its ending; numbered where two files have the same.
fn unique(members: &[Member], file: &Path) -> anyhow::Result<String> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_policy_name(stem)).with_context(
        || {
            format!(
                "`{}` cannot be the name of a policy: letters, digits, `-` and `_` only, and none of the host's own \
                 (`base`, `settings`, ...); rename the file",
                file.display()
            )
        },
    )?;
    let taken = |name: &str| members.iter().any(|member| member.policy.name() == name);
    if !taken(stem) {
        return Ok(stem.to_owned());
    }
    let numbered = (2_u32..).map(|number| format!("{stem}-{number}")).find(|name| !taken(name));
    numbered.context("there are too many policies of this name")
}
