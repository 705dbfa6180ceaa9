package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - {name: main, image: a, args: [x]}
      - {name: side, image: b}
`

func TestAPointerLeadsToAField(t *testing.T) {
	for pointer, want := range map[string]string{
		"/spec/replicas":                                        "",
		"/spec/template/spec/containers/1/image":                "",
		"/spec/template/spec/containers":                        "",
		"/metadata/annotations/example.com~1checked":            "",
		"/metadata/labels/app":                                  "",
		"/spec/paused/below":                                    "", // the manifest leaves it out
		"/spec/template/spec/containers/2/image":                "the list of the manifest has 2 entries, and none with number 2",
		"/spec/template/spec/containers/-1/image":               "none with number -1",
		"/spec/template/spec/containers/main/image":             "none with number main",
		"/spec/template/spec/containers/0/args/0":               "entry 0 of the list has no name: name the whole list",
		"/spec/template/spec/containers/0":                      "it is an entry of a list",
		"spec.replicas":                                         "it is no JSON pointer to a field",
		"/":                                                     "it is no JSON pointer to a field",
		"/kind":                                                 "identifies the object",
		"/metadata":                                             "identifies the object",
		"/metadata/name":                                        "identifies the object",
		"/metadata/ownerReferences":                             "identifies the object",
		"/metadata/labels":                                      "identifies the object",
		"/metadata/labels/kubernetes-fleet.io~1parent-work":     "identifies the object",
		"/metadata/annotations/kubernetes-fleet.io~1spec-hash":  "identifies the object",
		"/metadata/annotations/muster~1anything":                "identifies the object",
		"/metadata/annotations/placement.kubernetes-fleet.io~1": "identifies the object",
	} {
		_, err := Ignore(object(t, deployment), []string{pointer})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), pointer)) {
			t.Errorf("%s: %v, want %q", pointer, err, want)
		}
	}
}

func TestIgnoredFieldsAreTheMembers(t *testing.T) {
	member := object(t, strings.NewReplacer("replicas: 1", "replicas: 7", "image: b", "image: b2").Replace(deployment))
	if err := unstructured.SetNestedField(member.Object, "yes", "metadata", "annotations", "example.com/checked"); err != nil {
		t.Fatal(err)
	}
	wanted := object(t, deployment)
	ignored, err := Ignore(wanted, []string{
		"/spec/replicas", "/spec/template/spec/containers/1/image", "/metadata/annotations/example.com~1checked", "/spec/paused",
	})
	if err != nil {
		t.Fatal(err)
	}
	yielded := wanted.DeepCopy()
	Yield(yielded, member, "us", nil, ignored)
	want := object(t, strings.NewReplacer("replicas: 1", "replicas: 7", "image: b", "image: b2").Replace(deployment))
	if diff := cmp.Diff(want.Object, yielded.Object); diff != "" {
		t.Errorf("yielded (-want +got):\n%s", diff)
	}
	filled := wanted.DeepCopy()
	Fill(filled, member, nil, ignored)
	if diff := cmp.Diff(member.Object, filled.Object); diff != "" {
		t.Errorf("filled (-want +got):\n%s", diff)
	}
}
