package main

const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

var metadataProperties = object{
	"apiVersion": object{"type": "string"},
	"kind":       object{"type": "string"},
	"metadata":   object{"type": "object"},
}

// references are the Kubernetes and Cluster API types that the summary names
// without their fields.
var references = map[string]object{
	"core/v1 PodSecurityContext": anyObject(),
	"core/v1 SecurityContext":    anyObject(),
	"core/v1 ResourceRequirements": {"type": "object", "properties": object{
		"limits":   quantities(),
		"requests": quantities(),
		"claims": object{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"name"},
			"items": object{"type": "object", "required": []string{"name"}, "properties": object{
				"name": object{"type": "string"}, "request": object{"type": "string"}}},
		},
	}},
	"cluster.x-k8s.io/v1beta2 FailureDomain": {"type": "object", "required": []string{"name"}, "properties": object{
		"name":         object{"type": "string", "minLength": 1, "maxLength": 256},
		"controlPlane": object{"type": "boolean"},
		"attributes":   object{"type": "object", "additionalProperties": object{"type": "string"}},
	}},
	"cluster.x-k8s.io/v1beta2 MachineAddress": {"type": "object", "required": []string{"address", "type"}, "properties": object{
		"type":    object{"type": "string", "enum": []string{"Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"}},
		"address": object{"type": "string", "minLength": 1, "maxLength": 256},
	}},
}

// rules are the validation rules of each kind, by the path of the object that
// carries them. The summary has them in words.
var rules = map[string]map[string][]object{
	"TerraformCluster": {
		"spec": {
			rule("has(self.identityRef)", "identityRef is required"),
		},
		"spec.controlPlaneEndpoint": {
			rule("has(self.host) == has(self.port)", "host and port must be set together"),
			rule("!(has(oldSelf.host) && has(oldSelf.port)) || self == oldSelf", "the endpoint cannot be changed once it is set"),
		},
	},
	"TerraformMachine": {
		"spec": {
			immutable("source"), immutable("identityRef"), immutable("variables"), immutable("variablesFrom"),
			rule("!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)", "providerID cannot be changed once it is set"),
		},
	},
	"TerraformPlan": {
		"spec": {
			immutable("inputsHash"), immutable("planHash"), immutable("reason"), immutable("summary"), immutable("targetRef"),
			rule("(has(self.approved) && self.approved) == has(self.approvedBy)", "approvedBy is required when approved is true and only allowed then"),
			rule("!(has(oldSelf.approved) && oldSelf.approved) || (has(self.approved) && self.approved)", "an approval cannot be withdrawn"),
			rule("!has(oldSelf.approvedBy) || (has(self.approvedBy) && self.approvedBy == oldSelf.approvedBy)", "approvedBy cannot be changed"),
		},
	},
	"TerraformClusterIdentity": {
		"spec": {
			rule("(has(self.type) && self.type != 'Secret') || has(self.secretRef)", "secretRef is required when type is Secret"),
		},
		"spec.allowedNamespaces": {
			rule("has(self.list) || has(self.selector)", "list or selector is required"),
		},
	},
	"TerraformMachineTemplate": {
		"status.capacitySource": {
			rule("!has(self.source) || self.source != 'Image' || has(self.image)", "image is required when source is Image"),
		},
	},
}

func rule(expression, message string) object {
	return object{"rule": expression, "message": message}
}

func immutable(name string) object {
	self, old := "self."+name, "oldSelf."+name
	return rule("has("+self+") == has("+old+") && (!has("+self+") || "+self+" == "+old+")", name+" is immutable")
}

func anyObject() object {
	return object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
}

func quantities() object {
	return object{"type": "object", "additionalProperties": object{
		"anyOf": []object{{"type": "integer"}, {"type": "string"}}, "x-kubernetes-int-or-string": true, "pattern": quantity,
	}}
}
