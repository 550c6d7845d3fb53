use portcullis_settings_format::{Entry, PathEntry, PolicySource, Settings, Tightening};

use super::*;

fn settings(imported: &Imported) -> Settings {
    Settings::parse(&imported.text, Path::new("default.json")).unwrap()
}

fn left(imported: &Imported) -> Vec<String> {
    imported.left.iter().map(|left| left.key.clone()).collect()
}

fn texts(entries: &[Entry<PathEntry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.text.as_str()).collect()
}

#[test]
fn srt_keeps_its_values_and_tells_what_it_cannot() {
    let given = json!({
        "network": {
            "allowedDomains": ["a.test", "*", "*.b.test:443"],
            "deniedDomains": ["*:22"],
            "tlsTerminate": { "caCertPath": "/a", "caKeyPath": "/b" },
            "allowLocalBinding": true,
            "httpProxyPort": 8080,
            "filterRequest": { "x": 1 },
        },
        "filesystem": {
            "denyRead": ["~/.ssh", { "path": "[x]", "literal": true }], "allowWrite": [".", 7], "denyWrite": ["a/*.pem"],
            "allowGitConfig": true, "disabled": false,
        },
        "ripgrep": { "command": "rg", "args": [] },
        "ignoreViolations": { "*": ["/usr"] },
        "enabledd": true,
        "someday": { "x": 1 },
    });
    let imported = Foreign::Srt.user(&given);
    let ours = settings(&imported);
    assert_eq!(ours.network.allowed_domains.len(), 2);
    assert_eq!(texts(&ours.filesystem.deny_read), ["~/.ssh", "[x]"]);
    assert_eq!(texts(&ours.filesystem.deny_write), ["a/*.pem"]);
    let kept: Vec<_> = ours.kept.iter().map(|kept| kept.name).collect();
    assert!(kept.contains(&"ripgrep") && kept.contains(&"filesystem.allowGitConfig"), "{kept:?}");
    let mut told = left(&imported);
    told.sort();
    assert_eq!(
        told,
        ["enabledd", "filesystem.allowWrite", "network.allowedDomains", "network.filterRequest", "someday",]
    );
    let slip = imported.left.iter().find(|left| left.key == "enabledd").unwrap();
    assert!(slip.reason.contains("is it `enabled`?"), "{}", slip.reason);
    assert!(imported.left.iter().all(|left| !left.reason.is_empty()));
}

#[test]
fn pi_sandbox_has_defaults_under_it_and_names_in_deny_write() {
    let given = json!({
        "enabled": true, "allowBrowserProcess": true,
        "network": { "allowedDomains": ["only.test"] },
        "filesystem": { "denyWrite": ["*.secret", "./here", "~/there"] },
    });
    let imported = Foreign::PiSandbox.user(&given);
    let ours = settings(&imported);
    assert_eq!(ours.network.allowed_domains.len(), 1, "a list that is given replaces the default");
    assert_eq!(texts(&ours.filesystem.deny_write), ["**/*.secret", "./here", "~/there"]);
    assert_eq!(texts(&ours.filesystem.allow_write), [".", "/tmp"], "the default of a list that is not given");
    assert_eq!(left(&imported), ["allowBrowserProcess"]);
}

#[test]
fn sysid_is_the_policy_guard() {
    let given = json!({ "filesystem": { "denyRead": ["~/.kube"], "denyWrite": [".env"] } });
    let imported = Foreign::Sysid.user(&given);
    let ours = settings(&imported);
    let [policy] = ours.policies.as_slice() else { panic!("{:?}", ours.policies) };
    assert_eq!(policy.source, PolicySource::Shipped("guard".to_owned()));
    let config = Json::Object(policy.config.clone());
    assert_eq!(config.pointer("/filesystem/denyRead"), Some(&json!(["~/.kube"])));
    assert_eq!(
        config.pointer("/filesystem/denyWrite"),
        Some(&json!([".env"])),
        "the policy knows names itself"
    );
    assert_eq!(config.pointer("/network/allowedDomains/1"), Some(&json!("*.npmjs.org")));
    assert_eq!(texts(&ours.filesystem.deny_read), ["~/.kube"], "and it is the host's ceiling");
    assert!(left(&imported).is_empty(), "{:?}", imported.left);
}

#[test]
fn of_a_projects_file_only_what_tightens_is_taken() {
    let given = json!({
        "enabled": false,
        "network": { "allowedDomains": ["a.test"], "deniedDomains": ["b.test"] },
        "filesystem": { "denyRead": ["secrets"], "allowWrite": ["/"], "denyWrite": [".env"] },
    });
    for origin in [Foreign::Sysid, Foreign::PiSandbox] {
        let imported = origin.project(&given);
        let layer = Tightening::parse(&imported.text, Path::new("x"), Layer::Project).unwrap();
        assert_eq!(texts(&layer.deny_read), ["secrets"]);
        assert_eq!(texts(&layer.deny_write), ["**/.env"]);
        assert_eq!(layer.network.denied_domains.len(), 1);
        assert_eq!(left(&imported), ["enabled", "network.allowedDomains", "filesystem.allowWrite"]);
    }
}

#[test]
fn bosun_is_found_in_its_file() {
    let given = json!({
        "model": { "name": "x" },
        "sandbox": {
            "deny_read": [".ssh", ".env", "*.pem", "/srv/secrets"], "allow_write": ["workspace", ".pi"],
            "deny_write": ["config.toml", "~/.bashrc"], "network": "open",
        },
    });
    let imported = Foreign::Bosun.user(&given);
    let ours = settings(&imported);
    assert_eq!(texts(&ours.filesystem.deny_read), ["~/.ssh", "**/.env", "**/*.pem", "/srv/secrets"]);
    assert_eq!(texts(&ours.filesystem.allow_write), ["workspace", ".pi"]);
    assert_eq!(texts(&ours.filesystem.deny_write), ["**/config.toml", "~/.bashrc"]);
    assert_eq!(left(&imported), ["network"]);
    let [policy] = ours.policies.as_slice() else { panic!("{:?}", ours.policies) };
    assert_eq!(policy.source, PolicySource::Shipped("bosun".to_owned()));
    assert_eq!(
        Json::Object(policy.config.clone()),
        json!({
            "deny_read": ["~/.ssh", ".env", "*.pem", "/srv/secrets"],
            "allow_write": ["./workspace", "./.pi"],
            "deny_write": ["config.toml", "~/.bashrc"],
        }),
        "its own policy decides, by the lists as they were"
    );
    assert_eq!(left(&Foreign::Bosun.user(&json!({ "model": 1 }))), [""], "nothing is there to be taken");
}

#[test]
fn what_is_no_settings_becomes_none() {
    for given in [json!(null), json!([1]), json!("x")] {
        for origin in [Foreign::Oddsjam, Foreign::Srt] {
            let imported = origin.user(&given);
            assert_eq!((left(&imported).len(), imported.text.as_str()), (1, EMPTY));
        }
    }
}

/// The policy decides by its own lists, so what is not carried must not be in them either.
#[test]
fn the_lists_of_guard_are_those_that_were_carried() {
    let given = json!({ "network": { "allowedDomains": ["a.test", "*", 7] },
        "filesystem": { "allowWrite": [".", 7], "denyWrite": [".env", { "path": "x", "literal": true }] } });
    let imported = Foreign::Sysid.user(&given);
    let text: Json = serde_json::from_str(&imported.text).unwrap();
    let config = &text["policies"][0]["config"];
    assert_eq!(config["network"]["allowedDomains"], json!(["a.test"]));
    assert_eq!(config["filesystem"]["allowWrite"], json!(["."]));
    assert_eq!(config["filesystem"]["denyWrite"], json!([".env"]), "the object is a rule of the settings");
    assert_eq!(
        left(&imported),
        ["network.allowedDomains", "network.allowedDomains", "filesystem.allowWrite"]
    );
}
