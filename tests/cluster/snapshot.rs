//! What kubectl leaves on disk, judged without the cluster: the verdict of the live look, or undetermined, never another.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::ground::{Namespace, ground};
use crate::objects::{cluster, lock, running_pod};
use crate::plugin::{Ran, captf, kubectl, run};

const OWN: &str = "captf-c-prod-apply-a1-5e1f00-x7k2p";
const ID: &str = "00000001-0000-4000-8000-000000000001";
const KINDS: [&str; 9] = [
    "terraformclusters",
    "terraformmachines",
    "terraformmachinepools",
    "clusters.cluster.x-k8s.io",
    "leases",
    "jobs",
    "pods",
    "secrets",
    "events",
];

/// `kubectl get KIND -o FORMAT > DIR/KIND.FORMAT` for each kind.
fn dump(ns: &Namespace<'_>, dir: &Path, format: &str) {
    for kind in KINDS {
        let got = run(ns.ground(), &ns.ground().kubeconfig, &["get", kind, "-n", ns.name(), "-o", format]);
        assert_eq!(got.code, Some(0), "{kind}: {got:?}");
        std::fs::write(dir.join(format!("{kind}.{format}")), got.stdout).expect("write a dump");
    }
}

fn offline(ns: &Namespace<'_>, from: &Path) -> Ran {
    captf(ns, &format!("lock inspect tfc/prod -o json --from {}", from.display()))
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_dump_gives_the_live_verdict() {
    let ns = ground().namespace("dump");
    cluster(&ns, "prod");
    for (holder, pod, verdict) in [
        ("root@desktop-1", false, "foreign"),
        (&*format!("@{OWN}"), false, "stale"),
        (&*format!("@{OWN}"), true, "live"),
    ] {
        if ns.ground().find("Lease", ns.name(), &lease_name(&ns)).is_some() {
            ns.ground().delete("Lease", ns.name(), &lease_name(&ns));
        }
        lock(&ns, "TerraformCluster", "prod", ID, holder);
        if pod {
            running_pod(&ns, OWN);
        }
        assert_eq!(captf(&ns, "lock inspect tfc/prod -o json").verdict(), verdict);
        for format in ["yaml", "json"] {
            let dir = tempfile::tempdir().expect("a folder");
            dump(&ns, dir.path(), format);
            assert_eq!(offline(&ns, dir.path()).verdict(), verdict, "{format}");
            let archive = dir.path().join("../").join(format!("{}-{verdict}-{format}.tar.gz", ns.name()));
            let packed = Command::new("tar")
                .arg("-czf")
                .arg(&archive)
                .arg("-C")
                .arg(dir.path())
                .arg(".")
                .status()
                .expect("run tar");
            assert!(packed.success());
            assert_eq!(offline(&ns, &archive).verdict(), verdict, "{format} in an archive");
            std::fs::remove_file(archive).expect("remove the archive");
        }
    }
}

fn lease_name(ns: &Namespace<'_>) -> String {
    format!("lock-tfstate-default-{}", crate::ground::runtime::suffix(ns.name(), "TerraformCluster", "prod"))
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_kind_that_was_not_dumped_makes_the_verdict_undetermined() {
    let ns = ground().namespace("partial");
    cluster(&ns, "prod");
    lock(&ns, "TerraformCluster", "prod", ID, &format!("@{OWN}"));
    for missing in ["pods", "leases", "jobs"] {
        let dir = tempfile::tempdir().expect("a folder");
        dump(&ns, dir.path(), "yaml");
        std::fs::remove_file(dir.path().join(format!("{missing}.yaml"))).expect("remove a dump");
        let judged = offline(&ns, dir.path());
        assert_eq!(
            (judged.verdict().as_str(), judged.code),
            ("undetermined", Some(3)),
            "without {missing}: {judged:?}"
        );
    }
    running_pod(&ns, "other-1");
    running_pod(&ns, "other-2");
    let dir = tempfile::tempdir().expect("a folder");
    dump(&ns, dir.path(), "yaml");
    let selected =
        run(ns.ground(), &ns.ground().kubeconfig, &["get", "pods", "-n", ns.name(), "-o", "yaml", "-l", "app=none"]);
    std::fs::write(dir.path().join("pods.yaml"), selected.stdout.replace("items: []", "")).expect("write a dump");
    assert_eq!(offline(&ns, dir.path()).verdict(), "undetermined", "a list that says nothing of its items");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_stream_of_one_kubectl_get_is_read_from_standard_input() {
    let ns = ground().namespace("stdin");
    cluster(&ns, "prod");
    lock(&ns, "TerraformCluster", "prod", ID, "root@desktop-1");
    let got = run(ns.ground(), &ns.ground().kubeconfig, &["get", &KINDS.join(","), "-n", ns.name(), "-o", "yaml"]);
    let mut child = kubectl(ns.ground(), Path::new("/nonexistent"))
        .args(["captf", "lock", "inspect", "tfc/prod", "-n", ns.name(), "--from", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start kubectl captf");
    std::io::Write::write_all(&mut child.stdin.take().expect("stdin"), got.stdout.as_bytes()).expect("write");
    let output = child.wait_with_output().expect("it ends");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // No Job is in the stream, so whether one runs is not known: the verdict rests on it.
    assert_eq!(report["items"][0]["verdict"], "undetermined", "{report}");
    assert_eq!(report["items"][0]["lock"]["holder"], "root@desktop-1");
}
