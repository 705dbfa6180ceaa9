package token

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/hub/joining/expression"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// granting is an API server that grants credentials of at most so much life, and counts them.
func granting(t *testing.T, most time.Duration, clock *clocktesting.FakePassiveClock, issued *int) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&fleet.ClusterRegistrationToken{}).
		WithIndex(&fleet.ClusterRegistration{}, indexToken, func(client.Object) []string { return nil }).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceCreate: func(_ context.Context, _ client.Client, _ string,
			account, request client.Object, _ ...client.SubResourceCreateOption) error {
			*issued++
			r := request.(*authenticationv1.TokenRequest)
			life := min(most, time.Duration(*r.Spec.ExpirationSeconds)*time.Second)
			claims := fmt.Sprintf(`{"sub":"system:serviceaccount:%s:%s","iat":%d,"exp":%d}`,
				account.GetNamespace(), account.GetName(), clock.Now().Unix(), clock.Now().Add(life).Unix())
			r.Status.Token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
			return nil
		}}).Build()
}

func TestATokenOfWhichTheServerGrantsLessLifeSaysSoAndIsRenewed(t *testing.T) {
	clock, issued, day := clocktesting.NewFakePassiveClock(start), 0, 24*time.Hour
	cl := granting(t, day, clock, &issued)
	token := &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "t", UID: "1", CreationTimestamp: metav1.NewTime(start)},
	}
	token.Spec.TTL = &metav1.Duration{Duration: 40 * time.Hour}
	if err := cl.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	deps := controller.Deps{
		Client: cl, Live: cl, Clock: clock, Config: settings.New(cl, events.NewFakeRecorder(10), "system"), SystemNamespace: "system",
	}
	c := New(deps, expression.NewCache(), longlived.New(deps))
	reconcile := func(after time.Duration) (wait time.Duration, conditions []fleet.Condition) {
		t.Helper()
		clock.SetTime(start.Add(after))
		result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)})
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter, token.Status.Conditions
	}
	values := func() string {
		t.Helper()
		var secret corev1.Secret
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(token), &secret); err != nil {
			t.Fatal(err)
		}
		return credentialIn(&secret)
	}
	expires := func(want time.Duration) {
		t.Helper()
		if is := token.Status.Expires; is == nil || !is.Time.Equal(start.Add(want)) {
			t.Errorf("status.expires is %v, want %s", is, start.Add(want))
		}
	}
	_, conditions := reconcile(0)
	expires(day)
	if ready := kube.FindCondition(conditions, fleet.ConditionReady); ready == nil || ready.Reason != "Ready" {
		t.Errorf("the condition Ready is %+v", ready)
	}
	short := kube.FindCondition(conditions, fleet.ConditionTTLGranted)
	if short == nil || short.Status != corev1.ConditionFalse || short.Reason != "LifeShortened" ||
		!strings.Contains(short.Message, "at most 24h0m0s") ||
		!strings.Contains(short.Message, "values.yaml in Secret t works until 2026-01-03T03:04:05Z") {
		t.Errorf("the condition TTLGranted is %+v", short)
	}
	first := values()
	if wait, _ := reconcile(time.Hour); wait != time.Hour || issued != 1 || values() != first {
		t.Errorf("an hour later %d are issued, and it waits for %s", issued, wait)
	}
	_, conditions = reconcile(16 * time.Hour)
	expires(40 * time.Hour)
	if values() == first || issued != 2 || kube.FindCondition(conditions, fleet.ConditionTTLGranted) != nil {
		t.Errorf("at two thirds %d are issued; the conditions are %+v", issued, conditions)
	}
	if reconcile(39 * time.Hour); issued != 2 {
		t.Errorf("for the rest of its life %d are issued", issued)
	}
	if _, conditions = reconcile(40 * time.Hour); conditions[0].Reason != "Expired" {
		t.Errorf("at its end the conditions are %+v", conditions)
	}
}

func TestATokenThatGetsItsTTLSaysNothingOfThat(t *testing.T) {
	clock, issued := clocktesting.NewFakePassiveClock(start), 0
	cl := granting(t, 1000*time.Hour, clock, &issued)
	token := &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "t", UID: "1", CreationTimestamp: metav1.NewTime(start)},
	}
	token.Spec.TTL = &metav1.Duration{Duration: 240 * time.Hour}
	if err := cl.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	deps := controller.Deps{
		Client: cl, Live: cl, Clock: clock, Config: settings.New(cl, events.NewFakeRecorder(10), "system"), SystemNamespace: "system",
	}
	c := New(deps, expression.NewCache(), longlived.New(deps))
	if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)}); err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil {
		t.Fatal(err)
	}
	if conditions := token.Status.Conditions; len(conditions) != 1 || !token.Status.Expires.Time.Equal(start.Add(240*time.Hour)) {
		t.Errorf("it expires at %s with the conditions %+v", token.Status.Expires, conditions)
	}
}

// counted counts what is read from an API server, by kind.
type counted struct {
	client.Reader
	reads map[string]int
}

func (c counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	c.reads[fmt.Sprintf("%T %s", into, key.Name)]++
	return c.Reader.Get(ctx, key, into, options...)
}

func TestAHubThatBeginsReadsEachObjectOfATokenOnceAndThenNone(t *testing.T) {
	clock, issued := clocktesting.NewFakePassiveClock(start), 0
	cl := granting(t, 1000*time.Hour, clock, &issued)
	token := &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "t", UID: "1", CreationTimestamp: metav1.NewTime(start)},
	}
	token.Spec.TTL = &metav1.Duration{Duration: 240 * time.Hour}
	if err := cl.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	begin := func() (reads map[string]int, look func()) {
		reads = map[string]int{}
		deps := controller.Deps{
			Client: cl, Live: counted{cl, reads}, Clock: clock, Config: settings.New(cl, events.NewFakeRecorder(10), "system"),
			SystemNamespace: "system",
		}
		c := New(deps, expression.NewCache(), longlived.New(deps))
		return reads, func() {
			t.Helper()
			if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(token)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads, look := begin()
	look()
	clear(reads)
	for range 5 {
		look()
	}
	if len(reads) > 0 {
		t.Errorf("the hub that made them reads %v", reads)
	}
	reads, look = begin()
	for range 5 {
		look()
	}
	for object, times := range reads {
		if times > 1 {
			t.Errorf("a hub that begins reads %s %d times", object, times)
		}
	}
	if len(reads) != 3 || issued != 1 {
		t.Errorf("a hub that begins reads %v, and %d credentials are issued", reads, issued)
	}
}
