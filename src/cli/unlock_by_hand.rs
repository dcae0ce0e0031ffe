//! The same unlock as commands for people without this plugin: kubectl, docker and tar.

use super::args::GlobalArgs;
use super::session::Session;
use super::unlock_args::{CredentialsArg, ForceUnlockArgs};
use super::unlock_login::service_account;
use super::unlock_run::backend;
use crate::cluster::access::access;
use crate::engine::files::{Content, FOLDER, Login, MOUNT, files, inside};
use crate::engine::steps::{RUNTIME, environment, force_unlock, init};
use crate::facts::lock::LockFacts;
use crate::runbook::code::Code;
use crate::runbook::finding::{Evidence, Finding};
use crate::runbook::force_unlock::{Judged, Method, Plan};
use crate::runbook::words::shell_quote;

/// User and group that the printed commands use throughout.
const USER: &str = "65532";

/// Adds files and commands to the finding that the lock can be released.
pub fn with_commands(
    session: &Session,
    global: &GlobalArgs,
    facts: &LockFacts,
    args: &ForceUnlockArgs,
    plan: &Plan,
    mut judged: Judged,
) -> Judged {
    let Some(ready) = judged.findings.iter_mut().find(|f| f.code == Code::UnlockReady) else {
        return judged;
    };
    let backend = backend(facts, plan, plan.method == Method::Job);
    if let Some((image, _)) = &plan.image {
        let run = |arguments: &[String]| {
            let words: Vec<String> = arguments.iter().map(|a| shell_quote(a)).collect();
            format!("{RUNTIME} {}", words.join(" "))
        };
        *ready = ready
            .clone()
            .seen(Evidence::new("command 1", run(&init(&backend))))
            .seen(Evidence::new("command 2", run(&force_unlock(&plan.lock_id))));
        if plan.method == Method::Runtime && session.live {
            *ready = by_docker(session, global, facts, args, image, plan, ready.clone());
        }
    }
    judged
}

fn by_docker(
    session: &Session,
    global: &GlobalArgs,
    facts: &LockFacts,
    args: &ForceUnlockArgs,
    image: &str,
    plan: &Plan,
    mut ready: Finding,
) -> Finding {
    // The commands use a token; the caller's own credentials are not for copy and paste.
    if args.credentials == CredentialsArg::Caller {
        return ready;
    }
    let Ok(access) = access(&global.connection.connection(), Login::Token("<token>".to_string())) else {
        return ready;
    };
    let kubectl = session.values.get("kubectl").map_or("kubectl", String::as_str);
    let namespace = shell_quote(&facts.object.namespace);
    let account = shell_quote(&service_account(facts, args));
    let mut make = vec![format!("umask 077 && mkdir -p {FOLDER}/root {FOLDER}/data {FOLDER}/tmp {FOLDER}/home")];
    for file in files(&access) {
        let path = format!("{FOLDER}/{}", file.path);
        match (&file.content, file.path) {
            (Content::Secret(_), _) => {
                ready = ready.seen(Evidence::new(format!("file {}", inside(file.path)), "<token>"));
                make.push(format!("{kubectl} -n {namespace} create token {account} --duration=10m > {path}"));
            }
            (Content::Plain(_), "ca.crt") => {
                ready = ready.seen(Evidence::new(format!("file {}", inside(file.path)), "the cluster's authority"));
                make.push(format!(
                    "{kubectl} config view --raw --flatten --minify \
                     -o jsonpath='{{.clusters[0].cluster.certificate-authority-data}}' | base64 -d > {path}"
                ));
            }
            (Content::Plain(text), _) => {
                ready = ready.seen(Evidence::new(format!("file {}", inside(file.path)), text.clone()));
                make.push(format!("printf %s {} > {path}", shell_quote(text)));
            }
        }
    }
    let name = format!("captf-unlock-{}", plan.suffix);
    let variables: Vec<String> = environment(&[]).iter().map(|v| format!("-e {}", shell_quote(v))).collect();
    let options = format!(
        "--network host --user {USER}:{USER} --cap-drop ALL --security-opt no-new-privileges -v {name}:{MOUNT} \
         -w {} {} --entrypoint {RUNTIME} {}",
        inside("root"),
        variables.join(" "),
        shell_quote(image)
    );
    let words = |arguments: Vec<String>| arguments.iter().map(|a| shell_quote(a)).collect::<Vec<_>>().join(" ");
    ready
        .with("make_files", make.join(" && "))
        .with(
            "make_volume",
            format!(
                "docker volume create {name} && docker create --name {name} {options} {}",
                words(init(&backend(facts, plan, false)))
            ),
        )
        .with(
            "copy_files",
            format!("tar --owner={USER} --group={USER} --numeric-owner -cf - {FOLDER} | docker cp - {name}:{MOUNT}"),
        )
        .with("run_init", format!("docker start -a {name}"))
        .with("run_unlock", format!("docker run --rm {options} {}", words(force_unlock(&plan.lock_id))))
        .with("clean_up", format!("docker rm {name}; docker volume rm {name}; rm -r {FOLDER}"))
}
