package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func ignoring(strategy placement.ApplyStrategy, pointers ...string) func(*placement.WorkSpec) {
	strategy.IgnoreDifferences = []placement.IgnoredFields{
		{Group: "apps", Kind: "Deployment", Name: "web", JSONPointers: pointers},
		{Kind: "Deployment", JSONPointers: []string{"/spec/template"}}, // of another group
	}
	return func(spec *placement.WorkSpec) { spec.ApplyStrategy = &strategy }
}

// TestIgnoredFieldsAreLeftToOthers changes two fields on the member more often than an object is
// corrected without a delay.
func TestIgnoredFieldsAreLeftToOthers(t *testing.T) {
	for name, strategy := range map[string]placement.ApplyStrategy{
		"by default":             {},
		"unless it has drifted":  {Type: placement.ApplyServerSide, WhenToApply: placement.ApplyIfNotDrifted},
		"with a full comparison": {WhenToApply: placement.ApplyIfNotDrifted, ComparisonOption: placement.CompareFully},
		"with a three-way merge": {Type: placement.ApplyClientSide},
		"with force on the server": {
			Type: placement.ApplyServerSide, ServerSideApplyConfig: &placement.ServerSideApplyConfig{ForceConflicts: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			deployment := func(label string) string {
				return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: fleet-member-NAME}, spec: {replicas: 1, " +
					"selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, v: " + label +
					"}}, spec: {containers: [{name: c, image: i}]}}}}"
			}
			pointers := []string{"/spec/replicas", "/spec/template/spec/containers/0/image", "/metadata/annotations/example.com~1seen"}
			r.applied(r.place("a", ignoring(strategy, pointers...), deployment("a")))
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "web"}}
			is := func(replicas int32, image, label string) {
				t.Helper()
				r.eventually(fmt.Sprintf("the Deployment has %d replicas, image %s, label %s", replicas, image, label), func() error {
					err := r.Get(t.Context(), client.ObjectKeyFromObject(web), web)
					image := web.Spec.Template.Spec.Containers[0].Image == image
					if err == nil && (*web.Spec.Replicas != replicas || !image || web.Spec.Template.Labels["v"] != label) {
						err = fmt.Errorf("it has %d, %+v", *web.Spec.Replicas, web.Spec.Template)
					}
					return err
				})
			}
			is(1, "i", "a")
			for i := range 8 {
				r.patchAs("updater", web, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/seen":"%d"}},"spec":{"replicas":%d}}`, i, 2+i))
			}
			r.check(r.Patch(t.Context(), web, client.RawPatch("application/strategic-merge-patch+json",
				[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i2"}]}}}}`)), client.FieldOwner("updater")))
			r.applied(r.place("a", ignoring(strategy, pointers...), deployment("b")))
			is(9, "i2", "b")
			if web.Annotations["example.com/seen"] != "7" {
				t.Errorf("the annotations are %v", web.Annotations)
			}
		})
	}
}

func TestAFieldThatIsNoLongerIgnoredIsApplied(t *testing.T) {
	r := newRig(t)
	const config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: fleet-member-NAME}, data: {a: one, b: one}}"
	rules := func(pointers ...string) func(*placement.WorkSpec) {
		return func(spec *placement.WorkSpec) {
			spec.ApplyStrategy = &placement.ApplyStrategy{IgnoreDifferences: []placement.IgnoredFields{
				{Kind: "ConfigMap", JSONPointers: pointers},
			}}
		}
	}
	r.applied(r.place("a", rules("/data/a"), config))
	web := r.object(config)
	web.SetNamespace(r.namespace)
	r.patchAs("user", web, `{"data":{"a":"two","b":"two"}}`)
	has := func(want string) {
		t.Helper()
		r.eventually("the data is "+want, func() error {
			r.refresh(web)
			if got := fmt.Sprint(web.Object["data"]); got != want {
				return errors.New(got)
			}
			return nil
		})
	}
	has("map[a:two b:one]")
	r.applied(r.place("a", func(spec *placement.WorkSpec) { spec.ApplyStrategy = nil }, config))
	has("map[a:one b:one]")

	work := r.place("a", rules("/metadata/labels"), config)
	if got := r.untilOf(work, 0, placement.ConditionApplied, reasons.InvalidManifest); !strings.Contains(got.Message,
		"ignoreDifferences of applyStrategy names /metadata/labels: the field identifies the object") {
		t.Errorf("the message is %s", got.Message)
	}
}

func TestIgnoredFieldsAreNotReportedAsDifferences(t *testing.T) {
	r := newRig(t)
	const config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: fleet-member-NAME}, data: {a: one, b: one}}"
	web := r.object(strings.ReplaceAll(config, "one", "two"))
	r.check(r.Create(t.Context(), web))
	reports := func(pointers ...string) func(*placement.WorkSpec) {
		return func(spec *placement.WorkSpec) {
			spec.ApplyStrategy = &placement.ApplyStrategy{
				Type: placement.ApplyReportDiff, ComparisonOption: placement.CompareFully,
				IgnoreDifferences: []placement.IgnoredFields{{Kind: "ConfigMap", JSONPointers: pointers}},
			}
		}
	}
	work := r.place("a", reports("/data/a"), config)
	r.eventually("only the other field differs", func() error {
		r.refresh(work)
		if len(work.Status.ManifestConditions) == 0 || work.Status.ManifestConditions[0].DiffDetails == nil {
			return fmt.Errorf("the status is %+v", work.Status)
		}
		found := work.Status.ManifestConditions[0].DiffDetails.ObservedDiffs
		if len(found) != 1 || found[0].Path != "/data/b" {
			return fmt.Errorf("the differences are %+v", found)
		}
		return nil
	})
}
