//! The binary's command line and its golden output. Needs nothing but Rust.

mod corpus;
mod formats;
mod input;
mod layers;
mod manners;
mod permissions;
mod run;
