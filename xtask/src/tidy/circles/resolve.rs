//! Finds the files that define the names in a path.

use std::collections::BTreeSet;

use super::Imports;
use super::modules::{Module, Modules, Names};

/// The longest chain of re-exports that is followed.
const LONGEST_CHAIN: usize = 8;

impl Modules {
    /// Returns the imports between the files.
    pub(super) fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (index, module) in self.0.iter().enumerate() {
            let used = module.imports.iter().map(|(_, path)| path);
            for path in used.chain(&module.globs).chain(&module.paths) {
                for target in self.targets(index, path, 0) {
                    let Some(target) = self.0.get(target).filter(|target| target.file != module.file) else {
                        continue;
                    };
                    let name = path.last().cloned().unwrap_or_default();
                    imports
                        .entry(module.file.clone())
                        .or_default()
                        .entry(target.file.clone())
                        .or_insert(name);
                }
            }
        }
        imports
    }

    /// Returns the modules that define what `path` means in the module `from`; none if it is of another crate.
    fn targets(&self, from: usize, path: &[String], depth: usize) -> BTreeSet<usize> {
        let (Some(module), Some((first, rest))) = (self.0.get(from), path.split_first()) else {
            return BTreeSet::new();
        };
        match first.as_str() {
            _ if depth > LONGEST_CHAIN => BTreeSet::new(),
            "crate" => self.within(0, rest, from, depth),
            "self" => self.within(from, rest, from, depth),
            "super" => self.above(module, rest, from, depth),
            name => {
                let children = children(module, name);
                if !children.is_empty() {
                    return self.all_within(&children, rest, from, depth);
                }
                // An imported name alone counts where it is imported.
                if rest.is_empty() { BTreeSet::new() } else { self.imported(from, name, rest, depth) }
            }
        }
    }

    fn above(&self, module: &Module, rest: &[String], from: usize, depth: usize) -> BTreeSet<usize> {
        let Some(parent) = module.parent else { return BTreeSet::new() };
        match (rest.split_first(), self.0.get(parent)) {
            (Some((name, rest)), Some(module)) if name == "super" => self.above(module, rest, from, depth),
            _ => self.within(parent, rest, from, depth),
        }
    }

    /// Follows the imports of `name` in the module `from`.
    fn imported(&self, from: usize, name: &str, rest: &[String], depth: usize) -> BTreeSet<usize> {
        let imports = self.0.get(from).into_iter().flat_map(|module| &module.imports);
        // A path that begins with the imported name itself begins with a crate of this name.
        let imports = imports.filter(|(known, path)| known == name && path.first() != Some(known));
        let whole = |path: &Names| path.iter().chain(rest).cloned().collect::<Names>();
        imports.flat_map(|(_, path)| self.targets(from, &whole(path), depth + 1)).collect()
    }

    fn all_within(
        &self,
        modules: &BTreeSet<usize>,
        rest: &[String],
        from: usize,
        depth: usize,
    ) -> BTreeSet<usize> {
        modules.iter().flat_map(|module| self.within(*module, rest, from, depth)).collect()
    }

    /// Returns the modules that define `rest`, as seen in the module with the number `index`.
    fn within(&self, index: usize, rest: &[String], from: usize, depth: usize) -> BTreeSet<usize> {
        let itself = BTreeSet::from([index]);
        let (Some(module), Some((name, below))) = (self.0.get(index), rest.split_first()) else {
            return itself;
        };
        let children = children(module, name);
        if !children.is_empty() {
            return self.all_within(&children, below, from, depth);
        }
        if index == from || module.items.contains(name) || depth > LONGEST_CHAIN {
            return itself;
        }
        let imported = self.imported(index, name, below, depth);
        if !imported.is_empty() {
            return imported;
        }
        let globs: BTreeSet<usize> =
            module.globs.iter().flat_map(|path| self.targets(index, path, depth + 1)).collect();
        let has_name = |module: &&usize| self.0.get(**module).is_some_and(|module| module.knows(name));
        let found: BTreeSet<usize> = globs.iter().filter(has_name).copied().collect();
        match (found.is_empty(), globs.is_empty()) {
            (false, _) => self.all_within(&found, rest, from, depth + 1),
            // What a macro defines cannot be seen.
            (true, false) => globs,
            (true, true) => itself,
        }
    }
}

impl Module {
    fn knows(&self, name: &str) -> bool {
        self.items.contains(name)
            || self.imports.iter().any(|(known, _)| known == name)
            || self.children.iter().any(|(known, _)| known == name)
    }
}

fn children(module: &Module, name: &str) -> BTreeSet<usize> {
    module.children.iter().filter(|(known, _)| known == name).map(|(_, index)| *index).collect()
}
