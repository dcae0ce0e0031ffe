//! Events about one object. They last about an hour, so their absence proves nothing.

use serde_json::Value;

use super::api::{Api, EVENTS, Selector};
use super::json::{owned, text, time};
use crate::facts::event::EventFacts;
use crate::facts::reading::Reading;

/// Events about an object by kind and name, newest first.
pub async fn read_events(api: &Api, namespace: &str, kind: &str, name: &str) -> Reading<Vec<EventFacts>> {
    let selector = Selector::fields(format!("involvedObject.kind={kind},involvedObject.name={name}"));
    api.list(&EVENTS, Some(namespace), &selector).await.map(|list| {
        let mut events: Vec<EventFacts> = list.iter().map(facts_from_event).collect();
        events.sort_by_key(|e| std::cmp::Reverse(e.at));
        events
    })
}

/// An event of the core API, whichever of its time fields is set.
pub fn facts_from_event(value: &Value) -> EventFacts {
    EventFacts {
        reason: owned(value, &["reason"]),
        message: owned(value, &["message"]),
        warning: text(value, &["type"]) == Some("Warning"),
        about: (owned(value, &["involvedObject", "kind"]), owned(value, &["involvedObject", "name"])),
        at: time(value, &["series", "lastObservedTime"])
            .or_else(|| time(value, &["lastTimestamp"]))
            .or_else(|| time(value, &["eventTime"]))
            .or_else(|| time(value, &["metadata", "creationTimestamp"])),
    }
}
