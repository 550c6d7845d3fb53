//! The modules of a program or library, read from its source files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use syn::buffer::{Cursor, TokenBuffer};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, Lit, Meta, Token, UseTree};

/// A path as its names: `crate::a::B`.
pub(super) type Names = Vec<String>;

/// A module, in a file of its own or inline.
#[derive(Default)]
pub(super) struct Module {
    /// The file that it is in, relative to the clone.
    pub(super) file: PathBuf,
    pub(super) parent: Option<usize>,
    /// Modules declared in it, each with its name. A name can stand twice, for two systems.
    pub(super) children: Vec<(String, usize)>,
    /// Names that `use` brings in, each with its path.
    pub(super) imports: Vec<(String, Names)>,
    /// Paths before `::*`.
    pub(super) globs: Vec<Names>,
    /// All other paths in its code.
    pub(super) paths: Vec<Names>,
    /// Names of its items.
    pub(super) items: BTreeSet<String>,
}

/// All modules; the first one is the root.
pub(super) struct Modules(pub(super) Vec<Module>);

impl Modules {
    /// Reads the modules below a root file. `read` returns the text of a file, if there is one.
    pub(super) fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Result<Self> {
        let mut reader =
            Reader { modules: Vec::new(), module: 0, directory: folder(root), read, fault: None };
        reader.file(root.to_owned(), folder(root), None);
        match reader.fault {
            Some(fault) => Err(fault),
            None => Ok(Self(reader.modules)),
        }
    }
}

fn folder(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).to_owned()
}

struct Reader<'a> {
    modules: Vec<Module>,
    /// The module that is being read.
    module: usize,
    /// The directory of its child modules.
    directory: PathBuf,
    read: &'a dyn Fn(&Path) -> Option<String>,
    fault: Option<anyhow::Error>,
}

impl Reader<'_> {
    fn file(&mut self, file: PathBuf, directory: PathBuf, name: Option<&str>) {
        let text = (self.read)(&file).with_context(|| format!("reading `{}`", file.display()));
        let parsed = text
            .and_then(|text| syn::parse_file(&text).with_context(|| format!("parsing `{}`", file.display())));
        match parsed {
            Ok(parsed) => self.module(file, directory, name, &parsed.items),
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Reads the items of a module with this name in the current one; the root has none.
    fn module(&mut self, file: PathBuf, directory: PathBuf, name: Option<&str>, items: &[Item]) {
        let (index, outer) = (self.modules.len(), self.module);
        if let Some(name) = name {
            self.current(|module| module.children.push((name.to_owned(), index)));
        }
        let parent = name.map(|_| outer);
        self.modules.push(Module { file, parent, ..Module::default() });
        let outside = std::mem::replace(&mut self.directory, directory);
        self.module = index;
        items.iter().for_each(|item| self.visit_item(item));
        (self.module, self.directory) = (outer, outside);
    }

    fn current(&mut self, change: impl FnOnce(&mut Module)) {
        self.modules.get_mut(self.module).into_iter().next().map(change);
    }

    /// Adds what a `use` brings in, after the names `before`.
    fn import(&mut self, mut before: Names, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(before.clone(), tree)),
            UseTree::Glob(_) => self.current(|module| module.globs.push(before)),
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                if name != "self" {
                    before.push(name);
                }
                let name = before.last().cloned().unwrap_or_default();
                self.current(|module| module.imports.push((name, before)));
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    before.push(rename.ident.to_string());
                }
                self.current(|module| module.imports.push((rename.rename.to_string(), before)));
            }
        }
    }

    /// Adds the paths among the tokens of a macro or an attribute.
    fn tokens(&mut self, mut rest: Cursor<'_>) {
        let mut names = Names::new();
        let mut colons = 0;
        while !rest.eof() {
            if let Some((name, next)) = rest.ident() {
                if colons != 2 {
                    self.path(std::mem::take(&mut names));
                }
                names.push(name.to_string());
                (colons, rest) = (0, next);
            } else if let Some((inside, _, _, next)) = rest.any_group() {
                self.tokens(inside);
                self.path(std::mem::take(&mut names));
                rest = next;
            } else if let Some((sign, next)) = rest.punct() {
                colons = if sign.as_char() == ':' { colons + 1 } else { 0 };
                rest = next;
            } else if let Some((_, next)) = rest.token_tree() {
                (colons, rest) = (0, next);
            }
        }
        self.path(names);
    }

    fn path(&mut self, names: Names) {
        if names.len() > 1 {
            self.current(|module| module.paths.push(names));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = parts(item);
        if is_test(attributes) {
            return;
        }
        if let Some(name) = name {
            self.current(|module| {
                module.items.insert(name.to_string());
            });
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = item.ident.to_string();
        let below = self.directory.join(&name);
        let file = self.modules.get(self.module).map(|module| module.file.clone()).unwrap_or_default();
        if let Some((_, items)) = &item.content {
            return self.module(file, below, Some(&name), items);
        }
        // A `path` for one system can stand beside the usual place for another.
        let usual = [below.with_extension("rs"), below.join("mod.rs")];
        let mut places: Vec<(PathBuf, PathBuf)> = usual.map(|place| (place, below.clone())).into();
        places.retain(|(place, _)| (self.read)(place).is_some());
        // Fuzz targets share files with tests.
        let given = item.attrs.iter().filter_map(given_path);
        places.extend(given.filter(|path| !path.contains("/tests/")).map(|path| {
            let place = folder(&file).join(path);
            let below = folder(&place);
            (place, below)
        }));
        if places.is_empty() && !item.attrs.iter().any(|attribute| given_path(attribute).is_some()) {
            self.fault = Some(anyhow::anyhow!("`{}` has no file for `mod {name}`", file.display()));
        }
        for (place, below) in places {
            self.file(place, below, Some(&name));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(Names::new(), &item.tree);
    }

    /// `pub(super)` and `pub(in crate::a)` take nothing from there.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(TokenBuffer::new2(called.tokens.clone()).begin());
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.tokens(TokenBuffer::new2(list.tokens.clone()).begin());
    }
}

/// Returns the attributes of an item, and its name if other files can import it.
fn parts(item: &Item) -> (&[Attribute], Option<&syn::Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Mod(item) => (&item.attrs, None),
        Item::Use(item) => (&item.attrs, None),
        Item::Impl(item) => (&item.attrs, None),
        Item::ExternCrate(_) | Item::ForeignMod(_) | Item::Verbatim(_) | _ => (&[], None),
    }
}

/// Returns true for `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let buffer = TokenBuffer::new2(list.tokens.clone());
        let is_test = |cursor: Cursor<'_>| cursor.ident().is_some_and(|(name, _)| name == "test");
        let all = buffer.begin().ident().filter(|(name, _)| name == "all");
        let inside = all.and_then(|(_, next)| next.any_group()).map(|(inside, ..)| inside);
        is_test(inside.unwrap_or(buffer.begin()))
    })
}

/// Returns the file of `#[path = "…"]`, also in a `cfg_attr`.
fn given_path(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            let metas = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
            metas.iter().find_map(path_in)
        }
        meta @ (Meta::Path(_) | Meta::List(_) | Meta::NameValue(_)) => path_in(meta),
    }
}

fn path_in(meta: &Meta) -> Option<String> {
    let Meta::NameValue(pair) = meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("path").then(|| text.value())
}
