package membercluster

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

func TestAnIdentityIsOneThatOnlyOneClusterCanHave(t *testing.T) {
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}
	}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "Group", Name: name} }
	for _, c := range []struct {
		name     string
		identity rbacv1.Subject
		system   string
		says     string
	}{
		{"the how-to's account", account("fleet-system", "member-1-hub-cluster-access"), "cattle-fleet-system", ""},
		{"written as a User", user("system:serviceaccount:fleet-system:member-1"), "cattle-fleet-system", ""},
		{"beside the hub, where that is in fleet-system", account("fleet-system", "member-1"), naming.MemberSystemNamespace, ""},
		{"a User", user("member-1"), "cattle-fleet-system", ""},
		{"a group", group("members"), "cattle-fleet-system", "which can have many members"},
		{"everybody", group("system:authenticated"), "cattle-fleet-system", "of many users"},
		{"everybody else", group("system:unauthenticated"), "cattle-fleet-system", "of many users"},
		{"admins", group("system:masters"), "cattle-fleet-system", "of many users"},
		{"all accounts", group("system:serviceaccounts"), "cattle-fleet-system", "of many users"},
		{"all accounts of a namespace", group("system:serviceaccounts:fleet-system"), "cattle-fleet-system", "of many users"},
		{"a group named like an account", group("system:serviceaccount:fleet-system:a"), "cattle-fleet-system", "of many users"},
		{"anonymous", user("system:anonymous"), "cattle-fleet-system", "of many users"},
		{"the controller manager", user("system:kube-controller-manager"), "cattle-fleet-system", "that only this cluster has"},
		{"a node", user("system:node:worker-1"), "cattle-fleet-system", "that only this cluster has"},
		{
			"an account of Kubernetes", account("kube-system", "generic-garbage-collector"),
			"cattle-fleet-system", "an account of Kubernetes or of the hub",
		},
		{
			"written as a User", user("system:serviceaccount:kube-system:generic-garbage-collector"),
			"cattle-fleet-system", "an account of Kubernetes or of the hub",
		},
		{"the hub", account("cattle-fleet-system", "fleet-controller"), "cattle-fleet-system", "an account of Kubernetes or of the hub"},
		{
			"the hub as a User", user("system:serviceaccount:cattle-fleet-system:fleet-controller"),
			"cattle-fleet-system", "an account of Kubernetes or of the hub",
		},
		{
			"the hub, where that is in fleet-system", account("fleet-system", "fleet-controller-bootstrap"), naming.MemberSystemNamespace,
			"an account of Kubernetes or of the hub",
		},
		{"half an account", user("system:serviceaccount:fleet-system"), "cattle-fleet-system", "names no ServiceAccount"},
		{"an account with a line end", account("fleet-system", "member-1\n"), "cattle-fleet-system", "names no ServiceAccount"},
	} {
		if got := identityProblem(c.identity, c.system); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
}
