//! The kinds that people name on the command line, in every form that kubectl takes.

use std::fmt;

use super::keys::{CAPI_GROUP, GROUP, VERSION};

/// The three kinds that run Jobs and own a Terraform state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadKind {
    Cluster,
    Machine,
    MachinePool,
}

impl WorkloadKind {
    pub const ALL: [Self; 3] = [Self::Cluster, Self::Machine, Self::MachinePool];

    /// The Kubernetes kind, as in `kind:`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cluster => "TerraformCluster",
            Self::Machine => "TerraformMachine",
            Self::MachinePool => "TerraformMachinePool",
        }
    }

    /// The plural resource name, as in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "terraformclusters",
            Self::Machine => "terraformmachines",
            Self::MachinePool => "terraformmachinepools",
        }
    }

    /// The singular resource name, as kubectl prints it before a slash.
    pub fn singular(self) -> &'static str {
        match self {
            Self::Cluster => "terraformcluster",
            Self::Machine => "terraformmachine",
            Self::MachinePool => "terraformmachinepool",
        }
    }

    /// CAPTF's own abbreviation inside Job names and state suffixes.
    pub fn kindshort(self) -> &'static str {
        match self {
            Self::Cluster => "c",
            Self::Machine => "m",
            Self::MachinePool => "mp",
        }
    }

    /// Short names that the CRDs declare (the pool's is not confirmed upstream, so it is only accepted).
    fn short_names(self) -> &'static [&'static str] {
        match self {
            Self::Cluster => &["tfc"],
            Self::Machine => &["tfm"],
            Self::MachinePool => &["tfmp"],
        }
    }

    /// The kind written exactly as in `kind:`, or nothing.
    pub fn from_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.kind() == kind)
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// The Cluster API kinds behind which a Terraform object stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    Cluster,
    Machine,
    MachinePool,
}

impl OwnerKind {
    pub const ALL: [Self; 3] = [Self::Cluster, Self::Machine, Self::MachinePool];

    pub fn kind(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Machine => "Machine",
            Self::MachinePool => "MachinePool",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::Machine => "machines",
            Self::MachinePool => "machinepools",
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Machine => "machine",
            Self::MachinePool => "machinepool",
        }
    }

    fn short_names(self) -> &'static [&'static str] {
        match self {
            Self::Cluster => &["cl"],
            Self::Machine => &["ma"],
            Self::MachinePool => &["mp"],
        }
    }
}

/// A kind as typed: a Terraform object itself or the Cluster API object in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKind {
    Workload(WorkloadKind),
    Owner(OwnerKind),
}

impl NamedKind {
    /// Reads a kind in any form kubectl takes: singular, plural, `Kind`, short name, each alone or
    /// followed by `.group` or `.version.group`, without regard to case. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let (word, rest) = match lower.split_once('.') {
            Some((word, rest)) => (word, Some(rest)),
            None => (lower.as_str(), None),
        };
        for kind in WorkloadKind::ALL {
            if matches_word(word, kind.singular(), kind.plural(), kind.short_names())
                && rest.is_none_or(|r| group_matches(r, GROUP, &[VERSION]))
            {
                return Some(Self::Workload(kind));
            }
        }
        for kind in OwnerKind::ALL {
            if matches_word(word, kind.singular(), kind.plural(), kind.short_names())
                && rest.is_none_or(|r| group_matches(r, CAPI_GROUP, &["v1beta1", "v1beta2"]))
            {
                return Some(Self::Owner(kind));
            }
        }
        None
    }

    /// Every plain word that names a kind, for suggestions and completion.
    pub fn words() -> Vec<&'static str> {
        let workload = WorkloadKind::ALL.into_iter().map(WorkloadKind::singular);
        let owners = OwnerKind::ALL.into_iter().map(OwnerKind::singular);
        workload.chain(owners).collect()
    }
}

fn matches_word(word: &str, singular: &str, plural: &str, short: &[&str]) -> bool {
    word == singular || word == plural || short.contains(&word)
}

fn group_matches(rest: &str, group: &str, versions: &[&str]) -> bool {
    rest == group || rest.split_once('.').is_some_and(|(version, tail)| tail == group && versions.contains(&version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_that_kubectl_takes_is_a_kind_and_near_misses_are_not() {
        use NamedKind::{Owner, Workload};
        let cluster = Some(Workload(WorkloadKind::Cluster));
        for (text, expected) in [
            ("terraformcluster", cluster),
            ("terraformclusters", cluster),
            ("TerraformCluster", cluster),
            ("TERRAFORMCLUSTERS", cluster),
            ("tfc", cluster),
            ("terraformclusters.infrastructure.cluster.x-k8s.io", cluster),
            ("terraformcluster.v1alpha1.infrastructure.cluster.x-k8s.io", cluster),
            ("tfm", Some(Workload(WorkloadKind::Machine))),
            ("TerraformMachinePools", Some(Workload(WorkloadKind::MachinePool))),
            ("tfmp", Some(Workload(WorkloadKind::MachinePool))),
            ("cluster", Some(Owner(OwnerKind::Cluster))),
            ("clusters.cluster.x-k8s.io", Some(Owner(OwnerKind::Cluster))),
            ("machines.v1beta2.cluster.x-k8s.io", Some(Owner(OwnerKind::Machine))),
            ("mp", Some(Owner(OwnerKind::MachinePool))),
            ("terraformclusters.cluster.x-k8s.io", None),
            ("clusters.infrastructure.cluster.x-k8s.io", None),
            ("terraformcluster.v1.infrastructure.cluster.x-k8s.io", None),
            ("terraformclusterss", None),
            ("pod", None),
            ("", None),
        ] {
            assert_eq!(NamedKind::parse(text), expected, "{text}");
        }
    }
}
