package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// stagedRig is a ClusterResourcePlacement that runs roll out to a member in the stage canary and
// two in the stage prod, second after first.
type stagedRig struct {
	fixture
	shop                  string
	crp                   *placement.ClusterResourcePlacement
	canary, first, second *registered
}

const twoStages = `
stages:
- {name: canary, labelSelector: {matchLabels: {env: canary}}}
- {name: prod, labelSelector: {matchLabels: {env: prod}}, sortingLabelKey: order}`

func newStagedRig(f fixture) *stagedRig {
	f.t.Helper()
	r := &stagedRig{fixture: f, shop: f.shop()}
	r.canary, r.first, r.second = f.joined("run-c", "env=canary"), f.joined("run-z", "env=prod", "order=1"),
		f.joined("run-a", "env=prod", "order=2")
	r.crp = f.crp(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + r.shop + `}]
policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: ` +
		`{matchLabels: {test: $TEST}}}]}}}}
strategy: {type: External}`)
	r.untilVersions("0")
	r.untilSays(r.crp, "RolloutStarted", metav1.ConditionUnknown, "no staged update run has reached")
	return r
}

// untilVersions waits until just these versions are kept.
func (r *stagedRig) untilVersions(want ...string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("the versions %v are kept", want), func() error {
		if err := r.Get(context.Background(), client.ObjectKeyFromObject(r.crp), r.crp); err != nil {
			return err
		}
		if !slices.Equal(r.crp.Status.ResourceIndexes, want) {
			return fmt.Errorf("they are %v; it says %q", r.crp.Status.ResourceIndexes, r.crp.Status.Message)
		}
		return nil
	})
}

// set changes what is selected.
func (r *stagedRig) set(value string) {
	r.t.Helper()
	r.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.shop, Name: "settings"}}, fmt.Sprintf(`{"data":{"a":%q}}`, value))
}

// has is what members have of the setting, "" without Works.
func (r *stagedRig) has() string {
	r.t.Helper()
	all := map[string]string{}
	for _, work := range r.works(r.crp) {
		if settings := manifests(r.t, work)["ConfigMap settings"]; settings != nil {
			data, _ := settings.Object["data"].(map[string]any)
			all[work.Namespace] = fmt.Sprint(data["a"])
		}
	}
	return fmt.Sprintf("%s/%s/%s", all[r.canary.namespaceName()], all[r.first.namespaceName()], all[r.second.namespaceName()])
}

// untilHas waits until the members canary, first and second have these settings.
func (r *stagedRig) untilHas(want string) {
	r.t.Helper()
	r.eventually("the members have "+want, func() error {
		if has := r.has(); has != want {
			return fmt.Errorf("they have %s", has)
		}
		return nil
	})
}

func (r *stagedRig) strategy(spec string) string {
	r.t.Helper()
	s := &placement.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}
	r.check(yaml.UnmarshalStrict([]byte(spec), &s.Spec))
	r.check(r.Create(context.Background(), s))
	r.t.Cleanup(func() { _ = r.Delete(context.Background(), s) })
	return s.Name
}

// run creates a run. An index of "" is the latest version.
func (r *stagedRig) run(strategy, index, state string) *placement.ClusterStagedUpdateRun {
	r.t.Helper()
	run := &placement.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{GenerateName: "run-"}, Spec: placement.UpdateRunSpec{
		PlacementName: r.crp.Name, ResourceSnapshotIndex: index, StagedUpdateStrategyName: strategy, State: state,
	}}
	r.check(r.Create(context.Background(), run))
	r.t.Cleanup(func() { _ = r.Delete(context.Background(), run) })
	return run
}

// untilRun waits until a condition of a run has a reason and the run says some words.
func (f fixture) untilRun(run client.Object, kind, reason, words string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s of run %s is %s and it says %q", kind, run.GetName(), reason, words), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(run), run); err != nil {
			return err
		}
		status := &placement.UpdateRunStatus{}
		switch r := run.(type) {
		case *placement.ClusterStagedUpdateRun:
			status = &r.Status
		case *placement.StagedUpdateRun:
			status = &r.Status
		}
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil || c.Reason != reason || !strings.Contains(status.Message, words) {
			return fmt.Errorf("it is %+v, and says %q", c, status.Message)
		}
		return nil
	})
}

// approve approves a request as `kubectl fleet approve` does.
func (f fixture) approveStage(by client.Client, request client.Object) error {
	f.t.Helper()
	if err := f.Get(context.Background(), client.ObjectKeyFromObject(request), request); err != nil {
		return err
	}
	return writeStatus(by, request, fmt.Sprintf(`{"conditions":[{"type":"Approved","status":"True","reason":"ApprovedByTest","message":"lgtm",
		"lastTransitionTime":"2026-01-01T00:00:00Z","observedGeneration":%d}]}`, request.GetGeneration()))
}

func TestAStagedUpdateRunGoesThroughItsStages(t *testing.T) {
	r := newStagedRig(newFixture(t))
	work := r.crp.Name + "-work"
	run := r.run(r.strategy(`
stages:
- name: canary
  labelSelector: {matchLabels: {env: canary}}
  afterStageTasks: [{type: TimedWait, waitTime: 2s}, {type: Approval}]
- {name: prod, labelSelector: {matchLabels: {env: prod}}, sortingLabelKey: order, maxConcurrency: 1}`), "", placement.StateInitialize)
	r.untilRun(run, "Initialized", "UpdateRunInitializedSuccessfully", "set spec.state to Run")
	if has := r.has(); has != "//" || run.Status.ResourceSnapshotIndexUsed != "0" || run.Status.PolicyObservedClusterCount != 3 {
		t.Fatalf("initialized, the members have %s; status %+v", has, run.Status)
	}
	r.patch(run, `{"spec":{"state":"Run"}}`)
	r.untilHas("1//")
	r.untilRun(run, "Progressing", "UpdateRunProgressing", "stage canary: updating "+r.canary.name)
	r.untilSays(r.crp, "RolloutStarted", metav1.ConditionUnknown, "no staged update run has reached")
	if c := meta.FindStatusCondition(r.crp.Status.Conditions,
		"ClusterResourcePlacementRolloutStarted"); c.Reason != "RolloutControlledByExternalController" {
		t.Errorf("the reason is %s", c.Reason)
	}
	r.canary.apply(work, "")
	r.untilRun(run, "Progressing", "UpdateRunWaiting", "approval request "+run.Name+"-after-canary")
	request := &placement.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-after-canary"}}
	r.eventually("it is approved", func() error { return r.approveStage(r, request) })
	r.untilHas("1/1/")
	r.check(r.Get(context.Background(), client.ObjectKeyFromObject(request), request))
	if c := meta.FindStatusCondition(request.Status.Conditions, "ApprovalAccepted"); c == nil ||
		c.Reason != "ApprovalRequestApprovalAccepted" || !metav1.IsControlledBy(request, run) {
		t.Errorf("the request says %+v", request)
	}
	r.check(r.Get(context.Background(), client.ObjectKeyFromObject(run), run))
	waited := meta.FindStatusCondition(run.Status.StagesStatus[0].AfterStageTaskStatus[0].Conditions, "WaitTimeElapsed")
	updated := meta.FindStatusCondition(run.Status.StagesStatus[0].Clusters[0].Conditions, "Succeeded")
	if waited == nil || waited.LastTransitionTime.Sub(updated.LastTransitionTime.Time).Seconds() < 2 {
		t.Errorf("it waits from %+v to %+v", updated, waited)
	}
	r.first.apply(work, "")
	r.untilHas("1/1/1")
	r.second.apply(work, "")
	r.untilRun(run, "Succeeded", "UpdateRunSucceeded", "")
	r.untilSays(r.crp, "Available", metav1.ConditionTrue, "on all 3 members")
	if r.crp.Status.ObservedResourceIndex != "0" || meta.FindStatusCondition(r.crp.Status.Conditions, placement.ConditionSupported) != nil {
		t.Errorf("the placement says %q, %+v", r.crp.Status.ObservedResourceIndex, r.crp.Status.Conditions)
	}

	// Nothing that changes reaches a member without a run.
	r.set("2")
	r.untilVersions("0", "1")
	if has := r.has(); has != "1/1/1" {
		t.Errorf("without a run they have %s", has)
	}
}

func TestARunBringsItsVersionWhateverIsSelectedMeanwhileAndGoesBack(t *testing.T) {
	r := newStagedRig(newFixture(t))
	work, strategy := r.crp.Name+"-work", r.strategy(twoStages)
	all := []*registered{r.canary, r.first, r.second}
	run := r.run(strategy, "", placement.StateRun)
	r.untilHas("1//")
	r.set("2") // while the run is in its first stage
	r.untilVersions("0", "1")
	for _, m := range all {
		m.apply(work, "")
	}
	r.untilRun(run, "Succeeded", "UpdateRunSucceeded", "")
	if has := r.has(); has != "1/1/1" {
		t.Fatalf("they have %s", has)
	}
	next := r.run(strategy, "1", placement.StateRun)
	r.untilHas("2/1/1")
	r.canary.apply(work, "")
	r.untilHas("2/2/1")
	// Only one run is in progress at a time; the next begins when it is stopped.
	back := r.run(strategy, "0", placement.StateRun)
	r.untilRun(back, "Progressing", "UpdateRunWaiting", "run "+next.Name+" of")
	r.patch(next, `{"spec":{"state":"Stop"}}`)
	r.untilRun(next, "Progressing", "UpdateRunStopping", "waiting for "+r.first.name)
	r.first.apply(work, "")
	r.untilHas("1/2/1")
	r.untilRun(next, "Succeeded", "UpdateRunFailed", "run "+back.Name+" has begun")
	r.canary.apply(work, "")
	r.untilHas("1/1/1")
	r.first.apply(work, "")
	r.second.apply(work, "")
	r.untilRun(back, "Succeeded", "UpdateRunSucceeded", "")
	r.untilSays(r.crp, "Available", metav1.ConditionTrue, "on all 3 members")
	if r.crp.Status.ObservedResourceIndex != "0" {
		t.Errorf("the placement is at version %s", r.crp.Status.ObservedResourceIndex)
	}
	old := r.run(strategy, "7", placement.StateRun)
	r.untilRun(old, "Initialized", "UpdateRunInitializedFailed",
		"version 7 of ClusterResourcePlacement "+r.crp.Name+" is not kept; kept are 0, 1")

	// The hub keeps the requested number of versions, and the versions of runs. All versions go with
	// the placement.
	r.patch(r.crp, `{"spec":{"revisionHistoryLimit":1}}`)
	r.untilVersions("0", "1")
	r.set("3")
	r.untilVersions("0", "2")
	uid := string(r.crp.UID)
	kept := func() int {
		var secrets corev1.SecretList
		r.check(r.List(context.Background(), &secrets, client.InNamespace(naming.SystemNamespace),
			client.MatchingLabels{"muster/version-of": uid}))
		return len(secrets.Items)
	}
	if n := kept(); n != 2 {
		t.Errorf("%d versions are kept", n)
	}
	r.dispose(r.crp)
	if n := kept(); n != 0 {
		t.Errorf("without the placement, %d versions are kept", n)
	}
}

func TestAStoppedRunGoesOnAlsoAfterTheHubWasKilled(t *testing.T) {
	r := newStagedRig(newAlone(t, ""))
	work := r.crp.Name + "-work"
	run := r.run(r.strategy(twoStages), "", placement.StateRun)
	r.untilHas("1//")
	r.patch(run, `{"spec":{"state":"Stop"}}`)
	r.untilRun(run, "Progressing", "UpdateRunStopping", "waiting for "+r.canary.name)
	r.canary.apply(work, "")
	r.untilRun(run, "Progressing", "UpdateRunStopped", "set spec.state to Run")
	r.set("2")
	r.untilVersions("0", "1")
	r.restartHub()
	if has := r.has(); has != "1//" {
		t.Fatalf("stopped, they have %s", has)
	}
	r.patch(run, `{"spec":{"state":"Run"}}`)
	r.untilHas("1/1/")
	r.hub.Kill()
	r.first.apply(work, "")
	r.restartHub()
	r.untilHas("1/1/1")
	r.second.apply(work, "")
	r.untilRun(run, "Succeeded", "UpdateRunSucceeded", "")
	if len(run.Status.StagesStatus[1].Clusters) != 2 || run.Status.StagesStatus[1].Clusters[0].ClusterName != r.first.name {
		t.Errorf("the stage has %+v", run.Status.StagesStatus[1].Clusters)
	}
	if err := r.Patch(context.Background(), run.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resourceSnapshotIndex":"1"}}`))); !apierrors.IsInvalid(err) {
		t.Errorf("the version of a run is changed: %v", err)
	}
	if err := r.Patch(context.Background(), run.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"state":"Initialize"}}`))); !apierrors.IsInvalid(err) {
		t.Errorf("a run that ran is only initialized: %v", err)
	}
}

func TestARunIsStuckWhereAMemberFailsAndGoesOnWhenItIsMended(t *testing.T) {
	r := newStagedRig(newFixture(t))
	work := r.crp.Name + "-work"
	run := r.run(r.strategy(twoStages), "", placement.StateRun)
	r.untilHas("1//")
	r.canary.apply(work, "no such namespace")
	r.untilRun(run, "Progressing", "UpdateRunStuck", r.canary.name+": ConfigMap n/c: no such namespace")
	if has := r.has(); has != "1//" {
		t.Errorf("stuck, they have %s", has)
	}
	r.canary.apply(work, "")
	r.untilHas("1/1/")
	// Who is not picked any more cannot be waited for.
	r.patch(r.crp, `{"spec":{"policy":{"affinity":{`+
		`"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":[
		{"labelSelector":{"matchLabels":{"test":"`+r.workspace+`","env":"canary"}}}]}}}}}}`)
	r.untilRun(run, "Succeeded", "UpdateRunFailed", "does not pick "+r.first.name+", "+r.second.name+" any more")
	if has := r.has(); has != "1/1/" {
		t.Errorf("without a run, the placement is removed: %s", has)
	}
	r.first.apply(work, "")
	next := r.run(r.strategy(`stages: [{name: all, labelSelector: {}}]`), "", placement.StateRun)
	r.first.remove(work) // which the hub deletes in the last stage
	r.untilRun(next, "Succeeded", "UpdateRunSucceeded", "")
	r.untilHas("1//")
}

func TestARunThatCannotBeMeantSaysSo(t *testing.T) {
	r := newStagedRig(newFixture(t))
	for name, c := range map[string]struct{ stages, says string }{
		"in two stages": {`stages: [{name: a, labelSelector: {}}, {name: b, labelSelector: {}}]`, "is in the stages a and b"},
		"in no stage":   {`stages: [{name: a, labelSelector: {matchLabels: {env: none}}}]`, "no stage selects"},
		"no order":      {`stages: [{name: a, labelSelector: {}, sortingLabelKey: env}]`, "and not a whole number"},
	} {
		run := r.run(r.strategy(c.stages), "", placement.StateRun)
		r.untilRun(run, "Initialized", "UpdateRunInitializedFailed", c.says)
		if !meta.IsStatusConditionFalse(run.Status.Conditions, "Initialized") {
			t.Errorf("%s: %+v", name, run.Status.Conditions)
		}
	}
	// What is missing may come.
	name := "later-" + r.workspace
	run := r.run(name, "", placement.StateRun)
	r.untilRun(run, "Initialized", "UpdateRunInitializedFailed", "there is no ClusterStagedUpdateStrategy "+name)
	s := &placement.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placement.UpdateStrategySpec{
		Stages: []placement.StageConfig{{Name: "all", LabelSelector: &metav1.LabelSelector{}}},
	}}
	r.check(r.Create(context.Background(), s))
	t.Cleanup(func() { _ = r.Delete(context.Background(), s) })
	r.untilRun(run, "Initialized", "UpdateRunInitializedSuccessfully", "")
	for _, missing := range []string{"none-" + r.workspace, "a/b", "Not A Name"} {
		nowhere := &placement.ClusterStagedUpdateRun{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "run-"}, Spec: placement.UpdateRunSpec{
				PlacementName: missing, StagedUpdateStrategyName: name,
			},
		}
		r.check(r.Create(context.Background(), nowhere))
		t.Cleanup(func() { _ = r.Delete(context.Background(), nowhere) })
		r.untilRun(nowhere, "Initialized", "UpdateRunInitializedFailed", "there is no ClusterResourcePlacement")
	}
}

// TestNobodySkipsAStageByForging has a tenant with all rights to runs and approval requests in a
// namespace, but for the one to approve.
func TestNobodySkipsAStageByForging(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	shop := f.shop()
	canary, prod := f.joined("forge-c", "env=canary"), f.joined("forge-p", "env=prod")
	for _, m := range []*registered{canary, prod} {
		m.collects(shop)
	}
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	f.check(yaml.UnmarshalStrict([]byte(`
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: `+
		`{matchLabels: {test: `+f.workspace+`}}}]}}}}
strategy: {type: External}`), &rp.Spec))
	f.check(f.Create(ctx, rp))
	s := &placement.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "plan"}}
	f.check(yaml.UnmarshalStrict([]byte(`
stages:
- {name: canary, labelSelector: {matchLabels: {env: canary}}, afterStageTasks: [{type: Approval}]}
- {name: prod, labelSelector: {matchLabels: {env: prod}}}`), &s.Spec))
	f.check(f.Create(ctx, s))
	tenant, _ := f.userWith(shop, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	})
	run := &placement.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "run"}, Spec: placement.UpdateRunSpec{
		PlacementName: rp.Name, StagedUpdateStrategyName: s.Name, State: placement.StateRun,
	}}
	forged := &placement.ApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "run-after-canary"}, Spec: placement.ApprovalRequestSpec{
			TargetUpdateRun: "run", TargetStage: "canary",
		},
	}
	f.eventually("the tenant makes the request before the run does", func() error {
		return client.IgnoreAlreadyExists(tenant.Create(ctx, forged.DeepCopy()))
	})
	f.eventually("and approves it", func() error { return f.approveStage(tenant, forged.DeepCopy()) })
	f.check(tenant.Create(ctx, run))
	name := shop + ".settings-work"
	f.eventually("the first stage begins", func() error { return f.get(&placement.Work{}, canary.namespaceName(), name) })
	canary.apply(name, "")
	f.untilRun(run, "Progressing", "UpdateRunWaiting", "run-after-canary is not of this run and has no effect")
	for what, status := range map[string]string{
		"that the run has succeeded": `{"conditions":[{"type":"Succeeded",` +
			`"status":"True","reason":"UpdateRunSucceeded","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
		"which version it brings": `{"resourceSnapshotIndexUsed":"9"}`,
		"its stages":              `{"stagesStatus":null}`,
		"when it began":           `{"begun":"2020-01-01T00:00:00.000000Z"}`,
	} {
		if err := writeStatus(tenant, run, status); !apierrors.IsForbidden(err) {
			t.Errorf("%s is forged: %v", what, err)
		}
	}
	f.check(tenant.Delete(ctx, forged))
	f.untilRun(run, "Progressing", "UpdateRunWaiting", "waits for the approval after stage canary: approval request run-after-canary")
	if err := f.get(&placement.Work{}, prod.namespaceName(), name); !apierrors.IsNotFound(err) {
		t.Fatalf("the second stage has begun: %v", err)
	}
	var request placement.ApprovalRequest
	f.check(f.get(&request, shop, "run-after-canary"))
	f.check(f.approveStage(tenant, &request)) // who may write its status may approve
	f.eventually("the second stage begins", func() error { return f.get(&placement.Work{}, prod.namespaceName(), name) })
	prod.apply(name, "")
	f.untilRun(run, "Succeeded", "UpdateRunSucceeded", "")
	var secrets corev1.SecretList
	if err := tenant.List(ctx, &secrets, client.InNamespace(naming.SystemNamespace)); !apierrors.IsForbidden(err) {
		t.Errorf("the tenant reads versions: %v", err)
	}
}

// TestAVersionComesBackOnlyWithTheRightsOfItsAuthor has an administrator place a Secret, and then a
// tenant change the placement who may not read it.
func TestAVersionComesBackOnlyWithTheRightsOfItsAuthor(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	m, shop := f.joined("version"), f.shop()
	m.collects(shop)
	n := f.placer(shop)
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "greedy"}}
	f.check(yaml.UnmarshalStrict([]byte(`
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}, {group: "", version: v1, kind: Secret, name: password}]
policy: {placementType: PickFixed, clusterNames: [`+m.name+`]}
strategy: {type: External}`), &rp.Spec))
	f.check(f.Create(ctx, rp))
	s := &placement.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "plan"}}
	f.check(yaml.UnmarshalStrict([]byte(`stages: [{name: all, labelSelector: {}}]`), &s.Spec))
	f.check(f.Create(ctx, s))
	bring := func(name, index string) *placement.StagedUpdateRun {
		run := &placement.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Spec: placement.UpdateRunSpec{
			PlacementName: rp.Name, StagedUpdateStrategyName: s.Name, ResourceSnapshotIndex: index, State: placement.StateRun,
		}}
		f.check(f.Create(ctx, run))
		return run
	}
	versions := func(want ...string) {
		f.eventually(fmt.Sprintf("the versions %v are kept", want), func() error {
			if err := f.Get(ctx, client.ObjectKeyFromObject(rp), rp); err != nil {
				return err
			}
			if !slices.Equal(rp.Status.ResourceIndexes, want) {
				return fmt.Errorf("they are %v; it says %q", rp.Status.ResourceIndexes, rp.Status.Message)
			}
			return nil
		})
	}
	holds := func(want int) {
		f.eventually(fmt.Sprintf("the member holds %d objects", want), func() error {
			var work placement.Work
			if err := f.get(&work, m.namespaceName(), shop+".greedy-work"); err != nil || len(work.Spec.Workload.Manifests) != want {
				return fmt.Errorf("it holds %d: %v", len(work.Spec.Workload.Manifests), err)
			}
			return nil
		})
	}
	versions("0")
	first := bring("first", "0")
	holds(2)
	m.apply(shop+".greedy-work", "")
	f.untilRun(first, "Succeeded", "UpdateRunSucceeded", "")
	less := client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"resourceSelectors":[{"group":"","version":"v1","kind":"ConfigMap","name":"settings"}]}}`))
	f.eventually("the tenant selects less", func() error { return n.as.Patch(ctx, rp.DeepCopy(), less) })
	versions("0", "1")
	second := bring("second", "")
	holds(1)
	m.apply(shop+".greedy-work", "")
	f.untilRun(second, "Succeeded", "UpdateRunSucceeded", "")
	back := bring("back", "0")
	f.untilRun(back, "Progressing", "UpdateRunStuck", n.name+", who last changed the spec, may not get secrets password")
	holds(1)
}

func TestARunUpdatesAsManyMembersAtOnceAsItsStageSaysWithTheirOverrides(t *testing.T) {
	r := newStagedRig(newFixture(t))
	work := r.crp.Name + "-work"
	r.override(r.shop, "per-member", `
placement: {name: `+r.crp.Name+`, scope: Cluster}
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy:
  overrideRules:
  - clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}
    jsonPatchOverrides: [{op: replace, path: /data/a, value: "${MEMBER-CLUSTER-LABEL-KEY-order}"}]`)
	run := r.run(r.strategy(`stages: [{name: all, labelSelector: {}, maxConcurrency: 70%}]`), "", placement.StateRun)
	r.untilHas("1//2") // by their names canary is the second, and second the first
	r.untilRun(run, "Progressing", "UpdateRunProgressing", "stage all: updating "+r.second.name+", "+r.canary.name)
	r.second.apply(work, "")
	r.untilHas("1/1/2")
	r.canary.apply(work, "")
	r.first.apply(work, "")
	r.untilRun(run, "Succeeded", "UpdateRunSucceeded", "")
}
