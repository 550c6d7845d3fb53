//! Stubs for systems without openat2: every operation fails.
#![expect(missing_docs, reason = "`linux` has the same items with their documentation")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use portcullis_decision::Permit;
use portcullis_decision::request::{FileFacts, PathKind};

use crate::search::{FindQuery, Flow, FoundName, GrepQuery, Line, SearchEnd, SearchError, SearchGuard};
use crate::{
    FileContent, FileError, Inode, Limits, Links, Listing, Names, Purpose, View, Views, WriteOptions, Written,
};

#[derive(Debug)]
pub struct Gate(());

#[derive(Debug)]
pub struct Located(Infallible);

#[derive(Debug)]
pub struct Editing(Infallible);

#[derive(Debug)]
pub struct HostDirectory(Infallible);

impl HostDirectory {
    pub fn open(_path: &Path) -> Option<Self> {
        None
    }

    pub fn has(&self, _name: &str) -> bool {
        match self.0 {}
    }

    pub fn has_directory(&self, _name: &str) -> bool {
        match self.0 {}
    }

    pub fn read(&self, _name: &str, _most: u64) -> Option<Vec<u8>> {
        match self.0 {}
    }

    pub fn make_directory(&self, _name: &OsStr) -> io::Result<()> {
        match self.0 {}
    }

    pub fn remove_directory(&self, _name: &OsStr) -> io::Result<()> {
        match self.0 {}
    }
}

pub fn linked_files(_tops: &[PathBuf], _spared: Option<&Path>) -> HashMap<Inode, PathBuf> {
    HashMap::new()
}

pub fn symbolic_links(_tops: &[PathBuf], _spared: &str, _most: usize) -> Result<Vec<PathBuf>, PathBuf> {
    Ok(Vec::new())
}

impl Gate {
    pub fn new(_views: Views) -> Result<Self, FileError> {
        Ok(Self(()))
    }

    pub fn register_output(&self, _path: &Path) -> Result<(), FileError> {
        Err(FileError::Unsupported)
    }

    pub fn locate(&self, _path: &Path, _purpose: Purpose) -> Result<Located, FileError> {
        Err(FileError::Unsupported)
    }

    pub fn locate_in_host_view(&self, _path: &Path, _purpose: Purpose) -> Result<Located, FileError> {
        Err(FileError::Unsupported)
    }

    pub fn read(&self, located: Located, _permit: Permit, _limits: Limits) -> Result<FileContent, FileError> {
        match located.0 {}
    }

    pub fn inspect(&self, located: &Located, _limits: Limits) -> Result<Option<FileContent>, FileError> {
        match located.0 {}
    }

    pub fn edit(&self, located: Located, _permit: Permit, _limits: Limits) -> Result<Editing, FileError> {
        match located.0 {}
    }

    pub fn replace(&self, editing: Editing, _bytes: &[u8], _links: Links) -> Result<Written, FileError> {
        match editing.0 {}
    }

    pub fn write(
        &self,
        located: Located,
        _permit: Permit,
        _bytes: &[u8],
        _options: WriteOptions,
    ) -> Result<Written, FileError> {
        match located.0 {}
    }

    pub fn list(
        &self,
        located: Located,
        _permit: Permit,
        _limits: Limits,
        _keep: &mut dyn FnMut(&Path, PathKind) -> bool,
    ) -> Result<Listing, FileError> {
        match located.0 {}
    }

    pub fn names_of(&self, located: &Located, _tops: &[PathBuf]) -> Result<Names, FileError> {
        match located.0 {}
    }

    pub fn leave_to_others(&self, located: Located, _permit: Permit) -> Result<(), FileError> {
        match located.0 {}
    }

    pub fn find(
        &self,
        located: Located,
        _permit: Permit,
        _query: &FindQuery,
        _guard: &dyn SearchGuard,
        _tell: &mut dyn FnMut(&FoundName<'_>) -> Flow,
    ) -> Result<SearchEnd, SearchError> {
        match located.0 {}
    }

    pub fn grep(
        &self,
        located: Located,
        _permit: Permit,
        _query: &GrepQuery,
        _guard: &dyn SearchGuard,
        _tell: &mut dyn FnMut(&Line<'_>) -> Flow,
    ) -> Result<SearchEnd, SearchError> {
        match located.0 {}
    }
}

impl Located {
    pub fn canonical(&self) -> &Path {
        match self.0 {}
    }

    pub fn canonical_text(&self) -> &str {
        match self.0 {}
    }

    pub fn kind(&self) -> PathKind {
        match self.0 {}
    }

    pub fn facts(&self) -> FileFacts {
        match self.0 {}
    }

    pub fn inode(&self) -> Option<Inode> {
        match self.0 {}
    }

    pub fn view(&self) -> View {
        match self.0 {}
    }

    pub fn missing_parents(&self) -> Vec<PathBuf> {
        match self.0 {}
    }

    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        match self.0 {}
    }

    pub fn is_on_read_only_mount(&self) -> bool {
        match self.0 {}
    }
}

impl Editing {
    pub fn content(&self) -> &FileContent {
        match self.0 {}
    }

    pub fn located(&self) -> &Located {
        match self.0 {}
    }

    pub fn canonical_text(&self) -> &str {
        match self.0 {}
    }
}
