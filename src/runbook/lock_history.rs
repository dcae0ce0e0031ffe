//! `lock history`: what is left to see after the controller has cleared a lock.

use super::code::Code;
use super::death::{death_of, from_event};
use super::finding::{Evidence, Finding};
use crate::captf::own_pod::is_own_job;
use crate::facts::event::EventFacts;
use crate::facts::job::JobFacts;
use crate::facts::object::ObjectRef;
use crate::facts::pod::PodFacts;
use crate::facts::reading::{Gap, Reading};

/// What `lock history` looks at.
pub struct HistoryFacts {
    pub object: ObjectRef,
    pub jobs: Reading<Vec<JobFacts>>,
    /// Events about the object, newest first.
    pub events: Reading<Vec<EventFacts>>,
    /// Pods of the object's Jobs.
    pub pods: Reading<Vec<PodFacts>>,
}

/// Findings, newest first, and what could not be read.
pub fn diagnose(facts: &HistoryFacts) -> (Vec<Finding>, Vec<Gap>) {
    let gaps: Vec<Gap> =
        [facts.jobs.gap(), facts.events.gap(), facts.pods.gap()].into_iter().flatten().cloned().collect();
    let none = Vec::new();
    let (jobs, events, pods) = (
        facts.jobs.found().unwrap_or(&none),
        facts.events.found().map(Vec::as_slice).unwrap_or_default(),
        facts.pods.found().map(Vec::as_slice).unwrap_or_default(),
    );
    let mut findings = Vec::new();
    for event in events.iter().filter(|e| e.reason == "ForceUnlocked") {
        findings
            .push(Finding::new(Code::HistoryForceUnlocked, from_event(event)).seen_all(named_job(facts, event, jobs)));
    }
    for event in events.iter().filter(|e| e.reason == "JobInterrupted") {
        findings
            .push(Finding::new(Code::HistoryInterrupted, from_event(event)).seen_all(named_job(facts, event, jobs)));
    }
    findings.extend(jobs.iter().filter_map(|job| unlocked_by(job, jobs, pods)));
    if findings.is_empty() {
        let source = format!("events and Jobs of {}", facts.object.resource());
        let value = if gaps.is_empty() { "no trace of a cleared lock" } else { "no trace in what could be read" };
        findings.push(Finding::new(Code::HistoryNothing, Evidence::new(source, value)));
    }
    (findings, gaps)
}

/// A Job that was started with a lock to clear, and the Job before it, whose lock that most likely was.
fn unlocked_by(job: &JobFacts, jobs: &[JobFacts], pods: &[PodFacts]) -> Option<Finding> {
    let id = job.force_unlock.as_ref()?;
    let before = jobs.iter().filter(|j| j.created < job.created && j.name != job.name).max_by_key(|j| j.created);
    let mut finding = Finding::new(
        Code::HistoryHolderDied,
        Evidence::new(format!("Job/{} --force-unlock", job.name), id.clone()).at(job.created),
    );
    let Some(before) = before else {
        return Some(finding.seen(Evidence::new("the Job before it", "no longer kept")));
    };
    finding = finding.with("job", before.name.clone());
    let pod = pods.iter().find(|p| p.job.as_deref() == Some(before.name.as_str()));
    let death = death_of(pod, Some(before), &[]);
    let value = death.as_ref().map_or("how it ended is no longer to be seen", |d| d.cause);
    finding = finding.seen(Evidence::new(format!("Job/{}, the one before", before.name), value).at(before.finished));
    Some(finding.seen_all(death.into_iter().flat_map(|d| d.evidence)))
}

/// The Job that an event's text names, as far as it is still there.
fn named_job(facts: &HistoryFacts, event: &EventFacts, jobs: &[JobFacts]) -> Option<Evidence> {
    let word = event
        .message
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .find(|w| is_own_job(facts.object.kind, &facts.object.name, w))?;
    Some(match jobs.iter().find(|j| j.name == word) {
        Some(job) => Evidence::new(format!("Job/{word}"), "still kept").at(job.created),
        None => Evidence::new(format!("Job/{word}"), "no longer kept"),
    })
}
