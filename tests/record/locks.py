"""The cases of `lock inspect`, `lock list` and `lock history`: what is in the cluster, and what is run on it."""

from api import (CANARY, NS, READ, ago, cluster, condition, event, inputs_secret, job, lock, node, owner_labels, pod, state_secret,
                 suffix, workload)

C, M, P = "TerraformCluster", "TerraformMachine", "TerraformMachinePool"
ID = "3f2a9c1e-0000-4000-8000-00000000000{}"
OWN = "captf-c-prod-apply-a3-5e1f00-x7k2p"
JOB = "captf-c-prod-apply-a3-5e1f00"
LOCKED = condition("StateReadable", "False", "StateLocked", "locked", since=20)
RESOURCES = ["terraformclusters", "terraformmachines", "terraformmachinepools", "clusters.cluster.x-k8s.io", "leases", "jobs", "pods",
             "secrets", "events", "nodes"]


def prod(server, **more):
    """Cluster prod with a readable state; returns the TerraformCluster as made."""
    server.put(cluster(paused=more.pop("paused", False)))
    server.put(inputs_secret(C, "prod"))
    server.put(node("node-0"))
    server.put(node("node-1", **more.pop("node", {})))
    if more.pop("state", True):
        server.put(state_secret(C, "prod", **more.pop("secret", {})))
    return server.put(workload(C, "prod", **more))


def failed_apply(server, owner, **more):
    return server.put(job(owner, "apply", 3, ended="Failed", reason="BackoffLimitExceeded",
                          message="Job has reached the specified backoff limit", **more))


def free(s):
    prod(s)
    return "lock inspect terraformcluster/prod"


def free_leftover_info(s):
    prod(s)
    s.put(lock(C, "prod", None, who="root@DESKTOP-1", ident=ID.format(1)))
    return "lock inspect tfc prod"


def running_job(s):
    o = prod(s)
    s.put(job(o, "apply", 4))
    s.put(lock(C, "prod", ID.format(1), who="@captf-c-prod-apply-a4-5e1f00-x7k2p"))
    return "lock inspect cluster/prod"


def running_job_between_steps(s):
    o = prod(s)
    s.put(job(o, "drift", 2))
    s.put(lock(C, "prod", None))
    return "lock inspect tfc/prod"


def running_job_clears_earlier(s):
    o = prod(s)
    failed_apply(s, o, started=10)
    s.put(job(o, "apply", 4, started=1, args=[f"--force-unlock={ID.format(1)}", "--lock-timeout=300s"]))
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", taken=ago(9)))
    return "lock inspect tfc/prod"


def job_is_failing(s):
    o = prod(s)
    s.put(job(o, "apply", 3, ended="FailureTarget", reason="DeadlineExceeded", message="Job was active longer than specified deadline", started=63))
    s.put(pod(OWN, "Running", job_name=JOB, started=62) | {"created": 62})
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", taken=ago(60)))
    return "lock inspect tfc/prod"


def job_waits_for_foreign(s):
    o = prod(s, status={"conditions": [LOCKED]})
    s.put(job(o, "apply", 4, started=4))
    s.put(pod("captf-c-prod-apply-a4-5e1f00-q9w8e", "Running", job_name="captf-c-prod-apply-a4-5e1f00", started=3))
    s.put(lock(C, "prod", ID.format(2), who="DESKTOP-1\\someone@DESKTOP-1", taken=ago(50)))
    return "lock inspect tfc/prod"


def pool_waits_with_inherited_timeout(s):
    prod(s, spec={"defaults": {"jobs": {"lockTimeoutSeconds": 900}}})
    o = s.put(workload(P, "workers"))
    s.put(state_secret(P, "workers"))
    s.put(job(o, "drift", 1, started=4))
    s.put(pod("captf-mp-workers-drift-a1-5e1f00-q9w8e", "Running", job_name="captf-mp-workers-drift-a1-5e1f00", started=3))
    s.put(lock(P, "workers", ID.format(3), who="ci@build-17", taken=ago(50)))
    return "lock inspect tfmp/workers"


def live(s):
    prod(s)
    s.put(pod(OWN, "Running", job_name=JOB))
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    return "lock inspect tfc/prod"


def live_terminating(s):
    prod(s)
    s.put(pod(OWN, "Running", job_name=JOB))
    s.call("DELETE", f"api/v1/namespaces/{NS}/pods/{OWN}")
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    return "lock inspect tfc/prod"


def live_past_grace(s):
    live_terminating(s)
    return "lock inspect tfc/prod --now 2026-01-10T08:09:00Z"


def live_node_lost(s):
    prod(s, node={"ready": "Unknown"})
    s.put(pod(OWN, "Running", job_name=JOB, started=61, status={"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(39)}]}) | {"created": 61})
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", taken=ago(60)))
    return "lock inspect tfc/prod"


def live_pod_younger(s):
    prod(s)
    s.put(pod(OWN, "Running") | {"created": 3})
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", taken=ago(42)))
    return "lock inspect tfc/prod"


def stale_backoff(s):
    o = prod(s)
    failed_apply(s, o, started=4)
    s.put(pod(OWN, "Failed", job_name=JOB, state={"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(4), "finishedAt": ago(1)}}))
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    return "lock inspect tfc/prod"


def stale_evicted_drift_due(s):
    o = prod(s)
    s.put(job(o, "apply", 3, ended="Failed", reason="BackoffLimitExceeded", annotations={"captf.io/interrupted": "true"}))
    s.put(pod(OWN, "Failed", job_name=JOB, status={"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage. ",
                                                   "containerStatuses": []}))
    s.put(lock(C, "prod", ID.format(1), who=f"someone@example.com@{OWN}"))
    return "lock inspect tfc/prod"


def stale_not_booked(s):
    o = prod(s)
    s.put(job(o, "apply", 3, ended="Failed", reason="DeadlineExceeded", message="Job was active longer than specified deadline",
              annotations={"captf.io/bookkept": "false", "captf.io/state-lock-version": "1041"}))
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    return "lock inspect tfc/prod"


def stale_paused(s):
    prod(s, paused=True, status={"conditions": [LOCKED]})
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", operation="OperationTypePlan"))
    return "lock inspect tfc/prod"


def stale_plan_waits(s):
    o = prod(s, spec={"applyPolicy": "Manual"},
             status={"conditions": [READ, condition("ApplyJobSucceeded", "Unknown", "PlanAwaitingApproval", "plan prod-0123456789 waits")],
                     "pendingPlanRef": {"name": "prod-0123456789"}})
    s.put(job(o, "plan", 2, ended="Complete", started=30))
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", operation="OperationTypePlan"))
    return "lock inspect tfc/prod"


def stale_node_lost(s):
    o = prod(s, node={"ready": "Unknown"})
    failed_apply(s, o)
    s.put(event("Pod", OWN, "Scheduled", f"Successfully assigned {NS}/{OWN} to node-1", minutes=20))
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    return "lock inspect tfc/prod"


def stale_no_state(s):
    o = prod(s, state=False)
    failed_apply(s, o)
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    return "lock inspect tfc/prod"


def stale_ids_differ(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}", ident=ID.format(9)))
    return "lock inspect tfc/prod"


def stale_hashed_name(s):
    name = "prod-eu-control-plane-7d9f8-x2k4q"
    s.put(cluster())
    s.put(node("node-0"))
    s.put(workload(M, name))
    s.put(state_secret(M, name))
    s.put(lock(M, name, ID.format(1), who="@captf-m-f9ab8dd997acab0a-refresh-a1-abc123-x7k2p", operation="OperationTypeRefresh"))
    return f"lock inspect tfm/{name}"


def foreign_workstation(s):
    o = prod(s, status={"conditions": [LOCKED]})
    failed_apply(s, o)
    s.put(lock(C, "prod", ID.format(2), who="DESKTOP-1\\someone@DESKTOP-1", taken=ago(50)))
    return f"lock inspect tfc/prod\nlock inspect {ID.format(2)} -o json\nlock inspect tfc/prod -q -o name"


def foreign_address(s):
    prod(s, node={"address": "192.168.10.20"})
    s.put(lock(C, "prod", ID.format(2), who="arn:aws:iam::111122223333:user/name@example.com@192.168.10.20", operation="OperationTypePlan"))
    return "lock inspect tfc/prod"


def foreign_pod(s):
    prod(s)
    s.put(pod("app2-tf-runner", "Running"))
    s.put(lock(C, "prod", ID.format(2), who="controller@app2-tf-runner", operation="OperationTypePlan"))
    return "lock inspect tfc/prod"


def foreign_runner_of_another(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2), who="@captf-m-web-apply-a1-abc123-x7k2p"))
    return "lock inspect tfc/prod"


def foreign_lookalike(s):
    prod(s)
    s.put(workload(C, "prod-2"))
    s.put(lock(C, "prod", ID.format(2), who="@captf-c-prod-2-apply-a1-abc123-x7k2p"))
    return "lock inspect tfc/prod"


def foreign_job_name(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2), who=f"@{JOB}"))
    return "lock inspect tfc/prod"


def foreign_no_info(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2)))
    return "lock inspect tfc/prod"


def foreign_unreadable_info(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2), info=f'{{"ID":"{ID.format(2)}","Who":"@{OWN}","Created":0}}'))
    return "lock inspect tfc/prod"


def foreign_no_host(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2), who="runner@"))
    return "lock inspect tfc/prod"


def foreign_hostile_text(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2), who="\u001b[2J\u001b[3J\u001b[1;1Hroot@host\r\nFREE\u009b31m\u202e\u001b]52;c;aGk=\u0007"))
    return "lock inspect tfc/prod\nlock inspect tfc/prod -o json\nlock inspect tfc/prod -o yaml\nlock list"


def foreign_older_than_lease(s):
    prod(s)
    s.put(lock(C, "prod", ID.format(2), who="root@old-bastion", taken=ago(60 * 24 * 40)) | {"created": 90})
    return "lock inspect tfc/prod"


def foreign_no_state_init(s):
    prod(s, state=False, status={"conditions": [condition("StateReadable", "Unknown", "StateNotFound")], "initialization": {"provisioned": False},
                                 "observedStateSerial": None, "lastDriftCheck": None})
    s.put(lock(C, "prod", ID.format(2), who="root@DESKTOP-1", operation="init"))
    return "lock inspect tfc/prod"


def foreign_corrupt_state(s):
    prod(s, secret={"data": b"{\"version\":4}"})
    s.put(lock(C, "prod", ID.format(2), who="root@DESKTOP-1"))
    return "lock inspect tfc/prod"


def foreign_encrypted_state(s):
    import gzip
    import json
    text = json.dumps({"serial": 12, "lineage": "l", "meta": {}, "encrypted_data": CANARY, "encryption_version": "v0"})
    prod(s, secret={"data": gzip.compress(text.encode(), mtime=0)}, image="registry.example.com/team-a/opentofu-cluster:1.4")
    s.put(lock(C, "prod", ID.format(2), who="root@DESKTOP-1"))
    return "lock inspect tfc/prod"


def foreign_chunks_opentofu(s):
    prod(s, image="registry.example.com/team-a/opentofu-cluster:1.4")
    s.put(state_secret(C, "prod", part=1, data=b"\0"))
    s.put(lock(C, "prod", ID.format(2), who="root@DESKTOP-1"))
    return "lock inspect tfc/prod"


def foreign_chunks_unknown_runtime(s):
    prod(s)
    s.put(state_secret(C, "prod", part=1, data=b"\0"))
    s.put(lock(C, "prod", ID.format(2), who="root@DESKTOP-1"))
    return "lock inspect tfc/prod"


def empty_holder(s):
    prod(s)
    s.put(lock(C, "prod", ""))
    return "lock inspect tfc/prod"


def labels_differ_free(s):
    prod(s, secret={"labels": {"cluster.x-k8s.io/cluster-name": "prod-old"}})
    return "lock inspect tfc/prod"


def labels_differ_foreign(s):
    prod(s, secret={"labels": {"captf.io/managed": "false"}})
    s.put(lock(C, "prod", ID.format(2), who="root@DESKTOP-1"))
    return "lock inspect tfc/prod"


def copy_of_state(s):
    prod(s)
    s.put(state_secret(C, "prod", rename=f"tfstate-default-{suffix(C, 'prod')}-backup"))
    return "lock inspect tfc/prod"


def key_missing(s):
    prod(s, secret={"data": b""})
    return "lock inspect tfc/prod"


def orphans(s):
    prod(s)
    s.put(lock(M, "moved-away", ID.format(5), who="root@DESKTOP-1"))
    s.put(lock(M, "destroyed", None))
    return "lock inspect\nlock list\nlock list -o wide --all"


def fleet(s):
    o = prod(s)
    failed_apply(s, o, started=4)
    s.put(lock(C, "prod", ID.format(1), who=f"@{OWN}"))
    s.put(workload(M, "web", status={"conditions": [LOCKED]}))
    s.put(state_secret(M, "web"))
    s.put(lock(M, "web", ID.format(2), who="DESKTOP-1\\someone@DESKTOP-1", taken=ago(50)))
    s.put(workload(P, "workers"))
    s.put(state_secret(P, "workers"))
    s.put(pod("captf-mp-workers-drift-a1-5e1f00-q9w8e", "Running", job_name="captf-mp-workers-drift-a1-5e1f00"))
    s.put(lock(P, "workers", ID.format(3), who="@captf-mp-workers-drift-a1-5e1f00-q9w8e", operation="OperationTypePlan"))
    s.put(workload(M, "idle"))
    s.put(state_secret(M, "idle"))
    return "lock inspect\nlock list\nlock list -A --all\nlock list -o wide --no-headers\nlock inspect -q -o name\nlock inspect tfm/idel\nlock inspect tfm"


def history_force_unlocked(s):
    o = prod(s)
    failed_apply(s, o, started=30)
    s.put(job(o, "apply", 4, ended="Complete", started=20, args=[f"--force-unlock={ID.format(1)}"]))
    s.put(pod(OWN, "Failed", job_name=JOB, labels={k: v for k, v in owner_labels(C, "prod").items() if "move" not in k},
              state={"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(30), "finishedAt": ago(27)}}))
    s.put(event(C, "prod", "ForceUnlocked", f"Job captf-c-prod-apply-a4-5e1f00 clears the stale lock {ID.format(1)}", minutes=20, typ="Warning"))
    s.put(event(C, "prod", "JobInterrupted", f"Job {JOB} was interrupted", minutes=27, typ="Warning"))
    s.put(lock(C, "prod", None))
    return "lock history tfc/prod\nlock history tfc prod -o json"


def history_nothing(s):
    prod(s)
    return "lock history tfc/prod"


CASES = [value for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__
         and name not in ("prod", "failed_apply")]
