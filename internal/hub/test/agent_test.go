package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// member is a downstream cluster: here a namespace of the same control plane, where a real agent
// runs.
type member struct {
	fixture
	agentNamespace string
	// options are beside the usual ones.
	options []func(*agent.Options)
	agent   *agent.Agent
	// logged is what the agent has logged.
	logged log
	stop   func()
}

// join gives a new member a registration token and settings, as the chart does, and starts its
// agent.
func (f fixture) join(values map[string]string, settings map[string]any, options ...func(*agent.Options)) *member {
	f.t.Helper()
	m := f.install(values, settings)
	m.options = options
	m.start()
	return m
}

// install is join without the agent.
func (f fixture) install(values map[string]string, settings map[string]any) *member {
	f.t.Helper()
	m := &member{fixture: f, agentNamespace: f.namespace("agent-")}
	config, err := json.Marshal(settings)
	f.check(err)
	f.check(f.Create(context.Background(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: naming.AgentConfigMap, Namespace: m.agentNamespace},
		Data:       map[string]string{"config": string(config)},
	}))
	m.bootstrap(values)
	return m
}

func (m *member) bootstrap(values map[string]string) {
	m.t.Helper()
	data := map[string]string{"apiServerURL": m.cluster.Config.Host, "apiServerCA": string(m.cluster.Config.CAData)}
	for _, key := range []string{"token", "tokenName", "clusterNamespace", "systemRegistrationNamespace"} {
		data[key] = values[key]
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: naming.AgentBootstrapSecret, Namespace: m.agentNamespace}, StringData: data}
	err := m.Create(context.Background(), secret)
	if apierrors.IsAlreadyExists(err) { // an agent that was stopped right after it joined has not forgotten the last one
		err = m.Update(context.Background(), secret)
	}
	m.check(err)
}

func (m *member) start() {
	m.t.Helper()
	options := agent.Options{
		Member: m.cluster.Config, Namespace: m.agentNamespace, Hostname: "pod-1", Log: logr.FromSlogHandler(slog.NewTextHandler(&m.logged, nil)),
	}
	for _, set := range m.options {
		set(&options)
	}
	running, err := agent.New(options)
	m.check(err)
	m.agent = running
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Run(ctx)
	}()
	m.stop = func() { cancel(); <-done }
	m.t.Cleanup(func() {
		if m.t.Failed() {
			state, reason, _ := running.Status()
			m.t.Logf("the agent in %s is %s: %s\n%s", m.agentNamespace, state, reason, m.logged.String())
		}
		m.stop()
	})
}

// credential is what the agent has stored.
func (m *member) credential() (bearer, namespace string) {
	m.t.Helper()
	var secret corev1.Secret
	m.eventually("the agent has a credential", func() error { return m.get(&secret, m.agentNamespace, naming.AgentSecret) })
	if token := secret.Data["token"]; len(token) > 0 {
		return string(token), string(secret.Data["deploymentNamespace"])
	}
	var kubeconfig struct {
		Users []struct {
			User struct {
				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	m.check(yaml.Unmarshal(secret.Data["kubeconfig"], &kubeconfig))
	return kubeconfig.Users[0].User.Token, string(secret.Data["deploymentNamespace"])
}

// ask creates a request by hand as a holder of the token, with a key to seal the answer
// to if there is one.
func (f fixture) ask(values map[string]string, spec fleet.ClusterRegistrationSpec) (fleet.ClusterRegistration, error) {
	if len(spec.AnswerKey) > 0 {
		spec.RequestedAt = new(metav1.NowMicro())
	}
	r := fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: f.workspace, Labels: map[string]string{}},
		Spec:       spec,
	}
	if name := values["tokenName"]; name != "" {
		r.Labels[fleet.LabelRegistrationToken] = name
	}
	return r, f.as(values["token"]).Create(context.Background(), &r)
}

// mustAsk is ask where the right to ask is not in question.
func (f fixture) mustAsk(values map[string]string, spec fleet.ClusterRegistrationSpec) fleet.ClusterRegistration {
	f.t.Helper()
	r, err := f.ask(values, spec)
	f.check(err)
	return r
}

func answerKey(t *testing.T) credential.AnswerKey {
	t.Helper()
	key, err := credential.NewAnswerKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// legacyAgent plays an unmodified upstream agent by hand: it asks, polls for its Secret, tries the
// credential and beats.
type legacyAgent struct {
	fixture
	client.Client
	answer map[string]string
}

// legacyJoin registers an upstream agent. One before 0.16 does not say which token it has.
func (f fixture) legacyJoin(values map[string]string, clientID string) legacyAgent {
	f.t.Helper()
	return f.legacyJoinAs(values, clientID, "r4nd0m-"+f.workspace) // the answers of all workspaces are in one namespace
}

// legacyJoinAs is legacyJoin of an agent that registers not for the first time.
func (f fixture) legacyJoinAs(values map[string]string, clientID, random string) legacyAgent {
	f.t.Helper()
	f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: random})
	a := legacyAgent{fixture: f, answer: map[string]string{}}
	asking := f.as(values["token"])
	f.eventually("the answer of "+clientID+" is readable", func() error {
		var secret corev1.Secret
		key := types.NamespacedName{Namespace: values["systemRegistrationNamespace"], Name: naming.CredentialSecret(clientID, random)}
		if err := asking.Get(context.Background(), key, &secret); err != nil {
			return err
		}
		for key, value := range secret.Data {
			a.answer[key] = string(value)
		}
		return nil
	})
	a.Client = f.as(a.answer["token"])
	f.eventually("the credential lists BundleDeployments", func() error {
		return a.Client.List(context.Background(), &fleet.BundleDeploymentList{}, client.InNamespace(a.answer["deploymentNamespace"]))
	})
	return a
}

// beat is the one JSON patch that upstream agents send.
func (a legacyAgent) beat(at time.Time) error {
	patch := fmt.Sprintf(`[{"op":"add","path":"/status/agent","value":{"lastSeen":%q,"namespace":"cattle-fleet-system"}}]`,
		at.UTC().Format(time.RFC3339))
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: a.answer["clusterNamespace"], Name: a.answer["clusterName"]}}
	return a.Client.Status().Patch(context.Background(), cluster, client.RawPatch(types.JSONPatchType, []byte(patch)))
}
