package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hub/runtime/identity"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// putIdentity gives a hub another key, with a term.
func (r restoring) putIdentity(on client.Client, number int64) {
	r.t.Helper()
	identity, err := term.NewIdentity()
	r.check(err)
	identity.Term = number
	secret := identity.Secret(naming.SystemNamespace)
	r.check(client.IgnoreNotFound(on.Delete(context.Background(), secret.DeepCopy())))
	r.check(on.Create(context.Background(), secret))
}

func (r restoring) identity(of client.Client) term.Identity {
	r.t.Helper()
	secret := &corev1.Secret{}
	r.check(of.Get(context.Background(), client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret}, secret))
	identity, err := term.FromSecret(secret)
	r.check(err)
	return identity
}

// takesOver keeps the identity of the hub until the end of the test, as a running hub does.
func (r restoring) takesOver() {
	r.t.Helper()
	keeper, err := identity.New(r.target.Config, naming.SystemNamespace, logr.Discard())
	r.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { keeper.Follow(ctx) })
	running.Go(func() {
		for ctx.Err() == nil {
			if err := errors.Join(keeper.Load(ctx), keeper.TakeOver(ctx)); err != nil && ctx.Err() == nil {
				r.t.Error(err)
				return
			}
			keeper.Changed(ctx)
		}
	})
	r.t.Cleanup(func() { cancel(); running.Wait() })
}

func TestAHubIsPromotedAndDemotedOnlyAfterAQuestion(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	target := testkube.Turn(t, "cli-promoted")
	r := restoring{t: t, target: target, onto: target.Client(t)}
	admin := of(t, target, target.Account(t, "cli-admin", "cluster-admin"))
	admin.refused("hub status", "it is not a hub; install the hub with muster init")
	target.InstallHub(t)
	admin.cacheDir = t.TempDir()
	r.check(client.IgnoreAlreadyExists(r.onto.Create(context.Background(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "all-of-fleet"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list"}}},
	})))
	tenant := of(t, target, target.Account(t, "cli-fleet", "all-of-fleet"))
	r.check(client.IgnoreNotFound(r.onto.Delete(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret},
	})))
	admin.refused("hub status", "has no term yet")
	r.putIdentity(r.onto, 3)

	admin.says("hub status", "Term     3", "State    Active", "Key      "+r.identity(r.onto).Fingerprint())
	admin.says("hub status --exit-code")
	for _, command := range []string{"hub promote", "hub demote"} {
		admin.refused(command, "waits for a confirmation", "use --yes")
		tenant.refused(command+" --yes", "reading Secret "+naming.SystemNamespace+"/"+naming.HubIdentitySecret, "forbidden")
	}
	if now := r.identity(r.onto); now.Term != 3 || now.Demoted {
		t.Errorf("without an answer, it has term %d, demoted: %t", now.Term, now.Demoted)
	}
	admin.says("hub demote --yes", "has term 3 and is Active", "It is demoted")
	admin.says("hub demote --yes", "It is demoted already.")
	admin.says("hub status", "State    Demoted", "run muster hub promote")
	if _, _, err := admin.run("hub", "status", "--exit-code"); ExitCode(err) != exitNotWell {
		t.Errorf("the exit code for a demoted hub is %d", ExitCode(err))
	}
	admin.says("hub promote --yes --timeout 0", "has term 3 and is Demoted", "It has term 4")
	out, _, err := admin.run("hub", "promote", "--yes", "--timeout", "2s")
	if ExitCode(err) != exitTimedOut || !strings.Contains(out, "waiting until the hub starts its controllers with term 5") ||
		!strings.Contains(err.Error(), "does not use term 5: ") || !strings.Contains(err.Error(), "timed out after 2s") {
		t.Errorf("without a running hub: %v\n%s", err, out)
	}
	r.takesOver()
	admin.says("hub promote --above 7 --yes --timeout 1m", "It has term 8", "the hub works with term 8")

	fenced := r.identity(r.onto)
	other := fenced.Promote(11)
	fenced.FencedBy = other.On("another-cluster")
	secret := &corev1.Secret{}
	r.check(r.onto.Get(context.Background(), client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret}, secret))
	fenced.Fill(secret)
	r.check(r.onto.Update(context.Background(), secret))
	admin.says("hub status", "State    Fenced", "it has term 8", "has term 12", "another-cluster")
	admin.says("hub promote --yes", "is Fenced", "It has term 13", "the hub works with term 13")
	out, said, err := admin.run("hub", "status")
	if err != nil || strings.Contains(out+said, string(fenced.Seed())) {
		t.Errorf("the key of the hub is shown: %v", err)
	}
}

// TestOnlyTheTermInForceMayChangeDuringAQuestion changes the identity between the reading and the
// writing of a command.
func TestOnlyTheTermInForceMayChangeDuringAQuestion(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	target := testkube.Turn(t, "cli-promoted")
	r := restoring{t: t, target: target, onto: target.Client(t)}
	target.InstallHub(t)
	for name, row := range map[string]struct {
		meanwhile func(*term.Identity)
		refused   bool
	}{
		"the hub stores its term":  {func(i *term.Identity) { i.InForce = 3 }, false},
		"another user demotes it":  {func(i *term.Identity) { i.Demoted = true }, true},
		"another user promotes it": {func(i *term.Identity) { *i = i.Promote(5) }, true},
	} {
		r.putIdentity(r.onto, 3)
		hub := hubIdentity{checked: &checked{Client: r.onto}}
		read, err := hub.readAgain(context.Background())
		r.check(err)
		hub.Identity = read
		changed, secret := read, hub.secret.DeepCopy()
		row.meanwhile(&changed)
		changed.Fill(secret)
		r.check(r.onto.Update(context.Background(), secret))

		err = hub.write(context.Background(), read.Promote(0))
		now := r.identity(r.onto)
		if !row.refused && (err != nil || now.Term != 4 || now.InForce != 3) {
			t.Errorf("%s: term %d, in force %d: %v", name, now.Term, now.InForce, err)
		}
		if row.refused && (!apierrors.IsConflict(err) || !now.SameExceptInForce(changed)) {
			t.Errorf("%s: term %d, demoted %t: %v", name, now.Term, now.Demoted, err)
		}
	}
}
