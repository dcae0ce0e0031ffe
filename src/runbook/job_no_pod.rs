//! A Job whose pod is not created: who refused it, in the words of the event on the Job.
//!
//! Old events mislead: a later SuccessfulCreate cancels every FailedCreate before it.

use super::code::Code;
use super::death::from_event;
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use crate::captf::time::seconds_between;
use crate::facts::event::EventFacts;

/// A pod that is created within this time is nothing to talk about.
const SOON_SECONDS: i64 = 30;

pub fn no_pod(case: &Case<'_>) -> Option<Finding> {
    if let Some(event) = failed_create(case.events, &case.job.name) {
        let code = refusal(&event.message);
        return Some(
            Finding::new(code, from_event(event))
                .with("job", case.job.name.clone())
                .with("because", because(&event.message)),
        );
    }
    let created = case.job.created?;
    let waited = seconds_between(created, case.job.finished.unwrap_or(case.now));
    if waited < SOON_SECONDS || case.job.suspended || !case.pods_are_known() || !case.job_is_unfinished() {
        return None;
    }
    let seen = Evidence::new(format!("Pods of Job/{}", case.job.name), "none").at(Some(created));
    let events =
        Evidence::new(format!("Events on Job/{}", case.job.name), "none about a pod that could not be created");
    Some(Finding::new(Code::PodNotCreated, seen).seen(events).with("job", case.job.name.clone()))
}

/// The newest FailedCreate on the Job that no later SuccessfulCreate has made void.
pub fn failed_create<'a>(events: &'a [EventFacts], job: &str) -> Option<&'a EventFacts> {
    let on_job = |e: &&EventFacts| e.about == ("Job".to_string(), job.to_string());
    let newest = |reason: &str| events.iter().filter(on_job).filter(|e| e.reason == reason).max_by_key(|e| e.at);
    let failed = newest("FailedCreate")?;
    newest("SuccessfulCreate").is_none_or(|ok| ok.at < failed.at).then_some(failed)
}

/// The part of a creation error that says why, without the kubelet's or controller's opening words.
fn because(message: &str) -> String {
    let message = message.strip_prefix("Error creating: ").unwrap_or(message);
    message.split_once(" is forbidden: ").map_or(message, |(_, why)| why).to_string()
}

fn refusal(message: &str) -> Code {
    let says = |words: &str| message.contains(words);
    if says("failed calling webhook") {
        Code::PodWebhookDown
    } else if says("admission webhook") && says("denied the request") {
        Code::PodWebhookDenied
    } else if says("exceeded quota") {
        Code::PodQuotaExceeded
    } else if says("failed quota") || says("must specify") {
        Code::PodQuotaNeedsLimits
    } else if says("violates PodSecurity") {
        Code::PodSecurityDenied
    } else if says("serviceaccount") && says("not found") || says("error looking up service account") {
        Code::PodNoServiceAccount
    } else if says("usage per") || says("maximum ") || says("minimum ") {
        Code::PodLimitRange
    } else {
        Code::PodCreateOther
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_pod_is_told_by_who_refused_it() {
        for (message, code) in [
            (
                "Error creating: pods \"x-\" is forbidden: exceeded quota: compute, requested: limits.memory=4Gi, used: limits.memory=30Gi, limited: limits.memory=32Gi",
                Code::PodQuotaExceeded,
            ),
            (
                "Error creating: pods \"x-\" is forbidden: failed quota: compute: must specify limits.cpu for: source",
                Code::PodQuotaNeedsLimits,
            ),
            (
                "Error creating: pods \"x-\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
                Code::PodLimitRange,
            ),
            (
                "Error creating: admission webhook \"policy.example.com\" denied the request: no owner label",
                Code::PodWebhookDenied,
            ),
            (
                "Error creating: Internal error occurred: failed calling webhook \"p.example.com\": failed to call webhook: Post \"https://p\": dial tcp 10.0.0.1:443: connect: connection refused",
                Code::PodWebhookDown,
            ),
            (
                "Error creating: pods \"x-\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile",
                Code::PodSecurityDenied,
            ),
            (
                "Error creating: pods \"x-\" is forbidden: error looking up service account team-a/captf-runner: serviceaccount \"captf-runner\" not found",
                Code::PodNoServiceAccount,
            ),
            ("Error creating: something new", Code::PodCreateOther),
        ] {
            assert_eq!(refusal(message), code, "{message}");
        }
    }
}
