//! Tests of the public interface, some against the real git.

#[cfg(test)]
mod against_git;
#[cfg(test)]
mod classes;
mod dot_files;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod index;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod linked;
#[cfg(test)]
mod workloads;
