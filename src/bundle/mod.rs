//! Making a snapshot that `--from` reads: what is stripped, what is masked, and the archive. No cluster here.

pub mod archive;
pub mod mask;
pub mod strip;
