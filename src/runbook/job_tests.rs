//! Tables over the rules of `jobs why`: each cause with a near miss, precedence, leases, and the next attempt.

use jiff::{SignedDuration, Timestamp};

use super::code::Code;
use super::job_outcome::{Outcome, details, outcome, with_marks};
use super::job_why::diagnose;
use super::next_attempt::{AttemptState, next_attempt};
use super::next_run::Inputs;
use super::policy::Policy;
use super::run_lease::{LeaseRuling, rule};
use crate::captf::kind::WorkloadKind;
use crate::captf::names::Operation;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobMarks, JobOutcome};
use crate::facts::job_why::{JobWhyFacts, LeaseWait, NamedJob, RunFacts};
use crate::facts::object::{ActiveJob, Condition, JobPolicy, LastRun, ObjectFacts, ObjectRef};
use crate::facts::pod::{ContainerFacts, ContainerState, Disruption, PodFacts};
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::run::{LogFacts, PlanFacts, Refusal, ResultReading, RunError, RunLease, RunResult, RunStep};

const JOB: &str = "captf-m-web-apply-a1-5e1f00";

fn now() -> Timestamp {
    "2026-01-10T08:00:00Z".parse().expect("a time")
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn gap(what: &str) -> Gap {
    Gap { what: what.into(), reason: GapReason::Forbidden, detail: String::new(), permission: None }
}

fn condition(kind: &str, status: &str, reason: &str) -> Condition {
    Condition { since: Some(ago(60)), ..super::lock_tests::condition(kind, status, reason) }
}

fn job(op: Operation, attempt: i32, outcome: JobOutcome, finished: i64) -> JobFacts {
    JobFacts {
        name: format!("captf-m-web-{}-a{attempt}-5e1f00", op.as_str()),
        created: Some(ago(finished + 100)),
        op: Some(op),
        attempt: Some(attempt),
        outcome,
        finished: (outcome != JobOutcome::Unfinished).then(|| ago(finished)),
        failure: (outcome == JobOutcome::Failed).then(|| ("BackoffLimitExceeded".into(), String::new())),
        marks: JobMarks { bookkept: outcome != JobOutcome::Unfinished, ..JobMarks::default() },
        started: Some(ago(finished + 100)),
        active_deadline_seconds: Some(3600),
        ..JobFacts::default()
    }
}

fn container(name: &str, init: bool, state: ContainerState) -> ContainerFacts {
    ContainerFacts {
        name: name.into(),
        init,
        sidecar: false,
        image: None,
        image_id: None,
        memory_limit: Some("2Gi".into()),
        state,
    }
}

fn terminated(code: i64, reason: &str) -> ContainerState {
    ContainerState::Terminated {
        reason: reason.into(),
        exit_code: code,
        started: Some(ago(120)),
        finished: Some(ago(40)),
        message: String::new(),
    }
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    ContainerState::Waiting { reason: reason.into(), message: message.into() }
}

fn pod(phase: &str, state: ContainerState) -> PodFacts {
    PodFacts {
        name: format!("{JOB}-x7k2p"),
        uid: String::new(),
        created: Some(ago(130)),
        phase: phase.into(),
        reason: String::new(),
        message: String::new(),
        deletion_deadline: None,
        grace_seconds: None,
        node: Some("node-1".into()),
        ready: None,
        disruption: None,
        job: Some(JOB.into()),
        containers: vec![container("source", false, state)],
        unscheduled: None,
        result: ResultReading::NotTerminated,
        credentials: Vec::new(),
    }
}

fn event(kind: &str, name: &str, reason: &str, message: &str, seconds: i64) -> EventFacts {
    EventFacts {
        reason: reason.into(),
        message: message.into(),
        warning: true,
        about: (kind.into(), name.into()),
        at: Some(ago(seconds)),
    }
}

fn run_of(name: &str, about: Option<&str>) -> RunFacts {
    RunFacts { condition: about.map(str::to_string), ..RunFacts::named(name) }
}

fn object() -> ObjectRef {
    ObjectRef { kind: WorkloadKind::Machine, namespace: "team-a".into(), name: "web".into() }
}

fn facts() -> JobWhyFacts {
    let about = ObjectFacts { provisioned: true, last_drift_check: Some(ago(60)), ..ObjectFacts::default() };
    JobWhyFacts { terraform_cluster: Some(Reading::Absent), ..JobWhyFacts::of(object(), about) }
}

/// A failed apply with its pod, changed as a row wants it.
fn failed(change: impl FnOnce(&mut JobWhyFacts, &mut JobFacts, &mut PodFacts)) -> JobWhyFacts {
    with_job(JobOutcome::Failed, pod("Failed", terminated(1, "Error")), change)
}

fn unfinished(change: impl FnOnce(&mut JobWhyFacts, &mut JobFacts, &mut PodFacts)) -> JobWhyFacts {
    with_job(JobOutcome::Unfinished, pod("Pending", waiting("ContainerCreating", "")), change)
}

fn with_job(
    outcome: JobOutcome,
    mut pod: PodFacts,
    change: impl FnOnce(&mut JobWhyFacts, &mut JobFacts, &mut PodFacts),
) -> JobWhyFacts {
    let mut f = facts();
    let mut job = job(Operation::Apply, 1, outcome, 30);
    if outcome == JobOutcome::Failed {
        f.about.conditions.push(condition("ApplyJobSucceeded", "False", "ApplyFailed"));
    }
    f.runs = vec![run_of(JOB, (outcome == JobOutcome::Failed).then_some("ApplyJobSucceeded"))];
    change(&mut f, &mut job, &mut pod);
    if f.pods == Reading::Found(Vec::new()) && !pod.name.is_empty() {
        f.pods = Reading::Found(vec![pod]);
    }
    if f.jobs == Reading::Found(Vec::new()) {
        let newest = f.pods.found().and_then(|p| p.first());
        f.jobs = Reading::Found(vec![with_marks(job, newest)]);
    }
    f
}

fn no_pod(f: &mut JobWhyFacts, pod: &mut PodFacts) {
    pod.name.clear();
    f.pods = Reading::Found(Vec::new());
}

fn with_error(kind: &str, step: Option<&str>, summary: &str) -> LastRun {
    LastRun {
        job: JOB.into(),
        operation: "apply".into(),
        error_kind: Some(kind.into()),
        steps: vec![
            RunStep { name: "init".into(), exit_code: 0, millis: 4000 },
            RunStep { name: step.unwrap_or("apply").into(), exit_code: 1, millis: 90_000 },
        ],
        error: Some(RunError {
            kind: kind.into(),
            step: step.map(str::to_string),
            summary: summary.into(),
            resources: Vec::new(),
        }),
    }
}

fn stopped_by(reason: &str) -> JobWhyFacts {
    failed(|_, j, p| {
        j.marks.interrupted = true;
        p.disruption = Some(Disruption { reason: reason.into(), message: String::new(), at: None });
        p.result = ResultReading::NotTerminated;
    })
}

fn step(step: &str, summary: &str) -> JobWhyFacts {
    failed(|f, _, _| f.about.last_run = Some(with_error("step", Some(step), summary)))
}

fn refused(message: &str) -> JobWhyFacts {
    unfinished(|f, _, p| {
        no_pod(f, p);
        f.runs[0].events = Reading::Found(vec![event("Job", JOB, "FailedCreate", message, 20)]);
    })
}

fn at_deadline(log: Option<LogFacts>, done: Option<&str>) -> JobWhyFacts {
    failed(|f, j, _| {
        j.failure = Some(("DeadlineExceeded".into(), String::new()));
        f.runs[0].log = log.map(Reading::Found);
        f.about.last_run = done.map(|s| with_error("interrupted", Some(s), ""));
    })
}

fn does_not_start(state: ContainerState) -> JobWhyFacts {
    unfinished(|_, _, p| p.containers[0].state = state)
}

fn only_condition(kind: &str, status: &str, reason: &str) -> JobWhyFacts {
    let mut f = facts();
    f.about.conditions.push(condition(kind, status, reason));
    f
}

/// A cluster's operation that waits for a Job of that other object.
fn waits_for(other: JobWhyFacts) -> JobWhyFacts {
    let mut f = only_condition("ApplyJobSucceeded", "Unknown", "WaitingForMachineOperations");
    f.machine_jobs = vec![NamedJob { job: JOB.into(), run: Reading::Found(Box::new(other)) }];
    f
}

fn runs() -> JobWhyFacts {
    with_job(JobOutcome::Unfinished, pod("Running", ContainerState::Running { started: Some(ago(60)) }), |_, _, _| {})
}

fn with_log(log: LogFacts) -> JobWhyFacts {
    failed(|f, _, _| {
        f.about.last_run = Some(with_error("step", Some("init"), "Error: x"));
        f.runs[0].log = Some(Reading::Found(log));
    })
}

fn refusal(namespace: &str) -> LogFacts {
    let refusal =
        Refusal { resource: "leases".into(), namespace: Some(namespace.into()), line: "leases is forbidden".into() };
    LogFacts { forbidden: Some(refusal), ..LogFacts::default() }
}

fn codes(f: &JobWhyFacts) -> Vec<Code> {
    diagnose(f, &[], now()).findings.iter().map(|x| x.code).collect()
}

#[test]
fn every_cause_is_found_and_its_near_miss_is_another() {
    let still = |seconds: i64| LogFacts { still: Some(("aws_db.main".into(), seconds)), ..LogFacts::default() };
    let lock = LogFacts { waits_for_lock: true, ..LogFacts::default() };
    let rows: Vec<(&str, JobWhyFacts, Code)> = vec![
        ("a step", step("apply", "Error: no quota"), Code::StepFailed),
        ("init", step("init", "Error: no provider"), Code::InitStepFailed),
        ("a rescue push is not the step that failed", step("apply", "Error: x"), Code::StepFailed),
        ("force-unlock", step("force-unlock", "Error: x"), Code::ForceUnlockFailed),
        ("prepare", step("prepare", "no space"), Code::PrepareFailed),
        ("the lock's timeout", step("plan", "Error: Error acquiring the state lock"), Code::StateLockTimeout),
        (
            "the lock of init, which writes an empty state",
            step("init", "Error: Error loading state: the state is already locked by another terraform client"),
            Code::StateLockTimeout,
        ),
        (
            "a state that init cannot load",
            step("init", "Error: Error loading state: gzip: invalid header"),
            Code::InitStepFailed,
        ),
        ("the word lock alone", step("plan", "Error: the lock resource failed"), Code::StepFailed),
        ("refused Leases", with_log(refusal("team-a")), Code::RunnerForbidden),
        ("refused elsewhere", with_log(refusal("default")), Code::RunnerOtherNamespace),
        (
            "image layout",
            failed(|f, _, _| f.about.last_run = Some(with_error("image-layout", None, "no runtime"))),
            Code::ImageLayoutWrong,
        ),
        ("blocked", failed(|_, j, _| j.marks.blocked = true), Code::DestructivePlanBlocked),
        ("plan changed", failed(|_, j, _| j.marks.plan_changed = true), Code::PlanChanged),
        ("drain", stopped_by("EvictionByEvictionAPI"), Code::RunDrained),
        ("preemption", stopped_by("PreemptionByScheduler"), Code::RunPreempted),
        ("taint", stopped_by("DeletionByTaintManager"), Code::RunNodeTainted),
        ("pod GC", stopped_by("DeletionByPodGC"), Code::RunNodeGone),
        ("kubelet", stopped_by("TerminationByKubelet"), Code::RunEvicted),
        ("a new reason", stopped_by("SomethingNew"), Code::RunDisruptedOther),
        (
            "nobody seen",
            failed(|f, j, p| {
                j.marks.interrupted = true;
                no_pod(f, p);
            }),
            Code::RunInterrupted,
        ),
        (
            "evicted",
            failed(|_, _, p| {
                p.reason = "Evicted".into();
                p.containers.clear();
            }),
            Code::RunEvicted,
        ),
        ("OOM with exit 0", failed(|_, _, p| p.containers[0].state = terminated(0, "OOMKilled")), Code::OutOfMemory),
        (
            "137 is not memory",
            failed(|_, _, p| p.containers[0].state = terminated(137, "Error")),
            Code::KilledUnexplained,
        ),
        (
            "a child",
            failed(|f, _, _| {
                f.runs[0].log =
                    Some(Reading::Found(LogFacts { killed: Some("signal: killed".into()), ..LogFacts::default() }))
            }),
            Code::ChildKilled,
        ),
        ("no result", failed(|_, _, _| {}), Code::NoResult),
        (
            "start error",
            failed(|_, _, p| p.containers[0].state = terminated(128, "StartError")),
            Code::ContainerCannotRun,
        ),
        (
            "init container",
            failed(|_, _, p| {
                p.containers[0].state = waiting("PodInitializing", "");
                p.containers.push(container("runner", true, terminated(1, "Error")));
            }),
            Code::InitContainerFailed,
        ),
        ("pods gone", failed(|f, _, p| no_pod(f, p)), Code::PodsGone),
        (
            "another reason",
            failed(|f, j, p| {
                no_pod(f, p);
                j.failure = Some(("PodFailurePolicy".into(), String::new()));
            }),
            Code::JobFailedOther,
        ),
        ("deadline in a step", at_deadline(Some(LogFacts::default()), Some("apply")), Code::DeadlineSlowStep),
        ("deadline on the lock", at_deadline(Some(lock), Some("apply")), Code::DeadlineLockWait),
        ("deadline in one call", at_deadline(Some(still(1900)), Some("apply")), Code::DeadlineHungCall),
        ("a call of many", at_deadline(Some(still(60)), Some("apply")), Code::DeadlineSlowStep),
        (
            "deadline, interrupted mark ignored",
            failed(|f, j, p| {
                no_pod(f, p);
                j.marks.interrupted = true;
                j.failure = Some(("DeadlineExceeded".into(), String::new()));
            }),
            Code::DeadlineUnknown,
        ),
        (
            "pull before deadline",
            failed(|_, j, p| {
                j.failure = Some(("DeadlineExceeded".into(), String::new()));
                p.containers[0].state = waiting("ImagePullBackOff", "not found");
            }),
            Code::PullNotFound,
        ),
        ("pull", does_not_start(waiting("ErrImagePull", "401 Unauthorized")), Code::PullUnauthorized),
        (
            "no key",
            does_not_start(waiting("CreateContainerConfigError", "couldn't find key a in Secret x/b")),
            Code::ConfigKeyMissing,
        ),
        (
            "no Secret",
            does_not_start(waiting("CreateContainerConfigError", "secret \"b\" not found")),
            Code::ConfigObjectMissing,
        ),
        (
            "root",
            does_not_start(waiting(
                "CreateContainerConfigError",
                "container has runAsNonRoot and image will run as root",
            )),
            Code::ConfigRunsAsRoot,
        ),
        (
            "another config error",
            does_not_start(waiting("CreateContainerConfigError", "x")),
            Code::ContainerConfigOther,
        ),
        ("create error", does_not_start(waiting("CreateContainerError", "x")), Code::ContainerCannotRun),
        ("a new waiting reason", does_not_start(waiting("New", "x")), Code::ContainerWaitingOther),
        ("just starting", does_not_start(waiting("ContainerCreating", "")), Code::RunInProgress),
        (
            "there now",
            unfinished(|f, _, p| {
                p.containers[0].state = waiting("CreateContainerConfigError", "secret \"b\" not found");
                f.runs[0].missing_now = Some(("secret/b".into(), Reading::Found(())));
            }),
            Code::ConfigObjectThere,
        ),
        (
            "unschedulable",
            unfinished(|_, _, p| {
                p.node = None;
                p.unscheduled = Some(Disruption { reason: "Unschedulable".into(), message: "x".into(), at: None });
            }),
            Code::PodUnschedulable,
        ),
        (
            "gated",
            unfinished(|_, _, p| {
                p.node = None;
                p.unscheduled = Some(Disruption { reason: "SchedulingGated".into(), message: "x".into(), at: None });
            }),
            Code::PodSchedulingGated,
        ),
        (
            "no volume",
            unfinished(|f, _, _| {
                f.runs[0].events = Reading::Found(vec![event("Pod", &format!("{JOB}-x7k2p"), "FailedMount", "x", 10)])
            }),
            Code::VolumeNotMounted,
        ),
        (
            "no sandbox",
            unfinished(|f, _, _| {
                f.runs[0].events =
                    Reading::Found(vec![event("Pod", &format!("{JOB}-x7k2p"), "FailedCreatePodSandBox", "x", 10)])
            }),
            Code::PodSandboxFailed,
        ),
        ("quota", refused("pods is forbidden: exceeded quota: a"), Code::PodQuotaExceeded),
        ("no pod, no event", unfinished(|f, _, p| no_pod(f, p)), Code::PodNotCreated),
        (
            "no pod yet",
            unfinished(|f, j, p| {
                no_pod(f, p);
                j.created = Some(ago(10));
            }),
            Code::RunInProgress,
        ),
        (
            "held open",
            unfinished(|_, _, p| {
                p.phase = "Running".into();
                p.containers[0].state = terminated(0, "Completed");
                p.containers.push(container("mesh", false, ContainerState::Running { started: None }));
            }),
            Code::ContainerHoldsPod,
        ),
        (
            "a native sidecar is no culprit",
            unfinished(|_, _, p| {
                p.phase = "Running".into();
                p.containers[0].state = ContainerState::Running { started: Some(ago(50)) };
                p.containers.push(container("mesh", true, ContainerState::Running { started: None }));
            }),
            Code::RunInProgress,
        ),
        ("suspended", unfinished(|_, j, _| j.suspended = true), Code::JobSuspended),
        (
            "ending",
            unfinished(|_, j, _| j.failure_target = Some(("DeadlineExceeded".into(), Some(ago(5))))),
            Code::RunEnding,
        ),
        ("slow start", unfinished(|_, j, _| j.created = Some(ago(400))), Code::StartSlow),
        (
            "plan waits",
            only_condition("ApplyJobSucceeded", "Unknown", "PlanAwaitingApproval"),
            Code::PlanWaitsForApproval,
        ),
        ("inputs", only_condition("ApplyJobSucceeded", "False", "InputsTooLarge"), Code::InputsTooLarge),
        ("policy", only_condition("ApplyJobSucceeded", "False", "JobPolicyInvalid"), Code::JobPolicyInvalid),
        ("identity", only_condition("ApplyJobSucceeded", "False", "IdentityNotAllowed"), Code::IdentityNotAllowed),
        ("slot", only_condition("DriftJobSucceeded", "Unknown", "WaitingForJobSlot"), Code::WaitsJobSlot),
        (
            "machines",
            only_condition("ApplyJobSucceeded", "Unknown", "WaitingForMachineOperations"),
            Code::WaitsMachineOperations,
        ),
        ("machines that get on", waits_for(runs()), Code::WaitsMachineOperations),
        ("machines that have ended", waits_for(failed(|_, _, _| {})), Code::WaitsMachineOperations),
        (
            "machines that do not get on",
            waits_for(does_not_start(waiting("ErrImagePull", "not found"))),
            Code::MachineOperationStuck,
        ),
        (
            "no backup",
            only_condition("RestoreJobSucceeded", "False", "RestoreBackupNotFound"),
            Code::RestoreWithoutBackup,
        ),
        (
            "no inputs",
            only_condition("DriftJobSucceeded", "Unknown", "DurableInputsMissing"),
            Code::DurableInputsMissing,
        ),
        ("a new reason of a condition", only_condition("ApplyJobSucceeded", "False", "New"), Code::ConditionOther),
        ("nothing yet", only_condition("ApplyJobSucceeded", "Unknown", "NoApplyYet"), Code::NothingAppliedYet),
        (
            "vanished",
            {
                let mut f = facts();
                f.about.active_job = Some(ActiveJob { name: JOB.into(), operation: "apply".into(), started: None });
                f.runs = vec![run_of(JOB, None)];
                f
            },
            Code::JobVanished,
        ),
        ("healthy", only_condition("ApplyJobSucceeded", "True", "ApplySucceeded"), Code::RunHealthy),
    ];
    for (case, facts, expected) in rows {
        let found = codes(&facts);
        assert_eq!(found.first(), Some(&expected), "{case}: {found:?}");
    }
}

#[test]
fn what_could_not_be_read_is_never_absent() {
    let mut f = failed(|_, _, _| {});
    f.jobs = Reading::Unreadable(gap("Jobs in team-a"));
    let judged = diagnose(&f, &[], now());
    assert!(judged.findings.is_empty() && judged.attempts.is_empty(), "{judged:?}");
    assert_eq!(judged.gaps, [gap("Jobs in team-a")]);
    let mut f = failed(|f, _, p| no_pod(f, p));
    f.pods = Reading::Unreadable(gap("Pods in team-a"));
    let judged = diagnose(&f, &[], now());
    assert!(!judged.findings.iter().any(|x| matches!(x.code, Code::PodsGone | Code::NoResult)), "{judged:?}");
    assert!(judged.gaps.contains(&gap("Pods in team-a")));
    let mut f = unfinished(|f, _, p| no_pod(f, p));
    f.pods = Reading::Unreadable(gap("Pods in team-a"));
    assert!(!codes(&f).contains(&Code::PodNotCreated));
    let mut f = only_condition("ApplyJobSucceeded", "Unknown", "PlanAwaitingApproval");
    f.plan = Some(Reading::Unreadable(gap("TerraformPlan")));
    assert_eq!(diagnose(&f, &[], now()).gaps, [gap("TerraformPlan")]);
    f.plan = Some(Reading::Found(PlanFacts { name: "prod-1".into(), ..PlanFacts::default() }));
    assert!(diagnose(&f, &[], now()).gaps.is_empty());
    // When the next attempt comes is not known then, and why is said.
    let mut f = failed(|_, _, _| {});
    f.owner_cluster = Some(Reading::Unreadable(gap("Cluster team-a/prod")));
    assert_eq!(diagnose(&f, &[], now()).gaps, [gap("Cluster team-a/prod")]);
}

/// A container of node-1 that ran out of memory 40 seconds ago, and what the node says.
fn out_of_memory(events: Reading<Vec<EventFacts>>) -> Vec<(String, String)> {
    let facts = failed(|f, _, p| {
        p.containers[0].state = terminated(137, "OOMKilled");
        f.runs[0].node_events = Some(events);
    });
    let found = diagnose(&facts, &[], now()).findings;
    let finding = found.iter().find(|f| f.code == Code::OutOfMemory).expect("the cause");
    finding.evidence.iter().map(|e| (e.source.clone(), e.value.clone())).collect()
}

#[test]
fn the_use_of_memory_is_known_only_from_a_kill_near_in_time() {
    const KILL: &str =
        "Memory cgroup out of memory: Killed process 7 (terraform) total-vm:9kB, anon-rss:2031616kB, file-rss:1024kB";
    let kill = |reason: &str, message: &str, seconds| event("Node", "node-1", reason, message, seconds);
    for (name, events, seen) in [
        ("at that time", vec![kill("OOMKilling", KILL, 41)], "1.9Gi by process terraform (the only kill"),
        (
            "the nearest of two",
            vec![kill("OOMKilling", &KILL.replace("terraform", "java"), 100), kill("OOMKilling", KILL, 45)],
            "1.9Gi by process terraform (the nearest of 2 kills",
        ),
        ("long before", vec![kill("OOMKilling", KILL, 400)], "unknown: no event on Node node-1 tells"),
        ("another reason", vec![kill("NodeHasMemoryPressure", KILL, 41)], "unknown: no event on Node node-1 tells"),
        ("no event", Vec::new(), "unknown: no event on Node node-1 tells"),
    ] {
        let evidence = out_of_memory(Reading::Found(events));
        let said = evidence.iter().any(|(source, value)| source.starts_with("memory in use") && value.contains(seen));
        assert!(said, "{name}: {evidence:?}");
        assert!(evidence.iter().any(|(_, value)| value == "2Gi"), "{name}: the limit: {evidence:?}");
    }
    // The kubelet's own event names the process and no size.
    let evidence = out_of_memory(Reading::Found(vec![kill(
        "SystemOOM",
        "System OOM encountered, victim process: terraform, pid: 7",
        41,
    )]));
    assert!(evidence.iter().any(|(source, _)| source == "Event SystemOOM on Node/node-1"), "{evidence:?}");
    assert!(evidence.iter().any(|(_, value)| value == "unknown: the event names no size"), "{evidence:?}");
    let evidence = out_of_memory(Reading::Unreadable(gap("Events in default")));
    assert!(evidence.iter().any(|(_, value)| value.contains("could not be read")), "{evidence:?}");
}

#[test]
fn outcomes_follow_the_controllers_precedence() {
    let plain = || job(Operation::Apply, 1, JobOutcome::Failed, 30);
    let result = |kind: &str| {
        let mut p = pod("Failed", terminated(1, "Error"));
        let error = RunError { kind: kind.into(), step: Some("apply".into()), ..RunError::default() };
        p.result = ResultReading::Found(RunResult { error: Some(error), ..RunResult::default() });
        p
    };
    let judged = |job: JobFacts, pod: Option<&PodFacts>| {
        let job = with_marks(job, pod);
        let known = details(&job, pod, None);
        (outcome(&job, pod, &known), job.ended() == Some(crate::captf::backoff::Ended::Failed))
    };
    let bookkept = |set: fn(&mut JobFacts)| {
        let mut j = plain();
        set(&mut j);
        j
    };
    let open = |set: fn(&mut JobFacts)| {
        let mut j = bookkept(set);
        j.marks.bookkept = false;
        j
    };
    for (case, job, pod, expected) in [
        ("step", open(|_| {}), Some(result("step")), (Outcome::StepFailed, true)),
        ("interrupted by the pod", open(|_| {}), Some(result("interrupted")), (Outcome::Interrupted, false)),
        (
            "bookkept: the annotation wins over the pod",
            bookkept(|_| {}),
            Some(result("interrupted")),
            (Outcome::StepFailed, true),
        ),
        (
            "not bookkept: an annotation does not count",
            open(|j| j.marks.interrupted = true),
            Some(result("step")),
            (Outcome::StepFailed, true),
        ),
        ("blocked by the pod", open(|_| {}), Some(result("blocked")), (Outcome::Blocked, false)),
        (
            "blocked is for applies only",
            open(|j| j.op = Some(Operation::Drift)),
            Some(result("blocked")),
            (Outcome::StepFailed, true),
        ),
        (
            "deadline beats interrupted",
            open(|j| j.failure = Some(("DeadlineExceeded".into(), String::new()))),
            Some(result("interrupted")),
            (Outcome::Deadline, true),
        ),
        (
            "deadline counts although marked",
            bookkept(|j| {
                j.marks.interrupted = true;
                j.failure = Some(("DeadlineExceeded".into(), String::new()));
            }),
            None,
            (Outcome::Deadline, true),
        ),
        (
            "pull beats deadline",
            open(|j| j.failure = Some(("DeadlineExceeded".into(), String::new()))),
            Some(pod("Pending", waiting("ErrImagePull", ""))),
            (Outcome::ImagePull, true),
        ),
        (
            "without the pod it is the deadline",
            open(|j| j.failure = Some(("DeadlineExceeded".into(), String::new()))),
            None,
            (Outcome::Deadline, true),
        ),
        ("no result", open(|_| {}), Some(pod("Failed", terminated(137, "Error"))), (Outcome::NoResult, true)),
    ] {
        assert_eq!(judged(job, pod.as_ref()), expected, "{case}");
    }
    let mut plan = job(Operation::Plan, 1, JobOutcome::Succeeded, 30);
    plan.marks.bookkept = false;
    let mut made = pod("Succeeded", terminated(0, "Completed"));
    made.result = ResultReading::Found(RunResult::default());
    assert_eq!(judged(plan.clone(), Some(&made)), (Outcome::PlanUnreadable, true));
    made.result = ResultReading::Found(RunResult { has_plan: true, ..RunResult::default() });
    assert_eq!(judged(plan, Some(&made)).0, Outcome::Succeeded);
}

fn attempt_of(
    about: &ObjectFacts,
    jobs: &[JobFacts],
    op: Operation,
    parent: &Reading<ObjectFacts>,
) -> super::next_attempt::Attempt {
    let object = object();
    let inputs = Inputs {
        object: &object,
        about,
        jobs,
        owner_cluster: None,
        policy: Policy::new(WorkloadKind::Machine, about, Some(parent)),
    };
    next_attempt(&inputs, op, now())
}

fn limited(limit: i64) -> ObjectFacts {
    let jobs = JobPolicy { failed_history_limit: Some(limit), ..JobPolicy::default() };
    ObjectFacts { jobs, provisioned: true, ..ObjectFacts::default() }
}

#[test]
fn next_attempts_are_right_for_every_limit() {
    for (limit, minutes) in [
        (0, vec![10, 10, 10]),
        (1, vec![10, 10, 10]),
        (2, vec![1, 10, 10]),
        (3, vec![1, 2, 10, 10]),
        (5, vec![1, 2, 4, 8, 10, 10]),
    ] {
        for (index, delay) in minutes.iter().enumerate() {
            let failures = i32::try_from(index).expect("small") + 1;
            let jobs: Vec<JobFacts> = (1..=failures)
                .map(|a| job(Operation::Apply, a, JobOutcome::Failed, 30 + 600 * i64::from(failures - a)))
                .collect();
            let due = ago(30) + SignedDuration::from_mins(*delay);
            // Own, from the cluster's defaults, from the cluster itself: the same time.
            let own = limited(limit);
            let bare = ObjectFacts { provisioned: true, ..ObjectFacts::default() };
            let from_defaults =
                ObjectFacts { default_jobs: limited(limit).jobs, jobs: limited(99).jobs, ..ObjectFacts::default() };
            for (about, parent) in [
                (&own, Reading::Absent),
                (&bare, Reading::Found(limited(limit))),
                (&bare, Reading::Found(from_defaults)),
            ] {
                let attempt = attempt_of(about, &jobs, Operation::Apply, &parent);
                assert_eq!(attempt.at, Some(due), "limit {limit}, failure {failures}");
                assert_eq!(
                    (attempt.failures, attempt.state),
                    (u32::try_from(failures).expect("small"), AttemptState::Scheduled)
                );
                assert_eq!(attempt.delay_seconds, Some(delay * 60));
            }
        }
    }
    let jobs = [job(Operation::Apply, 1, JobOutcome::Failed, 30)];
    let bare = ObjectFacts { provisioned: true, ..ObjectFacts::default() };
    let unknown = attempt_of(&bare, &jobs, Operation::Apply, &Reading::Unreadable(gap("TerraformCluster")));
    assert_eq!((unknown.state, unknown.at, unknown.gap), (AttemptState::Unknown, None, Some(gap("TerraformCluster"))));
}

#[test]
fn each_operation_counts_for_itself_and_only_what_counts() {
    use JobOutcome::{Failed, Succeeded};
    let about = ObjectFacts { last_drift_check: Some(ago(7200)), ..limited(3) };
    let mut interrupted = job(Operation::Drift, 4, Failed, 20);
    interrupted.marks.interrupted = true;
    let jobs = [
        job(Operation::Apply, 1, Succeeded, 5),
        job(Operation::Drift, 1, Failed, 4000),
        job(Operation::Drift, 2, Succeeded, 3000),
        job(Operation::Drift, 3, Failed, 30),
        interrupted,
    ];
    let drift = attempt_of(&about, &jobs, Operation::Drift, &Reading::Absent);
    assert_eq!(
        (drift.failures, drift.at, drift.state),
        (1, Some(ago(30) + SignedDuration::from_mins(1)), AttemptState::Scheduled)
    );
    let apply = attempt_of(&about, &jobs, Operation::Apply, &Reading::Absent);
    assert_eq!((apply.failures, apply.at), (0, None));
    // The schedule comes after the backoff when the last check was recent.
    let recent = ObjectFacts { last_drift_check: Some(ago(60)), ..limited(3) };
    let drift = attempt_of(&recent, &jobs, Operation::Drift, &Reading::Absent);
    assert_eq!(drift.at, Some(ago(60) + SignedDuration::from_mins(30)));
}

#[test]
fn what_holds_an_attempt_besides_backoff_is_said() {
    use AttemptState::{Held, Never, Running, Scheduled};
    let failed_apply = || vec![job(Operation::Apply, 1, JobOutcome::Failed, 30)];
    let with = |change: fn(&mut ObjectFacts)| {
        let mut about = limited(3);
        change(&mut about);
        about
    };
    let state = |about: ObjectFacts, jobs: Vec<JobFacts>, op| attempt_of(&about, &jobs, op, &Reading::Absent).state;
    let mut running = failed_apply();
    running.push(job(Operation::Drift, 1, JobOutcome::Unfinished, 0));
    let mut blocked = failed_apply();
    blocked[0].marks.blocked = true;
    let mut remediation: Vec<JobFacts> =
        (1..=3).map(|a| job(Operation::Apply, a, JobOutcome::Failed, 300 - 60 * i64::from(a))).collect();
    remediation.iter_mut().for_each(|j| j.remediation = true);
    for (case, expected, found) in [
        ("nothing", Scheduled, state(limited(3), failed_apply(), Operation::Apply)),
        ("paused", Held, state(with(|a| a.paused_annotation = true), failed_apply(), Operation::Apply)),
        (
            "gate",
            Held,
            state(
                with(|a| a.conditions.push(condition("IdentityAllowed", "False", "x"))),
                failed_apply(),
                Operation::Apply,
            ),
        ),
        (
            "lease",
            Held,
            state(
                with(|a| a.conditions.push(condition("ApplyJobSucceeded", "Unknown", "WaitingForRunLease"))),
                failed_apply(),
                Operation::Apply,
            ),
        ),
        (
            "the drift's lease is not the apply's",
            Scheduled,
            state(
                with(|a| a.conditions.push(condition("DriftJobSucceeded", "Unknown", "WaitingForRunLease"))),
                failed_apply(),
                Operation::Apply,
            ),
        ),
        (
            "lost state",
            Held,
            state(
                with(|a| a.conditions.push(condition("StateReadable", "False", "StateLost"))),
                failed_apply(),
                Operation::Apply,
            ),
        ),
        (
            "a locked state does not hold",
            Scheduled,
            state(
                with(|a| a.conditions.push(condition("StateReadable", "False", "StateLocked"))),
                failed_apply(),
                Operation::Apply,
            ),
        ),
        ("another Job", Held, state(limited(3), running.clone(), Operation::Apply)),
        ("its own Job", Running, state(limited(3), running, Operation::Drift)),
        ("deleting", Never, state(with(|a| a.deleting = Some(ago(9))), failed_apply(), Operation::Apply)),
        (
            "a restore",
            Never,
            state(limited(3), vec![job(Operation::Restore, 1, JobOutcome::Failed, 30)], Operation::Restore),
        ),
        ("blocked without a plan", Scheduled, state(limited(3), blocked, Operation::Apply)),
        ("remediation at its limit", Held, state(limited(3), remediation.clone(), Operation::Apply)),
        ("remediation below it", Scheduled, state(limited(4), remediation, Operation::Apply)),
    ] {
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn leases_are_judged_by_their_holder_and_never_by_renew_time() {
    let lease = |seconds: i64| RunLease {
        name: "captf-run-x".into(),
        holder: JOB.into(),
        op: None,
        acquired: Some(ago(seconds)),
        backstop_seconds: 4500,
    };
    let wait = |lease: Reading<RunLease>, holder: Reading<JobFacts>, pods: Vec<PodFacts>| LeaseWait {
        name: "captf-run-x".into(),
        lease,
        holder,
        holder_pods: Reading::Found(pods),
    };
    let running = || Reading::Found(job(Operation::Apply, 1, JobOutcome::Unfinished, 0));
    let ended = || Reading::Found(job(Operation::Apply, 1, JobOutcome::Failed, 30));
    let alive = || vec![pod("Running", ContainerState::Running { started: None })];
    let over = || vec![pod("Failed", terminated(1, "Error"))];
    for (case, wait, free) in [
        ("no Lease", wait(Reading::Absent, Reading::Absent, vec![]), true),
        (
            "no holder",
            wait(Reading::Found(RunLease { holder: String::new(), ..lease(9) }), Reading::Absent, vec![]),
            true,
        ),
        ("unfinished", wait(Reading::Found(lease(900)), running(), alive()), false),
        ("unfinished, past the backstop", wait(Reading::Found(lease(4501)), running(), alive()), true),
        ("at the backstop", wait(Reading::Found(lease(4500)), running(), alive()), false),
        ("not there yet", wait(Reading::Found(lease(60)), Reading::Absent, vec![]), false),
        ("not there after the grace", wait(Reading::Found(lease(61)), Reading::Absent, vec![]), true),
        ("gone, its pod goes on", wait(Reading::Found(lease(900)), Reading::Absent, alive()), false),
        ("ended", wait(Reading::Found(lease(900)), ended(), over()), true),
        ("ended, its pod goes on", wait(Reading::Found(lease(900)), ended(), alive()), false),
    ] {
        assert_eq!(matches!(rule(&wait, now()), LeaseRuling::Free(_)), free, "{case}");
    }
    let mut unread = wait(Reading::Found(lease(900)), Reading::Unreadable(gap("Job")), vec![]);
    assert_eq!(rule(&unread, now()), LeaseRuling::Unknown(gap("Job")));
    unread.holder = ended();
    unread.holder_pods = Reading::Unreadable(gap("Pods"));
    assert_eq!(rule(&unread, now()), LeaseRuling::Unknown(gap("Pods")));
}
