package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// intruder has all the secrets of the agent of my-cluster, and tries everything possible with them.
type intruder struct {
	hub    *rest.Config
	scheme *runtime.Scheme
	admin  client.Client
	// own acts with the credential of the member; namespace is the member's.
	own       client.WithWatch
	namespace string
	key       credential.AgentKey
	// tokens are the tokens for registration requests.
	tokens []registering

	mu sync.Mutex
	// asked holds the answer keys of the accepted requests, by name.
	asked map[string]credential.AnswerKey
	// taken are the subjects of the tokens whose requests the hub has accepted.
	taken map[string]bool
	// seen are the events of the watch.
	seen []string
}

// registering is a token for registration requests.
type registering struct {
	client.WithWatch
	// name is the name of the ClusterRegistrationToken, empty for the token to return with; subject is
	// the subject of the token.
	name, subject string
}

// steal reads the Secrets of the agent on cluster two, and the token of its registration.
func (e *env) steal(ctx context.Context) (*intruder, error) {
	thief := &intruder{scheme: runtime.NewScheme(), asked: map[string]credential.AnswerKey{}, taken: map[string]bool{}}
	kinds := []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme}
	for _, add := range kinds {
		if err := add(thief.scheme); err != nil {
			return nil, err
		}
	}
	var err error
	if thief.hub, err = clientcmd.BuildConfigFromFlags("", e.hub.kubeconfig); err != nil {
		return nil, err
	}
	if thief.admin, err = client.New(thief.hub, client.Options{Scheme: thief.scheme}); err != nil {
		return nil, err
	}
	stored := map[string]string{}
	const secret, data = "kubectl -n cattle-fleet-system get secret ", " -o 'jsonpath={.data."
	for name, script := range map[string]string{
		"token":               secret + naming.AgentSecret + data + "token}'",
		"deploymentNamespace": secret + naming.AgentSecret + data + "deploymentNamespace}'",
		"reconnectToken":      secret + naming.AgentSecret + data + "reconnectToken}'",
		"key":                 secret + naming.AgentKeySecret + data + "key}'",
		"registration token":  `sed -n 's/^ *token: *"\?\([^"]*\)"\?$/\1/p' values.yaml | tr -d '\n' | base64 -w0`,
	} {
		said, err := e.sh(ctx, e.two, script)
		if err != nil {
			return nil, err
		}
		text, err := base64.StdEncoding.DecodeString(said)
		if err != nil || len(text) == 0 {
			return nil, fmt.Errorf("the agent of my-cluster has no %s: %w", name, err)
		}
		stored[name] = string(text)
	}
	thief.namespace = stored["deploymentNamespace"]
	if thief.key, err = credential.ParseAgentKey([]byte(stored["key"])); err != nil {
		return nil, err
	}
	if thief.own, err = thief.as(stored["token"]); err != nil {
		return nil, err
	}
	for name, token := range map[string]string{"new-token": stored["registration token"], "": stored["reconnectToken"]} {
		as, err := thief.as(token)
		if err != nil {
			return nil, err
		}
		thief.tokens = append(thief.tokens, registering{as, name, credential.ClaimsOf(token).Subject})
	}
	return thief, nil
}

func (i *intruder) as(token string) (client.WithWatch, error) {
	config := rest.AnonymousClientConfig(i.hub)
	config.BearerToken, config.QPS = token, -1
	return client.NewWithWatch(config, client.Options{Scheme: i.scheme, Mapper: i.admin.RESTMapper()})
}

// watch keeps a watch of the BundleDeployments open, and returns once it has begun.
func (i *intruder) watch(ctx context.Context) error {
	hour := &client.ListOptions{Raw: &metav1.ListOptions{TimeoutSeconds: new(int64(time.Hour.Seconds()))}}
	w, err := i.own.Watch(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(i.namespace), hour)
	if err != nil {
		return fmt.Errorf("watching as my-cluster: %w", err)
	}
	go func() {
		for event := range w.ResultChan() {
			if o, ok := event.Object.(client.Object); ok {
				i.mu.Lock()
				i.seen = append(i.seen, string(event.Type)+" "+o.GetName())
				i.mu.Unlock()
			}
		}
	}()
	return nil
}

// sees returns an error if the watch has shown an object with a text in its name.
func (i *intruder) sees(name string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, event := range i.seen {
		if strings.Contains(event, name) {
			return fmt.Errorf("the watch of the revoked member has shown %v", i.seen)
		}
	}
	return nil
}

// tries are the permitted actions of a member's credential, by name.
func (i *intruder) tries(as client.Client) map[string]func(context.Context) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: i.namespace, Name: name} }
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: meta("my-cluster")}
	// A patch without a change needs the same right, and disturbs no member before the revocation.
	nothing := func(part string) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{%q:{}}`, part))
	}
	return map[string]func(context.Context) error{
		"lists BundleDeployments": func(ctx context.Context) error {
			return as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(i.namespace))
		},
		"lists Works": func(ctx context.Context) error {
			return as.List(ctx, &placement.WorkList{}, client.InNamespace(i.namespace))
		},
		"reads its report": func(ctx context.Context) error {
			return as.Get(ctx, client.ObjectKeyFromObject(report), report.DeepCopy())
		},
		"writes its status": func(ctx context.Context) error {
			return as.Status().Patch(ctx, report.DeepCopy(), nothing("status"))
		},
		"writes its Lease": func(ctx context.Context) error {
			return as.Patch(ctx, &coordinationv1.Lease{ObjectMeta: meta(naming.HeartbeatLease)}, nothing("spec"))
		},
		"renews its credential": func(ctx context.Context) error {
			account := &corev1.ServiceAccount{ObjectMeta: meta(naming.MemberServiceAccount)}
			return as.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		},
	}
}

// ask sends a registration request for my-cluster, signed with its key, with each token.
func (i *intruder) ask(ctx context.Context) {
	for _, as := range i.tokens {
		answer, err := credential.NewAnswerKey()
		if err != nil {
			continue
		}
		now := time.Now()
		nonce := credential.TimedNonce("r4nd0m", now)
		request := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "intruder-", Namespace: "clusters", Annotations: map[string]string{fleet.AnnotationRequester: as.subject},
			},
			Spec: fleet.ClusterRegistrationSpec{
				ClientID: "really-random", ClientRandom: nonce, AnswerKey: answer.Public(), AgentKey: i.key.Public(),
				RequestedAt: new(metav1.NewMicroTime(now)),
				Signature: i.key.Sign(credential.Claim{
					Workspace: "clusters", ClientID: "really-random", Nonce: nonce, Token: as.name, AnswerKey: answer.Public(),
				}),
			},
		}
		if as.name != "" {
			request.Labels = map[string]string{fleet.LabelRegistrationToken: as.name}
		}
		if as.Create(ctx, request) == nil {
			i.mu.Lock()
			i.asked[request.Name] = answer
			i.taken[as.subject] = true
			i.mu.Unlock()
		}
	}
}

// granted returns the credentials of all requests ever granted, even briefly.
func (i *intruder) granted(ctx context.Context) (tokens []string, states map[string]int, err error) {
	var list fleet.ClusterRegistrationList
	if err := i.admin.List(ctx, &list, client.InNamespace("clusters")); err != nil {
		return nil, nil, err
	}
	states = map[string]int{}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, request := range list.Items {
		key, sent := i.asked[request.Name]
		if !sent {
			continue
		}
		states[fmt.Sprintf("%s %s", request.Status.State, request.Status.Reason)]++
		if len(request.Status.Answer) == 0 {
			continue
		}
		answer, err := key.Open(string(request.UID), request.Status.Answer)
		if err != nil {
			return nil, nil, err
		}
		tokens = append(tokens, answer.Token)
	}
	return tokens, states, nil
}

// refused returns an error if the API server has accepted a request, or is unreachable.
func refused(what string, err error) error {
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return nil
	case err == nil:
		return fmt.Errorf("the credential of the revoked member %s", what)
	}
	return fmt.Errorf("trying whether the credential of the revoked member %s: %w", what, err)
}
