package registration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/controller"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/naming"
)

func request(uid types.UID) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", UID: uid}}
}

// accountOfRequest is that of a Cluster whose identity a request has.
func accountOfRequest(cluster *fleet.Cluster, uid types.UID) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: membership.OfCluster(cluster).Namespace, Name: naming.MemberServiceAccount, UID: "u",
		Annotations: map[string]string{"muster/cluster-registration-uid": string(uid)}}}
}

func TestARequestThatWaitsGetsNothingByTheMomentInWhichAnIdentityIsReplaced(t *testing.T) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}}
	live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	c := &Controller{Deps: Deps{Deps: controller.Deps{Live: live}}, tracker: newTracker()}
	seen := func(h holder) observation {
		return observation{match: cluster, observed: observed{matches: []clusterView{{holder: h}}}}
	}
	done, err := c.beginGrant(t.Context(), request("approved"), seen(holderAlive))
	if err != nil {
		t.Fatal(err)
	}
	// The account is deleted and not made anew: the one that waits was observed while there was none.
	if _, err := c.beginGrant(t.Context(), request("waits"), seen(noHolder)); err == nil {
		t.Error("two requests get the identity of a Cluster at once")
	}
	if err := live.Create(t.Context(), accountOfRequest(cluster, "approved")); err != nil {
		t.Fatal(err)
	}
	done()
	if _, err := c.beginGrant(t.Context(), request("waits"), seen(noHolder)); err == nil {
		t.Error("a request that was observed before replaces the identity of another one")
	}
	for _, again := range []struct {
		request types.UID
		holder  holder
	}{{"approved", noHolder}, {"waits", sameHolder}} {
		done, err := c.beginGrant(t.Context(), request(again.request), seen(again.holder))
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
