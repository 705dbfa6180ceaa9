package registration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// newCA returns a CA as PEM, and its digest.
func newCA(t *testing.T) (bundle, digest string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	bundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	return bundle, credential.CADigests([]byte(bundle))[0]
}

func TestARequestThatNamesTheCAOfAnotherHubIsForThat(t *testing.T) {
	told, toldDigest := newCA(t)
	imported, importedDigest := newCA(t)
	_, ownDigest := newCA(t)
	_, other := newCA(t)
	hub := func(ca string) *Controller {
		text, err := json.Marshal(map[string]string{"apiServerCA": ca})
		if err != nil {
			t.Fatal(err)
		}
		cl := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: naming.HubConfigMap},
			Data: map[string]string{"config": string(text)}}).Build()
		settings := settings.New(cl, events.NewFakeRecorder(1), "system")
		if err := settings.Load(t.Context(), cl); err != nil {
			t.Fatal(err)
		}
		return New(Deps{Deps: controller.Deps{Config: settings}, OwnCAs: []string{ownDigest},
			Hub: func(c *fleet.Cluster) *clusterv1beta1.HubAddress {
				if c.Name == "imported" {
					return &clusterv1beta1.HubAddress{APIServerCA: imported}
				}
				return settings.Current().Hub()
			}})
	}
	telling, silent := hub(told), hub("")
	cluster := func(name string) *fleet.Cluster { return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for _, c := range []struct {
		name    string
		hub     *Controller
		named   []string
		cluster *fleet.Cluster
		says    string
	}{
		{"an agent that trusts others, too", telling, nil, nil, ""},
		{"the CA that members are told", telling, []string{toldDigest}, cluster("web"), ""},
		{"that and an old one", telling, []string{other, toldDigest}, nil, ""},
		{"the CA by which the hub knows itself", telling, []string{ownDigest}, nil, ""},
		{"the CA that an imported cluster was given", telling, []string{importedDigest}, cluster("imported"), ""},
		{"which is of no use to another one", telling, []string{importedDigest}, cluster("web"), importedDigest[:12]},
		{
			"another CA", telling, []string{other}, nil,
			"certificate " + other[:12] + "... (SHA-256), and the CA of this hub is " + toldDigest[:12] + "...: the request is for another hub",
		},
		{"nonsense", telling, []string{"x"}, nil, "certificate x (SHA-256)"},
		{"a hub that tells its members none does not know", silent, []string{other}, nil, ""},
	} {
		got := c.hub.hubCAProblem(&fleet.ClusterRegistration{Spec: fleet.ClusterRegistrationSpec{HubCAs: c.named}}, c.cluster)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
}
