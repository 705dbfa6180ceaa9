package helmop

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func specOf(helm fleet.HelmOptions) fleet.HelmOpSpec {
	spec := fleet.HelmOpSpec{}
	spec.Helm = &helm
	return spec
}

func TestTheFormsOfAChart(t *testing.T) {
	with := func(helm fleet.HelmOptions, edit func(*fleet.HelmOpSpec)) fleet.HelmOpSpec {
		spec := specOf(helm)
		edit(&spec)
		return spec
	}
	good := fleet.HelmOptions{Repo: "https://charts", Chart: "web", Version: "^1"}
	for name, row := range map[string]struct {
		spec fleet.HelmOpSpec
		want string
	}{
		"repository and chart": {specOf(good), ""},
		"without a version":    {specOf(fleet.HelmOptions{Repo: "https://charts", Chart: "web"}), ""},
		"a registry":           {specOf(fleet.HelmOptions{Repo: "oci://registry/web", Version: "1.0.0"}), ""},
		"an archive":           {specOf(fleet.HelmOptions{Chart: "https://charts/web.tgz"}), ""},
		"none":                 {fleet.HelmOpSpec{}, "spec.helm names no chart"},
		"an empty one":         {specOf(fleet.HelmOptions{Version: "1"}), "spec.helm names no chart"},
		"a registry and a chart": {specOf(fleet.HelmOptions{Repo: "oci://registry", Chart: "web"}),
			"spec.helm.chart is set beside an oci:// address"},
		"a registry as the chart": {specOf(fleet.HelmOptions{Chart: "oci://registry/web"}), "is no address of an archive"},
		"a directory":             {specOf(fleet.HelmOptions{Chart: "./web"}), `spec.helm.chart "./web" is no address of an archive`},
		"an archive with a version": {specOf(fleet.HelmOptions{Chart: "https://charts/web.tgz", Version: "1.0.0"}),
			"spec.helm.version is set beside the address of an archive"},
		"a repository alone":   {specOf(fleet.HelmOptions{Repo: "https://charts"}), "spec.helm.chart is empty"},
		"a repository by file": {specOf(fleet.HelmOptions{Repo: "file:///etc", Chart: "web"}), `spec.helm.repo "file:///etc" is no https`},
		"resources": {with(good, func(s *fleet.HelmOpSpec) { s.Resources = []fleet.BundleResource{{Name: "a"}} }),
			"spec.resources is set, and a HelmOp deploys only its chart"},
		"another chart in a target": {with(good, func(s *fleet.HelmOpSpec) {
			s.Targets = []fleet.BundleTarget{{}, {BundleDeploymentOptions: fleet.BundleDeploymentOptions{
				Helm: &fleet.HelmOptions{Repo: "https://elsewhere"}}}}
		}), "spec.targets[1].helm names a chart"},
		"values elsewhere": {with(good, func(s *fleet.HelmOpSpec) { s.ValuesHash = "a" }), "spec.valuesHash is set"},
	} {
		err := check(&row.spec)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhichVersionsAreRanges(t *testing.T) {
	for version, want := range map[string]bool{
		"": true, "^1": true, "1.2": true, ">=1.0.0 <2.0.0": true, "1.2.3": false, "1.2.3-rc.1": false,
	} {
		if got := isRange(&fleet.HelmOptions{Repo: "https://charts", Chart: "web", Version: version}); got != want {
			t.Errorf("%q: %t", version, got)
		}
	}
	for _, fixed := range []fleet.HelmOptions{{Chart: "https://charts/web.tgz"}, {Repo: "oci://registry:5000/web:1.2.0"}} {
		if isRange(&fixed) {
			t.Errorf("%+v has versions", fixed)
		}
	}
	if !isRange(&fleet.HelmOptions{Repo: "oci://registry:5000/web"}) {
		t.Error("a chart of a registry has one version")
	}
}

func TestTheBundleOfAHelmOp(t *testing.T) {
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"},
		Spec: specOf(fleet.HelmOptions{Repo: "https://charts", Chart: "web", Version: "^1", ReleaseName: "shop"})}
	op.Spec.Labels, op.Spec.DefaultNamespace = map[string]string{"team": "a"}, "shop"
	bundle, err := bundleOf(op, op.Spec.Helm, &scan.Chart{Version: "1.2.0", Files: map[string][]byte{"Chart.yaml": []byte("name: web")}})
	if err != nil {
		t.Fatal(err)
	}
	if bundle.Name != "web" || bundle.Labels["team"] != "a" || bundle.Labels[fleet.LabelHelmOpName] != "web" ||
		bundle.Spec.DefaultNamespace != "shop" || bundle.Spec.Targets[0].ClusterGroup != "default" {
		t.Errorf("%+v", bundle)
	}
	helm := bundle.Spec.Helm
	if helm.Repo != "" || helm.Version != "" || helm.ReleaseName != "shop" || len(bundle.Spec.Resources) != 1 ||
		bundle.Spec.Resources[0].Name != helm.Chart+"/Chart.yaml" {
		t.Errorf("%+v, %+v", helm, bundle.Spec.Resources)
	}
	if op.Spec.Helm.Repo == "" || len(op.Spec.Labels) != 1 {
		t.Errorf("the HelmOp was changed: %+v", op.Spec)
	}
	op.Spec.Targets = []fleet.BundleTarget{{ClusterName: "edge"}}
	large, err := bundleOf(op, op.Spec.Helm, &scan.Chart{Version: "1.2.0"})
	if err != nil || large.Spec.Helm.Version != "1.2.0" || large.Spec.Helm.Repo != "https://charts" || len(large.Spec.Resources) > 0 ||
		len(large.Spec.Targets) != 1 {
		t.Errorf("a large chart: %+v, %v", large.Spec, err)
	}
}

func TestTheTimeBetweenTwoLooks(t *testing.T) {
	clock := testclock.NewFakePassiveClock(now)
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec: specOf(fleet.HelmOptions{Repo: "https://charts", Chart: "web", Version: "^1"})}
	for name, row := range map[string]struct {
		interval time.Duration
		problem  *ownbundle.Problem
		want     time.Duration
	}{
		"no interval":                      {0, nil, 0},
		"a short interval":                 {time.Millisecond, nil, minInterval},
		"the fourth failure to look":       {time.Second, &ownbundle.Problem{Condition: conditionPolled}, 8 * retryInterval},
		"the fourth time without a Secret": {time.Second, &ownbundle.Problem{Condition: ownbundle.ConditionAccepted}, retryInterval},
		"a failure with a long interval":   {time.Hour, &ownbundle.Problem{Condition: conditionPolled}, time.Hour},
	} {
		op.Spec.PollingInterval = &metav1.Duration{Duration: row.interval}
		r := &reconciliation{Controller: New(Deps{Clock: clock}), op: op, seen: &seen{generation: 2, failures: 3},
			Turn: ownbundle.Turn{Problem: row.problem}}
		r.remember(nil)
		if got := r.seen.next.Sub(now); got < row.want || got > row.want+row.want/10 {
			t.Errorf("%s: %s", name, got)
		}
	}
	r := &reconciliation{Controller: New(Deps{Clock: clock}), op: op, seen: &seen{generation: 1}}
	if r.remember(errors.New("a conflict")); r.seen.generation != 1 {
		t.Error("a failed write counts as an attempt for the new spec")
	}
}

func TestTheStatusOfAHelmOp(t *testing.T) {
	bundle := func(ok bool, observed int64) *fleet.Bundle {
		b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}
		b.Status.ObservedGeneration, b.Status.Summary = observed, fleet.BundleSummary{DesiredReady: 2, Ready: 1}
		b.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, ok, "", "NotReady(1) [c1]")}
		return b
	}
	nowhere := bundle(true, 1)
	nowhere.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, true, reasons.NoTarget, "its targets match no Cluster")}
	op := &fleet.HelmOp{Status: fleet.HelmOpStatus{Version: "1.2.0", ObservedGeneration: 3}}
	for name, row := range map[string]struct {
		bundle                   *fleet.Bundle
		problem                  *ownbundle.Problem
		condition, reason, parts string
	}{
		"all is ready":     {bundle(true, 1), nil, readyCondition, reasons.Ready, ""},
		"it has no target": {nowhere, nil, readyCondition, reasons.NoTarget, "deployed nowhere: web: its targets match no Cluster"},
		"one is not":       {bundle(false, 1), nil, readyCondition, reasons.BundlesNotReady, "web: NotReady(1) [c1]"},
		"it was not read":  {bundle(true, 0), nil, readyCondition, reasons.BundlesNotReady, "web: the hub has not read it yet"},
		"it was just made": {nil, nil, readyCondition, reasons.BundlesNotReady, "has just been written"},
		"a refused field": {nil, &ownbundle.Problem{Condition: ownbundle.ConditionAccepted, Reason: reasons.HelmOpInvalid, Message: "m"},
			ownbundle.ConditionAccepted, reasons.HelmOpInvalid, "m"},
		"a server is away": {bundle(true, 1), &ownbundle.Problem{Condition: conditionPolled, Reason: reasons.ChartUnreadable, Message: "m"},
			conditionPolled, reasons.ChartUnreadable, "m"},
	} {
		before := fleet.HelmOpStatus{Conditions: []fleet.Condition{kube.Condition(fleet.ConditionSupported, false, "", "")}}
		after := describe(before, op, row.bundle, true, ownbundle.Turn{Problem: row.problem}, now)
		got := kube.FindCondition(after.Conditions, row.condition)
		if got == nil || got.Reason != row.reason || !strings.Contains(got.Message, row.parts) {
			t.Errorf("%s: %+v", name, after.Conditions)
		}
		ready := kube.FindCondition(after.Conditions, readyCondition)
		isReady := row.reason == reasons.Ready || row.reason == reasons.NoTarget
		if (ready.Status == corev1.ConditionTrue) != isReady || (after.Display.Message == "") != isReady || after.Version != "1.2.0" ||
			after.ObservedGeneration != 3 || kube.FindCondition(after.Conditions, fleet.ConditionSupported) != nil {
			t.Errorf("%s: %+v", name, after)
		}
		if row.bundle != nil && after.Display.ReadyBundleDeployments != "1/2" {
			t.Errorf("%s: %+v", name, after.Display)
		}
	}
}

func TestARefusedHelmOpWaitsForAnEvent(t *testing.T) {
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}}
	op.Spec.PollingInterval = &metav1.Duration{Duration: time.Second}
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(op).WithStatusSubresource(op).Build()
	if err := stored.Get(t.Context(), client.ObjectKeyFromObject(op), op); err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]*seen{
		"a new one": {}, "after a failure": {problem: &ownbundle.Problem{}, next: now.Add(-time.Hour)},
	} {
		c := New(Deps{Client: stored, Clock: testclock.NewFakePassiveClock(now), Recorder: events.NewFakeRecorder(10)})
		r := &reconciliation{Controller: c, op: op, before: op.DeepCopy(), seen: before}
		r.Fail(ownbundle.ConditionAccepted, reasons.HelmOpInvalid, "%s", check(&op.Spec))
		result, err := r.report(t.Context())
		if err != nil || !result.IsZero() {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if err := stored.Get(t.Context(), client.ObjectKeyFromObject(op), op); err != nil {
			t.Fatal(err)
		}
	}
}
