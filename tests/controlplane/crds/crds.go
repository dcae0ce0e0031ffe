// Package crds holds the CustomResourceDefinitions of the tests: those of
// Cluster API Provider Terraform, written by ../gen from its summary, and small
// stand-ins for those of Cluster API.
package crds

import "embed"

// Files has one CustomResourceDefinition in each YAML file.
//
//go:embed *.yaml
var Files embed.FS
