package bundle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// group is one of kinds that only this test has.
func (r *rig) group() string { return r.target + ".example.com" }

// definitions are CustomResourceDefinitions.
var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

func (r *rig) definition() fleet.BundleResource { return r.definitionOf("things", "Thing") }

// definitionOf is the definition of one of these kinds.
func (r *rig) definitionOf(plural, kind string) fleet.BundleResource {
	return file("crd.yaml", fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: %[2]s, kind: %[3]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, r.group(), plural, kind))
}

func (r *rig) thing(name string) fleet.BundleResource {
	return file(name+".yaml", fmt.Sprintf("apiVersion: %s/v1\nkind: Thing\nmetadata: {name: %s}\n", r.group(), name))
}

func (r *rig) object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// goesWithItsBundle lets a Bundle take its definitions with it.
var goesWithItsBundle = fleet.BundleDeploymentOptions{DeleteCRDResources: true}

func TestAKindThatArrivesIsNoticed(t *testing.T) {
	for _, definitionFirst := range []bool{false, true} {
		for _, removeDefinitionFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("definition first %t, and removed first %t", definitionFirst, removeDefinitionFirst), func(t *testing.T) {
				r := newRig(t)
				run := r.start()
				// Something is delivered before, so that it is known what kinds there are.
				r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
				if definitionFirst {
					r.deploy("operator", goesWithItsBundle, r.definition())
				}
				r.place("things", fleet.BundleDeploymentOptions{}, r.thing("one"))
				if !definitionFirst {
					r.until("things", fleet.StateErrApplied, "no matches for kind")
					r.deploy("operator", goesWithItsBundle, r.definition())
				}
				begun := time.Now()
				r.until("things", fleet.StateReady)
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %s after the kind was there", took)
				}
				order := []string{"things", "operator"}
				if removeDefinitionFirst {
					order = []string{"operator", "things"}
				}
				for _, name := range order {
					r.check(r.kube.Delete(t.Context(), r.get(name)))
					r.untilRemoved(run, name)
				}
			})
		}
	}
}

func TestAReleaseWhoseKindIsGoneIsRemoved(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %t", restarted), func(t *testing.T) {
			r := newRig(t)
			run := r.start()
			r.place("operator", goesWithItsBundle, r.definition())
			r.deploy("things", fleet.BundleDeploymentOptions{}, r.thing("one"), configMap("web", "one"))
			r.deleteCRD("things." + r.group())
			if restarted {
				run.stop()
				run = r.start()
			}
			r.check(r.kube.Delete(t.Context(), r.get("things")))
			r.untilRemoved(run, "things")
			if r.uid(r.target, "web") != "" {
				t.Error("the rest of the release is left")
			}
			if !strings.Contains(run.lines(), "Release removed") {
				t.Error("the log does not say so")
			}
		})
	}
}

func TestAReleaseWhoseKindIsServedInAnotherVersionIsRemovedWithItsObjects(t *testing.T) {
	r := newRig(t)
	run := r.start()
	two := func(old bool) fleet.BundleResource {
		return file("crd.yaml", fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - {name: v1, served: %[2]t, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, r.group(), old))
	}
	r.deploy("operator", goesWithItsBundle, two(true))
	r.deploy("things", fleet.BundleDeploymentOptions{}, r.thing("one"))
	r.place("operator", goesWithItsBundle, two(false))
	r.eventually("the old version is not served", func() error {
		r.until("operator", fleet.StateReady)
		old := r.object(schema.GroupVersionKind{Group: r.group(), Version: "v1", Kind: "Thing"}, r.target, "one")
		if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(old), old); err == nil {
			return fmt.Errorf("it is")
		}
		return nil
	})
	r.check(r.kube.Delete(t.Context(), r.get("things")))
	r.untilRemoved(run, "things")
	r.untilGone(r.object(schema.GroupVersionKind{Group: r.group(), Version: "v2", Kind: "Thing"}, r.target, "one"))
}
