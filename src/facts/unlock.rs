//! What `lock force-unlock` looks at beside the lock itself: signs of life of a foreign holder, where the
//! pinned image is recorded, and the chunks of the state.

use jiff::Timestamp;

use super::pod::PodFacts;
use super::reading::Reading;
use super::state::StateSecret;

/// Where an image was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecord {
    /// `Secret/captf-applied-c-prod`.
    pub source: String,
    pub image: String,
    pub digest: Option<String>,
}

/// Signs of life of the holder of a foreign lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signs {
    /// Pods of the host's name, with their namespaces, in every namespace that could be listed.
    pub pods: Option<Reading<Vec<(String, PodFacts)>>>,
    /// When the Lease and the state Secret were last written, by their own bookkeeping.
    pub lease_changed: Option<Timestamp>,
    pub state_changed: Option<Timestamp>,
    /// What changed while watching, and for how many seconds it was watched.
    pub watched: Option<Watched>,
}

/// The result of `--observe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub seconds: u64,
    pub changes: Vec<String>,
}

/// Everything that is read for an unlock beside the lock facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlockReads {
    /// Records in the order in which they count.
    pub records: Vec<Reading<ImageRecord>>,
    pub signs: Signs,
    /// The state Secrets that the controller's selector finds.
    pub selected: Reading<Vec<StateSecret>>,
}
