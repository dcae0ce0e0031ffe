//! The steps of a restore Job as its log shows them while it runs: names of steps, never a line of the log.

use super::api::{Api, LogPart};

/// Bytes of the log that are looked at.
const TAIL: u32 = 64 * 1024;

/// Steps that the log of a runner pod shows so far; nothing when it cannot be read.
pub async fn read_steps(api: &Api, namespace: &str, pod: &str, unlocks: bool) -> Option<Vec<(String, i64)>> {
    let start = LogPart { container: "source".to_string(), limit_bytes: Some(TAIL), ..LogPart::default() };
    let text = api.read_log(namespace, pod, &start).await;
    let steps = steps_from_log(text.found()?, unlocks);
    (!steps.is_empty()).then(|| steps.into_iter().map(|s| (s.to_string(), 0)).collect())
}

/// The steps that have begun, in the runner's order: `init`, `force-unlock` where the Job was asked for it,
/// `state-push`, `state-list`. The push prints nothing when it goes well, so it is known by what came before
/// it; the list prints addresses.
fn steps_from_log(text: &str, unlocks: bool) -> Vec<&'static str> {
    let Some((_, after)) = text.split_once("Initializing the backend") else {
        return Vec::new();
    };
    let mut steps = vec!["init"];
    let Some((_, mut rest)) = after.split_once("has been successfully initialized!") else {
        return steps;
    };
    if unlocks {
        steps.push("force-unlock");
        match rest.split_once("state has been successfully unlocked") {
            Some((_, after)) => rest = after,
            None => return steps,
        }
    }
    steps.push("state-push");
    if rest.lines().any(is_address) {
        steps.push("state-list");
    }
    steps
}

/// Whether a line is the address of a managed resource, as `state list` prints it: `type.name`, perhaps in a
/// module and with a key.
fn is_address(line: &str) -> bool {
    let word = |part: &str| {
        let name = part.split('[').next().unwrap_or_default();
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    let bare = line.split('[').next().unwrap_or_default();
    let mut parts = bare.split('.');
    bare.contains('.') && !line.ends_with('.') && !bare.contains(' ') && parts.all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: &str = "Initializing the backend...\n";
    const READY: &str = "\nTerraform has been successfully initialized!\n\nYou may now begin working with Terraform.\n                         If you ever set or change modules, rerun this command.\n";
    const UNLOCKED: &str = "Terraform state has been successfully unlocked!\n\nThe state has been unlocked.\n";

    #[test]
    fn steps_come_from_what_the_runtime_prints() {
        let log = |parts: &[&str]| parts.concat();
        for (case, text, unlocks, expected) in [
            ("nothing yet", String::new(), false, &[] as &[&str]),
            ("init runs", log(&[INIT]), false, &["init"]),
            ("init is over", log(&[INIT, READY]), false, &["init", "state-push"]),
            ("a stale lock is cleared", log(&[INIT, READY]), true, &["init", "force-unlock"]),
            ("it is cleared", log(&[INIT, READY, UNLOCKED]), true, &["init", "force-unlock", "state-push"]),
            (
                "the push waits for the lock",
                log(&[INIT, READY, "Acquiring state lock. This may take a few moments...\n"]),
                false,
                &["init", "state-push"],
            ),
            (
                "the list",
                log(&[INIT, READY, "module.net[\"a.b\"].aws_subnet.private[0]\n"]),
                false,
                &["init", "state-push", "state-list"],
            ),
            (
                "OpenTofu",
                log(&[INIT, "OpenTofu has been successfully initialized!\n", "terraform_data.a\n"]),
                false,
                &["init", "state-push", "state-list"],
            ),
            ("no runtime's words", "password = CANARY".to_string(), false, &[]),
        ] {
            assert_eq!(steps_from_log(&text, unlocks), expected, "{case}");
        }
    }
}
