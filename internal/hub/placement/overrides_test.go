package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
)

// overriding adds a ClusterResourceOverride of the ConfigMap "settings", or of another object.
func overriding(t *testing.T, name, rules string) func(*observed) {
	t.Helper()
	cro := &placement.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "cro", Generation: 1}}
	cro.Spec.ClusterResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: name}}
	if err := yaml.UnmarshalStrict([]byte("overrideRules: "+rules), &cro.Spec.Policy); err != nil {
		t.Fatal(err)
	}
	return func(o *observed) {
		o.resources.Objects = o.selected.Objects
		o.overrides = override.Choose([]override.Override{override.OfCluster(cro)}, o.key, o.resources.Objects)
	}
}

func TestOverridesAreRolledOutLikeAnyChangeAndFailAlone(t *testing.T) {
	const (
		all     = "[{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [%]}]"
		byName  = `{op: replace, path: /data/a, value: "${MEMBER-CLUSTER-NAME}"}`
		byLabel = `{op: replace, path: /data/a, value: "${MEMBER-CLUSTER-LABEL-KEY-zone}"}`
	)
	onlyB := "[{clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {only: b}}}]}, overrideType: Delete}]"
	labelled := func(o *observed) { o.members[1].Labels = map[string]string{"env": "prod", "only": "b", "zone": "z"} }
	for _, c := range []struct {
		name                    string
		world                   observed
		write, waiting, blocked string
		says                    string
	}{
		{
			"one at a time", world(t, on(t, "a", "b"), overriding(t, "settings", strings.Replace(all, "%", byName, 1))),
			"a", "b", "", "True OverriddenSucceeded",
		},
		{
			"whom they change nothing for is left alone", world(t, on(t, "a", "b"), labelled, overriding(t, "settings", onlyB)),
			"b", "", "", "True OverriddenSucceeded",
		},
		{
			"what they do not select", world(t, on(t, "a", "b"), overriding(t, "others", strings.Replace(all, "%", byName, 1))),
			"", "", "", "True NoOverrideSpecified",
		},
		{
			"whoever lacks a label keeps what it has", world(t, on(t, "a", "b"), labelled,
				overriding(t, "settings", strings.Replace(all, "%", byLabel, 1))), "b", "", "a", "False OverriddenFailed",
		},
		{
			"and gets nothing if it has nothing", world(t, labelled, overriding(t, "settings", strings.Replace(all, "%", byLabel, 1))),
			"b", "", "a", "False OverriddenFailed",
		},
	} {
		d := decide(c.world)
		var blocked []string
		for namespace := range d.overridden {
			if d.overriddenCondition(namespace).status == metav1.ConditionFalse {
				blocked = append(blocked, strings.TrimPrefix(namespace, "ns-"))
			}
		}
		got := fmt.Sprintf("%s/%s/%s", listNames(d.plan.write), listNames(d.plan.waiting), strings.Join(blocked, ", "))
		if want := c.write + "/" + c.waiting + "/" + c.blocked; got != want {
			t.Errorf("%s: written/waiting/blocked are %s, want %s", c.name, got, want)
		}
		status := describe(c.world, d, nil, now)
		for _, condition := range status.Conditions {
			if condition.Type == "ClusterResourcePlacementOverridden" && string(condition.Status)+" "+condition.Reason != c.says {
				t.Errorf("%s: the status says %+v, want %s", c.name, condition, c.says)
			}
		}
		if d.desired.hash != decide(world(t, on(t, "a"))).desired.hash {
			t.Errorf("%s: the index of the resources counts overrides", c.name)
		}
	}
}

func TestWhatOverridesMadeOfAWorkIsWhatItShouldBeUntilTheyChange(t *testing.T) {
	rules := `[{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: replace, path: /data/a, value: x}]}]`
	o := world(t, on(t, "a", "b"), overriding(t, "settings", rules))
	d := decide(o)
	for _, m := range []string{"a", "b"} {
		desired, err := o.complete(d, "ns-"+m)
		if err != nil {
			t.Fatal(err)
		}
		work := placed(t, key, desired, 0)
		if work.Annotations[placement.AnnotationClusterOverrides] == "" || work.Annotations[placement.AnnotationOverrides] != "" {
			t.Errorf("the Work of %s has the annotations %v", m, work.Annotations)
		}
		o.current["ns-"+m] = &currentWorks{works: []*placement.Work{work}}
	}
	if d := decide(o); len(d.plan.write) > 0 || !d.upToDate["ns-a"] || !d.upToDate["ns-b"] {
		t.Errorf("written are %s", listNames(d.plan.write))
	}
	status := describe(o, decide(o), nil, now)
	if diff := cmp.Diff([]string{"cro-0"}, status.PlacementStatuses[0].ApplicableClusterResourceOverrides); diff != "" {
		t.Errorf("applicable are (-want +got):\n%s", diff)
	}
	o.overrides = nil
	plain := decide(o)
	if listNames(plain.plan.write) != "a" {
		t.Errorf("without the override, written are %s", listNames(plain.plan.write))
	}
	patch, err := replacement(o.current["ns-a"].works[0], plain.desired.work(key, 0, target{name: "m", namespace: "ns-a"}))
	if err != nil || strings.Contains(string(patch), placement.AnnotationClusterOverrides) {
		t.Errorf("the annotation stays: %s, %v", patch, err)
	}
}

func TestOverridesOfManyMembersAreBoundedAndNotKept(t *testing.T) {
	for _, row := range []struct {
		copies, bytes int
		many          bool
	}{{10000, 20 << 10, false}, {10000, 30 << 10, true}, {320, 800 << 10, false}, {330, 800 << 10, true}, {1, 9 << 20, false}} {
		if got := tooMany(row.copies, row.bytes); got != row.many {
			t.Errorf("%d copies of %d KiB are too many: %t", row.copies, row.bytes>>10, got)
		}
	}
	rules := `[{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: add, path: /data/who, value: ` +
		`"${MEMBER-CLUSTER-NAME}"}]}]`
	o := world(t, overriding(t, "settings", rules))
	d := decide(o)
	for _, namespace := range []string{"ns-a", "ns-b"} {
		whole, err := o.complete(d, namespace)
		if kept := d.desiredFor(namespace); err != nil || kept.bytes() != 0 || whole.bytes() == 0 ||
			kept.parts[0].digest != whole.parts[0].digest {
			t.Errorf("for %s %d bytes are kept, of %d that are written (%v)", namespace, kept.bytes(), whole.bytes(), err)
		}
	}
}

func TestOnlyPlacementsThatAnOverrideConcernsAreReconciled(t *testing.T) {
	cro := override.OfCluster(&placement.ClusterResourceOverride{Spec: placement.ClusterResourceOverrideSpec{
		ClusterResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "app"}},
	}})
	ro := override.OfNamespace(&placement.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "app"},
		Spec: placement.ResourceOverrideSpec{
			ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "c"}},
		}})
	configMap := placement.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "c"}
	envelope := placement.ResourceIdentifier{
		Group: placement.GroupVersion.Group, Version: "v1beta1", Kind: "ResourceEnvelope", Namespace: "app", Name: "e",
	}
	elsewhere := placement.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "other", Name: "c"}
	for _, c := range []struct {
		name        string
		status      placement.PlacementStatus
		wantC, want bool
	}{
		{"nothing is known of it yet", placement.PlacementStatus{}, true, true},
		{
			"what is selected", placement.PlacementStatus{ObservedResourceIndex: "0", SelectedResources: []placement.ResourceIdentifier{configMap}},
			true, true,
		},
		{
			"what may be in an envelope",
			placement.PlacementStatus{ObservedResourceIndex: "0", SelectedResources: []placement.ResourceIdentifier{envelope}}, true, true,
		},
		{
			"something else", placement.PlacementStatus{ObservedResourceIndex: "0", SelectedResources: []placement.ResourceIdentifier{elsewhere}},
			false, false,
		},
		{
			"more than is listed", placement.PlacementStatus{ObservedResourceIndex: "0",
				SelectedResources: make([]placement.ResourceIdentifier, maxResources)}, true, true,
		},
	} {
		if got := mayChange(cro, &c.status); got != c.wantC {
			t.Errorf("%s: it concerns the ClusterResourceOverride %t", c.name, got)
		}
		if got := mayChange(ro, &c.status); got != c.want {
			t.Errorf("%s: it concerns the ResourceOverride %t", c.name, got)
		}
	}
}
