package registration

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/servertime"
	"github.com/muster-fleet/muster/internal/testkube"
)

func request(uid types.UID) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", UID: uid}}
}

// accountOfRequest returns the account of a Cluster, created for the request with the UID.
func accountOfRequest(cluster *fleet.Cluster, uid types.UID) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: membernamespace.OfCluster(cluster).Namespace,
		Name: naming.MemberServiceAccount, UID: "u",
		Annotations: map[string]string{"muster/cluster-registration-uid": string(uid)}}}
}

func TestARequestThatWaitsGetsNothingByTheMomentInWhichAnIdentityIsReplaced(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}}
	live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	c := &Controller{Deps: Deps{Deps: controller.Deps{Live: live}}, tracker: newTracker(nil)}
	seen := func(h holder) observation {
		return observation{match: cluster, observed: observed{matches: []clusterView{{holder: h}}}}
	}
	_, done, err := c.beginGrant(t.Context(), request("approved"), seen(holderAlive))
	if err != nil {
		t.Fatal(err)
	}
	// The account is deleted and not made anew: the one that waits was observed while there was none.
	if _, _, err := c.beginGrant(t.Context(), request("waits"), seen(noHolder)); err == nil {
		t.Error("two requests get the identity of a Cluster at once")
	}
	if err := live.Create(t.Context(), accountOfRequest(cluster, "approved")); err != nil {
		t.Fatal(err)
	}
	done()
	if _, _, err := c.beginGrant(t.Context(), request("waits"), seen(noHolder)); err == nil {
		t.Error("a request that was observed before replaces the identity of another one")
	}
	for _, again := range []struct {
		request types.UID
		holder  holder
	}{{"approved", noHolder}, {"waits", sameHolder}} {
		_, done, err := c.beginGrant(t.Context(), request(again.request), seen(again.holder))
		if err != nil {
			t.Fatalf("%s: %v", again.request, err)
		}
		done()
	}
}

func TestAClusterThatWasGivenToAnAgentWithoutAKeyIsNobodysElse(t *testing.T) {
	for _, c := range []struct {
		name        string
		annotations map[string]string
		key         string
		want        holder
	}{
		{"nothing was ever pinned", nil, "mine", noHolder},
		{"another key is", map[string]string{fleet.AnnotationAgentKey: "other"}, "mine", holderAlive},
		{"that of the agent", map[string]string{fleet.AnnotationAgentKey: "mine"}, "mine", noHolder},
		{"an agent without a key has it, and is just being replaced", map[string]string{fleet.AnnotationAgentKey: ""}, "mine", holderAlive},
		{"and asks again", map[string]string{fleet.AnnotationAgentKey: ""}, "", noHolder},
	} {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", Annotations: c.annotations}}
		hub := &Controller{Deps: Deps{Deps: controller.Deps{Client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}}}
		if got, err := hub.observeHolder(t.Context(), request("r"), cluster, c.key); err != nil || got != c.want {
			t.Errorf("%s: %v (%v), want %v", c.name, got, err, c.want)
		}
	}
}

// TestABeatRightAfterTheAnswerProvesThatTheAgentHasIt has an agent of Rancher Fleet read its answer
// and beat before the hub has finished the grant.
func TestABeatRightAfterTheAnswerProvesThatTheAgentHasIt(t *testing.T) {
	api := testkube.Start(t, "registration")
	api.InstallCRDs(t)
	cl, err := client.NewWithWatch(api.Config, client.Options{Scheme: api.Client(t).Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "beats-at-once"}}
	key, member := client.ObjectKeyFromObject(cluster), membernamespace.OfCluster(cluster).Namespace
	namespace := func(name string) client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for _, o := range []client.Object{cluster, namespace(member), namespace(naming.RegistrationNamespace("default"))} {
		if err := cl.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var hub *Controller
	beats := interceptor.NewClient(cl,
		interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, o, options...)
			if secret, ok := o.(*corev1.Secret); ok && secret.Type == fleet.SecretTypeCredential {
				hub.tracker.beaten(key, time.Now())
			}
			return err
		}})
	alive := liveness.New(clock.RealClock{}, servertime.New(clock.RealClock{}), logr.Discard())
	deps := controller.Deps{Client: beats, Live: cl, Clock: clock.RealClock{}, SystemNamespace: "default", Liveness: alive}
	hub = New(Deps{Deps: deps, Lasting: longlived.New(deps), Hub: func(*fleet.Cluster) *clusterv1beta1.HubAddress { return nil }})
	grant := func(uid types.UID) {
		t.Helper()
		r := request(uid)
		r.Spec.ClientID, r.Spec.ClientRandom = "one", string(uid)
		o := observation{match: cluster, observed: observed{matches: []clusterView{{holder: sameHolder}}}}
		if _, _, err := hub.grant(t.Context(), r, o, decision{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a grant that is tried again does not ask for another beat
		if grant("first"); !hub.tracker.proved(key) {
			t.Error("the beat is forgotten, and the answer stays for an hour")
		}
	}
	seen := time.Now()
	hub.tracker.given(key, "another", seen)
	if hub.tracker.proved(key) {
		t.Error("the beat of the agent before proves that the next one has its answer")
	}
	if hub.tracker.beaten(key, seen.Truncate(time.Second)); hub.tracker.proved(key) {
		t.Error("the beat of the agent before proves that, if the status that shows it comes late")
	}
	if hub.tracker.beaten(key, seen.Add(time.Second).Truncate(time.Second)); !hub.tracker.proved(key) {
		t.Error("a beat proves nothing")
	}
	hub.tracker.forgetCluster(key)
	if len(hub.tracker.identities) > 0 {
		t.Errorf("a Cluster that is gone is remembered: %v", hub.tracker.identities)
	}
}
