package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

func applying(strategy placement.ApplyStrategy) func(*placement.WorkSpec) {
	return func(spec *placement.WorkSpec) { spec.ApplyStrategy = &strategy }
}

// there makes a ConfigMap that was there before.
func (r *rig) there(name string, data map[string]string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	r.t.Helper()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, OwnerReferences: owners}, Data: data}
	r.check(r.Create(context.Background(), made, client.FieldOwner("kubectl-create")))
	return made
}

func TestWhatCannotBeAppliedIsNamedWithTheReason(t *testing.T) {
	r := newRig(t)
	owner := r.there("owner", nil)
	owned := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}
	r.there("old", map[string]string{"a": "old"})
	r.there("same", map[string]string{"a": "b"})
	r.there("agreed", map[string]string{"a": "b"})
	r.there("forced", map[string]string{"a": "old"})
	r.there("more", map[string]string{"a": "b", "more": "x"})
	r.there("owned", nil, owned)
	r.applied(r.place("first", nil, configMap("shared", "a: b")))
	deployment := func(app string) string {
		return strings.ReplaceAll(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: fleet-member-NAME}, spec: {replicas: 0,
			selector: {matchLabels: {app: APP}}, template: {metadata: {labels: {app: APP}}, spec: {containers: [{name: c, image: i}]}}}}`, "APP",
			app)
	}
	r.applied(r.place("immutable", nil, deployment("a")))
	never := placement.ApplyStrategy{WhenToTakeOver: placement.TakeOverNever}
	ifNoDiff := placement.ApplyStrategy{WhenToTakeOver: placement.TakeOverIfNoDiff}
	polite := placement.ApplyStrategy{Type: placement.ApplyServerSide}
	for _, test := range []struct {
		name, work string
		strategy   placement.ApplyStrategy
		manifest   string
		reason     string
		message    string
	}{
		{
			"no kind", "a", placement.ApplyStrategy{}, "{apiVersion: v1, metadata: {name: x}}", reasons.InvalidManifest,
			"it has no apiVersion or no kind",
		},
		{
			"no name", "b", placement.ApplyStrategy{}, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: fleet-member-NAME}}",
			reasons.InvalidManifest, "it has no metadata.name",
		},
		{
			"no namespace", "c", placement.ApplyStrategy{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", reasons.InvalidManifest,
			"it has no metadata.namespace",
		},
		{
			"a list", "d", placement.ApplyStrategy{}, "{apiVersion: v1, kind: ConfigMapList, items: []}", reasons.InvalidManifest,
			"every object needs a manifest of its own",
		},
		{
			"unknown field", "e", placement.ApplyStrategy{},
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: fleet-member-NAME}, " +
				"paint: red}", reasons.Rejected, ".paint: field not declared in schema",
		},
		{"immutable field", "immutable", placement.ApplyStrategy{}, deployment("b"), reasons.ImmutableField, "spec.selector"},
		{"taken over never", "f", never, configMap("old", "a: b"), reasons.NotTakenOver, "it was there before"},
		{"taken over if the same, and it is not", "g", ifNoDiff, configMap("old", "a: b"), reasons.NotTakenOver, `/data/a is "old" and not "b"`},
		{"taken over if the same, and it is", "h", ifNoDiff, configMap("same", "a: b"), reasons.ManifestApplied, ""},
		{
			"owned by something else", "i", placement.ApplyStrategy{}, configMap("owned", "a: b"), reasons.OwnedByOthers,
			"it is owned by ConfigMap owner",
		},
		{
			"owned by something else too", "j", placement.ApplyStrategy{AllowCoOwnership: true}, configMap("owned", "a: b"),
			reasons.ManifestApplied, "",
		},
		{
			"another Work's", "k", placement.ApplyStrategy{}, configMap("shared", "a: b"), reasons.AppliedByAnotherWork,
			"-first has applied it already: take it out",
		},
		{"another Work's too", "l", placement.ApplyStrategy{AllowCoOwnership: true}, configMap("shared", "a: b"), reasons.ManifestApplied, ""},
		{
			"another Work's with other content", "m", placement.ApplyStrategy{AllowCoOwnership: true}, configMap("shared", "a: c"),
			reasons.AppliedByAnotherWork, "with other content",
		},
		{"others own fields", "n", polite, configMap("old", "a: b"), reasons.FieldConflict, `.data.a ("kubectl-create" using v1)`},
		{
			"taken over if it has nothing else, and it has", "o", placement.ApplyStrategy{WhenToTakeOver: placement.TakeOverIfNoDiff,
				ComparisonOption: placement.CompareFully}, configMap("more", "a: b"), reasons.NotTakenOver, `/data/more is there`,
		},
		{"taken over if it says the same, whatever else", "p", ifNoDiff, configMap("more", "a: b"), reasons.ManifestApplied, ""},
		{"others own fields that are the same", "q", polite, configMap("agreed", "a: b"), reasons.ManifestApplied, ""},
		{
			"others own fields, and lose them", "r", placement.ApplyStrategy{Type: placement.ApplyServerSide,
				ServerSideApplyConfig: &placement.ServerSideApplyConfig{ForceConflicts: true}}, configMap("forced", "a: b"),
			reasons.ManifestApplied, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := *r
			r.t = t
			work := r.place(test.work, applying(test.strategy), test.manifest)
			got := r.untilOf(work, 0, placement.ConditionApplied, test.reason)
			if !strings.Contains(got.Message, test.message) {
				t.Errorf("the message is %q", got.Message)
			}
			if test.reason != reasons.ManifestApplied {
				if c := r.until(work, placement.ConditionApplied, placement.ReasonSomeNotApplied); !strings.HasPrefix(c.Message,
					"1 of 1 not applied: manifest 0") {
					t.Errorf("of the Work it says %q", c.Message)
				}
			}
		})
	}
	taken := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-g"}}
	r.untilDiffs(taken, 0, placement.PatchDetail{Path: "/data/a", ValueInHub: "b", ValueInMember: "old"})
	if old := r.mustConfigMap("old"); old.Data["a"] != "old" || len(old.OwnerReferences) > 0 {
		t.Errorf("what was not to be taken over is %+v", old)
	}
	// An object of two Works goes with the last of them.
	for _, name := range []string{"first", "l"} {
		work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-" + name}}
		shared := r.mustConfigMap("shared")
		if shared.DeletionTimestamp != nil {
			t.Errorf("it is being deleted before Work %s is", name)
		}
		r.check(r.Delete(context.Background(), work))
		r.untilGone("Work "+name, work)
	}
	r.eventually("one of those that waited for it has applied it", func() error {
		shared, err := r.configMap("shared")
		if err == nil && !strings.HasSuffix(shared.OwnerReferences[0].Name, "-k") && !strings.HasSuffix(shared.OwnerReferences[0].Name, "-m") {
			err = fmt.Errorf("it is owned by %v", shared.OwnerReferences)
		}
		return err
	})
}

func TestDriftIsReportedWhereItIsNotToBeCorrected(t *testing.T) {
	r := newRig(t)
	strategy := applying(placement.ApplyStrategy{WhenToApply: placement.ApplyIfNotDrifted})
	work := r.place("work", strategy, configMap("one", "a: b, c: d"))
	r.applied(work)
	r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"] = "edited" })
	for what, change := range map[string]func(){
		"at once":                   func() {},
		"by an agent that is new":   func() { r.halt(); r.start() },
		"when the manifest changes": func() { r.place("work", strategy, configMap("one", "a: b, c: e")) },
	} {
		change()
		if c := r.untilOf(work, 0, placement.ConditionApplied, reasons.Drifted); !strings.Contains(strings.ReplaceAll(c.Message, "/", "."),
			".data.a") {
			t.Errorf("%s: condition %+v", what, c)
		}
		if one := r.mustConfigMap("one"); one.Data["a"] != "edited" {
			t.Errorf("%s: it was changed: %v", what, one.Data)
		}
	}
	r.untilDrifts(work, placement.PatchDetail{Path: "/data/a", ValueInHub: "b", ValueInMember: "edited"}, placement.PatchDetail{
		Path: "/data/c", ValueInHub: "e", ValueInMember: "d",
	})
	r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"] = "b" })
	r.applied(work)
	r.untilData("one", "a", "b")
}

func TestObjectsThatKubeFleetAppliedAreTakenUp(t *testing.T) {
	r := newRig(t)
	r.halt()
	// KubeFleet's agent creates and updates under the same manager, and keeps what it
	// applied in an annotation.
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: "one", Annotations: map[string]string{annotationHash: "x", annotationLastApplied: "{}"},
		},
		Data: map[string]string{"a": "b", "dropped": "since"},
	}
	r.check(r.Create(context.Background(), made, client.FieldOwner(fieldOwner)))
	work := r.place("work", applying(placement.ApplyStrategy{Type: placement.ApplyClientSide}), configMap("one", "a: b"))
	r.start()
	r.applied(work)
	r.eventually("what the manifest does not have is gone", func() error {
		one := r.mustConfigMap("one")
		if _, there := one.Data["dropped"]; there || one.Annotations[annotationLastApplied] != "" {
			return fmt.Errorf("it is %v, %v", one.Data, one.Annotations)
		}
		return nil
	})
	if one := r.mustConfigMap("one"); one.UID != made.UID {
		t.Error("it was replaced")
	}
}

func TestAMemberOutOfResourcesSaysWhatIsShort(t *testing.T) {
	r := newRig(t)
	full := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")}},
	}
	r.check(r.Create(context.Background(), full))
	r.eventually("the quota counts", func() error {
		if r.refresh(full); full.Status.Hard == nil {
			return errors.New("not yet")
		}
		return nil
	})
	work := r.place("work", nil,
		configMap("one", "a: b"), `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: fleet-member-NAME}, spec: {replicas: 1,
		selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i, resources: `+
			`{requests: {cpu: 1k}}}]}}}}`)
	c := r.untilOf(work, 0, placement.ConditionApplied, reasons.QuotaExceeded)
	if !strings.Contains(c.Message, "exceeded quota: full") || !strings.HasSuffix(c.Message, ": make room on the member, or raise the quota") {
		t.Errorf("the message is %q", c.Message)
	}
	// What is applied and finds no node is not available.
	if c := r.untilOf(work, 1, placement.ConditionAvailable, reasons.ManifestNotAvailableYet); !strings.Contains(c.Message, "0/1") {
		t.Errorf("the message is %q", c.Message)
	}
}
