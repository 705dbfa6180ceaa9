package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

// answerRights returns the Roles for the answers to accounts of the workspace, and the names of the
// Secrets in them.
func (f fixture) answerRights() (roles []rbacv1.Role, names []string) {
	f.t.Helper()
	var list rbacv1.RoleList
	f.check(f.List(context.Background(), &list, client.InNamespace(naming.RegistrationNamespace(naming.SystemNamespace))))
	for _, role := range list.Items {
		if reader := role.Annotations["muster/reader"]; len(reader) <= len(f.workspace) || reader[:len(f.workspace)+1] != f.workspace+"/" {
			continue
		}
		roles = append(roles, role)
		for _, rule := range role.Rules {
			if len(rule.ResourceNames) == 0 || len(rule.Verbs) != 1 || rule.Verbs[0] != "get" {
				f.t.Errorf("Role %s has the rule %v", role.Name, rule)
			}
			names = append(names, rule.ResourceNames...)
		}
	}
	slices.Sort(names)
	return roles, names
}

// answered sends the request of an agent of Rancher Fleet, and returns its answer after the grant.
func (f fixture) answered(values map[string]string, id string) *corev1.Secret {
	f.t.Helper()
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: id, ClientRandom: f.workspace})
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: naming.RegistrationNamespace(naming.SystemNamespace), Name: naming.CredentialSecret(id, f.workspace),
	}}
}

// namesAre reports whether the Roles for answers have these names.
func (f fixture) namesAre(want ...string) func() error {
	slices.Sort(want)
	return func() error {
		if _, names := f.answerRights(); cmp.Diff(want, names) != "" {
			return fmt.Errorf("readable are %q", names)
		}
		return nil
	}
}

// TestTheAnswersToATokenShareARole has two agents of Rancher Fleet join with one token, and one
// with another. No token reads the answers to another one, and a Role goes with its account.
func TestTheAnswersToATokenShareARole(t *testing.T) {
	f, ctx := newFixture(t), context.Background()
	_, values := f.token("shared", "")
	_, others := f.token("other", "")
	first, second := f.answered(values, "first"), f.answered(values, "second")
	third := f.answered(others, "third")
	f.eventually("all are readable", f.namesAre(first.Name, second.Name, third.Name))
	if roles, _ := f.answerRights(); len(roles) != 2 {
		t.Errorf("there are %d Roles", len(roles))
	}
	for _, right := range []struct {
		values map[string]string
		answer *corev1.Secret
		reads  bool
	}{{values, first, true}, {values, second, true}, {values, third, false}, {others, third, true}, {others, first, false}} {
		asking := f.as(right.values["token"])
		f.eventually("the authorizer knows the right", func() error {
			err := asking.Get(ctx, client.ObjectKeyFromObject(right.answer), &corev1.Secret{})
			if right.reads {
				return err
			}
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s reads the answer %s: %v", right.values["tokenName"], right.answer.Name, err)
			}
			return nil
		})
		if err := asking.List(ctx, &corev1.SecretList{}, client.InNamespace(first.Namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("%s lists Secrets: %v", right.values["tokenName"], err)
		}
	}
	f.check(f.Get(ctx, client.ObjectKeyFromObject(first), first))
	agent := legacyAgent{fixture: f, answer: map[string]string{}}
	for key, value := range first.Data {
		agent.answer[key] = string(value)
	}
	agent.Client = f.as(agent.answer["token"])
	f.eventually("the agent beats", func() error { return agent.beat(time.Now()) })
	f.eventually("its answer is withdrawn", func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(first), &corev1.Secret{})) })
	f.eventually("its right is withdrawn", f.namesAre(second.Name, third.Name))

	roles, _ := f.answerRights()
	for _, role := range roles {
		account := &corev1.ServiceAccount{}
		f.check(f.get(account, f.workspace, role.Annotations["muster/reader"][len(f.workspace)+1:]))
		f.check(f.Delete(ctx, account))
		for _, o := range []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}} {
			f.eventually("the right of a deleted account is gone", func() error {
				err := f.Get(ctx, client.ObjectKeyFromObject(&role), o)
				if err == nil && o.GetUID() != role.UID && o.GetAnnotations()["muster/reader-uid"] != string(account.UID) {
					return nil // of the next account
				}
				return gone(err)
			})
		}
	}
}

// TestTheRightsToReadAnswersEndAfterAHubThatWasKilled leaves what a hub leaves that is killed: the
// name of an answer that was never written, and the Role of an account deleted meanwhile.
func TestTheRightsToReadAnswersEndAfterAHubThatWasKilled(t *testing.T) {
	f, ctx := newAlone(t, ""), context.Background()
	_, values := f.token("new-token", "")
	answer := f.answered(values, "waits")
	f.eventually("it is readable", f.namesAre(answer.Name))
	f.hub.Kill()
	roles, _ := f.answerRights()
	role := roles[0].DeepCopy()
	role.Rules[0].ResourceNames = append(role.Rules[0].ResourceNames, "never-written")
	role.Annotations["muster/readable-requests"] = "2"
	f.check(f.Update(ctx, role))
	left := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
		Namespace: role.Namespace, Name: "left", Labels: role.Labels, Annotations: map[string]string{
			"muster/reader": f.workspace + "/gone", "muster/reader-uid": "gone", "muster/readable-requests": "0",
		},
	}}
	binding := &rbacv1.RoleBinding{ObjectMeta: *left.ObjectMeta.DeepCopy(), RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "Role", Name: "left",
	}}
	f.check(errors.Join(f.Create(ctx, left), f.Create(ctx, binding)))
	f.hub.Start()
	f.eventually("only the answer is readable", f.namesAre(answer.Name))
	for _, o := range []client.Object{left, binding} {
		f.eventually("the right of a deleted account is gone", func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(o), o)) })
	}
}
