//! Detects names that people could mistake for known ones.

use super::candidate::OWN;
use crate::lock::Lock;
use crate::trust::Trust;

/// Returns a known name that people could mistake `id` for.
pub(super) fn look_alike(id: &str, lock: &Lock, trust: &Trust) -> Option<String> {
    let used = lock.policies.iter().map(|policy| policy.id.clone());
    let known: Vec<String> = used.chain(lock.removed.iter().map(|old| old.id.clone())).collect();
    if known.iter().any(|known| known == id) {
        return None;
    }
    let looks = outline(id);
    if let Some(like) = known.into_iter().find(|known| outline(known) == looks) {
        return Some(like);
    }
    let namespace = id.split(':').next().unwrap_or_default();
    let owned = trust.publishers.iter().flat_map(|publisher| publisher.namespaces.iter().map(String::as_str));
    let mut namespaces = owned.chain([OWN]);
    if namespaces.clone().any(|known| known == namespace) {
        return None;
    }
    namespaces.find(|known| outline(known) == outline(namespace)).map(|known| format!("{known}:..."))
}

/// Returns a name with all similar characters mapped to one.
fn outline(name: &str) -> String {
    let one = |character: char| match character {
        '1' | 'i' => 'l',
        '0' => 'o',
        '5' => 's',
        other => other,
    };
    let plain: String = name.chars().filter(|character| *character != '-').map(one).collect();
    plain.replace("rn", "m").replace("vv", "w").replace("cl", "d")
}
