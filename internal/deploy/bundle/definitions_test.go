package bundle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// schemaOf is the definition of Things whose spec has these fields, in each of these versions.
func (r *rig) schemaOf(fields string, versions ...string) string {
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
`, r.group())
	for i, version := range versions {
		var properties []string
		for field := range strings.FieldsSeq(fields) {
			properties = append(properties, field+": {type: string}")
		}
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: "+
			"{spec: {type: object, properties: {%s}}}}}}\n", version, i == len(versions)-1, strings.Join(properties, ", "))
	}
	return text
}

// chartWith is a chart with a definition in crds/, and a Thing with these fields if there are any.
func (r *rig) chartWith(definition, version, fields string) []fleet.BundleResource {
	files := []fleet.BundleResource{file("crds/thing.yaml", definition)}
	if fields != "" {
		files = append(files, file("templates/thing.yaml", fmt.Sprintf(
			"apiVersion: %s/%s\nkind: Thing\nmetadata: {name: one}\nspec: {%s}\n", r.group(), version, fields)))
	}
	return chartOf(files...)
}

func withCRDs(setting string) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{CRDs: setting}}
}

// theDefinition returns the definition of Things on the member.
func (r *rig) theDefinition() *unstructured.Unstructured {
	r.t.Helper()
	found := r.object(definitions, "", "things."+r.group())
	r.check(r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(found), found))
	return found
}

// field returns a field of the Thing on the member.
func (r *rig) field(version, name string) string {
	r.t.Helper()
	kind := definitions
	kind.Group, kind.Version, kind.Kind = r.group(), version, "Thing"
	found := r.object(kind, r.target, "one")
	r.check(r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(found), found))
	value, _, err := unstructured.NestedString(found.Object, "spec", name)
	r.check(err)
	return value
}

// differs waits until a deployment has a message in the condition CRDsCurrent, or none if it is
// empty.
func (r *rig) differs(name string, parts ...string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("CRDsCurrent of %s says %q", name, parts), func() error {
		found := kube.FindCondition(r.get(name).Status.Conditions, fleet.ConditionCRDsCurrent)
		if (found != nil) != (len(parts) > 0) {
			return fmt.Errorf("it is %+v", found)
		}
		for _, part := range parts {
			if found.Reason != reasons.CRDsDiffer || !strings.Contains(found.Message, part) {
				return fmt.Errorf("it is %+v", found)
			}
		}
		return nil
	})
}

func TestADefinitionOfAChartThatIsLeftIsNamed(t *testing.T) {
	r := newRig(t)
	run := r.start()
	old, next := r.schemaOf("a", "v1"), r.schemaOf("a b", "v1")
	r.deploy("web", fleet.BundleDeploymentOptions{}, r.chartWith(old, "v1", "a: x")...)
	r.differs("web")
	first := r.theDefinition()
	if release.NameOf(first) != "web" {
		t.Errorf("the definition has annotations %v", first.GetAnnotations())
	}
	crd := "CustomResourceDefinition things." + r.group()
	r.place("web", fleet.BundleDeploymentOptions{}, r.chartWith(next, "v1", "a: w")...)
	r.until("web", fleet.StateReady, "not as in crds/", crd, "helm.crds is Create")
	r.differs("web", crd, "set it to CreateReplace")
	if is := r.theDefinition(); is.GetGeneration() != first.GetGeneration() {
		t.Error("the definition was changed")
	}
	r.place("web", fleet.BundleDeploymentOptions{}, r.chartWith(next, "v1", "a: w, b: z")...)
	r.until("web", fleet.StateErrApplied, crd, "helm.crds is Create", "CreateReplace")

	// An administrator brings the definition up to date.
	r.patchAs("kubectl-apply", first, fmt.Sprintf(`{"spec":%s}`, specJSON(t, next)))
	r.until("web", fleet.StateReady)
	r.differs("web")
	run.stop()
	r.start()
	r.patchAs("kubectl-apply", first, fmt.Sprintf(`{"spec":%s}`, specJSON(t, old)))
	r.differs("web", crd)
	r.deleteCRD("things." + r.group())
	r.differs("web", "deleted on the member", crd)
}

func TestAnUpgradeBringsNewFieldsOfTheDefinitionsOfItsChart(t *testing.T) {
	r := newRig(t)
	r.start()
	replaces := withCRDs(fleet.CRDsCreateReplace)
	r.deploy("web", replaces, r.chartWith(r.schemaOf("a", "v1"), "v1", "a: x")...)
	before := r.get("web").Status.Release
	r.deploy("web", replaces, r.chartWith(r.schemaOf("a b", "v1"), "v1", "a: x, b: w")...)
	if before != r.target+"/web:1" || r.get("web").Status.Release != r.target+"/web:2" || r.field("v1", "b") != "w" {
		t.Errorf("release %s became %s", before, r.get("web").Status.Release)
	}
	// A version is new.
	r.deploy("web", replaces, r.chartWith(r.schemaOf("a b c", "v1", "v2"), "v2", "a: x, c: z")...)
	if got := r.get("web").Status.Release; got != r.target+"/web:3" || r.field("v2", "c") != "z" {
		t.Errorf("the release is %s", got)
	}
	// v1 has stored objects.
	r.place("web", replaces, r.chartWith(r.schemaOf("a b c", "v2"), "v2", "a: x, c: z")...)
	r.until("web", fleet.StateErrApplied, "things."+r.group(), "no longer serves v1", "--subresource=status")
	if condition := kube.FindCondition(r.get("web").Status.Conditions, fleet.ConditionDeployed); condition.Reason != reasons.CRDConflict {
		t.Errorf("the reason is %s", condition.Reason)
	}
	r.check(r.kube.Status().Patch(t.Context(), r.theDefinition(),
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v2"]}}`))))
	r.deploy("web", replaces, r.chartWith(r.schemaOf("a c", "v2"), "v2", "a: x, c: z")...)
	if versions, _, err := unstructured.NestedSlice(r.theDefinition().Object, "spec", "versions"); err != nil || len(versions) != 1 {
		t.Errorf("the versions are %v", versions)
	}
	uid := r.theDefinition().GetUID()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("the release is gone", func() error {
		if left := r.revisions("web"); left > 0 {
			return fmt.Errorf("%d revisions are left", left)
		}
		return nil
	})
	if r.theDefinition().GetUID() != uid {
		t.Error("the definition went with its release")
	}
}

func TestADefinitionOfAnotherOwnerIsNotReplaced(t *testing.T) {
	r := newRig(t)
	r.start()
	old, next := r.schemaOf("a", "v1"), r.schemaOf("a b", "v1")
	r.deploy("first", fleet.BundleDeploymentOptions{}, file("Chart.yaml", "apiVersion: v2\nname: first\nversion: 1.0.0\n"),
		file("crds/thing.yaml", old), file("templates/first.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n"))
	first := r.theDefinition()
	takes := withCRDs(fleet.CRDsCreateReplace)
	takes.Helm.TakeOwnership = true
	r.place("web", takes, r.chartWith(next, "v1", "a: x")...)
	adopt := "meta.helm.sh/release-name=web meta.helm.sh/release-namespace=" + r.target
	r.until("web", fleet.StateErrApplied, "things."+r.group(), "belongs to release "+r.target+"/first", adopt)
	// Without a mark, but written by a user.
	r.patchAs("kubectl-edit", first, `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}},"spec":{"names":{"shortNames":["th"]}}}`)
	r.place("web", takes, r.chartWith(next, "v1", "a: w")...)
	r.until("web", fleet.StateErrApplied, "things."+r.group(), "belongs to field manager kubectl-edit")
	if r.uid(r.target, "web") != "" {
		t.Error("half of the Bundle was deployed")
	}
	// An installation leaves it as it is, which Helm does not.
	generation := r.theDefinition().GetGeneration()
	r.deploy("web", fleet.BundleDeploymentOptions{}, r.chartWith(next, "v1", "a: x")...)
	r.differs("web", "things."+r.group())
	if r.theDefinition().GetGeneration() != generation {
		t.Error("the definition was changed")
	}
	r.patchAs("kubectl-annotate", first, `{"metadata":{"annotations":{"meta.helm.sh/release-name":"web"}}}`)
	r.deploy("web", withCRDs(fleet.CRDsCreateReplace), r.chartWith(next, "v1", "a: x, b: w")...)
	r.differs("web")
}

func TestDefinitionsOfAChartAreSkipped(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", withCRDs(fleet.CRDsSkip), r.chartWith(r.schemaOf("a", "v1"), "v1", "a: x")...)
	r.until("web", fleet.StateErrApplied, "no matches for kind", "things."+r.group(), "helm.crds is Skip")
	r.untilGone(r.object(definitions, "", "things."+r.group()))
	confined := withCRDs(fleet.CRDsSkip)
	confined.TargetNamespace = r.target
	r.deploy("confined", confined, r.chartWith(r.schemaOf("a", "v1"), "v1", "")...)
	r.differs("confined")
}

func TestAnAccountReplacesNoDefinitionWithoutTheRight(t *testing.T) {
	r := newRig(t)
	r.start()
	r.account("team", "*")
	with := func(setting string) fleet.BundleDeploymentOptions {
		options := withCRDs(setting)
		options.ServiceAccount = "team"
		return options
	}
	old, next := r.schemaOf("a", "v1"), r.schemaOf("a b", "v1")
	r.deploy("web", withCRDs(""), r.chartWith(old, "v1", "")...)
	// What exists needs no right.
	r.deploy("web", with(fleet.CRDsCreate), r.chartWith(next, "v1", "")...)
	r.differs("web", "things."+r.group())
	r.place("web", with(fleet.CRDsCreateReplace), r.chartWith(next, "v1", "")...)
	r.until("web", fleet.StateErrApplied, "things."+r.group()+" of crds/ cannot be replaced", "forbidden",
		"system:serviceaccount:"+r.agent+":team", "helm.crds to Skip")
	r.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.agent + "-crds"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"create", "patch"},
	}}})
	r.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: r.agent + "-crds"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.agent + "-crds"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "team", Namespace: r.agent}},
	})
	r.until("web", fleet.StateReady)
	r.differs("web")
}

// specJSON returns the spec of a definition as JSON.
func specJSON(t *testing.T, definition string) string {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(definition), &object.Object); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
