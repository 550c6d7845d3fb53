//! The kinds of git files.

use super::config_text;

/// The kind of a git file, which determines how its content is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Content {
    /// `config` and `config.worktree` of a repository.
    Config,
    /// `.gitmodules`. Since 2.20 git takes no commands from it, so it may also be written unjudged.
    Modules,
    /// A `.git` file, which names the repository of its directory.
    GitFile,
    /// `commondir`, which names the directory of configuration and hooks.
    CommonDirectory,
    /// `gitdir` of a worktree, which names its `.git` file.
    WayBack,
    /// `git-rebase-todo`, which lists the steps of `git rebase --continue`, including commands.
    RebaseTodo,
    /// `strategy` of an interrupted rebase: a program with which the next `git rebase --continue` merges.
    Strategy,
    /// `strategy_opts` of an interrupted rebase: options of its strategy.
    StrategyOptions,
    /// `apply-opt` of interrupted patches: options of `git apply`.
    ApplyOptions,
    /// `sequencer/opts`: the options of `git cherry-pick --continue`, including a strategy.
    SequencerOptions,
    /// `index`, which names the files that git writes.
    Index,
    /// `MERGE_RR`, which names files whose resolved conflicts the next git command copies into the repository.
    Conflicts,
    /// `objects/info/alternates`, which names object directories that git treats as its own.
    Alternates,
    /// `info/attributes`, which selects filters, drivers and converters.
    Attributes,
}

impl Content {
    /// Returns true if the file may be written unjudged: even the worst content is harmless to current git versions.
    #[must_use]
    pub fn may_be_unseen(self) -> bool {
        self == Self::Modules
    }

    /// Returns the longest file of this kind that is judged, in bytes. Git's own texts are far shorter; an index has a
    /// few hundred bytes per file of the working tree.
    #[must_use]
    pub fn longest(self) -> usize {
        match self {
            Self::Index => 256 << 20,
            Self::Config
            | Self::Modules
            | Self::GitFile
            | Self::CommonDirectory
            | Self::WayBack
            | Self::RebaseTodo
            | Self::Strategy
            | Self::StrategyOptions
            | Self::ApplyOptions
            | Self::SequencerOptions
            | Self::Conflicts
            | Self::Alternates
            | Self::Attributes => config_text::LONGEST,
        }
    }

    /// Returns true if the position of such a file affects its meaning.
    #[must_use]
    pub fn leads(self) -> bool {
        match self {
            Self::Config | Self::GitFile | Self::CommonDirectory | Self::WayBack | Self::Alternates => true,
            Self::Modules
            | Self::RebaseTodo
            | Self::Strategy
            | Self::StrategyOptions
            | Self::ApplyOptions
            | Self::SequencerOptions
            | Self::Index
            | Self::Attributes
            | Self::Conflicts => false,
        }
    }
}
