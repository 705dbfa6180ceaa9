package hub_test

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestTheRightToReadAnAnswerIsDeletedByTheHubAfterOneThatWasKilled leaves what a hub leaves that is
// killed after it has withdrawn an answer and deleted the Role: the next heartbeat that would prove
// that the agent has its credential is shown minutes later.
func TestTheRightToReadAnAnswerIsDeletedByTheHubAfterOneThatWasKilled(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "answered"})
	f.untilReady(naming.Cluster("answered"), "Ready")
	ctx := context.Background()
	var requests fleet.ClusterRegistrationList
	f.check(f.List(ctx, &requests, client.InNamespace(f.workspace)))
	request := &requests.Items[0]
	left := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.workspace, Name: "registration-" + string(request.UID), Labels: map[string]string{fleet.LabelManaged: "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(request, fleet.GroupVersion.WithKind("ClusterRegistration"))},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "registration-" + string(request.UID)},
	}
	withdrawn := func() error {
		f.check(f.Get(ctx, client.ObjectKeyFromObject(request), request))
		if len(request.Status.Answer) > 0 {
			return errors.New("it has its answer")
		}
		return gone(f.get(&rbacv1.RoleBinding{}, f.workspace, left.Name))
	}
	f.eventually("the answer is withdrawn", withdrawn)
	f.hub.Kill()
	f.check(f.Create(ctx, left))
	f.hub.Start()
	f.eventually("the rest is deleted", withdrawn)
}
