package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// staged is a run that waits for an approval after its first stage, with the request for it.
func (r rig) staged(workspace, name string) (*placement.StagedUpdateRun, *placement.ApprovalRequest) {
	r.t.Helper()
	ctx := r.t.Context()
	run := &placement.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name}, Spec: placement.UpdateRunSpec{
		PlacementName: "shop", StagedUpdateStrategyName: "canary-first", State: placement.StateRun,
	}}
	r.check(r.Create(ctx, run))
	r.t.Cleanup(func() { r.check(client.IgnoreNotFound(r.Delete(context.Background(), run))) })
	is := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
	}
	done := []metav1.Condition{is(placement.ConditionSucceeded, metav1.ConditionTrue, placement.ReasonClusterDone, "")}
	asked := name + "-after-canary"
	waits := "waits for the approval after stage canary: approval request " + asked
	run.Status = placement.UpdateRunStatus{
		ResourceSnapshotIndexUsed: "7", Message: waits,
		StagesStatus: []placement.StageUpdatingStatus{
			{
				StageName: "canary", Clusters: []placement.ClusterUpdatingStatus{{ClusterName: "edge-1", Conditions: done}},
				AfterStageTaskStatus: []placement.StageTaskStatus{{Type: placement.TaskApproval, ApprovalRequestName: asked}},
				Conditions: []metav1.Condition{is(placement.ConditionProgressing, metav1.ConditionFalse,
					placement.ReasonStageWaiting, waits)},
			},
			{StageName: "prod", Clusters: []placement.ClusterUpdatingStatus{{ClusterName: "edge-2"}, {ClusterName: "edge-3"}}},
		},
		Conditions: []metav1.Condition{
			is(placement.ConditionInitialized, metav1.ConditionTrue, placement.ReasonRunInitialized, ""),
			is(placement.ConditionProgressing, metav1.ConditionFalse, placement.ReasonRunWaiting, waits),
		},
	}
	r.check(r.Status().Update(ctx, run))
	request := &placement.ApprovalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: asked,
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(run, placement.GroupVersion.WithKind("StagedUpdateRun")),
		}}, Spec: placement.ApprovalRequestSpec{TargetUpdateRun: "shop-v2", TargetStage: "canary"}}
	r.check(r.Create(ctx, request))
	r.t.Cleanup(func() { r.check(client.IgnoreNotFound(r.Delete(context.Background(), request))) })
	return run, request
}

func TestAStageOfARunIsApprovedByWhoMay(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("staging")
	run, request := r.staged(workspace, "shop-v2")
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{resource}, Verbs: verbs}
	}
	reads := []rbacv1.PolicyRule{rule(runs, "get", "list"), rule(approvals, "get")}
	address := r.shared()
	reader := r.tenant("stage-reader", workspace, reads...)
	approver := r.tenant("stage-approver", workspace, append(reads, rule(approvals+"/status", "patch"))...)
	path := address + "/deliveries/stagedupdateruns/staging/shop-v2"
	const refusal = "You cannot approve this stage. You need the rights to get approvalrequests and to patch approvalrequests/status."
	for token, refused := range map[string]bool{reader: true, approver: false} {
		page := r.ask(http.MethodGet, path, token, "").text
		for _, part := range []string{
			"Approve stage canary</button>", "AwaitsApproval", "</progress> 1/1", "</progress> 0/2", "version 7 of",
			"muster approve runs staging/shop-v2",
		} {
			if !strings.Contains(page, part) {
				t.Errorf("the page has no %q:\n%s", part, page)
			}
		}
		if strings.Contains(page, "disabled") != refused || strings.Contains(page, refusal) != refused {
			t.Errorf("the button is disabled: %t\n%s", !refused, page)
		}
	}
	list := r.ask(http.MethodGet, address+"/deliveries", reader, "").text
	if !strings.Contains(list, `href="/deliveries/stagedupdateruns/staging/shop-v2"`) || !strings.Contains(list, "AwaitsApproval") ||
		!strings.Contains(list, "1/3") {
		t.Errorf("the run is not listed:\n%s", list)
	}
	form := func(decision, uid, value string) string {
		return url.Values{"decision": {decision}, "uid": {uid}, "reason": {value}}.Encode()
	}
	is := string(run.UID)
	for what, got := range map[string]answer{
		"403 who may only read": r.ask(http.MethodPost, path, reader, form("approve", is, request.Name)),
		"401 nobody":            r.ask(http.MethodPost, path, "", form("approve", is, request.Name)),
		"403 a page of another site": r.ask(http.MethodPost, path, approver, form("approve", is, request.Name),
			"Sec-Fetch-Site", "cross-site"),
		"403 another workspace": r.ask(http.MethodPost, address+"/deliveries/stagedupdateruns/others/shop-v2", approver,
			form("approve", is, request.Name)),
		"400 another run of its name":    r.ask(http.MethodPost, path, approver, form("approve", "another", request.Name)),
		"400 an approval of another one": r.ask(http.MethodPost, path, approver, form("approve", is, "shop-v2-after-prod")),
		"400 another decision":           r.ask(http.MethodPost, path, approver, form("confirm", is, request.Name)),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	if len(request.Status.Conditions) > 0 {
		t.Fatalf("it is approved: %v", request.Status)
	}
	if got := r.ask(http.MethodPost, path, approver, form("approve", is, request.Name)); got.status != http.StatusSeeOther {
		t.Errorf("who may approve: %d %s", got.status, got.text)
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	if c := meta.FindStatusCondition(request.Status.Conditions, placement.ConditionApproved); c == nil ||
		c.ObservedGeneration != request.Generation {
		t.Errorf("it is not approved: %v", request.Status)
	}
	run.Status.StagesStatus[0].AfterStageTaskStatus[0].Conditions = []metav1.Condition{{
		Type: placement.ConditionApprovalApproved, Status: metav1.ConditionTrue, Reason: placement.ReasonTaskApproved,
		LastTransitionTime: metav1.Now(),
	}}
	r.check(r.Status().Update(t.Context(), run))
	if page := r.ask(http.MethodGet, path, approver, "").text; strings.Contains(page, "Approve stage") {
		t.Errorf("an approval is offered of nothing:\n%s", page)
	}
	if got := r.ask(http.MethodPost, path, approver, form("approve", is, request.Name)); got.status != http.StatusBadRequest ||
		!strings.Contains(got.text, "does not wait for an approval, its state is Waiting") {
		t.Errorf("a run that waits for nothing: %d %s", got.status, got.text)
	}
}

// TestAPlacementLinksToItsRuns shows the runs of a placement to a visitor who may list them.
func TestAPlacementLinksToItsRuns(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("run-links")
	r.staged(workspace, "shop-v2")
	other, _ := r.staged(workspace, "other-v1")
	of := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "shop"}, Spec: placement.PlacementSpec{
		ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "shop"}},
	}}
	r.check(r.Create(t.Context(), of))
	t.Cleanup(func() { r.check(client.IgnoreNotFound(r.Delete(context.Background(), of))) })
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{resource}, Verbs: verbs}
	}
	address := r.shared()
	path := address + "/deliveries/resourceplacements/run-links/shop"
	const link = `href="/deliveries/stagedupdateruns/run-links/`
	reads := []rbacv1.PolicyRule{rule(placements, "get", "list")}
	blind := r.tenant("without-runs", workspace, reads...)
	if page := r.ask(http.MethodGet, path, blind, ""); page.status != http.StatusOK || strings.Contains(page.text, link) {
		t.Errorf("without the right to list runs: %d\n%s", page.status, page.text)
	}
	reader := r.tenant("with-runs", workspace, append(reads, rule(runs, "get", "list"))...)
	for _, name := range []string{"shop-v2", "other-v1"} {
		r.untilText(path, reader, link+name+`"`, true)
	}
	r.check(r.Delete(t.Context(), other))
	r.untilText(path, reader, link+"other-v1", false)
	if page := r.ask(http.MethodGet, path, reader, ""); !strings.Contains(page.text, link+`shop-v2"`) ||
		!strings.Contains(page.text, "AwaitsApproval") {
		t.Errorf("the other run:\n%s", page.text)
	}
}

// untilText waits until a page contains a text, or until it does not.
func (r rig) untilText(path, token, text string, has bool) {
	r.t.Helper()
	testkube.Eventually(r.t, "the page follows", func() error {
		if page := r.ask(http.MethodGet, path, token, ""); strings.Contains(page.text, text) != has {
			return fmt.Errorf("it has %q: %t\n%s", text, !has, page.text)
		}
		return nil
	})
}
