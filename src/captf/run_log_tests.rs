//! The error blocks of real Terraform and OpenTofu (recorded by `tests/record/logs.sh`).

use super::mask::Redactor;
use super::run_log::read_log;

/// Log, first line of the only block, something that stands in it.
macro_rules! recorded {
    ($($name:literal $first:literal $inside:literal;)*) => {
        [$(($name, include_str!(concat!("../../tests/logs/", $name, ".log")), $first, $inside),)*]
    };
}

#[test]
fn the_runtimes_own_errors_are_cut_out_of_their_true_output() {
    let logs = recorded! {
        "terraform-init-plain" "Error: Failed to query available provider packages" "registry.invalid/team/missing";
        "terraform-init-color" "Error: Failed to query available provider packages" "registry.invalid/team/missing";
        "terraform-validate-plain" "Error: Reference to undeclared input variable" "main.tf line 2";
        "terraform-validate-color" "Error: Reference to undeclared input variable" "main.tf line 2";
        "terraform-validate-json" "Error: Reference to undeclared input variable" "main.tf line 2";
        "terraform-plan-plain" "Error: Resource precondition failed" "The size has to be below 3";
        "terraform-plan-color" "Error: Resource precondition failed" "The size has to be below 3";
        "terraform-plan-json" "Error: Resource precondition failed" "The size has to be below 3";
        "terraform-apply-plain" "Error: local-exec provisioner error" "exit status 3";
        "terraform-apply-color" "Error: local-exec provisioner error" "exit status 3";
        "terraform-apply-json" "Error: local-exec provisioner error" "exit status 3";
        "tofu-init-plain" "Error: Failed to resolve provider packages" "registry.invalid/team/missing";
        "tofu-init-color" "Error: Failed to resolve provider packages" "registry.invalid/team/missing";
        "tofu-validate-plain" "Error: Reference to undeclared input variable" "main.tf line 2";
        "tofu-validate-color" "Error: Reference to undeclared input variable" "main.tf line 2";
        "tofu-validate-json" "Error: Reference to undeclared input variable" "main.tf line 2";
        "tofu-plan-plain" "Error: Resource precondition failed" "The size has to be below 3";
        "tofu-plan-color" "Error: Resource precondition failed" "The size has to be below 3";
        "tofu-plan-json" "Error: Resource precondition failed" "The size has to be below 3";
        "tofu-apply-plain" "Error: local-exec provisioner error" "exit status 3";
        "tofu-apply-color" "Error: local-exec provisioner error" "exit status 3";
        "tofu-apply-json" "Error: local-exec provisioner error" "exit status 3";
    };
    for (name, log, first, inside) in logs {
        let facts = read_log(log, false, &Redactor::default());
        assert_eq!(facts.errors.len(), 1, "{name}: {:#?}", facts.errors);
        let block = &facts.errors[0];
        assert_eq!(block.lines().next(), Some(first), "{name}");
        // A message may be wrapped anywhere.
        let flat = block.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(inside), "{name}: {block}");
        assert!(!format!("{facts:?}").contains("canary"), "{name}: {facts:#?}");
        assert!(!format!("{facts:?}").contains('\u{1b}'), "{name}: {facts:#?}");
    }
}
