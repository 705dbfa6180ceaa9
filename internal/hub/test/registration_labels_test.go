package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// stampingToken is a token with labels of its own, and its values.
func (f fixture) stampingToken(name string, spec fleet.ClusterRegistrationTokenSpec) map[string]string {
	f.t.Helper()
	f.check(f.Create(context.Background(), &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.workspace}, Spec: spec,
	}))
	f.eventually("token "+name+" is ready", func() error { return f.tokenIs(name, "Ready") })
	return f.values(name)
}

func (f fixture) tokenIs(name, reason string) error {
	var token fleet.ClusterRegistrationToken
	f.check(f.get(&token, f.workspace, name))
	if ready := kube.FindCondition(token.Status.Conditions, fleet.ConditionReady); ready == nil || ready.Reason != reason {
		return fmt.Errorf("its condition Ready is %+v", ready)
	}
	return nil
}

// granted has a request granted that brings labels, and returns it.
func (f fixture) granted(values map[string]string, clientID string, labels map[string]string) fleet.ClusterRegistration {
	f.t.Helper()
	spec := f.signed(f.keyOf(clientID), values, clientID, answerKey(f.t))
	spec.ClusterLabels = labels
	r := f.mustAsk(values, spec)
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	return r
}

// labelled fails if the Cluster of a client ID has other labels than these, besides its own name.
func (f fixture) labelled(clientID string, want map[string]string) {
	f.t.Helper()
	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, naming.Cluster(clientID)))
	delete(cluster.Labels, fleet.LabelCluster)
	if diff := cmp.Diff(want, cluster.Labels); diff != "" {
		f.t.Errorf("labels of %s (-want +got):\n%s", clientID, diff)
	}
}

// labelsAccepted waits until the condition LabelsAccepted has a status and names all of these.
func (f fixture) labelsAccepted(clientID string, status corev1.ConditionStatus, texts ...string) {
	f.t.Helper()
	f.eventually("LabelsAccepted of "+clientID+" is "+string(status), func() error {
		var cluster fleet.Cluster
		if err := f.get(&cluster, f.workspace, naming.Cluster(clientID)); err != nil {
			return err
		}
		said := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionLabelsAccepted)
		if said == nil || said.Status != status {
			return fmt.Errorf("it is %+v", said)
		}
		for _, text := range texts {
			if !strings.Contains(said.Message, text) {
				return fmt.Errorf("it says %q", said.Message)
			}
		}
		return nil
	})
}

func TestNoRequestSetsOrChangesALabelThatATokenStamps(t *testing.T) {
	f := newFixture(t)
	const tier = fleet.LabelPrefixStamped + "tier"
	dev := f.stampingToken("dev", fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"env": "dev", tier: "low"}})
	_, plain := f.token("plain", "")
	prod := map[string]string{"env": "prod", tier: "high", "team": "a"}

	r := f.granted(dev, "by-dev", prod)
	f.labelled("by-dev", map[string]string{"env": "dev", tier: "low", "team": "a"})
	f.labelsAccepted("by-dev", corev1.ConditionFalse, "env: is stamped by ClusterRegistrationToken "+f.workspace+"/dev",
		tier+": has a reserved prefix")
	if said := strings.Join(r.Status.DroppedLabels, "\n"); !strings.Contains(said, "env: ") || !strings.Contains(said, tier+": ") {
		t.Errorf("the agent reads %q", said)
	}
	f.granted(dev, "good", map[string]string{"team": "a"})
	f.labelsAccepted("good", corev1.ConditionTrue, "dev has stamped env=dev")

	f.granted(plain, "by-plain", prod)
	f.labelled("by-plain", map[string]string{"team": "a"})

	// A second registration of the same Cluster, with a token that stamps nothing, loses what it
	// had and gains nothing.
	f.granted(plain, "by-dev", prod)
	f.labelled("by-dev", map[string]string{"team": "a"})
	f.labelsAccepted("by-dev", corev1.ConditionFalse, "env: ")
	f.granted(dev, "by-dev", nil)
	f.labelled("by-dev", map[string]string{"env": "dev", tier: "low", "team": "a"})
	f.labelsAccepted("by-dev", corev1.ConditionTrue, "env=dev")
}

// TestNobodyRegistersInTheNameOfAnotherToken claims a token that stamps what the own one does not.
func TestNobodyRegistersInTheNameOfAnotherToken(t *testing.T) {
	f := newFixture(t)
	dev := f.stampingToken("dev", fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"env": "dev"}})
	prodToken := fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"env": "prod"}}
	f.stampingToken("prod", prodToken)
	f.stampingToken("prod-"+strings.Repeat("x", 50), prodToken)
	var prod fleet.ClusterRegistrationToken
	f.check(f.get(&prod, f.workspace, "prod"))
	for name, claim := range map[string]func(*fleet.ClusterRegistration){
		"by label": func(r *fleet.ClusterRegistration) { r.Labels = map[string]string{fleet.LabelRegistrationToken: "prod"} },
		"by a longer label": func(r *fleet.ClusterRegistration) {
			r.Labels = map[string]string{fleet.LabelRegistrationToken: "prod-" + strings.Repeat("x", 50)}
		},
		"by annotation": func(r *fleet.ClusterRegistration) {
			r.Annotations = map[string]string{
				fleet.AnnotationRequester: "system:serviceaccount:" + f.workspace + ":" + naming.TokenServiceAccount("prod", string(prod.UID)),
			}
		},
	} {
		r := fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: f.workspace},
			Spec: fleet.ClusterRegistrationSpec{ClientID: "a", AnswerKey: answerKey(t).Public()}}
		claim(&r)
		f.eventually(name+" is refused", func() error {
			made := r.DeepCopy()
			if err := f.as(dev["token"]).Create(context.Background(), made); !apierrors.IsInvalid(err) ||
				!strings.Contains(err.Error(), "than the one that asks") && !strings.Contains(err.Error(), "not the one that asks") {
				return fmt.Errorf("asking: %v", err)
			}
			return nil
		})
	}
	f.granted(dev, "a", nil)
	f.labelled("a", map[string]string{"env": "dev"})
}

func TestATokenLimitsTheLabelsThatItsRequestsBring(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("limited", fleet.ClusterRegistrationTokenSpec{AllowedLabelKeys: []string{"team", "example.com/*"}})
	asked := map[string]string{"team": "a", "example.com/zone": "b", "env": "prod"}
	var agentLog log
	f.join(values, map[string]any{"clientID": "agent", "labels": asked}, func(o *agent.Options) {
		o.Log = logr.FromSlogHandler(slog.NewTextHandler(&agentLog, nil))
	})
	f.untilReady(naming.Cluster("agent"), "Ready")
	f.labelled("agent", map[string]string{"team": "a", "example.com/zone": "b", fleet.LabelCreatedByAgentPod: "pod-1"})
	f.labelsAccepted("agent", corev1.ConditionFalse,
		"env: is not among spec.allowedLabelKeys of ClusterRegistrationToken "+f.workspace+"/limited")
	if !strings.Contains(agentLog.String(), "The hub dropped labels") || !strings.Contains(agentLog.String(), "env: is not among") {
		t.Errorf("the agent logs %s", agentLog.String())
	}
}

func TestATokenWithLabelsThatCannotBeSaysSoAndItsRequestsWait(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("bad", fleet.ClusterRegistrationTokenSpec{})
	var token fleet.ClusterRegistrationToken
	f.check(f.get(&token, f.workspace, "bad"))
	f.change(&token, func() { token.Spec.Labels = map[string]string{"fleet.cattle.io/x": "y"} })
	f.eventually("the token says so", func() error { return f.tokenIs("bad", "InvalidLabels") })
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "a", AnswerKey: answerKey(t).Public()})
	f.untilState(&r, fleet.RegistrationWaiting, "TokenInvalid")
	f.change(&token, func() { token.Spec.Labels = map[string]string{"env": "dev"} })
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	f.labelled("a", map[string]string{"env": "dev"})
}

// TestAnAgentCannotLabelItsCluster plays a Rancher Fleet agent, which may patch the
// status of its Cluster.
func TestAnAgentCannotLabelItsCluster(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("dev", fleet.ClusterRegistrationTokenSpec{Labels: map[string]string{"env": "dev"}})
	legacy := f.legacyJoin(values, "legacy")
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: legacy.answer["clusterName"]}}
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(
		`{"metadata":{"labels":{"env":"prod"},"annotations":{%q:null}},"status":{"agent":{"lastSeen":%q}}}`,
		fleet.AnnotationRegistrationLabels, time.Now().UTC().Format(time.RFC3339))))
	f.eventually("the agent beats, with labels", func() error {
		return legacy.Client.Status().Patch(context.Background(), cluster.DeepCopy(), patch)
	})
	if err := legacy.Client.Patch(context.Background(), cluster.DeepCopy(), patch); !apierrors.IsForbidden(err) {
		t.Errorf("patching the Cluster itself: %v", err)
	}
	f.untilReady(cluster.Name, "Ready")
	f.labelled("legacy", map[string]string{"env": "dev"})
	f.labelsAccepted("legacy", corev1.ConditionTrue, "env=dev")
}

// TestATokenOfAnEarlierHubMayNameItself takes from a token's Role what an earlier
// hub did not give it.
func TestATokenOfAnEarlierHubMayNameItself(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("old", "")
	var role rbacv1.Role
	f.check(f.get(&role, f.workspace, naming.SafeConcat(naming.TokenServiceAccount(token.Name, string(token.UID)), "role")))
	whole := role.Rules
	f.change(&role, func() { role.Rules = role.Rules[:1] })
	f.eventually("the Role is whole again", func() error {
		if err := f.get(&role, role.Namespace, role.Name); err != nil {
			return err
		}
		if diff := cmp.Diff(whole, role.Rules); diff != "" {
			return fmt.Errorf("it is not (-want +got):\n%s", diff)
		}
		return nil
	})
	f.eventually("it registers", func() error {
		_, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: "a", AnswerKey: answerKey(t).Public()})
		return err
	})
}
