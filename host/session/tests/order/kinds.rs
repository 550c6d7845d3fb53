//! What a command does to make a tool's harmless file harmful.

/// One kind of race.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// What the command makes first; see `attack.c`.
    pub(crate) prepares: &'static str,
    /// The directory that it watches.
    pub(crate) watches: &'static str,
    /// What it does then.
    pub(crate) does: &'static [&'static str],
    /// What the tool writes.
    pub(crate) writes: &'static str,
    /// Where that is harmful.
    pub(crate) harms: &'static str,
    pub(crate) content: Content,
}

/// What the tool writes; `MARK` in it stands for a file that appears when a program has run.
pub(crate) enum Content {
    /// Harmful by its name, whatever is in it.
    Any,
    /// Harmful by what is in it; longer files go on with lines like the second text.
    Text(&'static str, &'static str),
}

/// Git's settings, with a program in them, for a module whose working tree is `sub`.
const MODULE: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ../../../sub\n\t\
                      fsmonitor = \"touch MARK;:\"\n";
const SETTINGS: Content = Content::Text("[core]\n\tbare = false\n\tfsmonitor = \"touch MARK;:\"\n", "#");

const fn renamed(
    name: &'static str,
    does: &'static [&'static str],
    (writes, harms): (&'static str, &'static str),
    content: Content,
) -> Kind {
    Kind { name, prepares: "w/", watches: "w", does, writes, harms, content }
}

/// `X/refs` is what a repository lacks.
const fn completed(
    name: &'static str,
    (prepares, watches): (&'static str, &'static str),
    writes: &'static str,
    content: Content,
) -> Kind {
    Kind { name, prepares, watches, does: &["mkdir", "X/refs"], writes, harms: writes, content }
}

pub(crate) const KINDS: &[Kind] = &[
    renamed(
        "renamed to .pi",
        &["rename", "w", ".pi"],
        ("w/settings.json", ".pi/settings.json"),
        Content::Any,
    ),
    renamed("renamed to .git", &["rename", "w", "q/.git"], ("w/config", "q/.git/config"), SETTINGS),
    renamed("renamed to .hg", &["rename", "w", ".hg"], ("w/hgrc", ".hg/hgrc"), Content::Any),
    renamed(
        "renamed to .cargo",
        &["rename", "w", ".cargo"],
        ("w/config.toml", ".cargo/config.toml"),
        Content::Any,
    ),
    renamed(
        "renamed to .yarn",
        &["rename", "w", ".yarn"],
        ("w/releases/yarn.cjs", ".yarn/releases/yarn.cjs"),
        Content::Any,
    ),
    completed("completed: config", ("X/,X/HEAD,X/objects/", "X"), "X/config", SETTINGS),
    Kind {
        name: "completed: config of a module",
        prepares: ".git/modules/,.git/modules/x/,.git/modules/x/HEAD,.git/modules/x/objects/",
        watches: ".git/modules/x",
        does: &["mkdir", ".git/modules/x/refs"],
        writes: ".git/modules/x/config",
        harms: ".git/modules/x/config",
        content: Content::Text(MODULE, "#"),
    },
    completed("completed: a hook", ("X/,X/HEAD,X/objects/", "X"), "X/hooks/pre-commit", Content::Any),
    completed(
        "completed: attributes",
        ("X/,X/HEAD,X/objects/,X/info/", "X/info"),
        "X/info/attributes",
        Content::Text("* filter=evil\n", "#"),
    ),
    completed("completed: config.worktree", ("X/,X/HEAD,X/objects/", "X"), "X/config.worktree", SETTINGS),
    completed(
        "completed: gitdir of a worktree",
        ("X/,X/HEAD,X/objects/,X/worktrees/,X/worktrees/a/", "X/worktrees/a"),
        "X/worktrees/a/gitdir",
        Content::Text("/etc/evil/.git\n", "/etc/evil/.git"),
    ),
    completed(
        "completed: strategy of a rebase",
        ("X/,X/HEAD,X/objects/,X/rebase-merge/", "X/rebase-merge"),
        "X/rebase-merge/strategy",
        Content::Text("./evil\n", "./evil"),
    ),
    completed(
        "completed: options of a sequence",
        ("X/,X/HEAD,X/objects/,X/sequencer/", "X/sequencer"),
        "X/sequencer/opts",
        Content::Text("[options]\n\tstrategy = ./evil\n", "#"),
    ),
];
