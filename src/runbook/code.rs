//! Every finding code, with its severity and its runbook, in one visible table.
//!
//! A code names a condition, is unique across runbooks and is never reused. One code has one
//! severity; a worse case is another code.

use std::fmt;

use super::finding::Severity;

macro_rules! codes {
    ($($variant:ident $text:literal $severity:ident $runbook:literal $($payload:ident)?;)*) => {
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

            /// Whether it rests on the content of a Secret, so that a bundle without Secret data cannot tell it.
            pub fn needs_payload(self) -> bool {
                match self { $(Code::$variant => stringify!($($payload)?) == "payload",)* }
            }
        }
    };
}

// `payload` marks what rests on the content of a Secret.
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
    ReleaseStateCorrupt     "release-state-corrupt"         Error   "stale-lock" payload;
    ReleaseStateEncrypted   "release-state-encrypted"       Error   "stale-lock" payload;
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
    // backups list, backups verify, backups diff
    BackupsNone             "backups-none"                  Warning "state-restore";
    BackupIncomplete        "backup-incomplete"             Warning "state-restore";
    BackupSerialTwice       "backup-serial-twice"           Warning "state-restore";
    BackupLineagesDiffer    "backup-lineages-differ"        Warning "state-restore";
    BackupsStatusLags       "backups-status-lags"           Info    "state-restore";
    BackupVerified          "backup-verified"               Info    "state-restore" payload;
    BackupDigestDiffers     "backup-digest-differs"         Error   "state-restore" payload;
    BackupPayloadBroken     "backup-payload-broken"         Error   "state-restore" payload;
    BackupEncrypted         "backup-encrypted"              Error   "state-restore" payload;
    BackupAnnotationsDiffer "backup-annotations-differ"     Error   "state-restore" payload;
    // restore: what refuses it
    RestoreNotASerial       "restore-not-a-serial"          Error   "state-restore";
    RestoreNoBackup         "restore-no-backup"             Error   "state-restore";
    RestoreSetIncomplete    "restore-set-incomplete"        Error   "state-restore";
    RestoreConsumed         "restore-consumed"              Error   "state-restore";
    RestoreOtherPending     "restore-other-pending"         Error   "state-restore";
    RestorePaused           "restore-paused"                Error   "state-restore";
    RestoreExternallyManaged "restore-externally-managed"    Error   "state-restore";
    RestoreNoOwner          "restore-no-owner"              Error   "state-restore";
    RestoreRetained         "restore-retained"              Error   "state-restore";
    RestoreJobRunning       "restore-job-running"           Error   "state-restore";
    RestoreGateClosed       "restore-gate-closed"           Error   "state-restore";
    RestoreDeletingIgnored  "restore-deleting-ignored"      Error   "state-restore" payload;
    RestoreDeletingWaits    "restore-deleting-waits"        Error   "state-restore";
    RestoreLockLive         "restore-lock-live"             Error   "state-restore";
    RestoreLockForeign      "restore-lock-foreign"          Error   "state-restore";
    RestoreLockEmptyHolder  "restore-lock-empty-holder"     Error   "state-restore";
    RestoreStaleIdsDiffer   "restore-stale-ids-differ"      Error   "state-restore";
    RestoreStaleNoState     "restore-stale-no-state"        Error   "state-restore";
    RestoreStaleUnlockFails "restore-stale-unlock-fails"    Error   "state-restore" payload;
    RestoreLabelsDiffer     "restore-labels-differ"         Error   "state-restore";
    RestoreSecondSecret     "restore-second-secret"         Error   "state-restore";
    RestoreForgetsMany      "restore-forgets-many"          Error   "state-restore" payload;
    RestoreUndetermined     "restore-undetermined"          Error   "state-restore";
    RestoreRetryNothing     "restore-retry-nothing"         Error   "state-restore";
    // restore: what to know before it
    RestoreDeletingHeld     "restore-deleting-held"         Warning "state-restore";
    RestoreGateUnknown      "restore-gate-unknown"          Warning "state-restore";
    RestoreForgets          "restore-forgets"               Warning "state-restore" payload;
    RestoreForgetsUnknown   "restore-forgets-unknown"       Warning "state-restore" payload;
    RestoreLineageDiffers   "restore-lineage-differs"       Warning "state-restore" payload;
    RestoreHashMissing      "restore-hash-missing"          Warning "state-restore";
    RestoreMachineTurnsLost "restore-machine-turns-lost"    Warning "state-restore";
    RestoreThenGuardedApply "restore-then-guarded-apply"    Warning "state-restore";
    RestoreThenApply        "restore-then-apply"            Warning "state-restore";
    RestoreInputsUnknown    "restore-inputs-unknown"        Info    "state-restore";
    RestoreTooLargeForTofu  "restore-too-large-for-opentofu" Error  "state-restore";
    RestoreTooLargeIfTofu   "restore-too-large-if-opentofu" Warning "state-restore";
    RestoreLockStale        "restore-lock-stale"            Info    "state-restore";
    RestoreIsLive           "restore-is-live"               Info    "state-restore" payload;
    RestoreAlreadyRequested "restore-already-requested"     Info    "state-restore";
    RestoreReady            "restore-ready"                 Info    "state-restore" payload;
    // restore: how far it is
    RestoreNone             "restore-none"                  Info    "state-restore";
    RestoreRequested        "restore-requested"             Info    "state-restore";
    RestoreWaiting          "restore-waiting"               Info    "state-restore";
    RestoreRunning          "restore-running"               Info    "state-restore";
    RestoreReadingBack      "restore-reading-back"          Info    "state-restore";
    RestoreSucceeded        "restore-succeeded"             Info    "state-restore";
    RestoreFailed           "restore-failed"                Error   "state-restore";
    RestoreBackupNotFound   "restore-backup-not-found"      Error   "state-restore";
    // state inspect
    StateReadable           "state-readable"                Info    "state-unreadable" payload;
    StateNotFound           "state-not-found"               Info    "state-unreadable";
    StateNotEvaluated       "state-not-evaluated"           Info    "state-unreadable";
    StateLost               "state-lost"                    Error   "state-unreadable" payload;
    StateOutcomeUnknown     "state-outcome-unknown"         Error   "state-unreadable";
    StateCorrupt            "state-corrupt"                 Error   "state-unreadable" payload;
    StateInconsistent       "state-inconsistent"            Error   "state-unreadable";
    StateEncrypted          "state-encrypted"               Error   "state-unreadable" payload;
    StateRetained           "state-retained"                Error   "state-unreadable";
    StateLocked             "state-locked"                  Error   "state-unreadable" payload;
    StateOverwritten        "state-overwritten"             Error   "state-unreadable" payload;
    StateStraySecrets       "state-stray-secrets"           Warning "state-unreadable";
    StateNearLimit          "state-near-limit"              Warning "state-unreadable" payload;
    StateWithoutHash        "state-without-hash"            Warning "state-unreadable" payload;
    StateReasonDiffers      "state-reason-differs"          Info    "state-unreadable" payload;
    // jobs why: how the run stands
    RunHealthy              "run-healthy"                   Info    "job-failures";
    RunInProgress           "run-in-progress"               Info    "job-failures";
    RunEnding               "run-ending"                    Warning "job-failures";
    JobSuspended            "job-suspended"                 Warning "job-failures";
    // jobs why: a step failed
    StepFailed              "step-failed"                   Error   "job-failures";
    InitStepFailed          "init-step-failed"              Error   "job-failures";
    ForceUnlockFailed       "force-unlock-failed"           Error   "job-failures";
    PrepareFailed           "prepare-failed"                Error   "job-failures";
    StateLockTimeout        "state-lock-timeout"            Error   "job-failures";
    RunnerForbidden         "runner-forbidden"              Error   "job-failures";
    RunnerOtherNamespace    "runner-other-namespace"        Error   "job-failures";
    ImageLayoutWrong        "image-layout-wrong"            Error   "job-failures";
    // jobs why: the image cannot be pulled
    PullNotFound            "image-pull-not-found"          Error   "job-failures";
    PullNameInvalid         "image-pull-name-invalid"       Error   "job-failures";
    PullUnauthorized        "image-pull-unauthorized"       Error   "job-failures";
    PullDenied              "image-pull-denied"             Error   "job-failures";
    PullRateLimited         "image-pull-rate-limited"       Error   "job-failures";
    PullTls                 "image-pull-tls"                Error   "job-failures";
    PullDns                 "image-pull-dns"                Error   "job-failures";
    PullUnreachable         "image-pull-unreachable"        Error   "job-failures";
    PullPlatform            "image-pull-platform"           Error   "job-failures";
    PullNever               "image-pull-never"              Error   "job-failures";
    PullOther               "image-pull-other"              Error   "job-failures";
    RunnerImageClusterWide  "runner-image-cluster-wide"     Error   "job-failures";
    ImageFallbackLeft       "image-fallback-left"           Info    "job-failures";
    // jobs why: the deadline
    DeadlineSlowStep        "deadline-slow-step"            Error   "job-failures";
    DeadlineLockWait        "deadline-lock-wait"            Error   "job-failures";
    DeadlineHungCall        "deadline-hung-call"            Error   "job-failures";
    DeadlineNeverStarted    "deadline-never-started"        Error   "job-failures";
    DeadlineUnknown         "deadline-unknown"              Error   "job-failures";
    // jobs why: ended from outside, or without a result
    RunDrained              "run-drained"                   Warning "job-failures";
    RunEvicted              "run-evicted"                   Warning "job-failures";
    RunPreempted            "run-preempted"                 Warning "job-failures";
    RunNodeTainted          "run-node-tainted"              Warning "job-failures";
    RunNodeGone             "run-node-gone"                 Warning "job-failures";
    RunDisruptedOther       "run-disrupted-other"           Warning "job-failures";
    RunInterrupted          "run-interrupted"               Warning "job-failures";
    OutOfMemory             "out-of-memory"                 Error   "job-failures";
    ChildKilled             "child-killed"                  Error   "job-failures";
    KilledUnexplained       "killed-unexplained"            Error   "job-failures";
    NoResult                "no-result"                     Error   "job-failures";
    PodsGone                "pods-gone"                     Error   "job-failures";
    ContainerCannotRun      "container-cannot-run"          Error   "job-failures";
    InitContainerFailed     "init-container-failed"         Error   "job-failures";
    JobVanished             "job-vanished"                  Error   "job-failures";
    JobFailedOther          "job-failed-other"              Error   "job-failures";
    // jobs why: no pod, or a pod that does not start
    PodQuotaExceeded        "pod-quota-exceeded"            Error   "job-failures";
    PodQuotaNeedsLimits     "pod-quota-needs-limits"        Error   "job-failures";
    PodLimitRange           "pod-limit-range"               Error   "job-failures";
    PodWebhookDenied        "pod-webhook-denied"            Error   "job-failures";
    PodWebhookDown          "pod-webhook-down"              Error   "job-failures";
    PodSecurityDenied       "pod-security-denied"           Error   "job-failures";
    PodNoServiceAccount     "pod-no-service-account"        Error   "job-failures";
    PodCreateOther          "pod-create-other"              Error   "job-failures";
    PodNotCreated           "pod-not-created"               Error   "job-failures";
    PodUnschedulable        "pod-unschedulable"             Error   "job-failures";
    PodSchedulingGated      "pod-scheduling-gated"          Warning "job-failures";
    ConfigObjectMissing     "config-object-missing"         Error   "job-failures";
    ConfigObjectThere       "config-object-there-now"       Info    "job-failures";
    ConfigKeyMissing        "config-key-missing"            Error   "job-failures";
    ConfigRunsAsRoot        "config-runs-as-root"           Error   "job-failures";
    ContainerConfigOther    "container-config-other"        Error   "job-failures";
    VolumeNotMounted        "volume-not-mounted"            Error   "job-failures";
    PodSandboxFailed        "pod-sandbox-failed"            Warning "job-failures";
    ContainerWaitingOther   "container-waiting-other"       Warning "job-failures";
    ContainerHoldsPod       "container-holds-pod"           Warning "job-failures";
    // jobs why: no Job, or not a failure
    PlanWaitsForApproval    "plan-waits-for-approval"       Info    "job-failures";
    DestructivePlanBlocked  "destructive-plan-blocked"      Warning "job-failures";
    PlanChanged             "plan-changed"                  Warning "job-failures";
    PlanUnreadable          "plan-unreadable"               Error   "job-failures";
    InputsTooLarge          "inputs-too-large"              Error   "job-failures";
    JobPolicyInvalid        "job-policy-invalid"            Error   "job-failures";
    IdentityNotAllowed      "identity-not-allowed"          Error   "job-failures";
    DependenciesNotReady    "dependencies-not-ready"        Warning "job-failures";
    IdentityNotReady        "identity-not-ready"            Warning "job-failures";
    CredentialsNotMirrored  "credentials-not-mirrored"      Warning "job-failures";
    RunnerRbacNotReady      "runner-rbac-not-ready"         Warning "job-failures";
    RestoreNotRetried       "restore-not-retried"           Error   "job-failures";
    RestoreWithoutBackup    "restore-without-backup"        Error   "job-failures";
    DurableInputsMissing    "durable-inputs-missing"        Error   "job-failures";
    NothingAppliedYet       "nothing-applied-yet"           Info    "job-failures";
    ConditionOther          "condition-other"               Warning "job-failures";
    // jobs why: waiting and slow
    WaitsRunLease           "waits-run-lease"               Info    "slow-jobs";
    WaitsClusterOperation   "waits-cluster-operation"       Info    "slow-jobs";
    WaitsMachineOperations  "waits-machine-operations"      Info    "slow-jobs";
    WaitsJobSlot            "waits-job-slot"                Info    "slow-jobs";
    LeaseFreesItself        "lease-frees-itself"            Info    "slow-jobs";
    WaitOutlastsHolder      "wait-outlasts-holder"          Warning "slow-jobs";
    RunSlow                 "run-slow"                      Warning "slow-jobs";
    StartSlow               "start-slow"                    Warning "slow-jobs";
    // The operator claim
    ClaimNone               "claim-none"                    Info    "operator-claim";
    ClaimHeld               "claim-held"                    Info    "operator-claim";
    ClaimLooksStale         "claim-looks-stale"             Warning "operator-claim";
    ClaimNoHolder           "claim-no-holder"               Warning "operator-claim";
    // lock force-unlock: what it decides
    UnlockReady             "unlock-ready"                  Info    "force-unlock" payload;
    UnlockNothing           "unlock-nothing-to-do"          Info    "force-unlock";
    UnlockLive              "unlock-refused-live"           Error   "force-unlock";
    UnlockJobRunning        "unlock-waits-for-job"          Warning "force-unlock";
    UnlockUndetermined      "unlock-undetermined"           Error   "force-unlock";
    UnlockLeftToController  "unlock-left-to-controller"     Warning "force-unlock";
    UnlockStateUnprotected  "unlock-state-unprotected"      Error   "force-unlock";
    UnlockUnproven          "unlock-state-not-proven"       Error   "force-unlock";
    UnlockWaitsForBookkeeping "unlock-waits-for-bookkeeping" Warning "force-unlock";
    UnlockBinaryCannot      "unlock-binary-cannot"          Error   "force-unlock" payload;
    UnlockHolderSeen        "unlock-holder-seen"            Error   "force-unlock";
    UnlockNoImage           "unlock-no-image"               Error   "force-unlock";
    // lock force-unlock: how it ended
    UnlockDone              "unlock-done"                   Info    "force-unlock";
    UnlockSomeoneWasFirst   "unlock-someone-was-first"      Warning "force-unlock";
    // jobs why: who a cluster waits for
    MachineOperationStuck   "machine-operation-stuck"       Warning "slow-jobs";
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
