"""A small client for the test ground: create, status, delete, and the builders of CAPTF's objects."""

import base64
import datetime
import gzip
import hashlib
import http.client
import json
import os
import ssl
import subprocess
import tempfile
import uuid
from urllib.parse import urlparse

GROUP = "infrastructure.cluster.x-k8s.io"
CAPTF = "captf.infrastructure.cluster.x-k8s.io"
CANARY = "CANARY-5d1c-never-print-a-state-value"
NS = "team-a"
PLURALS = {
    "TerraformCluster": f"apis/{GROUP}/v1alpha1/namespaces/{{ns}}/terraformclusters",
    "TerraformMachine": f"apis/{GROUP}/v1alpha1/namespaces/{{ns}}/terraformmachines",
    "TerraformMachinePool": f"apis/{GROUP}/v1alpha1/namespaces/{{ns}}/terraformmachinepools",
    "TerraformPlan": f"apis/{GROUP}/v1alpha1/namespaces/{{ns}}/terraformplans",
    "Cluster": "apis/cluster.x-k8s.io/v1beta2/namespaces/{ns}/clusters",
    "Machine": "apis/cluster.x-k8s.io/v1beta2/namespaces/{ns}/machines",
    "Lease": "apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
    "Job": "apis/batch/v1/namespaces/{ns}/jobs",
    "Pod": "api/v1/namespaces/{ns}/pods",
    "Secret": "api/v1/namespaces/{ns}/secrets",
    "Event": "api/v1/namespaces/{ns}/events",
    "Namespace": "api/v1/namespaces",
    "Node": "api/v1/nodes",
}
SHORT = {"TerraformCluster": "c", "TerraformMachine": "m", "TerraformMachinePool": "mp"}
NOW = datetime.datetime(2026, 1, 10, 8, 0, 0, tzinfo=datetime.timezone.utc)


def ago(minutes, seconds=0):
    """RFC 3339, that long before the fixed time of the corpus."""
    return (NOW - datetime.timedelta(minutes=minutes, seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Server:
    """The API server of a kubeconfig with client certificates."""

    def __init__(self, kubeconfig, kubectl):
        self.kubeconfig, self.kubectl = kubeconfig, kubectl
        out = subprocess.run([kubectl, "--kubeconfig", kubeconfig, "config", "view", "--raw", "-o", "json"],
                             check=True, capture_output=True).stdout
        config = json.loads(out)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=self._text(cluster, "certificate-authority"))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(self._text(user, "client-certificate") + "\n" + self._text(user, "client-key"))
            pem.flush()
            context.load_cert_chain(pem.name)
        url = urlparse(cluster["server"])
        self.connection = http.client.HTTPSConnection(url.hostname, url.port, context=context)
        self.created, self.left_out = {}, set()

    @staticmethod
    def _text(holder, key):
        if key + "-data" in holder:
            return base64.b64decode(holder[key + "-data"]).decode()
        with open(holder[key], encoding="utf-8") as file:
            return file.read()

    def call(self, method, path, body=None, missing_ok=False):
        self.connection.request(method, "/" + path, body=json.dumps(body) if body is not None else None,
                                headers={"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        data = json.loads(answer.read() or b"{}")
        if answer.status >= 300 and not (missing_ok and answer.status in (404, 409)):
            raise RuntimeError(f"{method} {path}: {answer.status} {data.get('message')}")
        return data

    def put(self, obj):
        """Creates an object and writes its status, if it has one. What the server sets by its own clock is
        rewritten in the dump: `created` minutes ago, or a default by kind."""
        created = obj.pop("created", {"Pod": 3, "Job": 5, "Event": 2}.get(obj["kind"], 60 * 24 * 9))
        self.created[obj["kind"], obj["metadata"]["name"]] = ago(created)
        path = PLURALS[obj["kind"]].format(ns=obj["metadata"].get("namespace", NS))
        made = self.call("POST", path, obj)
        if "status" in obj:
            made["status"] = obj["status"]
            made = self.call("PUT", f"{path}/{obj['metadata']['name']}/status", made)
        return made

    def clear(self):
        """Deletes everything of the namespace, and all nodes."""
        self.call("POST", "api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NS}}, missing_ok=True)
        self.left_out = set()
        places = [path.format(ns=NS) for kind, path in PLURALS.items() if kind != "Namespace"]
        for path in [*places, PLURALS["Event"].format(ns="default")]:
            for item in self.call("GET", path)["items"]:
                name = item["metadata"]["name"]
                if item["metadata"].pop("finalizers", None):
                    self.call("PUT", f"{path}/{name}", item, missing_ok=True)
                options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
                self.call("DELETE", f"{path}/{name}", {"kind": "DeleteOptions", "apiVersion": "v1", **options}, missing_ok=True)

    def dump(self, folder, resources):
        """Leaves what `kubectl get RESOURCE -o json` prints, one file a resource, with the server's clock and
        random IDs replaced, so that a new recording differs only where something changed."""
        os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder):
            if old.endswith((".json", ".yaml")):
                os.remove(os.path.join(folder, old))
        lists = {}
        for resource in resources:
            if resource in self.left_out:
                continue
            scope = [] if resource == "nodes" else ["-n", NS]
            out = subprocess.run([self.kubectl, "--kubeconfig", self.kubeconfig, "get", resource, *scope, "-o", "json"],
                                 check=True, capture_output=True, text=True).stdout
            lists[resource] = json.loads(out)
        # What a node says is an event in namespace default, of which nothing else is kept.
        for item in self.call("GET", PLURALS["Event"].format(ns="default"))["items"]:
            if ("Event", item["metadata"]["name"]) in self.created:
                lists["events"]["items"].append({"apiVersion": "v1", "kind": "Event", **item})
        uids = {}
        for one in lists.values():
            for item in one["items"]:
                meta = item["metadata"]
                uids[meta["uid"]] = str(uuid.uuid5(uuid.NAMESPACE_URL, item["kind"] + "/" + meta["name"]))
                meta["creationTimestamp"] = self.created[item["kind"], meta["name"]]
                meta["resourceVersion"] = str(1000 + len(uids))
                if "deletionTimestamp" in meta:
                    meta["deletionTimestamp"] = ago(-4)
        for one in lists.values():
            for item in one["items"]:
                item["metadata"].pop("managedFields", None)
        for resource, one in lists.items():
            text = json.dumps(one, indent=2)
            for real, fixed in uids.items():
                text = text.replace(real, fixed)
            with open(os.path.join(folder, resource + ".json"), "w", encoding="utf-8") as file:
                file.write(text + "\n")


def suffix(kind, name):
    return hashlib.sha256(f"{NS}/{kind}/{name}".encode()).hexdigest()[:16] + "-" + SHORT[kind]


def owner_labels(kind, name, cluster="prod"):
    return {f"{CAPTF}/owner-kind": kind, f"{CAPTF}/owner-name": name, "cluster.x-k8s.io/cluster-name": cluster,
            "captf.io/managed": "true", "clusterctl.cluster.x-k8s.io/move": ""}


def condition(kind, status, reason, message="", since=60):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(since)}


READ = condition("StateReadable", "True", "StateRead")


def workload(kind, name, spec=None, status=None, annotations=None, image="registry.example.com/team-a/cluster:1.4"):
    obj = {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind,
           "metadata": {"name": name, "namespace": NS, "labels": {"cluster.x-k8s.io/cluster-name": "prod"},
                        "annotations": annotations or {}},
           "spec": {"source": {"image": image}, **(spec or {})}}
    if kind == "TerraformCluster":
        obj["spec"].setdefault("identityRef", {"name": "team-a-cloud"})
    obj["status"] = {"conditions": [READ], "initialization": {"provisioned": True}, "observedStateSerial": 7,
                     "lastDriftCheck": ago(10), "stateSecretSuffix": suffix(kind, name), **(status or {})}
    return obj


def cluster(paused=False):
    spec = {"infrastructureRef": {"apiGroup": GROUP, "kind": "TerraformCluster", "name": "prod"}}
    if paused:
        spec["paused"] = True
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "prod", "namespace": NS}, "spec": spec}


STATE = {"version": 4, "terraform_version": "1.11.4", "serial": 7, "lineage": "6f1c6c0a-4b3e-4f57-9a53-0d4f8f0f1a01",
         "outputs": {"token": {"value": CANARY, "type": "string", "sensitive": True}},
         "resources": [{"mode": "managed", "type": "terraform_data", "name": "a", "provider": "p",
                        "instances": [{"schema_version": 0, "attributes": {"id": "i-1", "input": CANARY}}]}]}


def state_secret(kind, name, part=0, labels=None, data=None, rename=None):
    base = "tfstate-default-" + suffix(kind, name)
    payload = gzip.compress(json.dumps(STATE).encode(), mtime=0) if data is None else data
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
              "metadata": {"name": rename or (f"{base}-part-{part}" if part else base), "namespace": NS, "annotations": {"encoding": "gzip"},
                           "labels": {"tfstate": "true", "tfstateSecretSuffix": suffix(kind, name), "tfstateWorkspace": "default",
                                      "app.kubernetes.io/managed-by": "terraform", **owner_labels(kind, name), **(labels or {})}}}
    if payload:
        secret["data"] = {"tfstate": base64.b64encode(payload).decode()}
    return secret


def lock(kind, name, holder, who=None, operation="OperationTypeApply", taken=None, ident=None, info=None):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
             "metadata": {"name": "lock-tfstate-default-" + suffix(kind, name), "namespace": NS, "labels": owner_labels(kind, name)}, "spec": {}}
    if holder is not None:
        lease["spec"]["holderIdentity"] = holder
    if info is None and who is not None:
        info = json.dumps({"ID": ident or holder, "Operation": operation, "Info": "", "Who": who, "Version": "1.11.4",
                           "Created": (taken or ago(3)).replace("Z", ".244794577Z"), "Path": ""})
    if info is not None:
        lease["metadata"]["annotations"] = {"app.terraform.io/lock-info": info}
    return lease


def job(owner, op, attempt, hash6="5e1f00", ended=None, reason=None, message="", annotations=None, started=5, args=()):
    """A Job of an object that the server has made; `ended` is Complete, Failed, FailureTarget or nothing."""
    kind, name = owner["kind"], owner["metadata"]["name"]
    labels = {k: v for k, v in owner_labels(kind, name).items() if "move" not in k}
    labels |= {f"{CAPTF}/op": op, f"{CAPTF}/attempt": str(attempt)}
    status = {"startTime": ago(started)}
    finished = ago(max(started - 3, 0))
    if ended == "Complete":
        status |= {"completionTime": finished, "succeeded": 1, "uncountedTerminatedPods": {},
                   "conditions": [{"type": t, "status": "True", "reason": "CompletionsReached", "message": "Reached expected number of succeeded pods",
                                   "lastTransitionTime": finished, "lastProbeTime": finished} for t in ("SuccessCriteriaMet", "Complete")]}
    elif ended in ("Failed", "FailureTarget"):
        types = ("FailureTarget", "Failed") if ended == "Failed" else ("FailureTarget",)
        status |= {"conditions": [{"type": t, "status": "True", "reason": reason, "message": message,
                                   "lastTransitionTime": finished, "lastProbeTime": finished} for t in types]}
        status |= {"failed": 1, "uncountedTerminatedPods": {}} if ended == "Failed" else {"active": 1, "terminating": 1}
    else:
        status |= {"active": 1, "ready": 1}
    container = {"name": "source", "image": "registry.example.com/team-a/cluster:1.4", "command": ["/captf/bin/runner", "run"],
                 "args": [f"--op={op}", *args]}
    return {"apiVersion": "batch/v1", "kind": "Job", "created": started,
            "metadata": {"name": f"captf-{SHORT[kind]}-{name}-{op}-a{attempt}-{hash6}", "namespace": NS, "labels": labels,
                         "annotations": {"captf.io/bookkept": "true", **(annotations or {})} if ended in ("Complete", "Failed") else (annotations or {}),
                         "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": kind, "name": name, "uid": owner["metadata"]["uid"],
                                              "controller": True, "blockOwnerDeletion": True}]},
            "spec": {"backoffLimit": 0, "activeDeadlineSeconds": 3600,
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 600,
                                           "initContainers": [{"name": "runner", "image": "registry.example.com/captf/manager:0.1"}],
                                           "containers": [container]}}},
            "status": status}


def pod(name, phase, node="node-1", job_name=None, state=None, status=None, labels=None, started=3):
    """A pod as scheduler and kubelet leave it; `state` is the state of its container `source`."""
    shape = {"name": "source", "image": "registry.example.com/team-a/cluster:1.4", "imageID": "", "ready": phase == "Running",
             "restartCount": 0, "started": phase == "Running", "state": state or {"running": {"startedAt": ago(started)}}}
    labels = {**(labels or {}), **({"batch.kubernetes.io/job-name": job_name, "job-name": job_name} if job_name else {})}
    return {"apiVersion": "v1", "kind": "Pod", "created": started, "metadata": {"name": name, "namespace": NS, "labels": labels},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 600, "nodeName": node,
                     "initContainers": [{"name": "runner", "image": "registry.example.com/captf/manager:0.1"}],
                     "containers": [{"name": "source", "image": "registry.example.com/team-a/cluster:1.4",
                                     "resources": {"limits": {"memory": "2Gi"}, "requests": {"memory": "512Mi"}}}]},
            "status": {"phase": phase, "startTime": ago(started), "containerStatuses": [shape],
                       "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False", "lastTransitionTime": ago(started)}],
                       **(status or {})}}


def inputs_secret(kind, name):
    """The durable inputs, which hold secrets in clear text; their values must never be printed."""
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {"terraform.tfvars.json": json.dumps({"token": CANARY})},
            "metadata": {"name": f"captf-inputs-{SHORT[kind]}-{name}", "namespace": NS, "labels": {"captf.io/managed": "true"},
                         "annotations": {"captf.io/image": "registry.example.com/team-a/cluster:1.4"}}}


def node(name, ready="True", address="10.0.0.11"):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletReady" if ready == "True" else "NodeStatusUnknown",
                                       "message": "", "lastHeartbeatTime": ago(0 if ready == "True" else 40), "lastTransitionTime": ago(40)}],
                       "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]}}


def event(kind, name, reason, message, minutes=2, typ="Normal"):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name[:40]}.{reason.lower()}", "namespace": NS}, "type": typ,
            "involvedObject": {"kind": kind, "name": name, "namespace": NS}, "reason": reason, "message": message, "count": 1,
            "firstTimestamp": ago(minutes), "lastTimestamp": ago(minutes), "source": {"component": "captf-manager"}}
