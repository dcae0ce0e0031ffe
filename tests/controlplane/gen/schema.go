package main

import (
	"fmt"
	"sort"
	"strings"
)

// field is one line of the summary: a path and what may stand there.
type field struct {
	Path        string   `json:"path"`
	Type        string   `json:"type"`
	Ref         string   `json:"ref"`
	Format      string   `json:"format"`
	Pattern     string   `json:"pattern"`
	Enum        []string `json:"enum"`
	Default     any      `json:"default"`
	Required    bool     `json:"required"`
	Unknown     bool     `json:"preserveUnknownFields"`
	MinLength   *int     `json:"minLength"`
	MaxLength   *int     `json:"maxLength"`
	Minimum     *int     `json:"minimum"`
	Maximum     *int     `json:"maximum"`
	MinItems    *int     `json:"minItems"`
	MaxItems    *int     `json:"maxItems"`
	MinProps    *int     `json:"minProperties"`
	MaxProps    *int     `json:"maxProperties"`
	ListType    string   `json:"listType"`
	ListMapKeys []string `json:"listMapKeys"`
	MapType     string   `json:"mapType"`
	ExactlyOne  []string `json:"exactlyOneOf"`
}

// node is a field in the tree. A child is called by its name, "[]" or "{}".
type node struct {
	field
	known    bool
	children map[string]*node
}

// add puts a field at its place in the tree.
func (n *node) add(f field) error {
	at := n
	for _, part := range parts(f.Path) {
		if at.children == nil {
			at.children = map[string]*node{}
		}
		if at.children[part] == nil {
			at.children[part] = &node{}
		}
		at = at.children[part]
	}
	if at.known {
		return fmt.Errorf("%s is listed twice", f.Path)
	}
	at.field, at.known = f, true
	return nil
}

// parts splits "a.b[].c" into a, b, [], c.
func parts(path string) []string {
	path = strings.ReplaceAll(path, "[]", ".[]")
	return strings.Split(strings.ReplaceAll(path, "{}", ".{}"), ".")
}

// schema turns the tree under a node into a structural schema.
func (n *node) schema(path string, rules map[string][]object) (object, error) {
	out := object{}
	switch {
	case n.Ref != "":
		expanded, known := references[n.Ref]
		if !known {
			return nil, fmt.Errorf("%s: no schema for %s", path, n.Ref)
		}
		return expanded, nil
	case n.Type == "int-or-string":
		out["anyOf"] = []object{{"type": "integer"}, {"type": "string"}}
		out["x-kubernetes-int-or-string"] = true
	case n.Type == "any":
		out["x-kubernetes-preserve-unknown-fields"] = true
	case n.Type == "":
		return nil, fmt.Errorf("%s has fields but is not listed itself", path)
	default:
		out["type"] = n.Type
	}
	n.limits(out)
	if list := rules[path]; len(list) > 0 {
		out["x-kubernetes-validations"] = list
	}
	return out, n.descend(path, rules, out)
}

// limits copies everything that narrows a value.
func (n *node) limits(out object) {
	numbers := map[string]*int{
		"minLength": n.MinLength, "maxLength": n.MaxLength, "minimum": n.Minimum, "maximum": n.Maximum,
		"minItems": n.MinItems, "maxItems": n.MaxItems, "minProperties": n.MinProps, "maxProperties": n.MaxProps,
	}
	for name, value := range numbers {
		if value != nil {
			out[name] = *value
		}
	}
	texts := map[string]string{
		"format": n.Format, "pattern": n.Pattern,
		"x-kubernetes-list-type": n.ListType, "x-kubernetes-map-type": n.MapType,
	}
	for name, value := range texts {
		if value != "" {
			out[name] = value
		}
	}
	if len(n.Enum) > 0 {
		out["enum"] = n.Enum
	}
	if n.Default != nil {
		out["default"] = n.Default
	}
	if n.Unknown {
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	if len(n.ListMapKeys) > 0 {
		out["x-kubernetes-list-map-keys"] = n.ListMapKeys
	}
	if len(n.ExactlyOne) > 0 {
		var either []object
		for _, name := range n.ExactlyOne {
			either = append(either, object{"required": []string{name}})
		}
		out["oneOf"] = either
	}
}

// descend adds the properties, the items or the values of a map.
func (n *node) descend(path string, rules map[string][]object, out object) error {
	properties, required := object{}, []string{}
	for name, child := range n.children {
		schema, err := child.schema(strings.TrimPrefix(path+"."+name, "."), rules)
		if err != nil {
			return err
		}
		switch name {
		case "[]":
			out["items"] = schema
		case "{}":
			out["additionalProperties"] = schema
		default:
			properties[name] = schema
			if child.Required {
				required = append(required, name)
			}
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if len(required) > 0 {
		sort.Strings(required)
		out["required"] = required
	}
	if n.Type == "array" && out["items"] == nil {
		return fmt.Errorf("%s: a list without its items", path)
	}
	return nil
}
