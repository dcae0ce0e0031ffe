"""The cases of `jobs why`, `jobs list`, `jobs logs` and `jobs timeline`: runs as controller, kubelet and scheduler leave them."""

import json
import os

from api import CANARY, NS, READ, SHORT, ago, cluster, condition, event, job, lock, node, owner_labels, pod, state_secret, suffix, workload, CAPTF, GROUP

C, M, P = "TerraformCluster", "TerraformMachine", "TerraformMachinePool"
ID = "3f2a9c1e-0000-4000-8000-00000000000{}"
IMAGE = "registry.example.com/team-a/machine:1.4"
DIGEST = "registry.example.com/team-a/machine@sha256:" + "9f" * 32
RESOURCES = ["terraformclusters", "terraformmachines", "terraformmachinepools", "terraformplans", "clusters.cluster.x-k8s.io", "leases", "jobs",
             "pods", "secrets", "events", "nodes"]
BACKOFF = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
DEADLINE = {"reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}


def prod(s, **more):
    """Cluster prod, from which machines and pools inherit."""
    s.put(cluster())
    s.put(node("node-1"))
    return s.put(workload(C, "prod", **more))


def steps(*pairs):
    return [{"name": name, "exit": code, "seconds": seconds} for name, code, seconds in pairs]


def result(op, done, error=None, **more):
    """The runner's result document."""
    return json.dumps({"version": 1, "op": op, "image": {"ref": IMAGE}, "runtime": {"command": ["terraform"], "version": "1.11.4"},
                       "steps": done, "error": error, **more})


def error(kind, step=None, tail="", resources=()):
    return {"kind": kind, "step": step, "tail": tail, **({"resources": list(resources)} if resources else {})}


def last_run(name, op, done=(), err=None):
    run = {"job": name, "operation": op}
    if done:
        run["steps"] = [{"name": d["name"], "exitCode": d["exit"], "durationMilliseconds": int(d["seconds"] * 1000)} for d in done]
    if err:
        run["error"] = {"kind": err["kind"], "summary": err["tail"] or "no summary", **({"step": err["step"]} if err["step"] else {}),
                        **({"resources": err["resources"]} if "resources" in err else {})}
    return run


def name_of(kind, name, op, attempt):
    return f"captf-{SHORT[kind]}-{name}-{op}-a{attempt}-5e1f00"


def obj(s, name, *conditions, kind=M, **more):
    status = {"conditions": [READ, *conditions], **more.pop("status", {})}
    return s.put(workload(kind, name, status=status, image=IMAGE, **more))


def put_job(s, owner, op="apply", attempt=1, ended=None, started=5, change=None, **more):
    made = job(owner, op, attempt, ended=ended, started=started, **more)
    if ended == "FailureTarget" or more.get("reason") == "DeadlineExceeded":
        for one in made["status"]["conditions"]:
            one["lastTransitionTime"] = one["lastProbeTime"] = ago(started - 60)
    source = made["spec"]["template"]["spec"]["containers"][0]
    source["image"] = IMAGE
    made["spec"]["template"]["spec"]["serviceAccountName"] = "captf-runner"
    if change:
        change(made)
    return s.put(made)


def put_pod(s, owner, op="apply", attempt=1, phase="Pending", started=3, state=None, init=None, status=None, change=None, on="node-1", others=()):
    """The pod of a Job: `state` of source, `init` of runner; without them the kubelet has not reported."""
    kind, name = owner["kind"], owner["metadata"]["name"]
    job_name = name_of(kind, name, op, attempt)
    labels = {k: v for k, v in owner_labels(kind, name).items() if "move" not in k} | {f"{CAPTF}/op": op, f"{CAPTF}/attempt": str(attempt)}
    made = pod(f"{job_name}-x7k2p", phase, node=on, job_name=job_name, labels=labels, started=started)
    made["spec"]["containers"][0]["image"] = IMAGE

    def shape(container, image, value):
        waits = "terminated" not in value and "running" not in value
        return {"name": container, "image": image, "imageID": "" if waits else DIGEST, "ready": "running" in value, "restartCount": 0,
                "started": "running" in value, "state": value}
    made["status"]["containerStatuses"] = [shape("source", IMAGE, state)] if state else []
    made["status"]["containerStatuses"] += [shape(n, "registry.example.com/mesh/proxy:1", v) for n, v in others]
    made["spec"]["containers"] += [{"name": n, "image": "registry.example.com/mesh/proxy:1"} for n, _ in others]
    if init:
        made["status"]["initContainerStatuses"] = [shape("runner", "registry.example.com/captf/manager:0.1", init)]
    made["status"] |= status or {}
    if change:
        change(made)
    return s.put(made)


def waiting(reason, message=None):
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def ended(code, reason="Error", started=4, finished=2, message=None):
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": ago(started), "finishedAt": ago(finished), **({"message": message} if message else {})}}


def apply_failed(name, text="step apply failed", op="apply", kind=M, reason="ApplyFailed", since=2, attempt=1):
    return condition("ApplyJobSucceeded", "False", reason, f"Job {name_of(kind, name, op, attempt)}: {text}", since=since)


def step_failed(s, name, done, err, log=None, **more):
    """A bookkept apply that failed in a step, with its pod and the object's status."""
    job_name = name_of(M, name, "apply", 1)
    owner = obj(s, name, apply_failed(name), status={"lastRun": last_run(job_name, "apply", done, err)})
    put_job(s, owner, ended="Failed", **BACKOFF, **more)
    put_pod(s, owner, phase="Failed", state=ended(1, message=result("apply", done, err)))
    if log:
        s.logs[f"{job_name}-x7k2p", "source"] = log
    return owner


def recorded(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "logs", name + ".log"), encoding="utf-8") as file:
        return file.read()


def all_of(*names, kind="tfm"):
    return "jobs why " + " ".join(f"{kind}/{n}" for n in names)


# --- image pull

PULL = "Failed to pull image \"" + IMAGE + "\": rpc error: code = {} desc = failed to pull and unpack image \"" + IMAGE + "\": {}"


def image_pull(s):
    prod(s)
    faults = {
        "not-found": ("NotFound", f"failed to resolve reference \"{IMAGE}\": {IMAGE}: not found"),
        "unauthorized": ("Unknown", f"failed to resolve reference \"{IMAGE}\": unexpected status from HEAD request to https://registry.example.com/v2/team-a/machine/manifests/1.4: 401 Unauthorized"),
        "denied": ("Unknown", "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"),
        "rate-limited": ("Unknown", "failed to copy: httpReadSeeker: failed open: unexpected status code: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit."),
        "tls": ("Unknown", "failed to do request: Head \"https://registry.example.com/v2/team-a/machine/manifests/1.4\": tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        "dns": ("Unknown", "failed to do request: Head \"https://registry.example.com/v2/\": dial tcp: lookup registry.example.com on 10.96.0.10:53: no such host"),
        "unreachable": ("Unknown", "failed to do request: Head \"https://registry.example.com/v2/\": dial tcp 203.0.113.9:443: i/o timeout"),
        "platform": ("NotFound", f"failed to resolve reference \"{IMAGE}\": no match for platform in manifest: not found"),
        "other": ("Unknown", "content digest verification went wrong in a new way"),
    }
    for name, (code, text) in faults.items():
        owner = obj(s, name)
        put_job(s, owner)
        put_pod(s, owner, state=waiting("ImagePullBackOff", f"Back-off pulling image \"{IMAGE}\""), init=ended(0, "Completed"))
        s.put(event("Pod", f"{name_of(M, name, 'apply', 1)}-x7k2p", "Failed", PULL.format(code, text), typ="Warning"))
    bad = obj(s, "name-invalid")
    put_job(s, bad)
    put_pod(s, bad, state=waiting("InvalidImageName", "Failed to apply default image tag \"registry.example.com/Team-A/machine:1.4:2\": couldn't parse image name: invalid reference format"), init=ended(0, "Completed"))
    never = obj(s, "never")
    put_job(s, never)
    put_pod(s, never, state=waiting("ErrImageNeverPull", f"Container image \"{IMAGE}\" is not present with pull policy of Never"), init=ended(0, "Completed"))
    return all_of(*faults, "name-invalid", "never")


def image_pull_runner(s):
    prod(s)
    owner = obj(s, "web")
    put_job(s, owner)
    put_pod(s, owner, state=waiting("PodInitializing"), init=waiting("ErrImagePull", "failed to pull and unpack image \"registry.example.com/captf/manager:0.1\": 403 Forbidden"))
    return all_of("web")


def image_pull_fallback(s):
    prod(s)
    owner = obj(s, "web", kind=M, status={"conditions": [READ, condition("DriftJobSucceeded", "True", "DriftChecked")]})
    put_job(s, owner, "drift", annotations={"captf.io/image-fallbacks": json.dumps([IMAGE])})
    put_pod(s, owner, "drift", state=waiting("ImagePullBackOff", f"Back-off pulling image \"{DIGEST}\""), init=ended(0, "Completed"))
    s.put(event("Pod", name_of(M, "web", "drift", 1) + "-x7k2p", "Failed", f"Failed to pull image \"{DIGEST}\": rpc error: code = NotFound desc = {DIGEST}: not found", typ="Warning"))
    return all_of("web")


def image_pull_at_deadline(s):
    """A pull failure ends at the deadline, and is told as a pull failure while the pod is still there."""
    prod(s)
    owner = obj(s, "web", apply_failed("web", "image cannot be pulled", reason="ImagePullFailed"))
    put_job(s, owner, ended="Failed", started=65, **DEADLINE)
    put_pod(s, owner, state=waiting("ErrImagePull", "unexpected status: 403 Forbidden"), init=ended(0, "Completed"), started=65)
    return all_of("web")


# --- steps

LOG = """Acquiring state lock. This may take a few moments...
aws_instance.web: Creating...
aws_instance.web: Still creating... [10s elapsed]

Error: creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows

  with aws_instance.web,
  on main.tf line 12, in resource "aws_instance" "web":
  12: resource "aws_instance" "web" {

db_password = "{canary}"
Releasing state lock. This may take a few moments...
"""


def step_of_apply(s):
    prod(s)
    done = steps(("init", 0, 6.2), ("validate", 0, 1.1), ("apply", 1, 74.5), ("state-push", 0, 0.8))
    tail = "Error: creating EC2 Instance: VcpuLimitExceeded: You have requested more vCPU capacity than your current limit of 32 allows"
    step_failed(s, "web", done, error("step", "apply", tail, ["aws_instance.web: creating EC2 Instance: VcpuLimitExceeded"]), LOG.replace("{canary}", CANARY))
    return "jobs why terraformmachine/web\njobs why machine/web -o json\njobs why tfm web -q\njobs why tfm web -o name"


def steps_before_the_work(s):
    prod(s)
    step_failed(s, "init", steps(("init", 1, 12.0)), error("step", "init", "Error: Failed to query available provider packages"), recorded("terraform-init-color"))
    step_failed(s, "locked", steps(("init", 1, 3.0)), error("step", "init", "step init ended with exit code 1"),
                "Initializing the backend...\n╷\n│ Error: Error loading state\n│ \n│ the state is already locked by another tofu client\n│ Lock Info:\n│   Who:       someone@desktop-1\n╵\n")
    step_failed(s, "prepare", steps(), error("step", "prepare", "copy /captf/config: no space left on device"))
    step_failed(s, "layout", steps(), error("image-layout", None, "no executable file /captf/runtime in the image"))
    s.put(node("node-2"))
    return all_of("init", "locked", "prepare", "layout")


def steps_in_true_output(s):
    """The runtimes' own output, as tests/record/logs.sh records it."""
    prod(s)
    for runtime in ("terraform", "tofu"):
        for step in ("validate", "plan", "apply"):
            step_failed(s, f"{runtime}-{step}", steps(("init", 0, 3.0), (step, 1, 2.0)), error("step", step, ""), recorded(f"{runtime}-{step}-color"))
    return all_of(*(f"{r}-{t}" for r in ("terraform", "tofu") for t in ("validate", "plan", "apply")))


def step_force_unlock(s):
    prod(s)
    s.put(state_secret(M, "web"))
    done = steps(("init", 0, 4.0), ("force-unlock", 1, 0.4))
    step_failed(s, "web", done, error("step", "force-unlock", "Error: Failed to load state: state snapshot was created by a newer version"), args=[f"--force-unlock={ID.format(1)}"])
    s.put(lock(M, "web", ID.format(1), who="@captf-m-web-apply-a1-5e1f00-q9w8e"))
    return all_of("web")


def step_lock_timeout(s):
    prod(s)
    s.put(state_secret(M, "web"))
    done = steps(("init", 0, 4.0), ("validate", 0, 0.9), ("apply", 1, 300.3))
    owner = step_failed(s, "web", done, error("step", "apply", "Error: Error acquiring the state lock"))
    s.put(lock(M, "web", ID.format(2), who="someone@desktop-1", taken=ago(50)))
    return all_of("web")


def runner_refused(s):
    prod(s)
    text = ("Error: Error acquiring the state lock\n\nleases.coordination.k8s.io \"lock-tfstate-default-x\" is forbidden: User \"system:serviceaccount:team-a:captf-runner\" "
            "cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"{}\"\n")
    step_failed(s, "no-right", steps(("init", 0, 4.0), ("apply", 1, 0.3)), error("step", "apply", "Error: creating the lock"), text.format(NS).replace("Error acquiring the state lock", "creating the lock"))
    step_failed(s, "elsewhere", steps(("init", 1, 4.0)), error("step", "init", "Error: Failed to get existing workspaces"),
                text.format("default").replace("Error acquiring the state lock", "Failed to get existing workspaces"))
    return all_of("no-right", "elsewhere")


# --- deadline

def deadline(s):
    prod(s)

    def hit(name, done=(), log=None, with_pod=True, err=None):
        job_name = name_of(M, name, "apply", 1)
        owner = obj(s, name, apply_failed(name, "deadline exceeded", reason="JobDeadlineExceeded"), status={"lastRun": last_run(job_name, "apply", done, err)})
        put_job(s, owner, ended="Failed", started=65, **DEADLINE)
        if with_pod:
            put_pod(s, owner, phase="Failed", state=ended(1, started=64, finished=2, message=result("apply", list(done), err) if done else None), started=64)
        if log:
            s.logs[f"{job_name}-x7k2p", "source"] = log
    stopped = error("interrupted", "apply", "interrupted")
    hit("slow-step", steps(("init", 0, 20.0), ("validate", 0, 2.0), ("apply", 1, 3560.0)), "aws_instance.web[40]: Creation complete after 41s\naws_instance.web[41]: Creating...\n", err=stopped)
    hit("hung-call", steps(("init", 0, 20.0), ("validate", 0, 2.0), ("apply", 1, 3560.0)), "aws_db_instance.main: Still creating... [58m50s elapsed]\n", err=stopped)
    hit("unknown", with_pod=False)
    owner = obj(s, "never-started", apply_failed("never-started", "deadline exceeded", reason="JobDeadlineExceeded"))
    put_job(s, owner, ended="Failed", started=65, **DEADLINE)
    put_pod(s, owner, phase="Failed", status={"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(65)}]}, state=waiting("ContainerCreating"), started=65)
    s.put(event("Pod", name_of(M, "never-started", "apply", 1) + "-x7k2p", "FailedMount", "MountVolume.SetUp failed for volume \"config\" : secret \"captf-run-never\" not found", typ="Warning"))
    return all_of("slow-step", "hung-call", "unknown", "never-started")


def deadline_lock_wait(s):
    prod(s)
    s.put(state_secret(M, "web"))
    owner = obj(s, "web", apply_failed("web", "deadline exceeded", reason="JobDeadlineExceeded"))
    put_job(s, owner, ended="Failed", started=65, **DEADLINE)
    put_pod(s, owner, phase="Failed", state=ended(1, started=64, finished=2, message=result("apply", steps(("init", 0, 4.0), ("apply", 1, 3560.0)), error("interrupted", "apply", "interrupted"))), started=64)
    s.logs[name_of(M, "web", "apply", 1) + "-x7k2p", "source"] = "Initializing the backend...\nAcquiring state lock. This may take a few moments...\n"
    s.put(lock(M, "web", ID.format(3), who="ci@build-17", taken=ago(150)))
    return all_of("web")


# --- from outside, and without a result

def from_outside(s):
    prod(s)
    s.put(node("node-2", ready="Unknown"))
    marks = {
        "drained": ("EvictionByEvictionAPI", "Eviction API: evicting"),
        "shut-down": ("TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."),
        "preempted": ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"),
        "tainted": ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
        "node-gone": ("DeletionByPodGC", "PodGC: node no longer exists"),
        "other": ("DeletionByNewController", "a reason that is newer than this plugin"),
    }
    stopped = error("interrupted", "apply", "interrupted")
    for name, (reason, message) in marks.items():
        owner = obj(s, name, apply_failed(name, "interrupted"), status={"lastRun": last_run(name_of(M, name, "apply", 1), "apply", (), stopped)})
        put_job(s, owner, ended="Failed", annotations={"captf.io/interrupted": "true"}, **BACKOFF)
        target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message, "lastTransitionTime": ago(3)}
        put_pod(s, owner, phase="Failed", state=ended(1, message=result("apply", steps(("init", 0, 4.0), ("apply", 1, 60.0)), stopped)), status={"conditions": [target]},
                on={"tainted": "node-2", "node-gone": "node-3"}.get(name, "node-1"))
    owner = obj(s, "evicted", apply_failed("evicted", "ended without a result"))
    put_job(s, owner, ended="Failed", **BACKOFF)
    put_pod(s, owner, phase="Failed", status={"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8Gi. Container source was using 6Gi, request is 0. ", "containerStatuses": []})
    owner = obj(s, "unseen", apply_failed("unseen", "interrupted"), status={"lastRun": last_run(name_of(M, "unseen", "apply", 1), "apply", (), stopped)})
    put_job(s, owner, ended="Failed", annotations={"captf.io/interrupted": "true"}, **BACKOFF)
    return all_of(*marks, "evicted", "unseen")


def died(s):
    prod(s)

    def failed(name, with_pod=True, log=None, state=None, **more):
        owner = obj(s, name, apply_failed(name, "ended without a result"), status={"lastRun": last_run(name_of(M, name, "apply", 1), "apply")})
        put_job(s, owner, ended="Failed", **(more.pop("ending", BACKOFF)))
        if with_pod:
            put_pod(s, owner, phase="Failed", state=state, **more)
        if log:
            s.logs[name_of(M, name, "apply", 1) + "-x7k2p", "source"] = log
    failed("out-of-memory", state=ended(137, "OOMKilled"))
    failed("child-killed", state=ended(1), log="aws_instance.web: Creating...\nError: Plugin did not respond\n\nThe plugin encountered an error, and failed to respond to the plugin6.(*GRPCProvider).ApplyResourceChange call.\n")
    failed("killed", state=ended(137))
    failed("no-result", state=ended(2, message="flag provided but not defined: -guard"))
    failed("pods-gone", with_pod=False)
    failed("cannot-run", state=ended(128, "StartError", message="failed to create containerd task: exec: \"/captf/bin/runner\": stat /captf/bin/runner: no such file or directory"))
    failed("init-failed", state=waiting("PodInitializing"), init=ended(1))
    failed("policy", with_pod=False, ending={"reason": "PodFailurePolicy", "message": "Container source for pod team-a/x failed with exit code 42 matching FailJob rule at index 0"})
    gone = name_of(M, "vanished", "apply", 4)
    obj(s, "vanished", status={"activeJob": {"name": gone, "operation": "apply", "attempt": 4, "startTime": ago(9)}})
    s.put(event(M, "vanished", "JobCreated", f"Created Job {gone}", minutes=9))
    s.put(event("Job", gone, "SuccessfulCreate", f"Created pod: {gone}-x7k2p", minutes=9))
    return all_of("out-of-memory", "child-killed", "killed", "no-result", "pods-gone", "cannot-run", "init-failed", "policy", "vanished")


KERNEL = "Memory cgroup out of memory: Killed process 4242 ({}) total-vm:6123456kB, anon-rss:{}kB, file-rss:1024kB, shmem-rss:0kB, UID:65532 pgtables:4321kB oom_score_adj:999"


def kill(node_name, process, kib, minutes):
    made = event("Node", node_name, "OOMKilling", KERNEL.format(process, kib), minutes=minutes, typ="Warning")
    made["metadata"] = {"name": f"{node_name}.{process}.{minutes}", "namespace": "default"}
    made["involvedObject"] = {"kind": "Node", "name": node_name}
    return made


def memory(s):
    """What the kernel says of a kill, where the node passes it on: near in time, likely about this container."""
    prod(s)

    def failed(name, on, state, log=None):
        owner = obj(s, name, apply_failed(name, "ended without a result"), status={"lastRun": last_run(name_of(M, name, "apply", 1), "apply")})
        put_job(s, owner, ended="Failed", **BACKOFF)
        put_pod(s, owner, phase="Failed", state=state, on=on)
        s.put(event("Pod", name_of(M, name, "apply", 1) + "-x7k2p", "Started", "Started container source", minutes=4))
        if log:
            s.logs[name_of(M, name, "apply", 1) + "-x7k2p", "source"] = log
    for node_name in ("node-2", "node-3", "node-4"):
        s.put(node(node_name))
    s.put(kill("node-2", "terraform-provi", 2031616, 2))
    s.put(kill("node-3", "java", 900000, 40))
    s.put(kill("node-4", "terraform-provi", 2031616, 2))
    s.put(kill("node-4", "postgres", 400000, 3))
    failed("known", "node-2", ended(137, "OOMKilled"))
    failed("too-long-ago", "node-3", ended(137, "OOMKilled"))
    failed("of-two", "node-4", ended(137, "OOMKilled"))
    failed("child", "node-2", ended(1), "aws_instance.web: Creating...\nError: Plugin did not respond\n\nThe plugin encountered an error.\n")
    failed("killed", "node-2", ended(137))
    return all_of("known", "too-long-ago", "of-two", "child", "killed")


# --- no pod, or one that does not start

def no_pod(s):
    prod(s)
    refused = {
        "quota": "pods \"x-\" is forbidden: exceeded quota: compute, requested: limits.memory=2Gi, used: limits.memory=31Gi, limited: limits.memory=32Gi",
        "no-limits": "pods \"x-\" is forbidden: failed quota: compute: must specify limits.cpu for: runner,source",
        "limit-range": "pods \"x-\" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
        "denied": "admission webhook \"policy.example.com\" denied the request: images have to come from registry.internal.example.com",
        "webhook-down": "Internal error occurred: failed calling webhook \"policy.example.com\": failed to call webhook: Post \"https://policy.policy.svc:443/pods?timeout=10s\": dial tcp 10.96.7.7:443: connect: connection refused",
        "security": "pods \"x-\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile (pod or containers \"mesh\" must set securityContext.seccompProfile.type)",
        "no-account": "pods \"x-\" is forbidden: error looking up service account team-a/captf-runner: serviceaccount \"captf-runner\" not found",
        "other": "pods \"x-\" is forbidden: no new ones today",
    }
    for name, message in refused.items():
        put_job(s, obj(s, name))
        s.put(event("Job", name_of(M, name, "apply", 1), "FailedCreate", "Error creating: " + message, typ="Warning"))
    put_job(s, obj(s, "silent"))
    # A later success cancels what failed before.
    owner = obj(s, "late")
    put_job(s, owner)
    put_pod(s, owner, phase="Running", state={"running": {"startedAt": ago(2)}})
    s.put(event("Job", name_of(M, "late", "apply", 1), "FailedCreate", "Error creating: " + refused["quota"], minutes=4, typ="Warning"))
    s.put(event("Job", name_of(M, "late", "apply", 1), "SuccessfulCreate", f"Created pod: {name_of(M, 'late', 'apply', 1)}-x7k2p", minutes=3))
    return all_of(*refused, "silent", "late")


def not_starting(s):
    prod(s)
    s.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "captf-creds-late", "namespace": NS}, "stringData": {"token": CANARY}})
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": ago(3),
                   "message": "0/5 nodes are available: 3 Insufficient memory, 2 node(s) had untolerated taint {dedicated: gpu}. preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."}

    def pending(name, **more):
        owner = obj(s, name)
        put_job(s, owner)
        put_pod(s, owner, **more)

    def on_pod(name, reason, message):
        s.put(event("Pod", name_of(M, name, "apply", 1) + "-x7k2p", reason, message, typ="Warning"))

    def gated(made):
        made["spec"]["schedulingGates"] = [{"name": "queue.example.com/admission"}]
        del made["spec"]["nodeName"]
    pending("unschedulable", on="", status={"conditions": [unscheduled]})
    pending("gated", change=gated, status={"conditions": [unscheduled | {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}]})
    pending("secret-missing", state=waiting("CreateContainerConfigError", "secret \"captf-creds-team-a-cloud\" not found"), init=ended(0, "Completed"))
    pending("secret-late", state=waiting("CreateContainerConfigError", "secret \"captf-creds-late\" not found"), init=ended(0, "Completed"))
    pending("key-missing", state=waiting("CreateContainerConfigError", "couldn't find key token in Secret team-a/captf-creds-late"), init=ended(0, "Completed"))
    pending("root", state=waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root (pod: \"x\", container: source)"), init=ended(0, "Completed"))
    pending("config-other", state=waiting("CreateContainerConfigError", "failed to prepare subPath for volumeMount \"work\""), init=ended(0, "Completed"))
    pending("create-error", state=waiting("CreateContainerError", "failed to create containerd task: exec: \"/captf/bin/runner\": permission denied"), init=ended(0, "Completed"))
    pending("volume", state=waiting("ContainerCreating"))
    on_pod("volume", "FailedMount", "MountVolume.SetUp failed for volume \"config\" : secret \"captf-run-captf-m-volume-apply-a1-5e1f00\" not found")
    pending("sandbox", state=waiting("ContainerCreating"))
    on_pod("sandbox", "FailedCreatePodSandBox", "Failed to create pod sandbox: plugin type=\"calico\" failed (add): error getting ClusterInformation: connection is unauthorized")
    pending("odd", state=waiting("WaitingForSomethingNew", "a reason that is newer than this plugin"), init=ended(0, "Completed"))
    pending("mesh", phase="Running", state=ended(0, "Completed", message=result("apply", steps(("init", 0, 4.0), ("apply", 0, 60.0)))), others=[("istio-proxy", {"running": {"startedAt": ago(4)}})])
    return all_of("unschedulable", "gated", "secret-missing", "secret-late", "key-missing", "root", "config-other", "create-error", "volume", "sandbox", "odd", "mesh")


# --- no failure, or no Job

def plan(name, reason, target="prod", **summary):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TerraformPlan", "created": 20, "metadata": {"name": name, "namespace": NS},
            "spec": {"inputsHash": "h1:" + "0" * 64, "planHash": "h1:" + "1" * 64, "reason": reason, "summary": summary, "targetRef": {"kind": C, "name": target}},
            "status": {"phase": "Pending"}}


def approvals(s):
    prod(s, status={"conditions": [READ, condition("ApplyJobSucceeded", "Unknown", "PlanAwaitingApproval", "TerraformPlan prod-1 waits for approval", since=20)], "pendingPlanRef": {"name": "prod-1"}})
    s.put(plan("prod-1", "Manual", create=2, delete=1, resources=["aws_instance.web: create", "aws_instance.db: create", "aws_eip.old: delete"]))
    for name, reason, status, text, mark in (("blocked", "DestructivePlanBlocked", "False", "would delete 1", "captf.io/destructive-plan-blocked"),
                                              ("changed", "PlanChanged", "Unknown", "planned other changes", "captf.io/plan-changed")):
        owner = obj(s, name, condition("ApplyJobSucceeded", status, reason, f"Job {name_of(C, name, 'apply', 1)}: {text}", since=2), kind=C,
                    status={"pendingPlanRef": {"name": name + "-1"}})
        put_job(s, owner, ended="Failed", annotations={mark: "true"}, **BACKOFF)
        s.put(plan(name + "-1", "Destructive", name, replace=1, resources=["aws_instance.web: replace"]))
    owner = obj(s, "no-plan-left", condition("ApplyJobSucceeded", "False", "DestructivePlanBlocked", f"Job {name_of(C, 'no-plan-left', 'apply', 1)}: would delete 1", since=2), kind=C)
    put_job(s, owner, ended="Failed", annotations={"captf.io/destructive-plan-blocked": "true"}, **BACKOFF)
    owner = obj(s, "unreadable", condition("ApplyJobSucceeded", "False", "ApplyFailed", f"Job {name_of(C, 'unreadable', 'plan', 1)}: the plan cannot be read", since=2), kind=C)
    put_job(s, owner, "plan", ended="Complete", annotations={"captf.io/plan-unreadable": "true"})
    return all_of("prod", "blocked", "changed", "no-plan-left", "unreadable", kind="tfc")


def without_a_job(s):
    prod(s, spec={"defaults": {"jobs": {"lockTimeoutSeconds": 900}}})
    obj(s, "too-large", condition("ApplyJobSucceeded", "False", "InputsTooLarge", "rendered inputs are 1204113 bytes, more than 1000000"))
    obj(s, "bad-policy", condition("ApplyJobSucceeded", "False", "JobPolicyInvalid", "lockTimeoutSeconds 900 is not below activeDeadlineSeconds 600"), spec={"jobs": {"activeDeadlineSeconds": 600}})
    obj(s, "no-owner", condition("DependenciesReady", "Unknown", "WaitingForBootstrapData", "Secret web-bootstrap not found"), condition("ApplyJobSucceeded", "Unknown", "NoApplyYet", ""),
        status={"initialization": {"provisioned": False}})
    obj(s, "no-identity", condition("IdentityAllowed", "False", "NamespaceNotAllowed", "identity team-a-cloud does not allow team-a"),
        condition("CredentialsMirrored", "Unknown", "MirrorPending", ""), condition("RunnerRBACReady", "False", "RBACFailed", "RoleBinding captf-runner is not managed"),
        condition("ApplyJobSucceeded", "Unknown", "NoApplyYet", ""))
    obj(s, "no-inputs", condition("DriftJobSucceeded", "Unknown", "DurableInputsMissing", "Secret captf-inputs-m-no-inputs not found"))
    obj(s, "no-backup", condition("RestoreJobSucceeded", "False", "RestoreBackupNotFound", "no complete backup of serial 41"), annotations={"captf.io/restore-state": "41"})
    obj(s, "new-reason", condition("ApplyJobSucceeded", "False", "SomethingNew", "a reason that is newer than this plugin"))
    return all_of("too-large", "bad-policy", "no-owner", "no-identity", "no-inputs", "no-backup", "new-reason")


def deleting(s):
    prod(s)
    made = workload(M, "old", status={"conditions": [READ, condition("ApplyJobSucceeded", "False", "IdentityNotAllowed", "identity team-a-cloud is gone")]}, image=IMAGE)
    made["metadata"]["finalizers"] = ["terraformmachine.infrastructure.cluster.x-k8s.io"]
    s.put(made)
    s.call("DELETE", f"apis/{GROUP}/v1alpha1/namespaces/{NS}/terraformmachines/old")
    return all_of("old")


def restore_failed(s):
    prod(s)
    err = error("step", "state-push", "Error: Failed to write state: exceeded quota: object-counts")
    owner = obj(s, "web", condition("RestoreJobSucceeded", "False", "RestoreFailed", f"Job {name_of(M, 'web', 'restore', 1)}: step state-push failed", since=2),
                status={"lastRestoredSerial": 41, "lastRun": last_run(name_of(M, "web", "restore", 1), "restore", steps(("init", 0, 4.0), ("state-push", 1, 0.6)), err)}, annotations={"captf.io/restore-state": "41"})
    put_job(s, owner, "restore", ended="Failed", annotations={"captf.io/restore-serial": "41"}, **BACKOFF)
    return all_of("web")


# --- waiting and slow

def lease(name, holder, minutes, op="apply", seconds=4500):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "created": minutes,
            "metadata": {"name": name, "namespace": NS, "labels": {"captf.io/lease": "run", "captf.io/managed": "true"},
                         "annotations": {"captf.io/lease-op": op, "captf.io/lease-acquired-at": ago(minutes)}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "acquireTime": ago(minutes).replace("Z", ".000000Z"), "renewTime": ago(minutes).replace("Z", ".000000Z")}}


CLUSTER_LEASE = "captf-cluster-687e6377eb6e7c06"


def waits(s):
    others = ", ".join(name_of(*job) for job in ((M, "busy", "apply", 1), (P, "workers", "apply", 2), (M, "done", "destroy", 1), (M, "gone", "apply", 4)))
    owner = prod(s, status={"conditions": [READ, condition("ApplyJobSucceeded", "Unknown", "WaitingForMachineOperations", f"waits for Jobs {others}", since=6)]})
    workers = obj(s, "workers", kind=P)
    put_job(s, workers, attempt=2)
    put_pod(s, workers, attempt=2, state=waiting("ImagePullBackOff", f"Back-off pulling image \"{IMAGE}\""), init=ended(0, "Completed"))
    s.put(event("Pod", name_of(P, "workers", "apply", 2) + "-x7k2p", "Failed", PULL.format("NotFound", f"{IMAGE}: not found"), typ="Warning"))
    put_job(s, obj(s, "done"), "destroy", ended="Complete", started=4)
    busy = obj(s, "busy", condition("ApplyJobSucceeded", "Unknown", "WaitingForRunLease", "Lease is held", since=4))
    put_job(s, busy, started=8)
    put_pod(s, busy, phase="Running", state={"running": {"startedAt": ago(7)}}, started=7)
    s.put(lease("captf-run-" + suffix(M, "busy"), name_of(M, "busy", "apply", 1), 8))
    put_job(s, owner, started=70)
    obj(s, "behind", condition("ApplyJobSucceeded", "Unknown", "WaitingForClusterOperation", "the cluster's Job runs", since=65))
    s.put(lease(CLUSTER_LEASE, name_of(C, "prod", "apply", 1), 70))
    obj(s, "freed", condition("DriftJobSucceeded", "Unknown", "WaitingForRunLease", "Lease is held", since=1))
    s.put(lease("captf-run-" + suffix(M, "freed"), name_of(M, "freed", "drift", 7), 3, op="drift"))
    obj(s, "slot", condition("DriftJobSucceeded", "Unknown", "WaitingForJobSlot", "20 of 20 Jobs are active", since=3))
    s.put(lock(C, "prod", None))
    return "jobs why tfc/prod tfm/busy tfm/behind tfm/freed tfm/slot"


def slow(s):
    prod(s)
    owner = obj(s, "web", condition("ApplyJobSucceeded", "True", "ApplySucceeded"))
    for attempt, (started, seconds) in enumerate(((600, 180.0), (400, 200.0), (200, 190.0)), start=1):
        put_job(s, owner, attempt=attempt, ended="Complete", started=started)
        put_pod(s, owner, attempt=attempt, phase="Succeeded", started=started, state=ended(0, "Completed", started, started - 4, result("apply", steps(("init", 0, 5.0), ("validate", 0, 1.0), ("apply", 0, seconds)))))
    put_job(s, owner, attempt=4, ended="Complete", started=60, change=lambda j: j["status"].update({"completionTime": ago(15), "conditions": [c | {"lastTransitionTime": ago(15)} for c in j["status"]["conditions"]]}))
    put_pod(s, owner, attempt=4, phase="Succeeded", started=50, state=ended(0, "Completed", 50, 15, result("apply", steps(("init", 0, 6.0), ("validate", 0, 1.0), ("apply", 0, 2100.0)))))
    return "jobs why tfm/web\njobs list tfm/web\njobs list terraformmachine web -o wide --op apply"


def how_it_stands(s):
    prod(s, status={"conditions": [READ, condition("ApplyJobSucceeded", "True", "ApplySucceeded")]})
    going = obj(s, "going")
    put_job(s, going)
    put_pod(s, going, phase="Running", state={"running": {"startedAt": ago(3)}})
    ending = obj(s, "ending")
    put_job(s, ending, ended="FailureTarget", started=63, **DEADLINE)
    put_pod(s, ending, phase="Running", state={"running": {"startedAt": ago(62)}}, started=62)

    def held(made):
        made["spec"]["suspend"] = True
        made["status"] = {"conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended", "lastTransitionTime": ago(5), "lastProbeTime": ago(5)}]}
    put_job(s, obj(s, "suspended"), change=held)
    return "jobs why tfc/prod tfm/going tfm/ending tfm/suspended"


# --- the next attempt

def next_attempts(s):
    """The same two failures under three limits, a drift failure beside a success, and what does not count."""
    prod(s, spec={"jobs": {"failedJobsHistoryLimit": 5}})
    for name, limit in (("inherits", None), ("limit-2", 2), ("limit-0", 0)):
        owner = obj(s, name, apply_failed(name, attempt=2), spec={"jobs": {"failedJobsHistoryLimit": limit}} if limit is not None else {})
        put_job(s, owner, attempt=1, ended="Failed", started=8, **BACKOFF)
        put_job(s, owner, attempt=2, ended="Failed", started=4, **BACKOFF)
    drift = condition("DriftJobSucceeded", "False", "DriftJobFailed", f"Job {name_of(M, 'drifts', 'drift', 3)}: step apply-refresh-only failed", since=1)
    err = error("step", "apply-refresh-only", "Error: reading EC2 Instance: UnauthorizedOperation")
    owner = obj(s, "drifts", condition("ApplyJobSucceeded", "True", "ApplySucceeded"), drift, status={"lastDriftCheck": ago(60), "lastRun": last_run(name_of(M, "drifts", "drift", 3), "drift", steps(("init", 0, 4.0), ("apply-refresh-only", 1, 9.0)), err)})
    put_job(s, owner, attempt=1, ended="Complete", started=30)
    put_job(s, owner, "drift", 3, ended="Failed", started=4, **BACKOFF)
    owner = obj(s, "paused", apply_failed("paused"), annotations={"cluster.x-k8s.io/paused": ""})
    put_job(s, owner, ended="Failed", started=4, **BACKOFF)
    return all_of("inherits", "limit-2", "limit-0", "drifts", "paused")


# --- the fleet

def fleet(s):
    step_of_apply_objects = ("web", "api")
    owner = prod(s, status={"conditions": [READ, condition("ApplyJobSucceeded", "Unknown", "PlanAwaitingApproval", "TerraformPlan prod-1 waits for approval", since=95)], "pendingPlanRef": {"name": "prod-1"}})
    s.put(plan("prod-1", "Manual", create=2, resources=["aws_instance.web: create"]))
    for index, name in enumerate(step_of_apply_objects):
        done = steps(("init", 0, 6.2), ("validate", 0, 1.1), ("apply", 1, 74.5))
        owner = step_failed(s, name, done, error("step", "apply", "Error: creating EC2 Instance: VcpuLimitExceeded"), started=4 + index)
        for attempt in (2, 3)[: 1 + index]:
            put_job(s, owner, attempt=attempt, ended="Failed", started=3 + 4 * attempt, **BACKOFF)
    obj(s, "healthy", condition("ApplyJobSucceeded", "True", "ApplySucceeded"), condition("DriftJobSucceeded", "True", "DriftChecked"))
    owner = obj(s, "cache", condition("ApplyJobSucceeded", "True", "ApplySucceeded"), condition("DriftJobSucceeded", "False", "DriftJobFailed", f"Job {name_of(M, 'cache', 'drift', 3)}: failed", since=2), status={"lastDriftCheck": ago(45)})
    put_job(s, owner, "drift", 3, ended="Failed", **BACKOFF)
    put_pod(s, owner, "drift", 3, phase="Failed", state=ended(137, "OOMKilled"))
    owner = obj(s, "workers", apply_failed("workers", "image cannot be pulled", kind=P, reason="ImagePullFailed", since=5), kind=P)
    put_job(s, owner, ended="Failed", started=65, **DEADLINE)
    put_pod(s, owner, state=waiting("ImagePullBackOff", f"Back-off pulling image \"{IMAGE}\""), init=ended(0, "Completed"), started=65)
    s.put(event("Pod", name_of(P, "workers", "apply", 1) + "-x7k2p", "Failed", PULL.format("NotFound", f"{IMAGE}: not found"), typ="Warning"))
    owner = obj(s, "drained", apply_failed("drained", "interrupted", since=3), status={"lastRun": last_run(name_of(M, "drained", "apply", 1), "apply", (), error("interrupted", "apply", "interrupted"))})
    put_job(s, owner, ended="Failed", annotations={"captf.io/interrupted": "true"}, **BACKOFF)
    put_pod(s, owner, phase="Failed", state=ended(1), status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting", "lastTransitionTime": ago(3)}]})
    obj(s, "queue", condition("ApplyJobSucceeded", "Unknown", "WaitingForJobSlot", "20 of 20 Jobs are active", since=2))
    obj(s, "huge", condition("ApplyJobSucceeded", "False", "InputsTooLarge", "rendered inputs are 1204113 bytes, more than 1000000", since=1500))
    owner = obj(s, "quota", apply_failed("quota", "deadline exceeded", reason="JobDeadlineExceeded", since=2))
    put_job(s, owner, ended="Failed", started=65, **DEADLINE)
    s.put(event("Job", name_of(M, "quota", "apply", 1), "FailedCreate", "Error creating: pods \"x-\" is forbidden: exceeded quota: compute, requested: limits.memory=2Gi, used: limits.memory=31Gi, limited: limits.memory=32Gi", typ="Warning"))
    return "\n".join(["jobs why -A", "jobs why -n team-a -o json", "jobs why --op drift", "jobs why --kind TerraformMachinePool --kind tfc", "jobs why tfm --no-headers -o wide", "jobs why -A -q", "jobs why -A -o name"])


# --- list, logs, timeline

def history(s):
    prod(s)
    err = error("step", "apply", "Error: creating EC2 Instance: VcpuLimitExceeded")
    done = steps(("init", 0, 6.2), ("validate", 0, 1.1), ("apply", 1, 74.5))
    mirrored = "CANARY-mirrored-credential"
    s.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "captf-creds-team-a-cloud", "namespace": NS}, "stringData": {"account": mirrored}})
    owner = obj(s, "web", apply_failed("web", attempt=3), status={"lastRun": last_run(name_of(M, "web", "apply", 3), "apply", done, err)})
    for attempt, started in ((1, 30), (2, 20), (3, 10)):
        put_job(s, owner, attempt=attempt, ended="Failed", started=started, annotations={"captf.io/interrupted": "true"} if attempt == 2 else None, **BACKOFF)
        if attempt > 1:
            put_pod(s, owner, attempt=attempt, phase="Failed", started=started, state=ended(1, started=started, finished=started - 2, message=result("apply", done, err)),
                    change=lambda p: p["spec"]["containers"][0].update({"envFrom": [{"secretRef": {"name": "captf-creds-team-a-cloud"}}]}))
            s.logs[name_of(M, "web", "apply", attempt) + "-x7k2p", "source"] = f"attempt {attempt} of {mirrored}\n" + LOG.replace("{canary}", CANARY)
    put_job(s, owner, "drift", 1, ended="Complete", started=50)
    s.put(event(M, "web", "JobFailed", f"Job {name_of(M, 'web', 'apply', 3)} failed at step apply", minutes=7, typ="Warning"))
    s.put(event("Job", name_of(M, "web", "apply", 3), "SuccessfulCreate", f"Created pod: {name_of(M, 'web', 'apply', 3)}-x7k2p", minutes=10))
    s.put(lock(M, "web", ID.format(1), who=f"@{name_of(M, 'web', 'apply', 3)}-x7k2p", taken=ago(9)))
    return "\n".join(["jobs list tfm/web", "jobs list tfm/web -o json --op drift", "jobs logs tfm/web", "jobs logs tfm web --op apply --previous-attempts --tail 3",
                      f"jobs logs tfm/web --job {name_of(M, 'web', 'apply', 2)} -o json", f"jobs logs tfm/web --job {name_of(M, 'web', 'apply', 1)}", "jobs logs tfm/web --job captf-m-web-apply-a9-5e1f00",
                      "jobs timeline tfm/web", "jobs timeline tfm web -o json", "jobs logs tfm/web -f", "jobs list tfm/wep"])


def hostile_text(s):
    prod(s)
    bad = "\x1b[2J\x1b[1;1H spoofed \x1b]52;c;aGk=\x07 \u202e"
    owner = obj(s, "web", apply_failed("web", bad))
    put_job(s, owner, ended="Failed", **BACKOFF)
    put_pod(s, owner, phase="Failed", state=ended(1, message=result("apply", steps(("apply", 1, 3.0)), error("step", "apply", "Error: " + bad))))
    s.logs[name_of(M, "web", "apply", 1) + "-x7k2p", "source"] = f"Error: {bad}\r\nok\n"
    return "jobs why tfm/web\njobs logs tfm/web\njobs timeline tfm/web\njobs why\njobs list tfm/web"


def unmasked(s):
    """A bundle without Secrets: the values of the credentials are not known, so they cannot be masked."""
    s.left_out = {"secrets"}
    prod(s)
    done, err = steps(("init", 0, 6.2), ("apply", 1, 74.5)), error("step", "apply", "Error: creating EC2 Instance")
    job_name = name_of(M, "web", "apply", 1)
    owner = obj(s, "web", apply_failed("web"), status={"lastRun": last_run(job_name, "apply", done, err)})
    put_job(s, owner, ended="Failed", **BACKOFF)
    put_pod(s, owner, phase="Failed", state=ended(1, message=result("apply", done, err)),
            change=lambda p: p["spec"]["containers"][0].update({"envFrom": [{"secretRef": {"name": "captf-creds-team-a-cloud"}}]}))
    s.logs[f"{job_name}-x7k2p", "source"] = LOG.replace("{canary}", CANARY)
    return "jobs why tfm/web\njobs logs tfm/web --tail 3\njobs logs tfm/web --tail 3 -o json"


CASES = [image_pull, image_pull_runner, image_pull_fallback, image_pull_at_deadline, step_of_apply, steps_before_the_work, steps_in_true_output, step_force_unlock,
         step_lock_timeout, runner_refused, deadline, deadline_lock_wait, from_outside, died, memory, no_pod, not_starting, approvals, without_a_job, deleting, restore_failed,
         waits, slow, how_it_stands, next_attempts, fleet, history, unmasked, hostile_text]
