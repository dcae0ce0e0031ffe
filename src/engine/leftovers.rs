//! What belongs to us in an engine, by label: written at creation, found again by the next run, removed.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
};

use super::connect::{Engine, EngineError, failed, is_absent, words};

const LABEL: &str = "io.captf.kubectl";
const OBJECT: &str = "io.captf.kubectl.object";
const UNTIL: &str = "io.captf.kubectl.until";
/// What an unlock may take at most, in seconds; older leftovers of any object are removed.
const LONGEST: i64 = 1800;
/// How often a list is asked for again, every quarter of a second.
const PATIENCE: u32 = 40;

/// What tells one object's containers and volumes from another's, as a label: `team-a/<suffix> <UID>`. The UID
/// tells clusters apart, by whatever address they are reached.
pub fn object_label(namespace: &str, suffix: &str, uid: &str) -> String {
    format!("{namespace}/{suffix} {uid}")
}

/// The labels of a container or volume that is made at `now` (seconds since the epoch).
pub fn labels(object: &str, now: i64) -> HashMap<String, String> {
    HashMap::from([
        (LABEL.to_string(), "force-unlock".to_string()),
        (OBJECT.to_string(), object.to_string()),
        (UNTIL.to_string(), (now + LONGEST).to_string()),
    ])
}

/// Whether something with these labels is a leftover: it is this object's, or past its time.
fn is_left(labels: &HashMap<String, String>, object: &str, now: i64) -> bool {
    labels.get(OBJECT).is_some_and(|o| o == object)
        || labels.get(UNTIL).and_then(|u| u.parse::<i64>().ok()).is_none_or(|until| until < now)
}

/// Removes what killed runs left: everything of this object, and what is past its time of any other. Only
/// for whoever holds the object's claim, or when nobody does. Returns what was removed.
pub async fn sweep(engine: &Engine, object: &str, now: i64) -> Result<Vec<String>, EngineError> {
    let filter = HashMap::from([("label".to_string(), vec![LABEL.to_string()])]);
    let fail = |e| failed("look for what an earlier run left", &e);
    let mut removed = Vec::new();
    for container in containers(engine, &filter).await.map_err(fail)? {
        let (Some(id), Some(labels)) = (container.id, container.labels) else { continue };
        if is_left(&labels, object, now) {
            remove_container(engine, &id).await?;
            let names: Vec<String> = container.names.unwrap_or_default();
            removed.push(format!("container {}", names.join(" ").trim_start_matches('/')));
        }
    }
    let options = ListVolumesOptionsBuilder::default().filters(&filter).build();
    for volume in engine.docker.list_volumes(Some(options)).await.map_err(fail)?.volumes.unwrap_or_default() {
        if is_left(&volume.labels, object, now) {
            remove_volume(engine, &volume.name).await?;
            removed.push(format!("volume {}", volume.name));
        }
    }
    Ok(removed)
}

/// All containers with these labels. Podman has a state `stopped` between running and exited that the library does
/// not know, and one such container makes the whole list unreadable; it passes in a moment.
async fn containers(
    engine: &Engine,
    filter: &HashMap<String, Vec<String>>,
) -> Result<Vec<ContainerSummary>, bollard::errors::Error> {
    for _ in 0..PATIENCE {
        let options = ListContainersOptionsBuilder::default().all(true).filters(filter).build();
        match engine.docker.list_containers(Some(options)).await {
            Err(e) if is_unknown_state(&e) => tokio::time::sleep(Duration::from_millis(250)).await,
            answer => return answer,
        }
    }
    let options = ListContainersOptionsBuilder::default().all(true).filters(filter).build();
    engine.docker.list_containers(Some(options)).await
}

fn is_unknown_state(error: &bollard::errors::Error) -> bool {
    use bollard::errors::Error;
    let unread = matches!(error, Error::JsonDataError { .. } | Error::JsonSerdeError { .. });
    unread && words(error).contains("unknown variant")
}

/// Stops and removes a container. One that is gone is as good.
pub async fn remove_container(engine: &Engine, name: &str) -> Result<(), EngineError> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match engine.docker.remove_container(name, Some(options)).await {
        Ok(()) => Ok(()),
        Err(e) if is_absent(&e) => Ok(()),
        Err(e) => Err(failed(&format!("remove container {name}"), &e)),
    }
}

/// Removes a volume. One that is gone is as good.
pub async fn remove_volume(engine: &Engine, name: &str) -> Result<(), EngineError> {
    let options = RemoveVolumeOptionsBuilder::default().force(true).build();
    match engine.docker.remove_volume(name, Some(options)).await {
        Ok(()) => Ok(()),
        Err(e) if is_absent(&e) => Ok(()),
        Err(e) => Err(failed(&format!("remove volume {name}"), &e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_the_library_does_not_know_is_told_from_other_faults() {
        let error = |json: &str| {
            let err = serde_json::from_str::<ContainerSummary>(json).expect_err("not readable");
            bollard::errors::Error::JsonSerdeError { err }
        };
        assert!(is_unknown_state(&error(r#"{"State": "stopped"}"#)));
        assert!(!is_unknown_state(&error("{")));
        assert!(!is_unknown_state(&bollard::errors::Error::RequestTimeoutError));
    }

    #[test]
    fn only_what_is_the_objects_own_or_past_its_time_is_a_leftover() {
        let (mine, other) = (object_label("team-a", "x-c", "u1"), object_label("team-a", "y-c", "u2"));
        for (labels, expected) in [
            (labels(&mine, 1000), true),
            (labels(&other, 1000), false),
            (labels(&other, 1000 - LONGEST - 1), true),
            // Without a time nobody would ever remove it.
            (HashMap::from([(LABEL.to_string(), String::new())]), true),
        ] {
            assert_eq!(is_left(&labels, &mine, 1000), expected, "{labels:?}");
        }
    }
}
