//! Sensitive files: private keys, credentials and histories below the user's home directories.
//!
//! They are denied without a question, and no grant opens them. An entry can only be lifted by its id in the user's own
//! settings (`protections.lift`). Each entry is a plain file or directory, so that mounts can enforce it. Names inside
//! a directory that are not secret are exceptions; for those that exist when the rules are made, the other rules
//! decide.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use portcullis_decision::pattern::FilePattern;
use portcullis_decision::profile::FileRights;
use portcullis_decision::verdict::Effect;
use portcullis_settings_format::Layer;

use crate::disk::Disk;
use crate::rule::Rule;

/// One sensitive file or directory.
#[derive(Debug, Clone, Copy)]
pub struct Sensitive {
    /// The id of its rule, by which settings lift it. Several entries can share an id.
    pub id: &'static str,
    /// The path below the home directory.
    pub path: &'static str,
    /// Its content, as the rest of a sentence that starts with "it holds".
    pub holds: &'static str,
    /// Names directly inside that are not secret. A leading `*` stands for any characters.
    pub except: &'static [&'static str],
}

const fn entry(id: &'static str, path: &'static str, holds: &'static str) -> Sensitive {
    Sensitive { id, path, holds, except: &[] }
}

/// Rule id for the directory of GnuPG.
pub(crate) const GNUPG: &str = "host.gnupg";

/// All sensitive paths, the large directories last.
///
/// The search for hard links to these files is bounded and follows this order.
pub const SENSITIVE: &[Sensitive] = &[
    Sensitive {
        id: "host.ssh-keys",
        path: ".ssh",
        holds: "your SSH keys",
        except: &["known_hosts", "config", "*.pub"],
    },
    entry(GNUPG, ".gnupg", "your GnuPG keys"),
    entry("host.age-keys", ".config/age", "your age keys"),
    entry("host.age-keys", ".config/sops/age", "your age keys"),
    entry("host.password-stores", ".password-store", "your passwords (pass)"),
    entry("host.password-stores", ".local/share/gopass", "your passwords (gopass)"),
    entry("host.password-stores", ".config/gopass", "the keys of gopass"),
    entry("host.password-stores", ".config/op", "sessions of 1Password"),
    entry("host.password-stores", ".config/Bitwarden CLI", "your Bitwarden vault"),
    entry("host.password-stores", ".config/Bitwarden", "your Bitwarden vault"),
    entry("host.password-stores", ".config/keepassxc", "settings and keys of KeePassXC"),
    entry("host.keyrings", ".local/share/keyrings", "your desktop's keyrings"),
    entry("host.keyrings", ".local/share/kwalletd", "your desktop's wallets of passwords"),
    entry("host.keyrings", ".pki", "certificates and keys of your desktop"),
    entry("host.aws", ".aws", "your AWS credentials"),
    entry("host.gcloud", ".config/gcloud", "your Google Cloud credentials"),
    entry("host.gcloud", ".boto", "your Google Cloud credentials"),
    entry("host.azure", ".azure", "your Azure credentials"),
    entry("host.other-clouds", ".oci", "your Oracle Cloud credentials"),
    entry("host.other-clouds", ".aliyun", "your Alibaba Cloud credentials"),
    entry("host.other-clouds", ".bluemix", "your IBM Cloud credentials"),
    entry("host.other-clouds", ".config/doctl", "your DigitalOcean credentials"),
    entry("host.other-clouds", ".config/hcloud", "your Hetzner Cloud credentials"),
    entry("host.other-clouds", ".config/scw", "your Scaleway credentials"),
    entry("host.other-clouds", ".config/linode-cli", "your Linode credentials"),
    entry("host.other-clouds", ".fly", "your Fly.io credentials"),
    entry("host.other-clouds", ".wrangler", "your Cloudflare credentials"),
    entry("host.other-clouds", ".config/.wrangler", "your Cloudflare credentials"),
    entry("host.other-clouds", ".config/netlify", "your Netlify credentials"),
    entry("host.other-clouds", ".local/share/com.vercel.cli", "your Vercel credentials"),
    entry("host.other-clouds", ".s3cfg", "credentials of s3cmd"),
    entry("host.other-clouds", ".config/rclone", "the remotes of rclone, with their credentials"),
    entry("host.infrastructure", ".terraform.d/credentials.tfrc.json", "your Terraform credentials"),
    entry("host.infrastructure", ".terraformrc", "your Terraform credentials"),
    entry("host.infrastructure", ".pulumi/credentials.json", "your Pulumi credentials"),
    entry("host.infrastructure", ".vault-token", "your Vault token"),
    entry("host.infrastructure", ".chef", "your Chef keys"),
    entry("host.kubernetes", ".kube", "your cluster credentials"),
    entry("host.kubernetes", ".minikube/profiles", "your cluster credentials"),
    entry("host.containers", ".docker/config.json", "your registry credentials"),
    entry("host.containers", ".config/containers/auth.json", "your registry credentials"),
    entry("host.containers", ".config/helm/registry", "your registry credentials"),
    entry("host.forges", ".config/gh", "your GitHub credentials"),
    entry("host.forges", ".config/hub", "your GitHub credentials"),
    entry("host.forges", ".config/glab-cli", "your GitLab credentials"),
    entry("host.forges", ".config/tea", "your Gitea credentials"),
    entry("host.forges", ".git-credentials", "your git credentials"),
    entry("host.forges", ".config/git/credentials", "your git credentials"),
    entry("host.forges", ".subversion/auth", "your Subversion credentials"),
    entry("host.agent-logins", ".config/github-copilot", "your Copilot login"),
    entry("host.agent-logins", ".claude/.credentials.json", "your Claude login"),
    entry("host.agent-logins", ".codex/auth.json", "your Codex login"),
    entry("host.agent-logins", ".gemini/oauth_creds.json", "your Gemini login"),
    entry("host.agent-logins", ".local/share/opencode/auth.json", "your OpenCode logins"),
    entry("host.agent-logins", ".cache/huggingface/token", "your Hugging Face token"),
    entry("host.agent-logins", ".huggingface/token", "your Hugging Face token"),
    entry("host.agent-logins", ".kaggle/kaggle.json", "your Kaggle token"),
    entry("host.netrc", ".netrc", "logins for hosts (netrc)"),
    entry("host.netrc", ".authinfo", "logins for hosts (netrc)"),
    entry("host.netrc", ".authinfo.gpg", "logins for hosts (netrc)"),
    entry("host.toolchain-credentials", ".cargo/credentials", "credentials of cargo"),
    entry("host.toolchain-credentials", ".cargo/credentials.toml", "credentials of cargo"),
    entry("host.toolchain-credentials", ".composer/auth.json", "credentials of Composer"),
    entry("host.toolchain-credentials", ".gem/credentials", "credentials of RubyGems"),
    entry("host.toolchain-credentials", ".local/share/gem/credentials", "credentials of RubyGems"),
    entry("host.toolchain-credentials", ".gradle/gradle.properties", "credentials of Gradle"),
    entry("host.toolchain-credentials", ".m2/settings.xml", "credentials of Maven"),
    entry("host.toolchain-credentials", ".m2/settings-security.xml", "credentials of Maven"),
    entry("host.toolchain-credentials", ".npmrc", "credentials of npm"),
    entry("host.toolchain-credentials", ".yarnrc.yml", "credentials of Yarn"),
    entry("host.toolchain-credentials", ".nuget/NuGet/NuGet.Config", "credentials of NuGet"),
    entry("host.toolchain-credentials", ".pypirc", "credentials of PyPI"),
    entry("host.toolchain-credentials", ".config/pypoetry/auth.toml", "credentials of Poetry"),
    entry("host.databases", ".pgpass", "your PostgreSQL passwords"),
    entry("host.databases", ".my.cnf", "your MySQL passwords"),
    entry("host.databases", ".mylogin.cnf", "your MySQL passwords"),
    entry("host.databases", ".mongorc.js", "your MongoDB logins"),
    entry("host.databases", ".snowsql", "your Snowflake logins"),
    entry("host.databases", ".snowflake", "your Snowflake logins"),
    entry("host.databases", ".databrickscfg", "your Databricks credentials"),
    entry("host.mail", ".msmtprc", "passwords of your mail"),
    entry("host.mail", ".mbsyncrc", "passwords of your mail"),
    entry("host.mail", ".fetchmailrc", "passwords of your mail"),
    entry("host.histories", ".bash_history", "what you typed in shells"),
    entry("host.histories", ".zsh_history", "what you typed in shells"),
    entry("host.histories", ".zhistory", "what you typed in shells"),
    entry("host.histories", ".histfile", "what you typed in shells"),
    entry("host.histories", ".sh_history", "what you typed in shells"),
    entry("host.histories", ".ksh_history", "what you typed in shells"),
    entry("host.histories", ".history", "what you typed in shells"),
    entry("host.histories", ".local/share/fish/fish_history", "what you typed in shells"),
    entry("host.histories", ".local/share/atuin", "what you typed in shells"),
    entry("host.histories", ".config/nushell/history.txt", "what you typed in shells"),
    entry("host.histories", ".config/nushell/history.sqlite3", "what you typed in shells"),
    entry("host.histories", ".python_history", "what you typed into Python"),
    entry("host.histories", ".node_repl_history", "what you typed into Node"),
    entry("host.histories", ".irb_history", "what you typed into Ruby"),
    entry("host.histories", ".psql_history", "what you typed into psql"),
    entry("host.histories", ".mysql_history", "what you typed into mysql"),
    entry("host.histories", ".mariadb_history", "what you typed into mariadb"),
    entry("host.histories", ".sqlite_history", "what you typed into sqlite3"),
    entry("host.histories", ".rediscli_history", "what you typed into redis-cli"),
    entry("host.wallets", ".bitcoin", "a Bitcoin wallet"),
    entry("host.wallets", ".litecoin", "a Litecoin wallet"),
    entry("host.wallets", ".dogecoin", "a Dogecoin wallet"),
    entry("host.wallets", ".electrum", "Electrum wallets"),
    entry("host.wallets", ".ethereum/keystore", "Ethereum keys"),
    entry("host.wallets", ".foundry/keystores", "Ethereum keys"),
    entry("host.wallets", ".config/solana", "Solana keys"),
    entry("host.wallets", ".near-credentials", "NEAR keys"),
    entry("host.wallets", ".bitmonero", "a Monero wallet"),
    entry("host.wallets", "Monero", "Monero wallets"),
    entry("host.wallets", ".config/Exodus", "an Exodus wallet"),
    entry("host.browsers", ".mozilla", "cookies and passwords of Firefox"),
    entry("host.browsers", ".config/mozilla", "cookies and passwords of Firefox"),
    entry("host.browsers", "snap/firefox", "cookies and passwords of Firefox"),
    entry("host.browsers", ".var/app/org.mozilla.firefox", "cookies and passwords of Firefox"),
    entry("host.browsers", ".librewolf", "cookies and passwords of LibreWolf"),
    entry("host.browsers", ".zen", "cookies and passwords of Zen"),
    entry("host.browsers", ".local/share/torbrowser", "the profile of Tor Browser"),
    entry("host.browsers", ".config/google-chrome", "cookies and passwords of Chrome"),
    entry("host.browsers", ".config/google-chrome-beta", "cookies and passwords of Chrome"),
    entry("host.browsers", ".config/google-chrome-unstable", "cookies and passwords of Chrome"),
    entry("host.browsers", ".config/chromium", "cookies and passwords of Chromium"),
    entry("host.browsers", "snap/chromium", "cookies and passwords of Chromium"),
    entry("host.browsers", ".var/app/com.google.Chrome", "cookies and passwords of Chrome"),
    entry("host.browsers", ".var/app/org.chromium.Chromium", "cookies and passwords of Chromium"),
    entry("host.browsers", ".config/BraveSoftware", "cookies and passwords of Brave"),
    entry("host.browsers", ".config/microsoft-edge", "cookies and passwords of Edge"),
    entry("host.browsers", ".config/vivaldi", "cookies and passwords of Vivaldi"),
    entry("host.browsers", ".config/opera", "cookies and passwords of Opera"),
    entry("host.mail", ".thunderbird", "your mail"),
    entry("host.mail", ".local/share/evolution", "your mail"),
];

/// Returns true if `id` is that of a sensitive entry.
pub(crate) fn is_sensitive(id: &str) -> bool {
    SENSITIVE.iter().any(|entry| entry.id == id)
}

impl Sensitive {
    /// Returns the reason of its denial, with a hint on how to lift it.
    #[must_use]
    pub fn reason(&self) -> String {
        reason(self.holds, self.id)
    }

    /// Returns rules that except the existing names in `directory` that are not secret.
    pub(crate) fn exceptions(&self, directory: &Path, disk: &dyn Disk) -> Vec<Rule> {
        if self.except.is_empty() {
            return Vec::new();
        }
        // A directory that cannot be listed has no exceptions.
        let mut names = disk.names(directory).unwrap_or_default();
        names.retain(|name| self.except.iter().any(|pattern| matches(pattern, name)));
        // Sort, so that the same files give the same rules.
        names.sort();
        let rule = |name| Rule {
            layer: Layer::Host,
            id: self.id.to_owned(),
            pattern: FilePattern::Exact(directory.join(name)),
            rights: FileRights::ALL,
            effect: Effect::Allow,
            reason: "it is not secret".to_owned(),
            origin: None,
        };
        names.into_iter().map(rule).collect()
    }
}

/// Returns the reason of a denial under the id of a sensitive entry.
pub(crate) fn reason(holds: &str, id: &str) -> String {
    format!("it holds {holds}; only your settings can open it, with `{id}` in `protections.lift`")
}

fn matches(pattern: &str, name: &OsStr) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => name.as_bytes().ends_with(end.as_bytes()),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn entries_are_plain_paths_below_a_home_and_each_stands_once() {
        let mut known = HashSet::new();
        for entry in SENSITIVE {
            assert!(known.insert(entry.path), "{} stands twice", entry.path);
            assert!(
                !entry.path.contains(['*', '?', '[', '{']) && !entry.path.starts_with('/'),
                "{}",
                entry.path
            );
            assert!(entry.id.starts_with("host.") && !entry.holds.is_empty(), "{}", entry.path);
            assert!(entry.reason().contains(entry.id));
        }
    }

    #[test]
    fn exceptions_match_whole_names_and_endings() {
        for (name, expected) in [
            ("known_hosts", true),
            ("known_hosts.old", false),
            ("config", true),
            ("config.d", false),
            ("id_ed25519.pub", true),
            ("id_ed25519", false),
            ("id.pub.bak", false),
        ] {
            let except = SENSITIVE[0].except;
            assert_eq!(except.iter().any(|pattern| matches(pattern, OsStr::new(name))), expected, "{name}");
        }
    }
}
