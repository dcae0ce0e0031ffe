//! Every finding code, with its severity and its runbook, in one visible table.
//!
//! A code names a condition, is unique across runbooks and is never reused. One code has one
//! severity; a worse case is another code.

use std::fmt;

use super::finding::Severity;

macro_rules! codes {
    ($($variant:ident $text:literal $severity:ident $runbook:literal;)*) => {
        /// A finding code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($variant,)* }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code as printed and as heading of its section.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// The file of `runbooks/` that holds its section, without `.md`.
            pub fn runbook(self) -> &'static str {
                match self { $(Code::$variant => $runbook,)* }
            }
        }
    };
}

codes! {
    // Free
    LockFree                "lock-free"                     Info    "stale-lock";
    LockFreeLeftoverInfo    "lock-free-leftover-info"       Info    "stale-lock";
    // Not evaluated: a Job of the object is unfinished
    LockOfRunningJob        "lock-of-running-job"           Info    "stale-lock";
    LockFreeJobRunning      "lock-free-job-running"         Info    "stale-lock";
    LockOfEarlierPod        "lock-of-earlier-pod"           Info    "stale-lock";
    JobWaitsForForeignLock  "job-waits-for-foreign-lock"    Warning "stale-lock";
    // Live
    LockLive                "lock-live"                     Info    "stale-lock";
    LockLiveTerminating     "lock-live-terminating"         Info    "stale-lock";
    LockLivePastGrace       "lock-live-past-grace"          Info    "stale-lock";
    LockLiveNodeLost        "lock-live-node-lost"           Info    "stale-lock";
    // Stale
    LockStale               "lock-stale"                    Info    "stale-lock";
    LockStaleKept           "lock-stale-kept"               Warning "stale-lock";
    LockStaleNodeLost       "lock-stale-node-lost"          Warning "stale-lock";
    LockStaleSnapshot       "stale-from-snapshot"           Info    "stale-lock";
    // Foreign
    LockForeignHost         "lock-foreign-host"             Error   "stale-lock";
    LockForeignPod          "lock-foreign-pod"              Error   "stale-lock";
    LockForeignLookalike    "lock-foreign-lookalike"        Error   "stale-lock";
    LockForeignNoInfo       "lock-foreign-no-info"          Error   "stale-lock";
    LockForeignBadInfo      "lock-foreign-unreadable-info"  Error   "stale-lock";
    LockForeignNoHost       "lock-foreign-no-host"          Error   "stale-lock";
    LockEmptyHolder         "lock-empty-holder"             Error   "stale-lock";
    // Leases without an object
    LockOrphan              "lock-orphan"                   Warning "stale-lock";
    LockOrphanHeld          "lock-orphan-held"              Warning "stale-lock";
    // Beside a verdict: the state that the lock protects
    StateLabelsDiffer       "state-labels-differ"           Error   "stale-lock";
    StateSecretTwice        "state-secret-twice"            Error   "stale-lock";
    StateKeyMissing         "state-key-missing"             Error   "stale-lock";
    // Beside a verdict: the pinned binary cannot release the lock
    ReleaseNoState          "release-no-state"              Error   "stale-lock";
    ReleaseChunkedTofu      "release-chunked-opentofu"      Error   "stale-lock";
    ReleaseChunkedIfTofu    "release-chunked-if-opentofu"   Warning "stale-lock";
    ReleaseStateCorrupt     "release-state-corrupt"         Error   "stale-lock";
    ReleaseStateEncrypted   "release-state-encrypted"       Error   "stale-lock";
    ReleaseBadInfo          "release-unreadable-info"       Error   "stale-lock";
    // Beside a verdict: the lock itself
    LockIdsDiffer           "lock-ids-differ"               Error   "stale-lock";
    LockOlderThanLease      "lock-older-than-lease"         Warning "stale-lock";
    LockOlderThanObject     "lock-older-than-object"        Warning "stale-lock";
    PodYoungerThanLock      "pod-younger-than-lock"         Warning "stale-lock";
    LockInterruptedInit     "lock-interrupted-init"         Info    "stale-lock";
    LockApplyCutShort       "lock-apply-cut-short"          Info    "stale-lock";
    LeaseVersionIsProof     "lease-version-is-proof"        Info    "stale-lock";
    StateReadableDisagrees  "state-readable-disagrees"      Info    "stale-lock";
    // lock history
    HistoryForceUnlocked    "history-force-unlocked"        Info    "stale-lock";
    HistoryInterrupted      "history-job-interrupted"       Info    "stale-lock";
    HistoryHolderDied       "history-holder-died"           Info    "stale-lock";
    HistoryNothing          "history-nothing-kept"          Info    "stale-lock";
    // The operator claim
    ClaimNone               "claim-none"                    Info    "operator-claim";
    ClaimHeld               "claim-held"                    Info    "operator-claim";
    ClaimLooksStale         "claim-looks-stale"             Warning "operator-claim";
    ClaimNoHolder           "claim-no-holder"               Warning "operator-claim";
    // lock force-unlock: what it decides
    UnlockReady             "unlock-ready"                  Info    "force-unlock";
    UnlockNothing           "unlock-nothing-to-do"          Info    "force-unlock";
    UnlockLive              "unlock-refused-live"           Error   "force-unlock";
    UnlockJobRunning        "unlock-waits-for-job"          Warning "force-unlock";
    UnlockUndetermined      "unlock-undetermined"           Error   "force-unlock";
    UnlockLeftToController  "unlock-left-to-controller"     Warning "force-unlock";
    UnlockStateUnprotected  "unlock-state-unprotected"      Error   "force-unlock";
    UnlockUnproven          "unlock-state-not-proven"       Error   "force-unlock";
    UnlockWaitsForBookkeeping "unlock-waits-for-bookkeeping" Warning "force-unlock";
    UnlockBinaryCannot      "unlock-binary-cannot"          Error   "force-unlock";
    UnlockHolderSeen        "unlock-holder-seen"            Error   "force-unlock";
    UnlockNoImage           "unlock-no-image"               Error   "force-unlock";
    // lock force-unlock: how it ended
    UnlockDone              "unlock-done"                   Info    "force-unlock";
    UnlockSomeoneWasFirst   "unlock-someone-was-first"      Warning "force-unlock";
}

impl Code {
    /// The code of that exact text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.as_str() == text)
    }

    /// Where its section stands: `runbooks/<runbook>.md#<code>`.
    pub fn anchor(self) -> String {
        format!("runbooks/{}.md#{}", self.runbook(), self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let texts: HashSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        for text in texts {
            assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{text}");
            assert_eq!(Code::parse(text).map(Code::as_str), Some(text));
        }
        assert_eq!(Code::parse("lock"), None);
    }
}
