//! The container engine: which one, and the two containers that release a lock.
//!
//! Files go into a volume by upload, never by a bind mount, so a remote engine, a virtual machine, rootless
//! engines and SELinux hosts all work alike. Credentials are a file in that volume, never an argument or a variable.

pub mod connect;
pub mod endpoint;
pub mod files;
pub mod image;
pub mod leftovers;
pub mod network;
pub mod steps;
pub mod workshop;
