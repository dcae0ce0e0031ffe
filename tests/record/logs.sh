#!/usr/bin/env bash
# Records what the real runtimes print when init, validate, plan and apply fail: coloured, plain and as JSON, into
# tests/logs/. Values named canary must never be printed by the plugin.
#
#   eval "$(tests/setup.sh)"; tests/record/logs.sh
set -euo pipefail

out=$(cd "$(dirname "${BASH_SOURCE[0]}")/../logs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{home,init,validate,plan,apply}
cat > "$work/init/main.tf" <<'TF'
terraform {
  required_providers {
    missing = { source = "registry.invalid/team/missing" }
  }
}
TF
cat > "$work/validate/main.tf" <<'TF'
resource "terraform_data" "web" {
  input = var.sise
}
TF
cat > "$work/plan/main.tf" <<'TF'
variable "size" { default = 3 }
resource "terraform_data" "web" {
  input = var.size
  lifecycle {
    precondition {
      condition     = var.size < 3
      error_message = "The size has to be below 3; admin_password = \"canary-in-a-message\" was given."
    }
  }
}
TF
cat > "$work/apply/main.tf" <<'TF'
resource "terraform_data" "web" {
  provisioner "local-exec" { command = "echo api_token=canary-from-a-command; sleep 1; exit 3" }
}
TF

# record NAME ARGUMENT...: the command has to fail; addresses of this machine's network are replaced.
record() {
  local name=$1 code=0
  shift
  env -u TF_CLI_CONFIG_FILE HOME="$work/home" TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1 "$@" > "$out/$name.log" 2>&1 || code=$?
  [[ $code == 1 ]] || { echo "$name ended with $code" >&2; exit 1; }
  sed -i -E 's/on [0-9.]+:53/on 10.96.0.10:53/' "$out/$name.log"
}

for runtime in terraform tofu; do
  bin=$CAPTF_TEST_TERRAFORM
  [[ $runtime == tofu ]] && bin=$CAPTF_TEST_TOFU
  for step in init validate plan apply; do
    cd "$work/$step"
    rm -rf .terraform .terraform.lock.hcl terraform.tfstate*
    [[ $step == init ]] || env -u TF_CLI_CONFIG_FILE HOME="$work/home" "$bin" init -no-color > /dev/null
    yes=()
    [[ $step == apply ]] && yes=(-auto-approve)
    record "$runtime-$step-plain" "$bin" "$step" -no-color "${yes[@]}"
    rm -f terraform.tfstate*
    record "$runtime-$step-color" "$bin" "$step" "${yes[@]}"
    rm -f terraform.tfstate*
    [[ $step == init ]] || record "$runtime-$step-json" "$bin" "$step" -json "${yes[@]}"
  done
done
