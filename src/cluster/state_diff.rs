//! Compares the instances of two states. Fingerprints end here; only addresses come out.

use std::collections::BTreeMap;

use super::state_instances::Instance;
use crate::facts::state_diff::{Address, CountChange, StateDiff};

/// What a restore of `backup` over `present` would make Terraform forget, bring back or know under another ID.
pub fn diff(present: &[Instance], backup: &[Instance]) -> StateDiff {
    let mut old: Vec<&Instance> = present.iter().collect();
    let mut new: Vec<&Instance> = backup.iter().collect();
    old.sort_by(|a, b| a.address.cmp(&b.address));
    new.sort_by(|a, b| a.address.cmp(&b.address));
    let mut out = StateDiff { counts: count_changes(present, backup), ..StateDiff::default() };
    let (mut i, mut j) = (0, 0);
    loop {
        let order = match (old.get(i), new.get(j)) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.address.cmp(&b.address),
        };
        match order {
            std::cmp::Ordering::Less => {
                out.forgotten.push(address(old[i]));
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                out.returning.push(address(new[j]));
                j += 1;
            }
            std::cmp::Ordering::Equal => {
                if old[i].id == new[j].id {
                    out.same += 1;
                } else {
                    out.other_id.push(address(old[i]));
                }
                i += 1;
                j += 1;
            }
        }
    }
    for list in [&mut out.forgotten, &mut out.returning, &mut out.other_id] {
        list.sort_by_cached_key(order);
    }
    out
}

/// By type, then as people count: `[2]` before `[10]`.
fn order(address: &Address) -> (String, String, u64, String) {
    let (resource, key) = address.address.rsplit_once('[').unwrap_or((&address.address, ""));
    let number = key.trim_end_matches(']').parse().unwrap_or(u64::MAX);
    (address.kind.clone(), resource.to_string(), number, address.address.clone())
}

/// Managed instances by type, most first.
pub fn by_type(instances: &[Instance]) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for instance in instances {
        *counts.entry(&instance.kind).or_default() += 1;
    }
    let mut all: Vec<(String, u64)> = counts.into_iter().map(|(k, n)| (k.to_string(), n)).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn address(instance: &Instance) -> Address {
    Address { kind: instance.kind.to_string(), address: instance.address.to_string() }
}

/// Resources that are in both with another number of instances.
fn count_changes(present: &[Instance], backup: &[Instance]) -> Vec<CountChange> {
    let mut counts: BTreeMap<&str, (u64, u64, &str)> = BTreeMap::new();
    for instance in present {
        counts.entry(instance.resource()).or_insert((0, 0, &instance.kind)).0 += 1;
    }
    for instance in backup {
        counts.entry(instance.resource()).or_insert((0, 0, &instance.kind)).1 += 1;
    }
    counts
        .into_iter()
        .filter(|(_, (before, after, _))| before != after && *before > 0 && *after > 0)
        .map(|(resource, (before, after, kind))| CountChange {
            kind: kind.to_string(),
            resource: resource.to_string(),
            before,
            after,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(kind: &str, name: &str, key: &str, id: u64) -> Instance {
        let resource = format!("{kind}.{name}");
        Instance {
            address: format!("{resource}{key}").into(),
            resource_len: u32::try_from(resource.len()).expect("short"),
            kind: kind.into(),
            id: (id > 0).then_some(id),
        }
    }

    fn names(list: &[Address]) -> Vec<&str> {
        list.iter().map(|a| a.address.as_str()).collect()
    }

    #[test]
    fn what_goes_what_returns_and_what_has_another_id() {
        let present = [
            instance("vm", "web", "[0]", 1),
            instance("vm", "web", "[1]", 2),
            instance("disk", "d", "[\"a\"]", 3),
            instance("net", "n", "", 4),
        ];
        let backup = [
            instance("vm", "web", "[0]", 1),
            instance("disk", "d", "[0]", 3),
            instance("net", "n", "", 5),
            instance("dns", "old", "", 6),
        ];
        let diff = diff(&present, &backup);
        assert_eq!(names(&diff.forgotten), ["disk.d[\"a\"]", "vm.web[1]"]);
        assert_eq!(names(&diff.returning), ["disk.d[0]", "dns.old"]);
        assert_eq!(names(&diff.other_id), ["net.n"]);
        assert_eq!(diff.same, 1);
        assert_eq!(diff.counts.len(), 1);
        assert_eq!((diff.counts[0].before, diff.counts[0].after), (2, 1));
    }

    #[test]
    fn addresses_are_ordered_as_people_count() {
        let present: Vec<Instance> = [10, 2, 0].map(|i| instance("vm", "web", &format!("[{i}]"), 1)).into();
        assert_eq!(names(&diff(&present, &[]).forgotten), ["vm.web[0]", "vm.web[2]", "vm.web[10]"]);
    }

    #[test]
    fn equal_states_do_not_differ() {
        let state = [instance("vm", "web", "", 1), instance("vm", "db", "", 0)];
        let diff = diff(&state, &state);
        assert!(diff.is_empty());
        assert_eq!(diff.same, 2);
    }
}
