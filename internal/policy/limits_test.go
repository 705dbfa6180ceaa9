package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/api/crds"
)

// maxMemberWrites is how many characters of JSON a member may write into one object at most.
const maxMemberWrites = 256 << 10

// written is a part of a kind that a member or a tenant writes, all of which has to have maxima.
type written struct {
	kind string
	// path of the part, empty for the whole object but its metadata.
	path string
	// free are paths within it that have no maximum, each with the reason.
	free map[string]string
	// large says why the part may be larger than maxMemberWrites although members write it.
	large string
}

// freeForm is what no schema bounds, since it has none. An API server reads at most 3 MiB of a
// request, and etcd stores at most 1.5 MiB.
const freeForm = "an object of any shape: neither a schema nor an expression of an admission policy can measure it"

// writtenByMembers lists the parts that agents write, including the agents of Rancher Fleet and
// KubeFleet. The API server alone bounds labels and annotations (annotations together 256 KiB, the
// object 1.5 MiB). An agent may set them on a ClusterRegistration and on its Works.
var writtenByMembers = []written{
	{
		kind: "InternalMemberCluster", path: "status",
		large: "a value of a property may be a bundle of certificates, and no agent has many such values. Of a report of more than 256 KiB the " +
			"hub keeps the health, and says so",
	},
	{kind: "ClusterRegistration", path: "spec"},
	{kind: "Cluster", path: "status.agent"},
	{
		kind: "BundleDeployment", path: "status",
		free: map[string]string{"status": "fields that agents of Rancher Fleet write and we do not list are kept"},
		large: "an agent of Rancher Fleet lists every resource of a release, 188 bytes each for the rules of a monitoring chart, so that 1,400 " +
			"of them make 256 KiB, and patches of what was changed are as long as the object. Our own agent lists 500 and cuts patches at 2 KiB",
	},
	{
		kind: "Work", path: "status",
		free: map[string]string{
			"status":                      "fields that KubeFleet's agents write and we do not list are kept",
			"status.manifestConditions[]": "likewise", "status.manifestConditions[].driftDetails": "likewise",
			"status.manifestConditions[].diffDetails":                   "likewise",
			"status.manifestConditions[].driftDetails.observedDrifts[]": "likewise",
			"status.manifestConditions[].diffDetails.observedDiffs[]":   "likewise",
		},
		large: "an entry for every manifest, 581 bytes each for the same rules with two conditions, so that 450 of them make 256 KiB. The hub " +
			"cuts differences before it keeps them",
	},
}

// writtenByTenants are what users of a workspace or namespace write.
var writtenByTenants = []written{
	{kind: "Cluster", path: "spec", free: map[string]string{"spec.templateValues": freeForm}},
	{kind: "ClusterGroup", path: "spec"},
	{kind: "ClusterRegistrationToken", path: "spec"},
	{kind: "BundleNamespaceMapping", path: "bundleSelector"},
	{kind: "BundleNamespaceMapping", path: "namespaceSelector"},
	{kind: "Bundle", path: "spec", free: map[string]string{
		"spec.helm.values": freeForm, "spec.targets[].helm.values": freeForm, "spec.helmOpOptions": freeForm,
	}},
	{kind: "MemberCluster", path: "spec"},
	{
		kind: "ClusterResourcePlacement", path: "spec", free: map[string]string{
			"spec.strategy.reportBackStrategy": "an option of KubeFleet's that is kept and not used",
		},
	},
	{
		kind: "ResourcePlacement", path: "spec", free: map[string]string{
			"spec.strategy.reportBackStrategy": "an option of KubeFleet's that is kept and not used",
		},
	},
	{
		kind: "ClusterResourceOverride", path: "spec", free: map[string]string{
			"spec.policy.overrideRules[].jsonPatchOverrides[].value": freeForm,
		},
	},
	{kind: "ResourceOverride", path: "spec", free: map[string]string{"spec.policy.overrideRules[].jsonPatchOverrides[].value": freeForm}},
	{kind: "ClusterResourceEnvelope", path: "data", free: map[string]string{"data{}": freeForm}},
	{kind: "ResourceEnvelope", path: "data", free: map[string]string{"data{}": freeForm}},
	{kind: "ClusterResourcePlacementEviction", path: "spec"},
	{kind: "ClusterResourcePlacementDisruptionBudget", path: "spec"},
	{kind: "StagedUpdateRun", path: "spec"}, {kind: "ClusterStagedUpdateRun", path: "spec"},
	{kind: "StagedUpdateStrategy", path: "spec"}, {kind: "ClusterStagedUpdateStrategy", path: "spec"},
	{kind: "ApprovalRequest"}, {kind: "ClusterApprovalRequest"},
}

func TestWhatMembersWriteIsBounded(t *testing.T) {
	for _, part := range writtenByMembers {
		part.each(t, func(t *testing.T, m *measure, size int64) {
			if len(m.keys) > 0 {
				t.Errorf("the keys of %s have no maximal length: add a rule with size(key)", strings.Join(m.keys, ", "))
			}
			t.Logf("at most %d characters of JSON", size)
			if size > maxMemberWrites && part.large == "" {
				t.Errorf("it may have %d characters of JSON, more than %d", size, maxMemberWrites)
			}
			if size <= maxMemberWrites && part.large != "" {
				t.Errorf("it has at most %d characters of JSON and needs no excuse", size)
			}
		})
	}
}

func TestWhatTenantsWriteIsBounded(t *testing.T) {
	for _, part := range writtenByTenants {
		part.each(t, func(*testing.T, *measure, int64) {})
	}
}

// each measures the part in every version of its kind.
func (w written) each(t *testing.T, more func(*testing.T, *measure, int64)) {
	definition := definitionOf(t, w.kind)
	for _, version := range definition.Spec.Versions {
		t.Run(fmt.Sprintf("%s.%s %s", w.kind, version.Name, w.path), func(t *testing.T) {
			m := &measure{}
			schema := *version.Schema.OpenAPIV3Schema
			if w.path == "" {
				delete(schema.Properties, "apiVersion")
				delete(schema.Properties, "kind")
			} else {
				for name := range strings.SplitSeq(w.path, ".") {
					schema = schema.Properties[name]
				}
			}
			size := m.size(schema, w.path)
			for _, path := range m.unbounded {
				if w.free[path] == "" {
					t.Errorf("%s has no maximum: give it a type of api/limits or a marker, or say here why not", path)
				}
			}
			for path := range w.free {
				if !slices.Contains(m.unbounded, path) {
					t.Errorf("%s is not unbounded and needs no excuse", path)
				}
			}
			more(t, m, size)
		})
	}
}

// definitionOf reads the generated CRD of a kind.
func definitionOf(t *testing.T, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	entries, err := crds.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := crds.FS.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &definition); err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		if definition.Spec.Names.Kind == kind {
			return &definition
		}
	}
	t.Fatalf("there is no CRD of the kind %s", kind)
	return nil
}

// measure computes how large what a schema admits may be, and where it has no maximum.
type measure struct {
	unbounded []string
	// keys are the paths of maps whose keys may have any length.
	keys []string
}

// keyLength finds the longest key in a rule.
var keyLength = regexp.MustCompile(`^self\.all\(key, size\(key\) <= (\d+)\)$`)

// size is how many characters JSON that the schema admits has at most, not counting what is
// unbounded.
func (m *measure) size(schema apiextensionsv1.JSONSchemaProps, path string) int64 {
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields {
		m.unbounded = append(m.unbounded, path)
	}
	switch {
	case schema.XIntOrString, schema.Type == "string":
		return m.text(schema, path)
	case schema.Type == "array":
		return 2 + m.times(schema.MaxItems, path)*(1+m.size(*schema.Items.Schema, path+"[]"))
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return 2 + m.times(schema.MaxProperties, path)*(m.key(schema, path)+4+m.size(*schema.AdditionalProperties.Schema, path+"{}"))
	case schema.Type == "object":
		size := int64(2)
		for name, property := range schema.Properties {
			size += int64(len(name)) + 4 + m.size(property, path+"."+name)
		}
		return size
	}
	return 24 // a number, true or false
}

// text is the longest text, with its quotes.
func (m *measure) text(schema apiextensionsv1.JSONSchemaProps, path string) int64 {
	if len(schema.Enum) > 0 {
		longest := 0
		for _, value := range schema.Enum {
			longest = max(longest, len(value.Raw))
		}
		return int64(longest)
	}
	return 2 + m.times(schema.MaxLength, path)
}

// times is a maximum, which should be there.
func (m *measure) times(limit *int64, path string) int64 {
	if limit == nil {
		m.unbounded = append(m.unbounded, path)
		return 0
	}
	return *limit
}

// key is the longest key of a map.
func (m *measure) key(schema apiextensionsv1.JSONSchemaProps, path string) int64 {
	for _, rule := range schema.XValidations {
		if found := keyLength.FindStringSubmatch(rule.Rule); found != nil {
			length, err := strconv.ParseInt(found[1], 10, 64)
			if err == nil {
				return length
			}
		}
	}
	m.keys = append(m.keys, path)
	return 0
}
