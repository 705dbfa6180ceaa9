package longlived

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// rig is an API server that grants tokens of at most so much life, and counts them.
type rig struct {
	*Issuer
	t      *testing.T
	clock  *clocktesting.FakePassiveClock
	most   time.Duration
	issued int
	// uid is the account's UID in each token. If it is empty, the token has the UID of the requested
	// account.
	uid string
}

func newRig(t *testing.T, most time.Duration) *rig {
	r := &rig{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), most: most}
	cl := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, account, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			r.issued++
			asked, uid := request.(*authenticationv1.TokenRequest), r.uid
			if uid == "" {
				uid = string(account.GetUID())
			}
			life := min(r.most, time.Duration(*asked.Spec.ExpirationSeconds)*time.Second)
			claims := fmt.Sprintf(`{"sub":"system:serviceaccount:n:%s",`+
				`"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q},"secret":{"name":%q}}}`,
				account.GetName(), r.clock.Now().Unix(), r.clock.Now().Add(life).Unix(), uid, asked.Spec.BoundObjectRef.Name)
			asked.Status.Token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
			return nil
		},
	}).Build()
	r.Issuer = New(controller.Deps{Client: cl, Live: cl, Clock: r.clock})
	return r
}

// token asks for one of an account, and returns which of its Secrets exist.
func (r *rig) token(name string) (token string, awaited *corev1.Secret, bound, filled bool, err error) {
	r.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID("uid-of-" + name)}}
	token, awaited, err = r.Token(r.t.Context(), account, metav1.ObjectMeta{
		Namespace: "n", Labels: map[string]string{fleet.LabelManaged: "true"},
	})
	exists := func(secret string) bool {
		err := r.Client.Get(r.t.Context(), types.NamespacedName{Namespace: "n", Name: secret}, &corev1.Secret{})
		if err != nil && !apierrors.IsNotFound(err) {
			r.t.Fatal(err)
		}
		return err == nil
	}
	return token, awaited, exists(name + "-lasting"), exists(name + "-token"), err
}

func TestATokenThatLastsIsIssuedByTheAPIServer(t *testing.T) {
	for _, most := range []time.Duration{life, enough} {
		r := newRig(t, most)
		if token, _, bound, filled, err := r.token("a"); token == "" || !bound || filled || err != nil {
			t.Errorf("of %s: token %q, bound %t, filled %t: %v", most, token, bound, filled, err)
		}
	}
}

func TestWhereTheAPIServerGrantsTooLittleItIsAskedOnceInAnHour(t *testing.T) {
	r := newRig(t, enough-time.Second)
	for i, name := range []string{"a", "b", "a"} {
		token, awaited, bound, filled, err := r.token(name)
		if token != "" || awaited == nil || awaited.Name != name+"-token" || bound || !filled || err != nil || r.issued != 1 {
			t.Errorf("%d: token %q awaited in %v, bound %t, filled %t, %d issued: %v", i, token, awaited, bound, filled, r.issued, err)
		}
	}
	r.clock.SetTime(r.clock.Now().Add(retryAfter))
	r.most = life
	if token, _, bound, filled, err := r.token("c"); token == "" || !bound || filled || err != nil || r.issued != 2 {
		t.Errorf("an hour later: token %q, bound %t, filled %t, %d issued: %v", token, bound, filled, r.issued, err)
	}
	// What kube-controller-manager was asked for it issues.
	if token, awaited, bound, _, err := r.token("a"); token != "" || awaited == nil || bound || err != nil || r.issued != 2 {
		t.Errorf("for the account that waits: token %q, awaited %v, bound %t, %d issued: %v", token, awaited, bound, r.issued, err)
	}
}

func TestATokenOfAnAccountThatWasReplacedIsNotUsed(t *testing.T) {
	r := newRig(t, life)
	r.uid = "another"
	if token, _, _, _, err := r.token("a"); token != "" || err == nil {
		t.Errorf("token %q: %v", token, err)
	}
}
