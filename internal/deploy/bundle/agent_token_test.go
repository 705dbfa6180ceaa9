package bundle

import (
	"fmt"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// bootstrap is the Secret with the registration token; nil if there is none.
func (u user) bootstrap() *corev1.Secret {
	u.t.Helper()
	secret := &corev1.Secret{}
	err := u.kube.Get(u.t.Context(), client.ObjectKey{Namespace: u.agent, Name: naming.AgentBootstrapSecret}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	u.check(err)
	return secret
}

// use deletes the registration token, as the agent does once it has joined with it.
func (u user) use(token string) {
	u.t.Helper()
	secret := u.bootstrap()
	if secret == nil || string(secret.Data["token"]) != token {
		u.t.Fatalf("the agent is not given the token %s: %v", token, secret)
	}
	u.check(u.kube.Delete(u.t.Context(), secret))
}

// TestTheHubsUpgradeOfItsAgentGivesItNoTokenAndAUsersGivesItAnother: only a user
// makes an agent register.
func TestTheHubsUpgradeOfItsAgentGivesItNoTokenAndAUsersGivesItAnother(t *testing.T) {
	r := newRigAlone(t)
	u := r.user()
	values := func(token string) map[string]any {
		return map[string]any{
			"apiServerURL": "https://hub.example.com", "token": token, "tokenName": "n", "clusterNamespace": "clusters",
			"internal": map[string]any{"systemNamespace": r.agent},
		}
	}
	u.install(values("first"))
	u.use("first")
	run := r.start()
	r.placeAgent(settings.Agent{}, nil)
	r.placeAgent(settings.Agent{}, map[string]any{"debug": true})
	if u.bootstrap() != nil {
		t.Error("the hub's upgrade brings back the token that was used")
	}
	run.stop()

	u.upgrade(map[string]any{"fleetAgent": map[string]any{"priorityClassName": "x"}})
	if u.bootstrap() != nil {
		t.Error("an upgrade that reuses all values brings back the token that was used")
	}
	u.asHelm(func() error {
		up := action.NewUpgrade(u.configuration)
		up.Namespace, up.WaitStrategy = u.agent, helmkube.HookOnlyStrategy
		_, err := up.Run("fleet-agent", u.chart(), values("second"))
		return err
	})
	given := u.bootstrap()
	if given == nil || string(given.Data["token"]) != "second" {
		t.Fatalf("the agent is not given the other token: %v", given)
	}
	run = r.start()
	r.placeAgent(settings.Agent{}, map[string]any{"debug": false})
	if now := u.bootstrap(); now == nil || now.UID != given.UID || now.ResourceVersion != given.ResourceVersion {
		t.Errorf("the hub's upgrade touches the token that is yet to be used: %v", now)
	}
	u.use("second")
	r.placeAgent(settings.Agent{}, map[string]any{"debug": true})
	if u.bootstrap() != nil {
		t.Error("the hub's upgrade brings back the other token")
	}
	run.stop()
}

// TestAReleaseWhoseHistoryWasDeletedIsTakenOverAsItIs is what the guide says to do with what a
// membership before left on a cluster.
func TestAReleaseWhoseHistoryWasDeletedIsTakenOverAsItIs(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	run.stop()
	before := r.delivered("web")
	r.check(r.kube.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(r.target), client.MatchingLabels{
		"owner": "helm", "name": "web",
	}))
	run = r.start()
	r.eventually("there is a history again", func() error {
		var list corev1.SecretList
		if err := r.kube.List(t.Context(), &list, client.InNamespace(r.target), client.MatchingLabels{
			"owner": "helm", "name": "web", "status": "deployed",
		}); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d revisions", len(list.Items))
		}
		return nil
	})
	r.until("web", fleet.StateReady)
	if object := r.delivered("web"); object.UID != before.UID || object.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object is another one: %+v, not %+v", object.ObjectMeta, before.ObjectMeta)
	}
	run.stop()
}
