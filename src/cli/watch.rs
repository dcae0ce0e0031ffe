//! `--watch`: judge again and again, print when something changed.
//!
//! Each round is a full, uncached judgement: a watch on one kind could not keep the order of reads on which a
//! verdict rests. A round that fails is reported and the next one tried, as a watch outlives an outage.

use std::time::Duration;

use super::args::GlobalArgs;
use super::error::{CommandError, ErrorKind};
use super::render::{Shape, render};
use crate::output::view::view_of;
use crate::report::Report;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(2);

/// Runs until it is interrupted. An error of the first round ends it.
pub async fn run<F, R>(global: &GlobalArgs, shape: Shape, mut judge: F) -> Result<u8, CommandError>
where
    F: FnMut() -> R,
    R: Future<Output = Result<Report, CommandError>>,
{
    let mut shown: Option<String> = None;
    let mut failing: Option<CommandError> = None;
    loop {
        match judge().await {
            Ok(report) => {
                failing = None;
                let key = change_key(&report);
                if shown.as_ref() != Some(&key) {
                    render(&report, global, shape)?;
                    shown = Some(key);
                }
            }
            Err(e) if shown.is_none() || e.kind == ErrorKind::Usage => return Err(e),
            Err(e) => {
                if failing.as_ref() != Some(&e) {
                    e.print();
                    failing = Some(e);
                }
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// What has to change for a report to be printed again: not the time, and no ages.
fn change_key(report: &Report) -> String {
    let view = view_of(report, false);
    let items = view.items.iter().map(|item| {
        let lock = item.lock.as_ref().map(|l| (l.id.clone(), l.holder.clone(), l.operation.clone()));
        let codes: Vec<&str> = item.findings.iter().map(|f| f.code).collect();
        let evidence: Vec<&str> = item
            .findings
            .iter()
            .flat_map(|f| &f.evidence)
            .filter(|e| e.source.contains('/'))
            .map(|e| e.source.as_str())
            .collect();
        let jobs = item.runs.iter().flat_map(|r| &r.jobs).map(|j| (j.name.as_str(), j.outcome));
        let jobs: Vec<_> = jobs.collect();
        let next: Vec<_> =
            item.runs.iter().flat_map(|r| &r.next_attempts).map(|a| (a.state, a.at.as_deref())).collect();
        let object = format!("{}/{}", item.object.namespace, item.object.resource);
        format!("{object} {:?} {lock:?} {codes:?} {evidence:?} {jobs:?} {next:?}", item.verdict)
    });
    let gaps = view.unreadable.iter().map(|g| format!("{} {}", g.what, g.reason));
    items.chain(gaps).collect::<Vec<_>>().join("\n")
}
