package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestTheTokenOfAStandbyIsPrintedForKubectlAndShownWithItsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	target := testkube.Turn(t, "cli-standby")
	r := restoring{t: t, target: target, onto: target.Client(t)}
	ctx := context.Background()
	admin := of(t, target, target.Account(t, "cli-admin", "cluster-admin"))
	admin.refused("hub standby-token", "has no namespace "+naming.SystemNamespace, "muster init")
	target.InstallHub(t)
	admin.cacheDir = t.TempDir()
	tenant := of(t, target, target.Account(t, "cli-viewer", "view"))
	tenant.refused("hub standby-token", "creating ServiceAccount", "forbidden")
	admin.refused("hub standby-token --duration 1m", "use at least 10m")

	out, said, err := admin.run("hub", "standby-token", "--duration", "24h")
	r.check(err)
	secret := &corev1.Secret{}
	r.check(yaml.Unmarshal([]byte(out), secret))
	token := secret.StringData[standby.Key]
	claims, err := credential.ReadClaims(token)
	r.check(err)
	if secret.Namespace != naming.SystemNamespace || secret.Name != standby.Secret || claims.Subject != standby.User(naming.SystemNamespace) ||
		time.Until(claims.Expires) < 23*time.Hour {
		t.Errorf("the Secret is %s/%s, of %s until %s", secret.Namespace, secret.Name, claims.Subject, claims.Expires)
	}
	if strings.Contains(said, token) || !strings.Contains(said, claims.Expires.UTC().Format(time.RFC3339)) {
		t.Errorf("beside the Secret, it says %q", said)
	}
	_, _, err = admin.run("hub", "standby-token")
	r.check(err) // the account is there

	r.check(client.IgnoreAlreadyExists(r.onto.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}})))
	settings := &corev1.ConfigMap{}
	r.check(r.onto.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}, settings))
	settings.Data = map[string]string{"config": `{"apiServerURL":"https://one","apiServerFallbacks":[{"apiServerURL":"https://plain"},` +
		`{"apiServerURL":"https://two","tokenSecret":{"name":"` + standby.Secret + `"}}]}`}
	r.check(r.onto.Update(ctx, settings))
	r.putIdentity(r.onto, 1)
	admin.says("hub status", "Standby  https://two, no token in Secret "+standby.Secret)
	r.check(r.onto.Create(ctx, secret))
	admin.says("hub status", "Standby  https://two, the token of the standby expires at "+claims.Expires.UTC().Format(time.RFC3339))
	if out, _, err := admin.run("hub", "status"); err != nil || strings.Contains(out, token) || strings.Contains(out, "https://plain") {
		t.Errorf("muster hub status shows the token or an address without one: %v", err)
	}
}
