//! The binary's command line and its golden output. Needs nothing but Rust.

mod bundle;
mod corpus;
mod docs;
mod formats;
mod input;
mod layers;
mod manners;
mod mock;
mod permissions;
mod picture;
mod run;
