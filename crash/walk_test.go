package crash

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestCheckReportsWhatMustNotBe has a row for each thing that the checker looks for.
func TestCheckReportsWhatMustNotBe(t *testing.T) {
	for name, row := range map[string]struct {
		objects []string
		want    []string
	}{
		"a binding whose account and role are there": {objects: []string{
			`{kind: RoleBinding, metadata: {namespace: crash-0001, name: b, uid: b}, roleRef: {kind: Role, name: r}, subjects: [{kind: ` +
				`ServiceAccount, namespace: crash-0001, name: a}]}`,
			`{kind: ServiceAccount, metadata: {namespace: crash-0001, name: a, uid: a}}`,
			`{kind: Role, metadata: {namespace: crash-0001, name: r, uid: r}}`,
		}},
		"a binding for nobody, to nothing": {
			objects: []string{
				`{kind: RoleBinding, metadata: {namespace: crash-0001, name: b, uid: b}, roleRef: {kind: Role, name: r}, subjects: [{kind: ` +
					`ServiceAccount, namespace: crash-0001, name: a}]}`,
			},
			want: []string{
				"hub: RoleBinding crash-0001/b is left over: there is no Role crash-0001/r",
				"hub: RoleBinding crash-0001/b is left over: there is no ServiceAccount crash-0001/a",
			},
		},
		"a token of nobody": {
			objects: []string{
				`{kind: Secret, metadata: {namespace: crash-0001, name: s, uid: s, annotations: {kubernetes.io/service-account.name: a}}}`,
			},
			want: []string{"hub: Secret crash-0001/s is left over: there is no ServiceAccount crash-0001/a"},
		},
		"an orphan": {
			objects: []string{`{kind: Lease, metadata: {namespace: ns, name: l, uid: l, ownerReferences: [{kind: Cluster, name: c, uid: gone}]}}`},
			want:    []string{"hub: Lease ns/l is an orphan of Cluster c"},
		},
		"two that control": {
			objects: []string{
				`{kind: Lease, metadata: {namespace: ns, name: l, uid: l, ownerReferences: [{kind: X, name: x, uid: x, controller: true}, {kind: Y, ` +
					`name: y, uid: x, controller: true}]}}`,
				`{kind: X, metadata: {name: x, uid: x}}`,
			},
			want: []string{"hub: Lease ns/l has 2 controllers"},
		},
		"a member namespace without a record": {
			objects: []string{`{kind: Namespace, metadata: {name: fleet-member-crash-0001, uid: n}}`},
			want:    []string{"hub: member namespace fleet-member-crash-0001 has no record"},
		},
		"a cluster that joined twice": {
			objects: []string{
				`{kind: Cluster, metadata: {namespace: w, name: c, uid: c}, spec: {clientID: i}}`,
				`{kind: Cluster, metadata: {namespace: w, name: d, uid: d}, spec: {clientID: i}}`,
				`{kind: ClusterRegistration, metadata: {namespace: w, name: r, uid: r}, status: {state: Granted, clusterName: c}}`,
				`{kind: ClusterRegistration, metadata: {namespace: w, name: s, uid: s}, status: {state: Granted, clusterName: c}}`,
			},
			want: []string{"hub: there are 2 Clusters with the client ID i", "hub: there are 2 grants to Cluster w/c"},
		},
		"a release that is deployed twice": {
			objects: []string{
				`{kind: Secret, metadata: {namespace: ns, name: v1, uid: a, labels: {owner: helm, status: deployed, name: web}}}`,
				`{kind: Secret, metadata: {namespace: ns, name: v2, uid: b, labels: {owner: helm, status: deployed, name: web}}}`,
			},
			want: []string{"hub: there are 2 deployed revisions of release ns/web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plane{name: "hub"}
			for _, text := range row.objects {
				o := unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
				p.objects = append(p.objects, o)
			}
			got := check(known{}, []plane{p})
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("it says %q, want %q", got, row.want)
			}
		})
	}
}

// TestSnapshotsOfTwoRunsDifferOnlyWhereTheEndDiffers compares objects that have the names, UIDs and
// times of their runs.
func TestSnapshotsOfTwoRunsDifferOnlyWhereTheEndDiffers(t *testing.T) {
	end := func(id, uid, role string) snapshot {
		w := words{id: id, live: map[string]bool{uid: true, uid[:23]: true}}
		o := unstructured.Unstructured{Object: map[string]any{"kind": "Thing",
			"metadata": map[string]any{"name": "of-" + id, "uid": uid, "resourceVersion": id}, "spec": map[string]any{
				"of": uid, "since": "2026-01-01T00:00:" + id[len(id)-2:] + "Z", "role": role,
				"account": "token-" + uid[:23] + "-" + "c0" + id[len(id)-3:],
				"by":      "fleet-agent-6d5bf89c-x2k7" + map[string]string{"crash-0001": "b", "crash-0002": "c"}[id],
			}}}
		return snapshot{w.text("Thing of-" + id): w.object(o)}
	}
	const one, two = "3d2c9c0e-0001-4000-8000-000000000001", "3d2c9c0e-0002-4000-8000-000000000002"
	if found := end("crash-0001", one, "admin").differences(end("crash-0002", two, "admin")); len(found) > 0 {
		t.Errorf("they differ: %v", found)
	}
	if found := end("crash-0001", one, "admin").differences(end("crash-0002", two, "nobody")); len(found) != 1 {
		t.Errorf("the difference of roles is not found: %v", found)
	}
	if found := end("crash-0001", one, "admin").differences(snapshot{"Other": "x"}); len(found) != 2 {
		t.Errorf("what is missing and left over is not found: %v", found)
	}
}

func TestACountOfNothingIsNoDifference(t *testing.T) {
	of := func(counts map[string]any) any {
		return words{id: "crash-0000"}.value(map[string]any{"resourceCounts": counts, "replicas": int64(0)})
	}
	without := of(map[string]any{"ready": int64(10)})
	if diff := cmp.Diff(without, of(map[string]any{"ready": int64(10), "notReady": int64(0)})); diff != "" {
		t.Errorf("they differ: %s", diff)
	}
	for _, counts := range []map[string]any{{"ready": int64(9)}, {"ready": int64(10), "notReady": int64(1)}, {}} {
		if cmp.Diff(without, of(counts)) == "" {
			t.Errorf("%v is taken for ten that are ready", counts)
		}
	}
	bundle := func(status map[string]any) any { return words{id: "crash-0000"}.value(status) }
	if diff := cmp.Diff(bundle(map[string]any{}), bundle(map[string]any{"unavailable": int64(0)})); diff != "" {
		t.Errorf("a Bundle that is available everywhere differs: %s", diff)
	}
	if cmp.Diff(bundle(map[string]any{}), bundle(map[string]any{"unavailable": int64(1)})) == "" {
		t.Error("a Bundle that is unavailable is taken for one that is not")
	}
}

func TestARandomTextIsOneWordWhateverItIsMadeOf(t *testing.T) {
	for text, want := range map[string]string{
		"f9k2ps9zv74mfwnzjdvvvvsvdqbnp4dz2456789bcdfpmk5x645gt":  "$BYTES",
		"5h6skg8hhnjt5wrfvq65q4l467fz2dprhfp7m.1795725784797123": "$BYTES",
		"cluster-7a6137437bb1":                                 "cluster-$HASH",
		"token-cluster-7a6137437bb1-1da833c4-e-1bc3c":          "token-cluster-$HASH-$UID",
		"s-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd1": "s-$BYTES",
	} {
		if got := (words{id: "crash-0000"}).text(text); got != want {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

func TestTheSecondOfTwoFaultsIsAtALaterCall(t *testing.T) {
	a, b, c := point{hub, "POST x", 1}, point{hub, "POST x", 2}, point{agent, "GET y", 1}
	got := pairs([]disturbance{{c, "kill"}, {a, "409"}, {b, "kill"}, {b, "500"}, {c, "cut"}}, []point{a, b, c})
	want := []string{"409 at hub POST x 1, then kill at hub POST x 2", "kill at hub POST x 2, then cut at agent GET y 1",
		"500 at hub POST x 2, then cut at agent GET y 1"}
	var texts []string
	for _, one := range got {
		texts = append(texts, one.String())
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEachCallOfATrialIsDisturbedOnce(t *testing.T) {
	w := &wire{}
	w.listen(func(string) bool { return true }, trial{{point{hub, "POST x", 2}, "409"}, {point{hub, "GET y", 1}, "kill"}})
	var faults []string
	for _, call := range []string{"POST x", "GET y", "POST x", "POST x"} {
		faults = append(faults, w.number(hub, call, ""))
	}
	if diff := cmp.Diff([]string{"", "kill", "409", ""}, faults); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if made, reached := w.end(); len(made) != 4 || !reached {
		t.Errorf("%d calls were made, all reached: %t", len(made), reached)
	}
	if w.listen(func(string) bool { return true }, trial{{point{hub, "POST x", 2}, "409"}}); w.number(hub, "POST x", "") != "" {
		t.Error("another call is disturbed")
	}
	if _, reached := w.end(); reached {
		t.Error("a call that was not made counts as reached")
	}
}
