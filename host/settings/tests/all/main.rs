//! Table tests of settings: discovery, layers, stored answers, and rules over real directories.

#[cfg(test)]
mod discovery;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod layered;
#[cfg(test)]
mod links;
#[cfg(test)]
mod macos;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod report;
#[cfg(test)]
mod resolving;
#[cfg(test)]
mod sensitive;
#[cfg(test)]
mod validating;
#[cfg(test)]
mod world;
