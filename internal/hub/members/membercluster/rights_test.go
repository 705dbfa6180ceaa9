package membercluster

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// counting is an API server that lists the writes of a controller, and its reads past the cache.
type counting struct {
	t    *testing.T
	deps controller.Deps
	made []string
}

func newCounting(t *testing.T, objects ...client.Object) *counting {
	t.Helper()
	s := &counting{t: t}
	made := func(verb string, o client.Object) {
		gvk, err := apiutil.GVKForObject(o, scheme.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		s.made = append(s.made, verb+" "+gvk.Kind)
	}
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	s.deps = controller.Deps{Clock: clocktesting.NewFakeClock(now)}
	s.deps.Client = interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			made("create", o)
			o.SetUID(types.UID(o.GetName()))
			return c.Create(ctx, o, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			s.made = append(s.made, "apply "+o.(interface{ GetKind() string }).GetKind())
			return c.Apply(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			made("delete", o)
			return c.Delete(ctx, o, options...)
		},
	})
	s.deps.Live = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			made("get", o)
			return c.Get(ctx, key, o, options...)
		},
	})
	return s
}

// expect compares the requests since the last call.
func (s *counting) expect(step string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.made); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", step, diff)
	}
	s.made = nil
}

// edit changes an object like another user.
func (s *counting) edit(o client.Object, change func()) {
	s.t.Helper()
	err := s.deps.Client.Get(s.t.Context(), client.ObjectKeyFromObject(o), o)
	if err == nil {
		change()
		err = s.deps.Client.Update(s.t.Context(), o)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// exists reports whether the server has an object.
func (s *counting) exists(o client.Object) bool {
	return s.deps.Client.Get(s.t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)) == nil
}

// granted is a MemberCluster with an AuditEntry about the rights of its identity.
func granted(o *observed) {
	o.UID, o.generation = "u", 1
	o.before.Conditions = []metav1.Condition{{Type: "ReadyToJoin", Status: yes, ObservedGeneration: 1}}
}

func TestAJoinWritesEachRightOnceAndReadsNone(t *testing.T) {
	s := newCounting(t)
	c := New(s.deps, nil, nil)
	o := keyed(t, granted, withoutKey, neverSeen, func(o *observed) { o.Report.Status.AgentVersion = "" })
	agentKey := o.credential.Key
	o.keyPinned, o.credential.Key = false, ""
	step := func(name string, change func(), want ...string) {
		t.Helper()
		change()
		if err := c.correctRights(t.Context(), &o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o.rightsLag > 0 {
			t.Errorf("%s: it waits for its own writes", name)
		}
		s.expect(name, want...)
	}
	binding := membernamespace.Rights{Member: o.Member}.Binding()
	step("a new member", func() { o.NamespaceNew = true }, "create Role", "create RoleBinding")
	step("nothing has changed", func() { o.NamespaceNew = false })
	step("Muster's agent comes", func() { o.Report.Status.AgentVersion = "v1" }, "apply Role")
	step("its key is pinned", func() { o.keyPinned, o.credential.Key = true, agentKey })
	step("it has an account", func() { o.account = metadataOf(o.ExchangedAccount(o.exchange())) })
	step("the account is for another key", func() { o.credential.Key = "other" }, "apply RoleBinding")
	step("another user edits the binding", func() { s.edit(binding, func() { binding.Subjects = nil }) },
		"get Role", "get RoleBinding", "apply RoleBinding")
	step("another process takes over", func() { c = New(s.deps, nil, nil) }, "get Role", "get RoleBinding")
	step("the identity is another member's", func() { o.identityHolder = "MemberCluster b" },
		"get Role", "get RoleBinding", "delete RoleBinding")
}

func TestWhichAccountsAMemberBinds(t *testing.T) {
	made := func(o *observed) { o.account = metadataOf(o.ExchangedAccount(o.exchange())) }
	unpinned := func(o *observed) { o.keyPinned, o.credential.Key = false, "" }
	for name, c := range map[string]struct {
		change []func(*observed)
		want   bool
	}{
		"the one for its key":                       {[]func(*observed){made}, true},
		"one that the hub has not created yet":      {nil, true},
		"also before an agent has come":             {[]func(*observed){withoutKey, neverSeen, unpinned}, true},
		"none if the record wants none":             {[]func(*observed){func(o *observed) { o.credential.Key = "" }}, false},
		"not one for another key":                   {[]func(*observed){made, func(o *observed) { o.credential.Key = "other" }}, false},
		"not one for another identity":              {[]func(*observed){made, func(o *observed) { o.identity.Name = "b" }}, false},
		"none if the identity is gone":              {[]func(*observed){func(o *observed) { o.accountMissing = true }}, false},
		"none if the identity is another member's":  {[]func(*observed){func(o *observed) { o.identityHolder = "MemberCluster b" }}, false},
		"not the one of an identity that is gone":   {[]func(*observed){made, func(o *observed) { o.accountMissing = true }}, false},
		"none if the identity is no possible agent": {[]func(*observed){func(o *observed) { o.identity.Kind = "Group" }}, false},
	} {
		o := keyed(t, c.change...)
		if got := o.bindsAccount(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		named := slices.Contains(rightsOf(o).Binding().Subjects, o.ExchangedSubject())
		if named != c.want {
			t.Errorf("%s: the binding names it: %t", name, named)
		}
	}
}

// TestTheRightToComeBackOfAnEarlierHubStaysUntilSomethingChanges has the objects that a hub of an
// earlier version created for the account.
func TestTheRightToComeBackOfAnEarlierHubStaysUntilSomethingChanges(t *testing.T) {
	o := keyed(t, granted)
	o.account, o.reconnect = metadataOf(o.ExchangedAccount(o.exchange())), metadataOf(o.ExchangedAccount(o.exchange()))
	own, _ := o.Reconnect(o.exchange())
	own.UID = "own"
	earlier := o.EarlierReconnect()
	for _, object := range earlier {
		object.SetUID("earlier")
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: earlier[1].GetName()}}
	for name, row := range map[string]struct {
		objects []client.Object
		change  func(s *counting)
		want    []string
	}{
		"the right of this version":  {[]client.Object{own}, nil, nil},
		"no right":                   {nil, nil, []string{"create RoleBinding"}},
		"the right before":           {earlier, nil, nil},
		"a half of the right before": {earlier[:1], nil, []string{"create RoleBinding", "delete RoleBinding"}},
		"the right before, which another user edits": {earlier, func(s *counting) {
			s.edit(role, func() {
				role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
			})
		}, []string{"create RoleBinding", "delete RoleBinding", "delete Role"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCounting(t, row.objects...)
			c := New(s.deps, nil, nil)
			restore := func() {
				t.Helper()
				if err := c.restoreReconnect(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			restore()
			if row.change != nil {
				s.expect("the first look")
				row.change(s)
				restore()
			}
			s.expect(name, row.want...)
			restore()
			s.expect("once more")
			if replaced := len(row.want) > 0; replaced && (!s.exists(own) || s.exists(earlier[0]) || s.exists(earlier[1])) {
				t.Error("the right before is still there, or the right of this version is not")
			}
		})
	}
}

// TestTheNextCredentialEndsTheRightOfAnEarlierHub: the process before may have ended between two
// writes.
func TestTheNextCredentialEndsTheRightOfAnEarlierHub(t *testing.T) {
	o := keyed(t, granted)
	own, _ := o.Reconnect(o.exchange())
	s := newCounting(t, append([]client.Object{own}, o.EarlierReconnect()...)...)
	c := New(s.deps, nil, nil)
	for _, want := range [][]string{{"delete RoleBinding", "delete Role"}, nil} {
		if err := c.endEarlierReconnect(t.Context(), o.Member); err != nil {
			t.Fatal(err)
		}
		s.expect("a credential", want...)
	}
	if !s.exists(own) {
		t.Error("the right of this version is gone")
	}
}
