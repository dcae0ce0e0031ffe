// Command gen writes ../crds/*.yaml, the CustomResourceDefinitions of the
// tests, from summary.json: a flat list of the fields of each kind with their
// types, enums and limits. Run it in this module as `go run ./gen`; the result
// is committed and the tests never run it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

// kind is one entry of the summary.
type kind struct {
	Name       string   `json:"name"`
	Group      string   `json:"group"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind"`
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Categories []string `json:"categories"`
	Scope      string   `json:"scope"`
	Versions   []struct {
		Name         string   `json:"name"`
		Subresources []string `json:"subresources"`
	} `json:"versions"`
	Columns []object `json:"additionalPrinterColumns"`
	Spec    []field  `json:"spec"`
	Status  []field  `json:"status"`
}

// The summary could not confirm a short name for this kind; its siblings have
// one of this form.
var extraShortNames = map[string][]string{"TerraformMachinePool": {"tfmp"}}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "gen: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile("gen/summary.json")
	if err != nil {
		return err
	}
	var summary struct {
		CRDs []kind `json:"crds"`
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		return fmt.Errorf("read the summary: %w", err)
	}
	for _, kind := range summary.CRDs {
		definition, err := build(kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
		if err := write(kind.Plural, definition); err != nil {
			return err
		}
	}
	for _, kind := range clusterAPI {
		if err := write("capi-"+kind.Plural, standIn(kind)); err != nil {
			return err
		}
	}
	return nil
}

func write(stem string, definition object) error {
	text, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	head := "# Written by tests/controlplane/gen for the tests. Do not edit.\n"
	return os.WriteFile(filepath.Join("crds", stem+".yaml"), append([]byte(head), text...), 0o644)
}

// build makes the definition of one kind of the summary.
func build(k kind) (object, error) {
	root := &node{field: field{Type: "object"}}
	for _, field := range append(k.Spec, k.Status...) {
		if err := root.add(field); err != nil {
			return nil, err
		}
	}
	schema, err := root.schema("", rules[k.Kind])
	if err != nil {
		return nil, err
	}
	properties := schema["properties"].(object)
	for name, value := range metadataProperties {
		properties[name] = value
	}
	version := object{
		"name": k.Versions[0].Name, "served": true, "storage": true,
		"schema": object{"openAPIV3Schema": schema},
	}
	if len(k.Columns) > 0 {
		version["additionalPrinterColumns"] = k.Columns
	}
	if len(k.Versions[0].Subresources) > 0 {
		version["subresources"] = object{"status": object{}}
	}
	short := append(k.ShortNames, extraShortNames[k.Kind]...)
	return definition(k, short, version), nil
}

func definition(k kind, short []string, version object) object {
	names := object{"kind": k.Kind, "listKind": k.ListKind, "plural": k.Plural, "singular": k.Singular, "categories": k.Categories}
	if len(short) > 0 {
		names["shortNames"] = short
	}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   object{"name": k.Plural + "." + k.Group},
		"spec":       object{"group": k.Group, "scope": k.Scope, "names": names, "versions": []object{version}},
	}
}

// clusterAPI are the kinds of Cluster API that the plugin reads.
var clusterAPI = []kind{
	capi("Cluster", "cl"), capi("Machine", "ma"), capi("MachinePool", "mp"),
}

func capi(name, short string) kind {
	singular := ""
	for _, letter := range name {
		if letter >= 'A' && letter <= 'Z' {
			letter += 'a' - 'A'
		}
		singular += string(letter)
	}
	return kind{
		Group: "cluster.x-k8s.io", Kind: name, ListKind: name + "List", Plural: singular + "s", Singular: singular,
		ShortNames: []string{short}, Categories: []string{"cluster-api"}, Scope: "Namespaced",
	}
}

// standIn accepts anything under spec and status.
func standIn(k kind) object {
	properties := object{"spec": anyObject(), "status": anyObject()}
	for name, value := range metadataProperties {
		properties[name] = value
	}
	return definition(k, k.ShortNames, object{
		"name": "v1beta2", "served": true, "storage": true,
		"schema":       object{"openAPIV3Schema": object{"type": "object", "properties": properties}},
		"subresources": object{"status": object{}},
		"additionalPrinterColumns": []object{
			{"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
			{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
		},
	})
}
