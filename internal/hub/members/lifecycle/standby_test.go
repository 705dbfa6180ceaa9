package lifecycle

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

// withStandby returns a controller with a token for its one further address.
func withStandby(t *testing.T, expires time.Time) *Controller {
	t.Helper()
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:a:b","exp":%d}`, expires.Unix())
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s3cret"
	cl := fake.NewClientBuilder().WithObjects(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: naming.HubConfigMap}, Data: map[string]string{
			"config": `{"apiServerURL":"https://one","apiServerFallbacks":[{"apiServerURL":"https://two","tokenSecret":{"name":"standby"}}]}`}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "standby"}, Data: map[string][]byte{standby.Key: []byte(token)}},
	).Build()
	config := settings.New(cl, nil, "system")
	if err := config.Load(context.Background(), cl); err != nil {
		t.Fatal(err)
	}
	return &Controller{Deps: controller.Deps{Config: config}}
}

func TestATokenOfTheStandbyIsSealedOnceToThePinnedKey(t *testing.T) {
	ctx, c := context.Background(), withStandby(t, time.Now().Add(standby.Life))
	key, err := credential.NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	pinned := credential.Fingerprint(key.Public())
	observe := func(report *clusterv1beta1.InternalMemberCluster, pinned string) Observed {
		o := Observed{Hub: c.Config.Current().Hub(), Report: report}
		c.AddTokens(ctx, &o, pinned)
		return o
	}
	report := &clusterv1beta1.InternalMemberCluster{}
	report.Status.AgentKey = key.Public()
	first := observe(report, pinned)
	given := first.Hub.Fallbacks[0].StandbyToken
	if given == nil || first.Standby != "" {
		t.Fatalf("the token is %+v, %q", given, first.Standby)
	}
	if token, err := key.OpenStandby("https://two", given.Sealed); err != nil || !strings.HasSuffix(token, ".s3cret") {
		t.Errorf("the agent opens %q, %v", token, err)
	}
	if c.Config.Current().Hub().Fallbacks[0].StandbyToken != nil {
		t.Error("the settings of all members have the token of one")
	}
	report.Spec.Hub = first.Hub
	if again := observe(report, pinned); !again.Address().Asked() {
		t.Error("the token is sealed again without a change")
	}
	for name, o := range map[string]Observed{
		"without a report": observe(nil, pinned), "without a pinned key": observe(report, ""), "with another key": observe(report, "another"),
	} {
		if o.Hub.Fallbacks[0].StandbyToken != nil || !strings.Contains(o.Standby, "no token for https://two, because its key is not known") {
			t.Errorf("%s: %+v, %q", name, o.Hub.Fallbacks[0].StandbyToken, o.Standby)
		}
	}
}

func TestAnExpiredTokenOfTheStandbyIsNamedInTheCondition(t *testing.T) {
	c := withStandby(t, time.Now().Add(-time.Hour))
	report := &clusterv1beta1.InternalMemberCluster{}
	report.Status.AgentVersion, report.Status.Hub = "v1", &clusterv1beta1.HubInUse{APIServerURL: "https://one"}
	o := Observed{Hub: c.Config.Current().Hub(), Report: report}
	c.AddTokens(context.Background(), &o, "")
	if o.Hub.Fallbacks[0].StandbyToken != nil {
		t.Error("an expired token is given to the agent")
	}
	says := o.Address().Condition()
	if says.Reason != "InUse" || !strings.Contains(says.Message, "for https://two, the token of the standby expired at") {
		t.Errorf("it says %+v", says)
	}
}
