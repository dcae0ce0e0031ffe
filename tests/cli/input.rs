//! Bad input without a cluster: one line that says what is wrong, a hint, the documented exit code, no panic.

use std::io::Write;
use std::path::Path;

use super::run::{binary, run, shown};

fn write(dir: &Path, name: &str, content: &[u8]) {
    std::fs::write(dir.join(name), content).expect("write a file");
}

#[test]
fn wrong_command_lines_exit_2() {
    for (line, words) in [
        ("lock inspect pod/x --from testdata/lock/free", "is not a kind that CAPTF runs Jobs for"),
        ("lock inspect tfc/a/b --from testdata/lock/free", "is not KIND/NAME"),
        ("lock inspect tfc/prod tfm --from testdata/lock/free", "cannot stand beside named objects"),
        ("lock inspect tfc/prod -l a=b --from testdata/lock/free", "a selector cannot be combined"),
        ("lock inspect --from testdata/lock/free --now yesterday", "is not an RFC 3339 time"),
        ("lock inspect --from testdata/lock/free --watch", "cannot be watched"),
        ("backups diff tfc/prod --from testdata/restore/demo", "the serial is missing"),
        ("backups diff tfc/prod x --from testdata/restore/demo", "`x` is not a serial"),
        ("backups diff tfc/prod 1 2 3 --from testdata/restore/demo", "one word too many"),
        ("backups save tfc/prod --to /dev/null --from testdata/restore/demo", "one of a serial, `--live` and `--set`"),
        (
            "backups save tfc/prod 41 --live --to /dev/null --from testdata/restore/demo",
            "one of a serial, `--live` and `--set`",
        ),
        ("restore tfc/prod 41 --dry-run --from testdata/restore/demo", "the serial comes first"),
        ("restore 41 tfc/prod --dry-run=server --from testdata/restore/demo", "a snapshot cannot be changed"),
        ("restore status tfc/prod --wait --from testdata/restore/demo", "cannot be followed"),
        ("explain lock-stal", "did you mean `lock-stale`"),
        ("explain nonsense-code-of-nobody", "is not a finding code"),
        ("runbook show nothing", "is not a runbook"),
        ("lock inspect --request-timeout soon", "is not a duration"),
        ("frobnicate", "unrecognized subcommand"),
    ] {
        let output = run(line);
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(words) && output.stdout.is_empty(), "{line}: {text}");
    }
}

#[test]
fn without_a_cluster_the_reason_is_named_and_nothing_of_a_file_is_quoted() {
    let dir = tempfile::tempdir().expect("a folder");
    write(
        dir.path(),
        "broken",
        b"apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {token: SECRET-TOKEN-1234\n",
    );
    write(dir.path(), "nocontext", b"apiVersion: v1\nkind: Config\nclusters: []\n");
    let path = |name: &str| dir.path().join(name).display().to_string();
    for (line, words) in [
        ("lock inspect".to_string(), "no kubeconfig"),
        (format!("lock inspect --kubeconfig {}", path("broken")), "is not a kubeconfig"),
        (format!("lock inspect --kubeconfig {}", path("missing")), "No such file"),
        (format!("lock inspect --kubeconfig {}", path("nocontext")), "no current context is set"),
        (format!("lock inspect --kubeconfig {} --context x", path("nocontext")), "context `x` does not exist"),
    ] {
        let output = run(&line);
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {text}");
        assert!(text.contains(words) && text.contains("hint: "), "{line}: {text}");
        assert!(!text.contains("SECRET-TOKEN"), "{line}: {text}");
    }
}

#[test]
fn several_kubeconfig_files_are_merged_and_missing_ones_skipped() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path(), "a", b"apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- {name: here, context: {cluster: c, user: u, namespace: team-z}}\n");
    write(dir.path(), "b", b"apiVersion: v1\nkind: Config\nclusters:\n- {name: c, cluster: {server: 'http://127.0.0.1:1'}}\nusers:\n- {name: u, user: {token: t}}\n");
    let list = format!("{0}/a:{0}/missing::{0}/b", dir.path().display());
    let output = binary().env("KUBECONFIG", list).args(["lock", "inspect", "tfc/prod"]).output().expect("run");
    let text = shown(&output);
    assert!(text.contains("TerraformCluster `prod` in team-z") && text.contains("http://127.0.0.1:1"), "{text}");
}

#[test]
fn a_broken_document_names_its_place_and_the_rest_is_used() {
    let dir = tempfile::tempdir().expect("a folder");
    let object = "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: TerraformCluster\nmetadata: {name: prod, namespace: team-a, uid: u}\n";
    let text = format!(
        "{object}---\nkind: Secret\ndata:\n  password: [SECRET-VALUE-77\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: n}}\n"
    );
    write(dir.path(), "dump.yaml", text.as_bytes());
    let output = run(&format!("lock inspect tfc/prod --from {}", dir.path().display()));
    let text = shown(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("undetermined") && text.contains("dump.yaml") && text.contains("line"), "{text}");
    assert!(!text.contains("SECRET-VALUE"), "{text}");
}

#[test]
fn garbage_and_emptiness_are_errors() {
    let dir = tempfile::tempdir().expect("a folder");
    let noise: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    write(dir.path(), "noise.yaml", &noise);
    write(dir.path(), "noise.tar.gz", &noise);
    std::fs::create_dir(dir.path().join("empty")).expect("a folder");
    for name in ["noise.yaml", "noise.tar.gz", "empty", "missing"] {
        let output = run(&format!("lock inspect --from {}", dir.path().join(name).display()));
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(text.contains("error: ") && !text.contains("panicked"), "{name}: {text}");
    }
}

#[test]
fn standard_input_is_a_snapshot_too() {
    let objects = std::fs::read("testdata/lock/empty-holder/leases.json").expect("a case");
    let mut command = binary();
    let assert = command.args(["lock", "inspect", "--from", "-"]).write_stdin(objects).assert();
    let output = assert.get_output();
    let text = shown(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not in the snapshot"), "{text}");
}

#[test]
fn a_hundred_megabytes_are_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(dir.path().join("pods.json")).expect("create a file");
    let mut file = std::io::BufWriter::new(file);
    let pad = "x".repeat(5_000);
    write!(file, r#"{{"apiVersion":"v1","kind":"List","items":["#).expect("write");
    for index in 0..20_000 {
        let comma = if index == 0 { "" } else { "," };
        write!(file, r#"{comma}{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p-{index}","namespace":"team-a","annotations":{{"a":"{pad}"}}}}}}"#)
            .expect("write");
    }
    write!(file, r#","#).expect("write");
    write!(file, r#"{{"apiVersion":"infrastructure.cluster.x-k8s.io/v1alpha1","kind":"TerraformCluster","metadata":{{"name":"prod","namespace":"team-a"}}}}]}}"#)
        .expect("write");
    file.flush().expect("write");
    let size = std::fs::metadata(dir.path().join("pods.json")).expect("a file").len();
    assert!(size > 100_000_000, "{size}");
    let output = run(&format!("lock inspect tfc/prod --from {}", dir.path().display()));
    assert_eq!(output.status.code(), Some(3), "{}", shown(&output));
}
