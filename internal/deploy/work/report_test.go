package work

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// untilDiffs waits until the status has these differences of a manifest.
func (r *rig) untilDiffs(work *placement.Work, ordinal int, want ...placement.PatchDetail) *placement.DiffDetails {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the differences of manifest %d are %v", ordinal, want), func() error {
		r.refresh(work)
		if len(work.Status.ManifestConditions) <= ordinal {
			return fmt.Errorf("status %+v", work.Status)
		}
		var got []placement.PatchDetail
		if is := work.Status.ManifestConditions[ordinal].DiffDetails; is != nil {
			got = is.ObservedDiffs
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	return work.Status.ManifestConditions[ordinal].DiffDetails
}

func (r *rig) untilDrifts(work *placement.Work, want ...placement.PatchDetail) *placement.DriftDetails {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the drifts are %v", want), func() error {
		r.refresh(work)
		var got []placement.PatchDetail
		if is := work.Status.ManifestConditions[0].DriftDetails; is != nil {
			got = is.ObservedDrifts
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	return work.Status.ManifestConditions[0].DriftDetails
}

func TestAReportOfDifferencesAppliesNothingAndFollowsTheMember(t *testing.T) {
	r := newRig(t)
	old := r.there("old", map[string]string{"a": "old", "more": "x"})
	r.check(r.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "s"}, Data: map[string][]byte{"p": []byte("hush")},
	}))
	report := applying(placement.ApplyStrategy{Type: placement.ApplyReportDiff})
	manifests := []string{
		configMap("old", "a: b"), configMap("none", "a: b"),
		"{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: fleet-member-NAME}, stringData: {p: other}}",
		"{apiVersion: example.com/v1, kind: NoSuch, metadata: {name: x}}",
	}
	work := r.place("work", report, manifests...)
	if c := r.until(work, placement.ConditionDiffReported, placement.ReasonSomeNotCompared); !strings.HasPrefix(c.Message,
		"1 of 4 not compared: manifest 3 (NoSuch x): the member serves no NoSuch") {
		t.Errorf("it says %q", c.Message)
	}
	work = r.place("work", report, manifests[:3]...)
	if c := r.until(work, placement.ConditionDiffReported, placement.ReasonAllCompared); c.Message != "3 of 3 differ; nothing is applied" {
		t.Errorf("it says %q", c.Message)
	}
	if len(work.Status.Conditions) != 1 || len(work.Status.ManifestConditions[0].Conditions) != 1 ||
		work.Status.ManifestConditions[0].Conditions[0].Reason != reasons.DifferencesFound {
		t.Errorf("conditions %+v, %+v", work.Status.Conditions, work.Status.ManifestConditions[0].Conditions)
	}
	first := r.untilDiffs(work, 0, placement.PatchDetail{Path: "/data/a", ValueInHub: "b", ValueInMember: "old"})
	r.untilDiffs(work, 1, placement.PatchDetail{Path: wholeObject, ValueInHub: "(the whole object)"})
	r.untilDiffs(work, 2, placement.PatchDetail{Path: "/data/p", ValueInHub: hidden, ValueInMember: hidden})

	// A change on the member is seen at once.
	r.edit("old", func(c *corev1.ConfigMap) { c.Data["a"] = "newer" })
	second := r.untilDiffs(work, 0, placement.PatchDetail{Path: "/data/a", ValueInHub: "b", ValueInMember: "newer"})
	if !second.FirstDiffedObservedTime.Equal(&first.FirstDiffedObservedTime) || second.ObservationTime.Before(&first.ObservationTime) {
		t.Errorf("first %+v, then %+v", first, second)
	}
	r.there("none", map[string]string{"a": "b"})
	r.untilDiffs(work, 1)
	r.edit("old", func(c *corev1.ConfigMap) { c.Data["a"] = "b" })
	r.untilDiffs(work, 0)
	work = r.place("work", applying(placement.ApplyStrategy{Type: placement.ApplyReportDiff, ComparisonOption: placement.CompareFully}),
		manifests[:3]...)
	r.untilDiffs(work, 0, placement.PatchDetail{Path: "/data/more", ValueInMember: "x"})

	if is := r.mustConfigMap("old"); len(is.OwnerReferences)+len(is.Labels)+len(is.Annotations) > 0 || is.UID != old.UID {
		t.Errorf("it was touched: %+v", is.ObjectMeta)
	}
	if err := r.Get(context.Background(), client.ObjectKey{Name: work.Name}, &placement.AppliedWork{}); client.IgnoreNotFound(err) != nil ||
		err == nil {
		t.Errorf("reading the AppliedWork: %v", err)
	}
	if log := r.log.String(); strings.Contains(log, "hush") {
		t.Error("the log has what is in a Secret")
	}

	// With another strategy it is applied, and a report of what is applied does not take it away.
	work = r.place("work", applying(placement.ApplyStrategy{}), manifests[:3]...)
	r.applied(work)
	if meta.FindStatusCondition(work.Status.Conditions, placement.ConditionDiffReported) != nil ||
		work.Status.ManifestConditions[0].DiffDetails != nil {
		t.Errorf("status %+v", work.Status)
	}
	work = r.place("work", report, manifests[1:3]...)
	r.until(work, placement.ConditionDiffReported, placement.ReasonAllCompared)
	r.mustConfigMap("old")
	r.check(r.Delete(context.Background(), work))
	r.untilGone("the Work", work)
	r.untilGone("what was applied of it", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "none"}})
}

func TestDriftIsDetailedWithWhatBothSay(t *testing.T) {
	r := newRig(t)
	strategy := applying(placement.ApplyStrategy{WhenToApply: placement.ApplyIfNotDrifted, ComparisonOption: placement.CompareFully})
	work := r.place("work", strategy, configMap("one", "a: b, c: d"))
	r.applied(work)
	r.untilDrifts(work)
	r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"] = "edited" })
	first := r.untilDrifts(work, placement.PatchDetail{Path: "/data/a", ValueInHub: "b", ValueInMember: "edited"})
	// What only the member has is drift as well.
	r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"], c.Data["more"] = "b", "x" })
	second := r.untilDrifts(work, placement.PatchDetail{Path: "/data/more", ValueInMember: "x"})
	if !second.FirstDriftedObservedTime.Equal(&first.FirstDriftedObservedTime) {
		t.Errorf("first %+v, then %+v", first, second)
	}
	r.untilOf(work, 0, placement.ConditionApplied, reasons.Drifted)
	// A new manifest is not applied over it either.
	work = r.place("work", strategy, configMap("one", "a: b, c: e"))
	r.untilOf(work, 0, placement.ConditionApplied, reasons.Drifted)
	if one := r.mustConfigMap("one"); one.Data["c"] != "d" {
		t.Errorf("it was changed: %v", one.Data)
	}
	r.edit("one", func(c *corev1.ConfigMap) { delete(c.Data, "more") })
	r.applied(work)
	r.untilDrifts(work)
	r.untilData("one", "c", "e")
}

func TestAFullComparisonNamesWhatOnlyTheMemberHasAndAppliesNevertheless(t *testing.T) {
	r := newRig(t)
	deployment := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: fleet-member-NAME}, spec: {replicas: 0,
		selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`
	work := r.place("work", applying(placement.ApplyStrategy{ComparisonOption: placement.CompareFully}), configMap("one", "a: b"), deployment,
		"{apiVersion: v1, kind: Service, metadata: {name: s, namespace: fleet-member-NAME}, spec: {ports: [{port: 80}]}}")
	r.applied(work)
	for i := range 3 {
		if is := work.Status.ManifestConditions[i]; is.DriftDetails != nil {
			t.Errorf("what the API server fills in counts as drift: %+v", is.DriftDetails)
		}
	}
	for i := range 2 * patience {
		value := fmt.Sprint(i)
		r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"], c.Data["more"] = "b", value })
		r.untilDrifts(work, placement.PatchDetail{Path: "/data/more", ValueInMember: value})
	}
	if c := r.of(work, 0, placement.ConditionApplied); c.Reason != reasons.ManifestApplied ||
		!strings.HasSuffix(c.Message, "and besides /data/more is there") {
		t.Errorf("condition %+v", c)
	}
	r.edit("one", func(c *corev1.ConfigMap) { c.Data["a"] = "edited" })
	r.untilData("one", "a", "b")
	r.edit("one", func(c *corev1.ConfigMap) { delete(c.Data, "more") })
	r.untilDrifts(work)
}

// TestWhatAPIServersFillInIsNoDifference places what KubeFleet's hub or ours reads of a Namespace
// over one that the member's users made, by every strategy that compares.
func TestWhatAPIServersFillInIsNoDifference(t *testing.T) {
	r := newRig(t)
	for i, comparison := range []placement.ComparisonOption{placement.ComparePartially, placement.CompareFully} {
		shop, suffix := fmt.Sprintf("filled-%d-%s", i, r.name), fmt.Sprintf("work-%d", i)
		r.check(r.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}))
		port := corev1.ServicePort{Port: 80}
		r.check(r.Create(context.Background(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{port}},
		}))
		manifests := func(spec, labels string) []string {
			return []string{fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s%s}%s}", shop, labels, spec),
				fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %s}, spec: {ports: [{port: 80}]}}", shop),
				fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: %s}}", shop)}
		}
		bare := manifests("", "")
		filled := manifests(", spec: {finalizers: [kubernetes]}", fmt.Sprintf(", labels: {kubernetes.io/metadata.name: %s}", shop))
		r.eventually("the member's controllers have filled it", func() error {
			return r.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: "default"}, &corev1.ServiceAccount{})
		})
		for _, all := range [][]string{bare, filled} {
			work := r.place(suffix, applying(placement.ApplyStrategy{Type: placement.ApplyReportDiff, ComparisonOption: comparison}), all...)
			if c := r.until(work, placement.ConditionDiffReported, placement.ReasonAllCompared); c.Message != "0 of 3 differ; nothing is applied" {
				t.Errorf("%s: it says %q; %+v", comparison, c.Message, work.Status.ManifestConditions)
			}
		}
		for _, all := range [][]string{bare, filled, bare} {
			work := r.place(suffix, applying(placement.ApplyStrategy{
				ComparisonOption: comparison, WhenToApply: placement.ApplyIfNotDrifted, WhenToTakeOver: placement.TakeOverIfNoDiff,
			}), all...)
			r.applied(work)
			for _, is := range work.Status.ManifestConditions {
				if is.DriftDetails != nil || is.DiffDetails != nil {
					t.Errorf("%s: %s %s differs: %+v, %+v", comparison, is.Identifier.Kind, is.Identifier.Name, is.DriftDetails, is.DiffDetails)
				}
			}
		}
	}
}
