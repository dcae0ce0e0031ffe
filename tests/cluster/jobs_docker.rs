//! The real Terraform and OpenTofu in Docker containers, failing in `init`, `validate`, `plan` and `apply`. What the
//! containers print and how they end becomes Job, pod and status as runner, kubelet and controller write them, the
//! log is served by a kubelet, and `jobs why` has to name the step and to quote the runtime's own words.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::engines::{Image, engines};
use crate::ground::runtime::{Runtime, labels as backend_labels, suffix};
use crate::ground::{Namespace, ground};
use crate::jobs::{IMAGE, condition, labels, machine};
use crate::kubelet::{NODE, kubelet, statuses};
use crate::objects::{ago, cluster, lock};
use crate::plugin::captf;

/// Where the runner lays the root module, and where its credentials are in these tests.
const ROOT: &str = "/captf/work/root";
const KUBECONFIG: &str = "/captf/kubeconfig";
/// A value of the credentials Secret that does not look like one.
const BY_VALUE: &str = "correct horse battery staple";

/// What a runtime prints about one failure: the title of its error, and words of the detail.
struct Says {
    title: &'static str,
    detail: &'static [&'static str],
}

/// One way to fail.
struct Case {
    name: &'static str,
    /// The step of the runner that fails; those before it have to go well.
    step: &'static str,
    code: &'static str,
    root: Value,
    terraform: Says,
    tofu: Says,
}

const fn same(title: &'static str, detail: &'static [&'static str]) -> (Says, Says) {
    (Says { title, detail }, Says { title, detail })
}

fn case(name: &'static str, step: &'static str, code: &'static str, root: Value, says: (Says, Says)) -> Case {
    Case { name, step, code, root, terraform: says.0, tofu: says.1 }
}

fn resource(body: Value) -> Value {
    json!({"resource": {"terraform_data": {"web": body}}})
}

fn cases() -> Vec<Case> {
    let init = "init-step-failed";
    vec![
        case(
            "provider",
            "init",
            init,
            json!({"terraform": {"required_providers": {"missing": {"source": "registry.invalid/team/missing"}}}}),
            (
                Says {
                    title: "Failed to query available provider packages",
                    detail: &["registry.invalid/team/missing"],
                },
                Says { title: "Failed to resolve provider packages", detail: &["registry.invalid/team/missing"] },
            ),
        ),
        case(
            "module",
            "init",
            init,
            json!({"module": {"network": {"source": "./network"}}}),
            same("Unreadable module directory", &["network", "no such file or directory"]),
        ),
        case(
            "refused",
            "init",
            "runner-forbidden",
            json!({}),
            same("", &["secrets is forbidden", "cannot list resource"]),
        ),
        case("unreachable", "init", init, json!({}), same("", &["connection refused"])),
        case(
            "undeclared",
            "validate",
            "step-failed",
            resource(json!({"input": "${var.sise}"})),
            same("Reference to undeclared input variable", &["sise"]),
        ),
        case(
            "precondition",
            "plan",
            "step-failed",
            json!({"variable": {"size": {"default": 3}},
                   "resource": {"terraform_data": {"web": {"input": "${var.size}", "lifecycle": {"precondition": {
                       "condition": "${var.size < 3}",
                       "error_message": format!("The size has to be below 3, and not what admin_password = \"canary-1\" with {BY_VALUE} made of it.")}}}}}}),
            same("Resource precondition failed", &["The size has to be below 3"]),
        ),
        case(
            "locked",
            "plan",
            "state-lock-timeout",
            json!({}),
            same("Error acquiring the state lock", &["someone@desktop-1"]),
        ),
        case("unreadable", "plan", "step-failed", json!({}), same("", &["gzip: invalid header"])),
        case(
            "postcondition",
            "apply",
            "step-failed",
            resource(
                json!({"input": "small", "lifecycle": {"postcondition": {"condition": "${self.output == \"large\"}",
                "error_message": "The instance came out small; api_token=canary-2 was used."}}}),
            ),
            same("Resource postcondition failed", &["The instance came out small"]),
        ),
        // Without a state init writes an empty one, and needs the lock for it.
        case(
            "locked-init",
            "init",
            "state-lock-timeout",
            json!({}),
            same("Error loading state", &["the state is already locked by another", "someone@desktop-1"]),
        ),
        // An image from scratch has no shell.
        case(
            "provisioner",
            "apply",
            "step-failed",
            resource(json!({"provisioner": [{"local-exec": {"command": "echo api_token=canary-3"}}]})),
            same("local-exec provisioner error", &["fork/exec /bin/sh"]),
        ),
    ]
}

/// An object's root folder, worked on by containers of one image.
struct Pod<'a> {
    ns: &'a Namespace<'a>,
    image: &'a str,
    folder: PathBuf,
    kubeconfig: PathBuf,
    name: String,
    machine: String,
    log: String,
    steps: Vec<Value>,
}

impl Pod<'_> {
    /// Runs one step in a container: its exit code. What it prints is added to the log of the pod.
    fn step(&mut self, step: &str, arguments: &[&str]) -> i64 {
        let docker = |args: &[&str]| {
            let output = engines().docker(args);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_string();
            (output.status.success(), text(&output.stdout), text(&output.stderr))
        };
        let (root, login) =
            (format!("{}:{ROOT}", self.folder.display()), format!("{}:{KUBECONFIG}:ro", self.kubeconfig.display()));
        let authority = format!("{0}:{0}:ro", self.ns.ground().ca.display());
        let (home, config) = (format!("HOME={ROOT}"), format!("KUBE_CONFIG_PATH={KUBECONFIG}"));
        let mut create = vec!["create", "--network", "host", "--hostname", &self.name, "-w", ROOT];
        create.extend(["-v", &root, "-v", &login, "-v", &authority]);
        for variable in ["TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1", &home, &config] {
            create.extend(["-e", variable]);
        }
        let create: Vec<&str> = create.into_iter().chain([self.image]).chain(arguments.iter().copied()).collect();
        let (made, id, why) = docker(&create);
        assert!(made, "{create:?}: {why}");
        docker(&["start", &id]);
        let (_, code, _) = docker(&["wait", &id]);
        let (_, out, err) = docker(&["logs", &id]);
        docker(&["rm", "-f", &id]);
        let code: i64 = code.parse().expect("an exit code");
        self.log.push_str(&format!("{out}\n{err}\n"));
        self.steps.push(json!({"name": step, "exit": code, "seconds": 1.0}));
        code
    }

    fn run(&mut self, step: &str, shape: &str) -> i64 {
        let timeout = "-lock-timeout=1s";
        match step {
            "init" => {
                let labels: Vec<String> = backend_labels("TerraformMachine", &self.machine, "prod")
                    .iter()
                    .map(|(key, value)| format!("{}={}", json!(key), json!(value)))
                    .collect();
                let secret = format!(
                    "-backend-config=secret_suffix={}",
                    suffix(self.ns.name(), "TerraformMachine", &self.machine)
                );
                let namespace = format!("-backend-config=namespace={}", self.ns.name());
                let labels = format!("-backend-config=labels={{{}}}", labels.join(","));
                let words = ["init", "-input=false", timeout, &secret, &namespace, &labels];
                self.step(step, &with(&words, shape))
            }
            "validate" => self.step(step, &with(&["validate"], shape)),
            "plan" => self.step(step, &with(&["plan", "-input=false", timeout], shape)),
            "apply" => self.step(step, &with(&["apply", "-auto-approve", "-input=false", timeout], shape)),
            other => panic!("no step {other}"),
        }
    }
}

/// With the flag of a shape; `init` of older runtimes has no JSON.
fn with<'a>(words: &[&'a str], shape: &'a str) -> Vec<&'a str> {
    let flag = Some(shape).filter(|s| !(s.is_empty() || words[0] == "init"));
    words.iter().copied().chain(flag).collect()
}

/// What the API server lets the runner do: nothing for the case that is refused.
fn login(ns: &Namespace<'_>, case: &Case) -> PathBuf {
    match case.name {
        "refused" => ns.ground().service_account_kubeconfig(ns.name(), "captf-runner", &json!([])),
        "unreachable" => {
            let text = std::fs::read_to_string(&ns.ground().kubeconfig).expect("the kubeconfig");
            let file = ns.ground().dir.join(format!("unreachable-{}", ns.name()));
            std::fs::write(&file, text.replace(&ns.ground().server, "https://127.0.0.1:1"))
                .expect("write a kubeconfig");
            file
        }
        _ => ns.ground().kubeconfig.clone(),
    }
}

/// What stands in the cluster before the step that fails.
fn prepare(ns: &Namespace<'_>, case: &Case, machine: &str) {
    let suffix = suffix(ns.name(), "TerraformMachine", machine);
    match case.name {
        "locked" | "locked-init" => {
            lock(ns, "TerraformMachine", machine, "3f2a9c1e-0000-4000-8000-000000000007", "someone@desktop-1")
        }
        "unreadable" => {
            let mut labels = json!({"tfstate": "true", "tfstateSecretSuffix": suffix, "tfstateWorkspace": "default",
                "app.kubernetes.io/managed-by": "terraform"});
            for (key, value) in backend_labels("TerraformMachine", machine, "prod") {
                labels[key] = json!(value);
            }
            ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": format!("tfstate-default-{suffix}"), "namespace": ns.name(), "labels": labels},
                "stringData": {"tfstate": "this is no state"}}));
        }
        _ => {}
    }
}

/// The Job, its pod and the status of its object after that run.
fn write_run(ns: &Namespace<'_>, pod: &Pod<'_>, job: &str, step: &str, bookkept: bool) {
    let error = json!({"kind": "step", "step": step, "tail": ""});
    let result = json!({"version": 1, "op": "apply", "image": {"ref": IMAGE, "providersMirror": false},
        "runtime": {"command": ["/captf/runtime"], "version": "1.0.0"}, "steps": pod.steps, "drift": null, "error": error});
    let status_steps: Vec<Value> = pod
        .steps
        .iter()
        .map(|s| json!({"name": s["name"], "exitCode": s["exit"], "durationMilliseconds": 1000}))
        .collect();
    let failed = condition("ApplyJobSucceeded", "False", "ApplyFailed");
    let last_run = json!({"job": job, "operation": "apply", "steps": status_steps,
        "error": {"kind": "step", "step": step, "summary": format!("step {step} ended with exit code 1")}});
    let status = if bookkept { json!({"lastRun": last_run}) } else { json!({}) };
    let owner = machine(ns, &pod.machine, &[failed], status);
    let marks = json!({"captf.io/bookkept": if bookkept { "true" } else { "false" }});
    crate::jobs::job(ns, &owner, "apply", 1, Some("BackoffLimitExceeded"), 20, marks);
    let mut marks = labels(&owner, "apply", 1);
    marks["batch.kubernetes.io/job-name"] = json!(job);
    let state = json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": ago(60), "finishedAt": ago(21), "message": result.to_string()}});
    let mut status = statuses(&state, None);
    status["phase"] = json!("Failed");
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name, "namespace": ns.name(), "labels": marks},
        "spec": {"restartPolicy": "Never", "nodeName": NODE, "containers": [{"name": "source", "image": IMAGE,
                 "envFrom": [{"secretRef": {"name": "captf-creds-team-a"}}]}]},
        "status": status}));
    kubelet().write(ns.name(), &pod.name, "source", &pod.log);
}

/// Runs every case and returns what `jobs why` did not tell as it is.
fn wrong_of(runtime: &Runtime, image: &Image, shape: &str, stem: &str) -> Vec<String> {
    let ns = ground().namespace(stem);
    cluster(&ns, "prod");
    ns.ground().apply_value(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "captf-creds-team-a", "namespace": ns.name()},
        "stringData": {"phrase": BY_VALUE}}),
    );
    let is_tofu = runtime.binary().ends_with("tofu");
    let image = format!("{}@{}", image.repository, image.digest);
    let mut wrong = Vec::new();
    // As JSON a step prints the same kind of line whatever went wrong, and `init` of these versions prints text.
    const AS_JSON: [&str; 4] = ["undeclared", "precondition", "locked", "provisioner"];
    let all = cases();
    for (number, case) in all.iter().enumerate().filter(|(_, c)| shape.is_empty() || AS_JSON.contains(&c.name)) {
        let folder = tempfile::tempdir_in(&engines().dir).expect("a folder");
        let job = format!("captf-m-{}-apply-a1-5e1f00", case.name);
        if case.step == "init" {
            prepare(&ns, case, case.name);
        }
        write_root(folder.path(), &case.root);
        let mut pod = Pod {
            ns: &ns,
            image: &image,
            folder: folder.path().to_path_buf(),
            kubeconfig: login(&ns, case),
            name: format!("{job}-x7k2p"),
            machine: case.name.to_string(),
            log: String::new(),
            steps: Vec::new(),
        };
        for step in ["init", "validate", "plan", "apply"].into_iter().filter(|s| *s != "plan" || case.step == "plan") {
            let code = pod.run(step, shape);
            assert_eq!(code, i64::from(step == case.step), "{} {step}:\n{}", case.name, pod.log);
            if step == case.step {
                break;
            }
            if step == "init" {
                prepare(&ns, case, case.name);
            }
        }
        write_run(&ns, &pod, &job, case.step, number % 2 == 0);
        let says = if is_tofu { &case.tofu } else { &case.terraform };
        wrong
            .extend(judge(&ns, case, says, &pod.log).into_iter().map(|w| format!("{stem} {} {shape}: {w}", case.name)));
    }
    wrong
}

fn write_root(folder: &Path, root: &Value) {
    let mut file = root.clone();
    file["terraform"]["backend"]["kubernetes"] = json!({});
    std::fs::write(folder.join("main.tf.json"), file.to_string()).expect("write the root module");
}

/// What `jobs why` says of one case, against the container's true output.
fn judge(ns: &Namespace<'_>, case: &Case, says: &Says, log: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let ran = captf(ns, &format!("jobs why tfm/{} -o json", case.name));
    let report = ran.json();
    let item = &report["items"][0];
    if item["runs"]["cause"]["code"] != case.code {
        wrong.push(format!("cause {} instead of {}", item["runs"]["cause"]["code"], case.code));
    }
    let run = &item["runs"]["jobs"][0];
    if run["failedStep"] != case.step {
        wrong.push(format!("failed step {} instead of {}", run["failedStep"], case.step));
    }
    let quoted: Vec<&str> = item["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|f| f["evidence"].as_array().into_iter().flatten())
        .filter(|e| e["source"].as_str().is_some_and(|s| s.starts_with("log of ")))
        .filter_map(|e| e["value"].as_str())
        .collect();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let blocks: Vec<String> = quoted.iter().filter(|q| q.starts_with("Error: ")).map(|q| flat(q)).collect();
    if !blocks
        .iter()
        .any(|b| b.starts_with(&format!("Error: {}", says.title)) && says.detail.iter().all(|d| b.contains(d)))
    {
        wrong.push(format!("no block `{}` with {:?}, but {blocks:#?} of\n{log}", says.title, says.detail));
    }
    let text = captf(ns, &format!("jobs why tfm/{}", case.name));
    let logs = captf(ns, &format!("jobs logs tfm/{}", case.name));
    for shown in [&ran.stdout, &text.stdout, &text.stderr, &logs.stdout, &logs.stderr] {
        // What follows the mark may be wrapped: no word of the value is shown.
        if shown.contains("canary")
            || shown.contains("horse battery")
            || shown.contains('\u{1b}')
            || shown.contains('╷') && !shown.contains('│')
        {
            wrong.push(format!("shows what it must not:\n{shown}"));
        }
    }
    if logs.code != Some(0) || logs.stdout.lines().count() < 3 {
        wrong.push(format!("{logs:?}"));
    }
    wrong
}

#[track_caller]
fn all_told(runtime: &Runtime, name: &str, stem: &str) {
    let image = engines().image(runtime, name, "");
    let mut wrong = wrong_of(runtime, &image, "", &format!("{stem}-colour"));
    wrong.extend(wrong_of(runtime, &image, "-json", &format!("{stem}-json")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn terraform_that_fails_in_a_container_is_told_in_its_own_words() {
    all_told(&Runtime::terraform(), "why/terraform", "why-terraform");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn opentofu_that_fails_in_a_container_is_told_in_its_own_words() {
    all_told(&Runtime::tofu(), "why/tofu", "why-tofu");
}
