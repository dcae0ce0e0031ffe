//! From what was named to the objects to look at.

use super::error::{CommandError, unreadable};
use super::session::Session;
use super::target::Target;
use crate::captf::kind::{NamedKind, OwnerKind, WorkloadKind};
use crate::cluster::api::{Api, Resource, Selector};
use crate::cluster::orphans::read_scope;
use crate::cluster::resolve::{ByLockId, close_names, resolve_lock_id, resolve_owner};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::reading::{Gap, GapReason, Reading};

const NAMESPACES: Resource =
    Resource { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false };

/// What a command looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything of these kinds in the session's namespaces.
    Kinds(Vec<WorkloadKind>),
    Objects(Vec<ObjectRef>),
}

/// Turns targets into objects. Names are taken as they are; whether they exist shows when they are read.
pub async fn scope_of(session: &Session, targets: &[Target], selector: bool) -> Result<Scope, CommandError> {
    let mut kinds = Vec::new();
    let mut objects = Vec::new();
    for target in targets {
        match target {
            Target::Kind(kind) => kinds.push(workload_of(*kind)),
            Target::Named { kind, name } => objects.push(named(session, *kind, name).await?),
            Target::LockId(id) => objects.push(by_lock_id(session, id).await?),
        }
    }
    if objects.is_empty() {
        return Ok(Scope::Kinds(if kinds.is_empty() { WorkloadKind::ALL.to_vec() } else { kinds }));
    }
    if !kinds.is_empty() {
        return Err(CommandError::usage("a kind without a name cannot stand beside named objects"));
    }
    if selector {
        return Err(CommandError::usage("a selector cannot be combined with named objects"));
    }
    objects.dedup();
    Ok(Scope::Objects(objects))
}

/// The Terraform kind that a kind stands for.
pub fn workload_of(kind: NamedKind) -> WorkloadKind {
    match kind {
        NamedKind::Workload(kind) => kind,
        NamedKind::Owner(OwnerKind::Cluster) => WorkloadKind::Cluster,
        NamedKind::Owner(OwnerKind::Machine) => WorkloadKind::Machine,
        NamedKind::Owner(OwnerKind::MachinePool) => WorkloadKind::MachinePool,
    }
}

/// The object that a kind and a name mean; owners are followed to the Terraform object behind them.
pub async fn named(session: &Session, kind: NamedKind, name: &str) -> Result<ObjectRef, CommandError> {
    let namespace = match &session.namespace {
        Some(namespace) => namespace.clone(),
        None if session.live => {
            return Err(CommandError::usage("an object cannot be named across all namespaces")
                .hint("give its namespace with `-n`"));
        }
        None => only_namespace_with(session, kind, name).await?,
    };
    match kind {
        NamedKind::Workload(kind) => Ok(ObjectRef { kind, namespace, name: name.to_string() }),
        NamedKind::Owner(owner) => behind_owner(session, owner, &namespace, name).await,
    }
}

async fn behind_owner(
    session: &Session,
    owner: OwnerKind,
    namespace: &str,
    name: &str,
) -> Result<ObjectRef, CommandError> {
    let what = format!("read {} `{name}` in {namespace}", owner.kind());
    match resolve_owner(&session.api, owner, namespace, name).await {
        Reading::Found(Some(object)) => Ok(object),
        Reading::Found(None) => Err(CommandError::failed(format!(
            "{} `{name}` in {namespace} has no infrastructure of CAPTF",
            owner.kind()
        ))
        .hint("its infrastructureRef names another provider's kind")),
        Reading::Absent => Err(CommandError::failed(format!("{} `{name}` not found in {namespace}", owner.kind()))
            .hint(format!("`kubectl get {} -n {namespace}` lists them", owner.plural()))),
        Reading::Unreadable(gap) => Err(unreadable(&what, &gap, session.source.server.as_deref())),
    }
}

async fn by_lock_id(session: &Session, id: &str) -> Result<ObjectRef, CommandError> {
    match resolve_lock_id(&session.api, session.namespace.as_deref(), id).await {
        Ok(ByLockId::Object(object)) => Ok(object),
        Ok(ByLockId::LeaseOnly { namespace, lease }) => Err(CommandError::failed(format!(
            "lock `{id}` is held on Lease {namespace}/{lease}, which belongs to no object"
        ))
        .hint(format!("`kubectl captf lock list -n {namespace}` shows it as an orphan"))),
        Ok(ByLockId::NotFound) => {
            Err(CommandError::failed(format!("no lock in {} has the ID `{id}`", session.scope()))
                .hint("it may have been released; `kubectl captf lock list` shows the locks that are held"))
        }
        Err(gap) => Err(unreadable("find the lock by its ID", &gap, session.source.server.as_deref())),
    }
}

/// In a snapshot without a namespace given: the one namespace that holds the object.
async fn only_namespace_with(session: &Session, kind: NamedKind, name: &str) -> Result<String, CommandError> {
    let kind = workload_of(kind);
    let everything = Selector::default();
    let mut objects = Vec::new();
    for namespace in session.list_scopes() {
        objects.extend(read_scope(&session.api, &[kind], namespace.as_deref(), &everything).await.0);
    }
    let mut holders: Vec<String> =
        objects.into_iter().map(|(o, _)| o).filter(|o| o.name == name).map(|o| o.namespace).collect();
    match (holders.len(), holders.pop()) {
        (1, Some(namespace)) => Ok(namespace),
        (0, _) => Err(CommandError::failed(format!(
            "{kind} `{name}` is in no namespace of the snapshot that could be listed"
        ))
        .hint("give the namespace with `-n`")),
        _ => {
            Err(CommandError::usage(format!("{kind} `{name}` exists in several namespaces"))
                .hint("choose one with `-n`"))
        }
    }
}

/// What was read of a named object; that it is absent or did not read is an error.
pub async fn must_be_there<T>(session: &Session, object: &ObjectRef, read: Reading<T>) -> Result<T, CommandError> {
    match read {
        Reading::Found(found) => Ok(found),
        Reading::Absent => Err(not_found(session, object).await),
        Reading::Unreadable(gap) => {
            let doing = format!("read {} `{}` in {}", object.kind, object.name, object.namespace);
            Err(unreadable(&doing, &gap, session.source.server.as_deref()))
        }
    }
}

/// The error for a named object that does not exist: close names, or a namespace that does not exist.
pub async fn not_found(session: &Session, object: &ObjectRef) -> CommandError {
    let error = CommandError::failed(format!("{} `{}` not found in {}", object.kind, object.name, object.namespace));
    let close = close_names(&session.api, object).await;
    if !close.is_empty() {
        return error
            .hint(format!("did you mean {}?", close.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")));
    }
    if namespace_is_absent(&session.api, &object.namespace).await {
        return error.hint(format!("namespace `{}` does not exist", object.namespace));
    }
    error.hint(format!("`kubectl get {} -n {}` lists what is there", object.kind.plural(), object.namespace))
}

/// Whether the server says that the namespace does not exist; a failed read is no.
pub async fn namespace_is_absent(api: &Api, namespace: &str) -> bool {
    matches!(api.get(&NAMESPACES, None, namespace).await, Reading::Absent)
}

/// The error when nothing of any kind could be listed, or `None` when some list came through.
pub fn nothing_listed(gaps: &[Gap], kinds: usize, session: &Session) -> Option<CommandError> {
    let all_failed = gaps.len() == kinds && kinds > 0;
    let gap = gaps.iter().find(|g| g.reason != GapReason::NotInstalled).or(gaps.first()).filter(|_| all_failed)?;
    let what = format!("list the Terraform objects in {}", session.scope());
    Some(unreadable(&what, gap, session.source.server.as_deref()))
}

/// The objects of some kinds in one scope, with the gaps of kinds that could not be listed. An error when none
/// could be, or when the namespace does not exist.
pub async fn list_objects(
    session: &Session,
    kinds: &[WorkloadKind],
    namespace: Option<&str>,
    selector: &Selector,
) -> Result<(Vec<(ObjectRef, ObjectFacts)>, Vec<Gap>), CommandError> {
    let (objects, gaps) = read_scope(&session.api, kinds, namespace, selector).await;
    if let Some(error) = nothing_listed(&gaps, kinds.len(), session) {
        return Err(error);
    }
    if objects.is_empty()
        && let Some(namespace) = namespace
        && session.live
        && namespace_is_absent(&session.api, namespace).await
    {
        return Err(CommandError::failed(format!("namespace `{namespace}` does not exist")));
    }
    Ok((objects, gaps))
}
