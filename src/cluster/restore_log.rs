//! The steps of a restore Job as its log shows them while it runs: names of steps, never a line of the log.

use super::api::{Api, LogPart};

/// Bytes of the log that are looked at.
const TAIL: u32 = 64 * 1024;

/// Steps that the log of a runner pod shows so far; nothing when it cannot be read.
pub async fn read_steps(api: &Api, namespace: &str, pod: &str) -> Option<Vec<(String, i64)>> {
    let start = LogPart { container: "source".to_string(), limit_bytes: Some(TAIL), ..LogPart::default() };
    let text = api.read_log(namespace, pod, &start).await;
    let steps = steps_from_log(text.found()?);
    (!steps.is_empty()).then(|| steps.into_iter().map(|s| (s.to_string(), 0)).collect())
}

/// What the runtime prints at each step, in order.
fn steps_from_log(text: &str) -> Vec<&'static str> {
    const SIGNS: [(&str, &str); 4] = [
        ("Initializing the backend", "init"),
        ("state has been successfully unlocked", "force-unlock"),
        ("state-push", "state-push"),
        ("state-list", "state-list"),
    ];
    let mut found: Vec<(usize, &'static str)> =
        SIGNS.into_iter().filter_map(|(sign, step)| Some((text.find(sign)?, step))).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_from_what_the_runtime_prints() {
        assert_eq!(
            steps_from_log("Initializing the backend...\nTerraform state has been successfully unlocked!\n"),
            ["init", "force-unlock"]
        );
        assert!(steps_from_log("").is_empty());
        assert!(steps_from_log("password = CANARY").is_empty());
    }
}
