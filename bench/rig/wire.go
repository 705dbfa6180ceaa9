package rig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

// Token creates a registration token and returns its values.
func Token(ctx context.Context, c client.Client, workspace, name string) (map[string]string, error) {
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: workspace}}
	token.Spec.TTL = &metav1.Duration{Duration: 240 * time.Hour}
	if err := c.Create(ctx, token); err != nil {
		return nil, err
	}
	var secret corev1.Secret
	for c.Get(ctx, types.NamespacedName{Namespace: workspace, Name: name}, &secret) != nil {
		time.Sleep(2 * time.Millisecond)
	}
	values := map[string]string{}
	return values, yaml.Unmarshal(secret.Data["values"], &values)
}

// Request is a request to register.
func Request(values map[string]string, spec fleet.ClusterRegistrationSpec) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "request-", Namespace: values["clusterNamespace"],
			Labels: map[string]string{fleet.LabelRegistrationToken: values["tokenName"]},
		},
		Spec: spec,
	}
}

// RancherAgent is an agent of Rancher Fleet that has joined.
type RancherAgent struct {
	as      client.Client
	cluster types.NamespacedName
}

// JoinRancher registers like agents of Rancher Fleet, by polling every two seconds. It returns once
// the first heartbeat is accepted. as returns a client with only a bearer token.
func JoinRancher(ctx context.Context, as func(bearer string) (client.WithWatch, error), bootstrap client.Client, values map[string]string,
	id string) (*RancherAgent, error) {
	if err := bootstrap.Create(ctx, Request(values, fleet.ClusterRegistrationSpec{ClientID: id, ClientRandom: id})); err != nil {
		return nil, err
	}
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: values["systemRegistrationNamespace"], Name: naming.CredentialSecret(id, id)}
	for bootstrap.Get(ctx, key, &secret) != nil {
		time.Sleep(2 * time.Second)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	own, err := as(string(secret.Data["token"]))
	if err != nil {
		return nil, err
	}
	list := func() error {
		return own.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(string(secret.Data["deploymentNamespace"])))
	}
	if err := Retry(ctx, list); err != nil {
		return nil, err
	}
	agent := &RancherAgent{
		as: own, cluster: types.NamespacedName{Namespace: values["clusterNamespace"], Name: string(secret.Data["clusterName"])},
	}
	return agent, Retry(ctx, func() error { return agent.Beat(ctx) })
}

// Beat writes the current time as the last time the agent was seen.
func (a *RancherAgent) Beat(ctx context.Context) error {
	patch := fmt.Sprintf(`[{"op":"add","path":"/status/agent","value":{"lastSeen":%q,"namespace":"cattle-fleet-system"}}]`,
		time.Now().UTC().Format(time.RFC3339))
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: a.cluster.Namespace, Name: a.cluster.Name}}
	return a.as.Status().Patch(ctx, cluster, client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// BeatKubeFleet simulates the heartbeat of a KubeFleet member agent: one update of the report's
// whole status.
func BeatKubeFleet(ctx context.Context, as client.Client, name string, joined metav1.ConditionStatus) error {
	now, since := metav1.Now(), metav1.Unix(1_000_000_000, 0)
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberClusterNamespace(name), Name: name}}
	before := report.DeepCopy()
	report.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now,
		Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionJoined, Status: joined, Reason: "Answered", LastTransitionTime: since},
			{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "Answered", LastTransitionTime: since},
		},
	}}
	return as.Status().Patch(ctx, report, client.MergeFrom(before))
}

// Retry retries while the API server does not know a new right yet.
func Retry(ctx context.Context, call func() error) error {
	backoff := retry.Soon()
	for deadline := time.Now().Add(time.Minute); ; {
		err := call()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(backoff.Step())
	}
}
