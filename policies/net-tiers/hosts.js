// The tiers as they are without configuration.

export const REGISTRIES = [
  "registry.npmjs.org:443", "registry.yarnpkg.com:443", "repo.yarnpkg.com:443", "jsr.io:443", "npm.jsr.io:443",
  "pypi.org:443", "files.pythonhosted.org:443",
  "index.crates.io:443", "static.crates.io:443", "crates.io:443", "static.rust-lang.org:443",
  "proxy.golang.org:443", "sum.golang.org:443",
  "rubygems.org:443", "index.rubygems.org:443",
  "repo1.maven.org:443", "repo.maven.apache.org:443", "plugins.gradle.org:443", "services.gradle.org:443",
  "api.nuget.org:443", "repo.packagist.org:443", "packagist.org:443", "hex.pm:443", "repo.hex.pm:443",
  "deb.debian.org:80,443", "security.debian.org:80,443", "archive.ubuntu.com:80,443", "security.ubuntu.com:80,443",
  "cache.nixos.org:443",
];

export const FORGES = [
  "github.com:22,443", "api.github.com:443", "codeload.github.com:443", "objects.githubusercontent.com:443",
  "raw.githubusercontent.com:443",
  "gitlab.com:22,443", "bitbucket.org:22,443", "codeberg.org:22,443", "git.sr.ht:22,443",
];

// Where anybody can leave data for anybody, and tunnels out of a machine.
export const DENIED = [
  "pastebin.com", "*.pastebin.com", "paste.ee", "dpaste.org", "dpaste.com", "hastebin.com", "paste.rs", "ix.io",
  "0x0.st", "termbin.com", "rentry.co", "controlc.com", "privatebin.net", "gist.github.com",
  "transfer.sh", "file.io", "*.file.io", "gofile.io", "*.gofile.io", "anonfiles.com", "catbox.moe", "*.catbox.moe",
  "webhook.site", "*.webhook.site", "requestbin.com", "*.requestbin.com", "pipedream.net", "*.pipedream.net",
  "beeceptor.com", "*.beeceptor.com", "requestcatcher.com", "*.requestcatcher.com", "interact.sh", "*.interact.sh",
  "oast.fun", "*.oast.fun", "oast.pro", "*.oast.pro", "burpcollaborator.net", "*.burpcollaborator.net",
  "ngrok.io", "*.ngrok.io", "ngrok.app", "*.ngrok.app", "*.ngrok-free.app", "*.trycloudflare.com", "*.loca.lt",
  "serveo.net", "*.serveo.net", "localhost.run", "*.lhr.life",
];

// Not to be configured: they hand out credentials of the machine to whoever asks.
export const METADATA = [
  "169.254.0.0/16", "fe80::/10", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
  "metadata.google.internal", "metadata.goog", "*.metadata.google.internal", "instance-data.ec2.internal",
  "metadata.azure.internal", "metadata.packet.net",
];
