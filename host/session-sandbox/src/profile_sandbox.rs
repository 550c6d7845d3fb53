//! Sets up a sandbox under a profile, for systems without Linux' mechanisms.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_decision::RuleSet;
use portcullis_exec_surface::GIT_HOOKS;
use portcullis_profile_runtime::ProfileSandbox;
use portcullis_profile_runtime::self_test::Scene;
use portcullis_seatbelt::{Wanted, compile};

use crate::confining::ProfilePlaces;
use crate::error::with_causes;
use crate::limits;
use crate::network::{Network, Sandbox};
use crate::repositories;
use crate::requirements::Requirements;

/// Names of which new ones are refused in every sandbox: no setting lifts them.
const ALWAYS_PROTECTED: &str = ".portcullis-self-test.tmp";
/// A hook of git, which the user can lift.
const HOOK: &str = ".git/hooks/pre-commit";

/// Sets up a sandbox, or returns why that failed.
///
/// Tiers are of Linux: here the self-test is what is required.
pub fn start(
    places: &ProfilePlaces,
    network: Option<&Network>,
    rules: &RuleSet,
    stricter: Option<&Arc<RuleSet>>,
    wanted: Requirements<'_>,
) -> Result<Arc<Sandbox>, String> {
    let Some(network) = network else {
        return Err("this session has no gate for connections".to_owned());
    };
    let failed = |doing: &str, error: std::io::Error| format!("{doing}: {error}");
    let proxy = TcpListener::bind("127.0.0.1:0").map_err(|error| failed("listening for a proxy", error))?;
    let port = proxy.local_addr().map_err(|error| failed("listening for a proxy", error))?.port();
    let attached = network.serve_proxy(proxy, stricter.cloned()).map_err(|error| with_causes(&error))?;

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
    let is_lifted = wanted.lifted.iter().any(|lifted| lifted == GIT_HOOKS.id);
    let hook = if is_lifted { ALWAYS_PROTECTED } else { HOOK };
    let scene = Scene::make((&places.files, &places.temp), &number, [ALWAYS_PROTECTED, hook], port)
        .map_err(|error| failed("making the files of the sandbox's test", error))?;
    let roots: Vec<PathBuf> = wanted.links.roots().iter().chain([&scene.project]).cloned().collect();
    let targets: Vec<PathBuf> = wanted.links.named.iter().map(|link| link.target.clone()).collect();
    let text = compile(&Wanted {
        rules,
        roots: &roots,
        homes: wanted.homes,
        lifted: wanted.lifted,
        repositories: &repositories::find(wanted.links.roots()),
        link_targets: &targets,
        ports: &[port],
        sockets: wanted.sockets,
    })
    .map_err(|error| with_causes(&error))?;
    let file = places.files.join(format!("profile-{number}"));
    let limits = limits::sandbox(rules.limits(limits::defaults()));
    let sandbox = ProfileSandbox::start(places.host.clone(), (&text, file), limits, &scene)
        .map_err(|error| format!("{}; `portcullis doctor` says more", with_causes(&error)))?;
    Ok(Arc::new(Sandbox::under_profile(sandbox, attached, places.home.clone())))
}
