package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// readRight returns the Role that lets the accounts of the workspace read their requests, and the
// names of these requests.
func (f fixture) readRight() (*rbacv1.Role, []string) {
	f.t.Helper()
	var list rbacv1.RoleList
	f.check(f.List(context.Background(), &list, client.InNamespace(f.workspace), client.HasLabels{fleet.LabelManaged}))
	for i, role := range list.Items {
		if !strings.HasPrefix(role.Name, "registration-") {
			continue
		}
		var names []string
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) == 0 {
				f.t.Errorf("a rule of Role %s is for all requests", role.Name)
			}
			names = append(names, rule.ResourceNames...)
		}
		return &list.Items[i], names
	}
	return nil, nil
}

// TestTheRightToReadAnAnswerIsRemovedByTheHubAfterOneThatWasKilled leaves what a hub leaves that is
// killed after it has withdrawn an answer. The next heartbeat that would prove that the agent has
// its credential is shown minutes later.
func TestTheRightToReadAnAnswerIsRemovedByTheHubAfterOneThatWasKilled(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "answered"})
	f.untilReady(naming.Cluster("answered"), "Ready")
	ctx := context.Background()
	var requests fleet.ClusterRegistrationList
	f.check(f.List(ctx, &requests, client.InNamespace(f.workspace)))
	request := &requests.Items[0]
	withdrawn := func() error {
		f.check(f.Get(ctx, client.ObjectKeyFromObject(request), request))
		if len(request.Status.Answer) > 0 {
			return errors.New("it has its answer")
		}
		if _, names := f.readRight(); len(names) > 0 {
			return fmt.Errorf("its agent may read %q", names)
		}
		return nil
	}
	f.eventually("the answer is withdrawn", withdrawn)
	for _, left := range []string{request.Name, "request-that-is-gone"} {
		f.hub.Kill()
		role, _ := f.readRight()
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, ResourceNames: []string{left},
			Verbs: []string{"get", "list", "watch"},
		}}
		role.Annotations["muster/readable-requests"] = "1"
		f.check(f.Update(ctx, role))
		f.hub.Start()
		f.eventually("the right to read "+left+" is removed", withdrawn)
	}
}

// TestTheRightToReadRequestsComesBack deletes the Role of a token while a request waits.
func TestTheRightToReadRequestsComesBack(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("careful", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	f.join(values, map[string]any{"clientID": "waits"})
	var role *rbacv1.Role
	f.eventually("the request is readable", func() error {
		var names []string
		if role, names = f.readRight(); len(names) != 1 {
			return fmt.Errorf("readable are %q", names)
		}
		return nil
	})
	uid := role.UID
	f.check(f.Delete(context.Background(), role))
	f.eventually("it is readable again", func() error {
		if again, names := f.readRight(); again == nil || again.UID == uid || len(names) != 1 {
			return fmt.Errorf("readable are %q", names)
		}
		return nil
	})
}
