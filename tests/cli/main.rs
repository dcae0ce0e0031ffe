//! The binary's command line and its golden output. Needs nothing but Rust.

mod corpus;
mod layers;
mod run;
