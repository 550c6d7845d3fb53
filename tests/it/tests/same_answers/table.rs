//! Names, and places that settings make writable.

/// A name in the project, and whether it is protected in every writable directory.
pub(crate) type Name = (&'static str, bool);

/// Names that are not there when the session begins.
pub(crate) const NEW: &[Name] = &[
    (".pi/skills/SKILL.md", true),
    (".pi/prompts/x.md", true),
    (".pi/settings.json", true),
    (".pi/extensions/x.ts", true),
    (".pi/portcullis.json", true),
    (".github/workflows/ci.yml", true),
    (".github/hooks/x.json", true),
    (".github/ISSUE_TEMPLATE/bug.md", false),
    (".cargo/config.toml", true),
    (".claude/settings.json", true),
    (".husky/pre-commit", true),
    (".vscode/tasks.json", true),
    ("src/.vscode/tasks.json", true),
    ("src/pnpm-workspace.yaml", true),
    ("src/x.code-workspace", true),
    ("src/AGENTS.md", true),
    (".bashrc", true),
    (".envrc", true),
    (".foorc", true),
    (".config/foo.toml", true),
    ("editor/settings.json", true),
    ("notes.txt", false),
    ("src/notes.txt", false),
    ("src/Makefile", false),
    ("node_modules/x/.npmrc", false),
    (".gitignore", false),
];

/// Names that are there, which commands add to and the tool `edit` changes.
pub(crate) const STANDING: &[Name] = &[
    (".pi/mcp.json", true),
    (".pi/skills/there.md", true),
    (".github/workflows/there.yml", true),
    (".vscode/launch.json", true),
    (".husky/commit-msg", true),
    ("editor/keybindings.json", true),
    ("src/CLAUDE.md", true),
    ("src/.npmrc", true),
    (".there", false),
    ("there.md", false),
    ("src/there.rs", false),
    ("node_modules/x/.yarnrc", false),
];

/// A link of the user's in the project, and where it leads.
pub(crate) const LINKS: &[(&str, &str)] = &[("editor", ".vscode"), ("agent", ".pi"), ("code", "src")];

/// The policies of the program, alone where commands are allowed by them, and together.
pub(crate) const POLICIES: &[&[&str]] = &[
    &[],
    &["guard"],
    &["bosun"],
    &["workspace", "git-guard"],
    &["workspace", "secrets"],
    &["workspace", "guard"],
    &["guard", "git-guard", "secrets"],
    &["bosun", "git-guard", "secrets"],
];

/// Values of `allowWrite`. `PROJECT` is the project's path, and `HOME` the way to it from the home directory.
pub(crate) const WRITABLE: &[&[&str]] = &[
    &[],
    &["."],
    &["./.pi"],
    &["./.github"],
    &["./.cargo"],
    &[".", "./.pi"],
    &["./src", "./.vscode"],
    &["./.config", "./node_modules"],
    &["./src/x.code-workspace", "./.envrc", "./notes.txt"],
    // Absolute, from the home directory, by a pattern, through links of the user's.
    &["PROJECT"],
    &["PROJECT/.pi", "PROJECT/src/"],
    &["HOME/.vscode", "HOME/src/**"],
    &["./.[pg]*", "**/*.md"],
    &["./{src,.vscode,.husky}", "./*.txt"],
    &["./editor", "./agent", "./code"],
];
