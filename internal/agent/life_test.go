package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAgentJoinsForgetsItsTokenBeatsAndReports(t *testing.T) {
	hub, member := newCluster(t)
	var request *fleet.ClusterRegistration
	hub.serve(func(r *fleet.ClusterRegistration) fleet.ClusterRegistrationStatus {
		request = r
		return hub.grant(r)
	})
	member.configure(`{"labels":{"env":"dev"},"clientID":"really-random","unknown":{"a":1}}`)
	values := hub.values()
	member.bootstrap(values)
	begun := time.Now()
	agent := member.start()
	agent.untilJoined()
	t.Logf("joined after %s", time.Since(begun))

	member.untilForgotten(agent)
	want := fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "request-", Namespace: hub.workspace,
			Labels:      map[string]string{"fleet.cattle.io/registration-token": "new-token"},
			Annotations: map[string]string{"muster/requester": "system:serviceaccount:" + hub.workspace + ":" + hub.account},
		},
		Spec: fleet.ClusterRegistrationSpec{
			ClientID:      "really-random",
			ClusterLabels: map[string]string{"env": "dev", "fleet.cattle.io/created-by-agent-pod": "pod-1"},
		},
	}
	if diff := cmp.Diff(want, *request,
		cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name", "UID", "ResourceVersion", "Generation", "CreationTimestamp", "ManagedFields"),
		cmpopts.IgnoreFields(metav1.TypeMeta{}, "Kind", "APIVersion"),
		cmpopts.IgnoreFields(fleet.ClusterRegistrationSpec{}, "ClientRandom", "AnswerKey", "RequestedAt")); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if len(request.Spec.ClientRandom) != 54 {
		t.Errorf("clientRandom %q has not 54 characters", request.Spec.ClientRandom)
	}
	stored, err := hubclient.CredentialFromSecret(member.secret(naming.AgentSecret))
	check(t, err)
	if diff := cmp.Diff(hubclient.Credential{
		Server: hub.config.Host, MemberNamespace: hub.namespace, Workspace: hub.workspace, Cluster: "my-cluster",
	}, stored, cmpopts.IgnoreFields(hubclient.Credential{}, "CA", "Token", "JoinedWith", "JoinedAs")); diff != "" {
		t.Errorf("credential (-want +got):\n%s", diff)
	}
	hub.beatsAgain(agent)
	for _, secret := range []string{string(values["token"]), stored.Token, "really-random"} {
		if strings.Contains(agent.lines(), secret) {
			t.Errorf("the log holds a secret:\n%s", agent.lines())
		}
	}
}

func TestReportTellsNodesNamespacesCapacityVersionsAndHealth(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	node, err := member.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"},
	}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() {
		_ = member.kube.CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{})
	}) // the cluster goes with the test
	_, err = member.kube.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, []byte(`{"status":{
		"capacity":{"cpu":"4","example.com/gpu":"2"}, "allocatable":{"cpu":"3500m"}, "conditions":[{"type":"Ready","status":"True"}]}}`),
		metav1.PatchOptions{}, "status")
	check(t, err)
	_, err = member.kube.CoreV1().Pods(member.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{NodeName: node.Name,
			Containers: []corev1.Container{{Name: "web", Image: "web", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
			}}}},
	}, metav1.CreateOptions{})
	check(t, err)
	member.bootstrap(hub.values())
	agent := member.start()
	agent.until("a report", func() error {
		report, err := hub.report()
		if err != nil {
			return err
		}
		status := report.Status
		if status.Nodes == nil {
			return errors.New("the report is empty")
		}
		return diffReport(status, node.Name, member.namespace, hub)
	})
}

func diffReport(got clusterv1beta1.InternalMemberClusterStatus, node, namespace string, hub *testHub) error {
	version := got.KubernetesVersion
	collected := metav1.Condition{Type: "NamespaceCollectionSucceeded", Status: "True", Reason: "Succeeded", ObservedGeneration: 1}
	if len(got.Namespaces) == 200 && len(got.Conditions) == 1 && got.Conditions[0].Reason == "Degraded" { // the other tests have so many
		collected.Status, collected.Reason = "False", "Degraded"
		collected.Message = "the cluster has more than 200 namespaces; the first by name are reported"
	}
	want := clusterv1beta1.InternalMemberClusterStatus{
		Properties: map[string]clusterv1beta1.PropertyValue{
			"kubernetes-fleet.io/node-count": {Value: "1"}, "k8s.io/k8s-version": {Value: version},
			"muster/extended-resources": {Value: "example.com/gpu=2"},
		},
		ResourceUsage: clusterv1beta1.ResourceUsage{
			Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "example.com/gpu": resource.MustParse("2")},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3500m")},
			Available:   corev1.ResourceList{"cpu": resource.MustParse("3")},
		},
		Namespaces: got.Namespaces, // other tests have theirs
		Conditions: []metav1.Condition{collected},
		AgentStatus: []clusterv1beta1.AgentStatus{{Type: "MemberAgent", Conditions: []metav1.Condition{
			{Type: "Joined", Status: "True", Reason: "InternalMemberClusterJoined", Message: "the agent has joined", ObservedGeneration: 1},
			{
				Type: "Healthy", Status: "True", Reason: "InternalMemberClusterHealthy", Message: "the member's API server is ready",
				ObservedGeneration: 1,
			},
		}}},
		Credential:        &clusterv1beta1.CredentialInUse{},
		Nodes:             &clusterv1beta1.NodeSummary{Total: 1, Ready: 1, Sample: node},
		KubernetesVersion: version, AgentVersion: "dev", AgentNamespace: namespace, Features: []string{clusterv1beta1.FeatureLongDigest},
		Hub: &clusterv1beta1.HubInUse{
			APIServerURL: hub.config.Host, APIServerCAHash: credential.CAHash(hub.config.CAData), AgentTLSMode: "system-store",
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(metav1.Time{}),
		cmpopts.IgnoreFields(clusterv1beta1.CredentialInUse{}, "AccountUID", "Expires")); diff != "" || !strings.HasPrefix(version, "v1.") {
		return fmt.Errorf("report (-want +got):\n%s", diff)
	}
	if _, found := got.Namespaces[namespace]; !found {
		return fmt.Errorf("namespace %s is missing in %v", namespace, got.Namespaces)
	}
	return nil
}

func TestRestartGoesOnWithTheStoredCredential(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	member.bootstrap(hub.values())
	first := member.start()
	first.untilJoined()
	first.stop()
	second := member.start()
	second.untilJoined()
	hub.requested(1)
}

func TestStoredCredentialThatWorksForgetsALingeringToken(t *testing.T) {
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	values := hub.values()
	member.bootstrap(values)
	agent := member.start()
	agent.untilJoined()
	agent.stop()
	member.bootstrap(values)
	again := member.start()
	member.untilForgotten(again)
	hub.requested(1)
}

func TestDeletedCredentialIsRestored(t *testing.T) {
	_, member, agent := newJoinedCluster(t)
	before, err := hubclient.CredentialFromSecret(member.secret(naming.AgentSecret))
	check(t, err)
	member.remove(naming.AgentSecret)
	agent.until("the credential is back", func() error {
		secret := member.secret(naming.AgentSecret)
		if secret == nil {
			return errors.New("there is no Secret")
		}
		after, err := hubclient.CredentialFromSecret(secret)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, after); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestHeartbeatFollowsThePeriodOfTheHub(t *testing.T) {
	hub, _, agent := newJoinedCluster(t, func(h *testHub) { h.period = 600 })
	first := hub.beat()
	hub.patchReport(`{"spec":{"heartbeatPeriodSeconds":1}}`)
	agent.until("a second beat", func() error {
		if !hub.beat().After(first) {
			return errors.New("the Lease stands still")
		}
		return nil
	})
}
