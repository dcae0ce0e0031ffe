//! As whom the pinned binary talks to the API server: a short-lived token, or the caller's static credentials.

use jiff::Timestamp;

use super::args::GlobalArgs;
use super::error::CommandError;
use super::session::Session;
use super::unlock_args::{CredentialsArg, ForceUnlockArgs, MethodArg};
use crate::captf::time::seconds_between;
use crate::cluster::access::{access, own_login, request_token};
use crate::engine::files::{Access, Login};
use crate::facts::lock::LockFacts;
use crate::facts::reading::Reading;
use crate::output::escape::visible;

/// A token has to live at least so long for the next step, in seconds.
const TOKEN_LEFT: i64 = 60;

/// The ServiceAccount whose token the binary gets.
pub fn service_account(facts: &LockFacts, args: &ForceUnlockArgs) -> String {
    let own = facts.about.jobs.service_account.clone();
    let inherited = facts
        .around
        .terraform_cluster
        .as_ref()
        .and_then(Reading::found)
        .and_then(|cluster| cluster.default_jobs.service_account.clone());
    args.service_account.clone().or(own).or(inherited).unwrap_or_else(|| "captf-runner".to_string())
}

/// As whom, in words.
pub fn identity(facts: &LockFacts, args: &ForceUnlockArgs) -> String {
    let account = || format!("ServiceAccount {}/{}", facts.object.namespace, service_account(facts, args));
    match (args.method, args.credentials) {
        (MethodArg::Lease, _) => "you".to_string(),
        (MethodArg::Job, _) => account(),
        (MethodArg::Runtime, CredentialsArg::Caller) => {
            "you, with the static credentials of your kubeconfig".to_string()
        }
        (MethodArg::Runtime, CredentialsArg::ServiceAccount) => format!("{}, with a token for ten minutes", account()),
    }
}

/// How the binary reaches the API server, and when its token ends. To be asked for after the pull, which may
/// take longer than a token lives.
pub async fn access_of(
    session: &Session,
    global: &GlobalArgs,
    facts: &LockFacts,
    args: &ForceUnlockArgs,
) -> Result<(Access, Option<Timestamp>), CommandError> {
    let connection = global.connection.connection();
    let (login, expires) = match args.credentials {
        CredentialsArg::Caller => (callers_own(global)?, None),
        CredentialsArg::ServiceAccount => {
            let account = service_account(facts, args);
            let namespace = &facts.object.namespace;
            let token = request_token(&session.api, namespace, &account).await.map_err(|failure| {
                let error = CommandError::failed(format!("request a token of ServiceAccount {namespace}/{account}"));
                let error = match failure.gap() {
                    Some(gap) => error.caused_by(visible(&gap.to_string())).caused_by(visible(&gap.detail)),
                    None => error.caused_by("there is no such ServiceAccount"),
                };
                error.hint("`--service-account NAME` takes another one, `--credentials caller` your own login")
            })?;
            (Login::Token(token.token), token.expires)
        }
    };
    Ok((access(&connection, login)?, expires))
}

/// The caller's own credentials, or why they are not for a container. Reads the kubeconfig only.
pub fn callers_own(global: &GlobalArgs) -> Result<Login, CommandError> {
    own_login(&global.connection.connection())
        .map_err(|why| CommandError::failed(why).hint("leave out `--credentials` to use a short-lived token"))
}

/// Refuses the next step when the token would end over it.
pub fn outlives(expires: Option<Timestamp>) -> Result<(), CommandError> {
    match expires {
        Some(end) if seconds_between(Timestamp::now(), end) < TOKEN_LEFT => {
            Err(CommandError::failed("the token ends too soon; the lock was not touched")
                .hint("run the command again; is this machine's clock right?"))
        }
        Some(_) | None => Ok(()),
    }
}
