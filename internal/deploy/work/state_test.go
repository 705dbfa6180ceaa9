package work

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestStateOfAWork(t *testing.T) {
	self := &placement.AppliedWork{Spec: placement.AppliedWorkSpec{WorkNamespace: "m"}}
	foreign := &placement.AppliedWork{Spec: placement.AppliedWorkSpec{WorkNamespace: "other"}}
	earlier := self.DeepCopy()
	earlier.Labels = map[string]string{naming.LabelMember: "earlier"}
	marked := self.DeepCopy()
	marked.Labels = map[string]string{naming.LabelMember: "now"}
	going := self.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		observation observed
		want        State
	}{
		"new":                                  {observed{}, Applying},
		"applied":                              {observed{hasFinalizer: true, owner: self}, Applying},
		"its finalizer was taken off":          {observed{owner: self}, Applying},
		"its AppliedWork is being deleted":     {observed{hasFinalizer: true, owner: going}, Clearing},
		"its AppliedWork is another hub's":     {observed{owner: foreign}, Foreign},
		"labelled for another member":          {observed{hasFinalizer: true, owner: self, recipient: "MemberCluster b"}, Misdirected},
		"labelled for another member, and new": {observed{owner: foreign, recipient: "MemberCluster b"}, Misdirected},
		"labelled for another member and deleted": {
			observed{deleted: true, hasFinalizer: true, owner: self, recipient: "MemberCluster b"}, Removing,
		},
		"deleted":                                 {observed{deleted: true, hasFinalizer: true, owner: self}, Removing},
		"deleted and on its way":                  {observed{deleted: true, hasFinalizer: true, owner: going}, Removing},
		"deleted and to be abandoned":             {observed{deleted: true, hasFinalizer: true, abandon: true, owner: self}, Abandoning},
		"deleted and gone":                        {observed{deleted: true, hasFinalizer: true}, Removed},
		"deleted and abandoned":                   {observed{deleted: true, hasFinalizer: true, abandon: true}, Removed},
		"deleted, and another hub's is here":      {observed{deleted: true, hasFinalizer: true, owner: foreign}, Removed},
		"deleted, marked for this membership":     {observed{deleted: true, hasFinalizer: true, owner: marked}, Removing},
		"deleted, and of an earlier membership":   {observed{deleted: true, hasFinalizer: true, owner: earlier}, Removed},
		"applied in an earlier membership":        {observed{hasFinalizer: true, owner: earlier}, Applying},
		"deleted without waiting for this agent":  {observed{deleted: true, owner: self}, Gone},
		"deleted and never seen":                  {observed{deleted: true}, Gone},
		"to be abandoned when it goes, and stays": {observed{hasFinalizer: true, abandon: true, owner: self}, Applying},
	} {
		test.observation.namespace, test.observation.membership = "m", "now"
		if got := decide(test.observation); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWhatIsDueAboutAManifest(t *testing.T) {
	m := manifest{hash: "h"}
	owners := []metav1.OwnerReference{{UID: "owner"}}
	is := summary{uid: "1", version: "5", fieldDigest: 1, hash: "h", owners: owners}
	fine := attempt{hash: "h", outcome: outcome{reason: reasons.ManifestApplied}, as: is, triedAt: noon.Add(-time.Second)}
	failed := attempt{hash: "h", outcome: failedWith(reasons.Rejected, ""), tries: 2, triedAt: noon.Add(-time.Second)}
	waiting := failed
	waiting.outcome.waits = true
	fought := fine
	fought.tries = patience + 3
	with := func(change func(*summary)) observation {
		r := is
		change(&r)
		return observation{summary: r, Sight: applied.Present}
	}
	type result struct {
		Task  task
		After time.Duration // from now
	}
	const never = time.Duration(0)
	for name, test := range map[string]struct {
		attempt     attempt
		observation observation
		want        result
	}{
		"never tried": {attempt{}, observation{Sight: applied.Absent}, result{apply, never}},
		"the manifest is another": {
			attempt{hash: "older", outcome: fine.outcome, as: is}, observation{summary: is, Sight: applied.Present}, result{apply, never},
		},
		"as it was applied":                         {fine, observation{summary: is, Sight: applied.Present}, result{skip, never}},
		"only its status changed":                   {fine, with(func(r *summary) { r.version = "6" }), result{skip, never}},
		"the watch has not come so far":             {fine, observation{Sight: applied.Unsure}, result{skip, never}},
		"something happened before it was applied":  {fine, observation{Sight: applied.Unsure, changed: true}, result{skip, never}},
		"somebody took a field":                     {fine, with(func(r *summary) { r.fieldDigest = 2 }), result{apply, never}},
		"somebody changed the mark of its manifest": {fine, with(func(r *summary) { r.hash = "x" }), result{apply, never}},
		"somebody took it out of the AppliedWork":   {fine, with(func(r *summary) { r.owners = nil }), result{apply, never}},
		"somebody made another of its name":         {fine, with(func(r *summary) { r.uid = "2" }), result{apply, never}},
		"deleted":                                   {fine, observation{Sight: applied.Absent}, result{apply, never}},
		"being deleted":                             {fine, with(func(r *summary) { r.deleting = true }), result{wait, never}},
		"fought over, and changed again":            {fought, with(func(r *summary) { r.fieldDigest = 2 }), result{delay, 3 * time.Second}},
		"fought over, and deleted":                  {fought, observation{Sight: applied.Absent}, result{delay, 3 * time.Second}},
		"fought over, and as it should be": {fought, observation{summary: is, Sight: applied.Present},
			result{skip, calm - time.Second}},
		"failed a moment ago":                       {failed, observation{Sight: applied.Unsure}, result{skip, 9 * time.Second}},
		"failed, and something happened to it":      {failed, observation{Sight: applied.Unsure, changed: true}, result{apply, never}},
		"waits for something that is about to come": {waiting, observation{Sight: applied.Unsure}, result{skip, time.Second}},
		"failed long ago": {
			attempt{hash: "h", outcome: failed.outcome, tries: 1, triedAt: noon.Add(-time.Hour)}, observation{}, result{apply, never},
		},
		"failed with what the manifest was before": {
			attempt{hash: "older", outcome: failed.outcome, tries: 9, triedAt: noon}, observation{}, result{apply, never},
		},
		"the retries never become rarer than 5 min": {
			attempt{hash: "h", outcome: failed.outcome, tries: 1000, triedAt: noon}, observation{}, result{skip, 5 * time.Minute},
		},
		"a wait is never longer than half a minute": {
			attempt{hash: "h", outcome: waiting.outcome, tries: 1000, triedAt: noon}, observation{}, result{skip, 30 * time.Second},
		},
		"corrections never rarer than every 5 min": {
			attempt{hash: "h", outcome: fine.outcome, as: is, tries: 1000, triedAt: noon}, observation{Sight: applied.Absent},
			result{delay, 5 * time.Minute},
		},
		"fought over long ago, and changed once more": {
			attempt{hash: "h", outcome: fine.outcome, as: is, tries: 9, triedAt: noon.Add(-calm)},
			observation{Sight: applied.Absent}, result{apply, never},
		},
	} {
		test.observation.owner, test.observation.now = "owner", noon
		do, at := due(m, test.attempt, test.observation)
		got := result{Task: do}
		if !at.IsZero() {
			got.After = at.Sub(noon)
		}
		if do == apply {
			got.After = never
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTriesAreCountedWhileTheyFollowEachOther(t *testing.T) {
	m, done, failed := manifest{hash: "h"}, outcome{reason: reasons.ManifestApplied}, failedWith(reasons.Rejected, "")
	e := attempt{}.next(m, done, summary{}, noon)
	counts := []int{e.tries}
	for _, step := range []struct {
		outcome outcome
		after   time.Duration
	}{
		{done, time.Second}, {done, time.Second}, {failed, time.Second}, {failed, time.Second}, {done, time.Second},
		{done, calm}, {failed, time.Second},
	} {
		e = e.next(m, step.outcome, summary{}, e.triedAt.Add(step.after))
		counts = append(counts, e.tries)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 1, 2, 0, 0, 1}, counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoMayApplyToWhatIsThere(t *testing.T) {
	m, self := manifest{hash: "h"}, owner{"mine", "1"}
	appliedWorksOf := self.reference()
	theirs, stranger := owner{"theirs", "2"}.reference(), metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "3"}
	stale := owner{"mine", "0"}.reference()
	handsOver, holder := owner{"giver", "4"}.reference(), owner{"holder", "5"}.reference()
	by := func(hash string, owners ...metav1.OwnerReference) *summary {
		return &summary{hash: hash, owners: owners}
	}
	always, shared := strategy{force: true, takeOver: placement.TakeOverAlways}, strategy{force: true, coOwned: true}
	never, ifNoDiff := strategy{takeOver: placement.TakeOverNever}, strategy{force: true, takeOver: placement.TakeOverIfNoDiff}
	careful := strategy{force: true, ifNotDrifted: true}
	type result struct {
		Refused, Compare, Extras, Conflict string
		Force                              bool
		Keep                               []metav1.OwnerReference
	}
	may, from := result{Force: true, Conflict: reasons.FieldConflict}, map[types.UID]giver{"4": giving, "5": holding}
	for name, test := range map[string]struct {
		strategy strategy
		is       *summary
		want     result
	}{
		"nothing is there":                   {never, nil, result{Conflict: reasons.FieldConflict}},
		"there before, and taken over":       {always, by(""), may},
		"there before, and never taken over": {never, by(""), result{Refused: reasons.NotTakenOver}},
		"there before, and taken over if the same": {ifNoDiff, by(""), result{
			Force: true, Conflict: reasons.FieldConflict, Compare: reasons.NotTakenOver,
		}},
		"its own":                            {never, by("x", appliedWorksOf), result{Conflict: reasons.FieldConflict}},
		"of an AppliedWork that was deleted": {never, by("x", stale), result{Conflict: reasons.FieldConflict}},
		"its own, and somebody else's since": {always, by("x", appliedWorksOf, stranger), may},
		"somebody else's":                    {always, by("", stranger), result{Refused: reasons.OwnedByOthers}},
		"somebody else's, and may be":        {shared, by("", stranger), may},
		"another Work's":                     {always, by("h", theirs), result{Refused: reasons.AppliedByAnotherWork}},
		"another Work's, and may be": {shared, by("h", theirs), result{
			Force: true, Conflict: reasons.FieldConflict, Keep: []metav1.OwnerReference{theirs},
		}},
		"another Work's with other content": {shared, by("x", theirs), result{Refused: reasons.AppliedByAnotherWork}},
		"its own first, and another Work's": {always, by("x", appliedWorksOf, theirs), result{
			Force: true, Conflict: reasons.FieldConflict, Keep: []metav1.OwnerReference{theirs},
		}},
		"its own second, with other content":     {shared, by("x", theirs, appliedWorksOf), result{Refused: reasons.AppliedByAnotherWork}},
		"left behind by its AppliedWork":         {never, &summary{hash: "x", work: "mine"}, result{Conflict: reasons.FieldConflict}},
		"left behind by another Work's":          {never, &summary{hash: "x", work: "theirs"}, result{Refused: reasons.NotTakenOver}},
		"handed over by a Work of its placement": {never, by("x", handsOver), result{Conflict: reasons.FieldConflict}},
		"handed over, and nobody may have changed it": {careful, by("h", handsOver), result{
			Force: true, Conflict: reasons.FieldConflict, Compare: reasons.Drifted,
		}},
		"handed over, and of a third Work, too": {always, by("h", handsOver, theirs), result{Refused: reasons.AppliedByAnotherWork}},
		"not handed over yet":                   {always, by("x", holder), result{Refused: reasons.AppliedByAnotherWork}},
		"not handed over yet, and may be shared": {shared, by("h", holder), result{
			Force: true, Conflict: reasons.FieldConflict, Keep: []metav1.OwnerReference{holder},
		}},
		"being deleted": {always, &summary{deleting: true}, result{Refused: reasons.BeingDeleted}},
		"its own, and nobody may have changed it": {careful, by("h", appliedWorksOf), result{
			Force: true, Conflict: reasons.FieldConflict, Compare: reasons.Drifted,
		}},
		"its own, changed, and the manifest is newer": {careful, by("x", appliedWorksOf), result{Conflict: reasons.Drifted}},
		"the same, and everything is compared": {
			strategy{ifNotDrifted: true, full: true}, by("x", appliedWorksOf), result{Conflict: reasons.Drifted, Extras: reasons.Drifted},
		},
	} {
		got := admit(m, test.strategy, self, test.is, from)
		observation := result{got.refusal.reason, got.compare, got.extras, got.conflict, got.force, got.keep}
		if diff := cmp.Diff(test.want, observation); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStrategyIsReadAsUpstreamMeansIt(t *testing.T) {
	for name, test := range map[string]struct {
		given *placement.ApplyStrategy
		want  strategy
	}{
		"none": {nil, strategy{force: true, takeOver: placement.TakeOverAlways, merges: true}},
		"defaults of KubeFleet": {&placement.ApplyStrategy{Type: placement.ApplyClientSide,
			WhenToApply: "Always", WhenToTakeOver: "Always", ComparisonOption: "PartialComparison"},
			strategy{force: true, takeOver: "Always", merges: true}},
		"server-side": {&placement.ApplyStrategy{Type: placement.ApplyServerSide}, strategy{}},
		"server-side by force": {&placement.ApplyStrategy{Type: placement.ApplyServerSide,
			ServerSideApplyConfig: &placement.ServerSideApplyConfig{ForceConflicts: true}}, strategy{force: true}},
		"only a report": {&placement.ApplyStrategy{Type: placement.ApplyReportDiff}, strategy{force: true, reports: true, merges: true}},
		"full comparison": {&placement.ApplyStrategy{ComparisonOption: placement.CompareFully,
			WhenToApply: placement.ApplyIfNotDrifted}, strategy{force: true, ifNotDrifted: true, full: true, merges: true}},
		"full comparison of what is set right": {&placement.ApplyStrategy{ComparisonOption: placement.CompareFully},
			strategy{force: true, full: true, merges: true}},
	} {
		if got := strategyOf(test.given); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestAnswersOfTheAPIServerAreWorded(t *testing.T) {
	configMap := manifest{
		gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, key: key{
			schema.GroupKind{Kind: "ConfigMap"}, types.NamespacedName{Namespace: "n", Name: "c"},
		},
	}
	secret := manifest{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
	namespaceMissing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n")
	conflict := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict, Code: 409, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: `conflict with "hpa" using v1`,
		}}}}}
	hush := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422,
		Message: "data.x: Invalid value: hush", Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Field: "data.x", Message: "Invalid value: hush"}}}}}
	for name, test := range map[string]struct {
		manifest manifest
		err      error
		want     outcome
	}{
		"applied": {configMap, nil, outcome{reason: reasons.ManifestApplied}},
		"no such namespace": {configMap, namespaceMissing, outcome{
			reason: reasons.NamespaceMissing, message: "the member has no namespace n: place that, too, or create it", waits: true,
		}},
		"conflict": {configMap, conflict, outcome{
			reason: reasons.FieldConflict,
			message: `others own fields of it: .spec.replicas ("hpa" using v1); take them out of the manifest, or set ` +
				`applyStrategy.serverSideApplyConfig.force`,
		}},
		"no right": {configMap, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("no")), outcome{
			reason: reasons.Forbidden, message: `configmaps "c" is forbidden: no`,
		}},
		"invalid":        {configMap, hush, outcome{reason: reasons.Rejected, message: "data.x: Invalid value: hush"}},
		"invalid Secret": {secret, hush, outcome{reason: reasons.Rejected, message: "the API server says Invalid: data.x"}},
		"a webhook is broken": {configMap, apierrors.NewInternalError(errors.New("failed calling webhook")), outcome{
			reason: reasons.Rejected, message: "Internal error occurred: failed calling webhook",
		}},
	} {
		got, err := outcomeOf(test.manifest, test.err, reasons.FieldConflict)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, unanswered := range []error{errors.New("connection refused"), apierrors.NewTooManyRequests("slowly", 1)} {
		if _, err := outcomeOf(configMap, unanswered, reasons.FieldConflict); err == nil {
			t.Errorf("%v is taken for an answer", unanswered)
		}
	}
}

func TestManifestsAreStrippedAndToldApart(t *testing.T) {
	work := &placement.Work{}
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generateName":"a-","namespace":"n","uid":"x",` +
			`"resourceVersion":"1","ownerReferences":[{}],"labels":{"l":"v"}},"status":{},"data":{"k":"v"}}`,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}`,
		`{"apiVersion":"apps/v1beta2","kind":"Deployment","metadata":{"name":"a","namespace":"n"}}`,
		`[1]`, `null`, `{`,
	} {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, placement.Manifest{
			RawExtension: runtime.RawExtension{Raw: []byte(text)},
		})
	}
	list := manifestsOf(work)
	var problems []string
	for _, m := range list {
		problems = append(problems, m.problem)
	}
	want := []string{
		"", "it is the same object as manifest 0: leave one of them out", "", "it is no JSON object", "it has no apiVersion or no kind",
		"it is no JSON object",
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	appliedWork := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
		"metadata": map[string]any{"name": "a", "generateName": "a-", "namespace": "n", "labels": map[string]any{"l": "v"}}}
	if diff := cmp.Diff(appliedWork, list[0].object().Object); diff != "" {
		t.Errorf("applied is (-want +got):\n%s", diff)
	}
	namespace := manifest{ordinal: 6, key: key{GroupKind: schema.GroupKind{Kind: "Namespace"}}}
	if order := inOrder(append(list, namespace)); order[0].ordinal != 6 || order[1].ordinal != 0 || order[3].ordinal != 2 {
		t.Errorf("the order is %v", order)
	}
}

func TestDifferencesOfASecretAreNotShown(t *testing.T) {
	object := func(kind, value string, more ...string) *unstructured.Unstructured {
		data := map[string]any{"k": value}
		for _, name := range more {
			data[name] = "x"
		}
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "data": data, "list": []any{value, "x"},
			"metadata": map[string]any{"resourceVersion": value, "labels": map[string]any{labelWork: value}}}}
	}
	for kind, want := range map[string][]string{
		"ConfigMap": {`/data/a~1b is missing, /data/k is "is" and not "wanted", /list/0 is "is" and not "wanted"`, "is", "wanted"},
		"Secret":    {"/data/a~1b differs, /data/k differs, /list/0 differs", hidden, hidden},
	} {
		found := differences(object(kind, "is"), object(kind, "wanted", "a/b"))
		if diff := cmp.Diff(want, []string{listed(found), found[1].ValueInMember, found[1].ValueInHub}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	long := differences(object("ConfigMap", strings.Repeat("x", 1000)), object("ConfigMap", "short"))
	if len(long[0].ValueInMember) > maxValue+3 || listed(long) != "/data/k is something else, /list/0 is something else" {
		t.Errorf("a long value is shown as %+v", long)
	}
	if got := differences(object("ConfigMap", "is"), object("ConfigMap", "is")); got != nil {
		t.Errorf("an object differs from itself: %v", got)
	}
}
