package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/trust"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

// Membership is what an agent of a MemberCluster is told. Its hub knows it already; the token is the user's, in a Secret.
type Membership struct {
	// Server is the URL of the hub.
	Server string
	// Name is that of the MemberCluster.
	Name string
	// CA is that of the hub, as PEM or base64 of PEM; if empty, the key ca.crt of the Secret, else FallbackCA, else the system's.
	CA string
	// FallbackCA is the one that comes with the chart, in the same form.
	FallbackCA string
	// SecretNamespace and SecretName say where the token is.
	SecretNamespace, SecretName string
	// Insecure skips the verification of the hub.
	Insecure bool
}

// Validate returns the membership in the form the agent uses, or a sentence with what to set.
func (m Membership) Validate() (Membership, error) {
	if m.Server == "" {
		return m, errors.New("config.hubURL (HUB_SERVER_URL, --hub-server-url) is required with a member's name: https://host:port of the hub's API server")
	}
	server, err := remote.ParseServer(m.Server)
	if err != nil {
		return m, fmt.Errorf("config.hubURL (HUB_SERVER_URL, --hub-server-url) is %q: %w", m.Server, err)
	}
	m.Server = server
	if m.Name == "" {
		return m, errors.New("config.memberClusterName (MEMBER_CLUSTER_NAME, --member-cluster-name) is required with a hub's URL: the name of the MemberCluster")
	}
	if problems := validation.IsDNS1123Label(m.Name); len(problems) > 0 || len(m.Name) > naming.MaxMemberClusterName {
		return m, fmt.Errorf("config.memberClusterName (MEMBER_CLUSTER_NAME, --member-cluster-name) is %q: a MemberCluster's name has at most %d letters, "+
			"digits and '-', all lower case, and begins and ends with a letter or digit", m.Name, naming.MaxMemberClusterName)
	}
	ca, err := credential.ParseCA(m.CA)
	if err != nil {
		return m, fmt.Errorf("config.hubCA (HUB_CERTIFICATE_AUTHORITY, --hub-certificate-authority) is unusable: %w; set the certificate-authority-data "+
			"of the hub's kubeconfig, or its PEM", err)
	}
	m.CA = string(ca)
	if ca, err = credential.ParseCA(m.FallbackCA); err != nil {
		return m, fmt.Errorf("hub-ca.crt of the chart (HUB_CERTIFICATE_AUTHORITY_FALLBACK) is unusable: %w; it holds the PEM of the hub's CA", err)
	}
	m.FallbackCA = string(ca)
	if m.SecretNamespace == "" || m.SecretName == "" {
		return m, errors.New("--hub-token-secret (HUB_TOKEN_SECRET) has to be NAMESPACE/NAME of the Secret with the hub's token")
	}
	return m, nil
}

// membership is the door of a MemberCluster.
type membership struct {
	Membership

	secrets *local.Secrets
	secret  *client.Mirror[*corev1.Secret]
}

func newMembership(m Membership, member *local.Cluster, changed chan struct{}) (*membership, error) {
	secrets, err := member.SecretsIn(m.SecretNamespace)
	if err != nil {
		return nil, err
	}
	return &membership{Membership: m, secrets: secrets, secret: client.NewMirror[*corev1.Secret](changed)}, nil
}

func (d *membership) follow(ctx context.Context) {
	client.FollowOne(ctx, d.secret, d.secrets, d.SecretName)
}

func (d *membership) observe(s *seen) {
	secret, synced := d.secret.Get()
	s.source, s.synced, s.failure = d.source(), synced, text(d.secret.Failure())
	s.stored = identity.Credential{Server: d.Server, CA: []byte(d.CA), MemberNamespace: naming.MemberClusterNamespace(d.Name), Cluster: d.Name}
	s.record = s.stored.Record()
	if secret == nil {
		return
	}
	token, ca, err := identity.ReadToken(secret)
	s.credential = object{version: identity.Digest(secret), problem: text(err)}
	s.stored.Token = token
	s.stored.CA = []byte(cmp.Or(d.CA, string(ca), d.FallbackCA))
}

func (*membership) decide(o observed, now time.Time) decision { return decideMember(o, now) }

// trust is the CA alone if there is one: whoever names it means it.
func (d *membership) trust(s seen) trust.Policy {
	policy := trust.Policy{Mode: trust.SystemStore, Settings: trust.Settings{
		URL:   "config.hubURL",
		SetCA: "set config.hubCA to the CA of the hub, or put it as ca.crt into secret " + d.source(),
	}}
	switch {
	case d.Insecure:
		policy.Mode = trust.Insecure
	case len(s.stored.CA) > 0:
		policy.Mode = trust.Strict
	}
	return policy
}

func (d *membership) source() string { return d.SecretNamespace + "/" + d.SecretName }

func (d *membership) spent(begun string) string { return begun }

func (*membership) tidy() {}

func (*membership) parts(*runner) []func(context.Context) { return nil }

// refused tells a token that the hub does not know from one for which it has nothing, which may change at any moment.
func (d *membership) refused(session *remote.Session, v remote.Verdict, err error) (verdict, string) {
	claims := identity.ReadClaims(session.Credential.Token)
	who := claims.Subject
	switch {
	case v == remote.Unauthorized && who == "":
		return refused, fmt.Sprintf("the hub at %s refuses the token in secret %s, which is not that of a service account: copy it again from the hub: %s",
			d.Server, d.source(), d.howToGetAToken())
	case v == remote.Unauthorized && !claims.Expires.IsZero() && session.Now().After(claims.Expires):
		return refused, fmt.Sprintf("the token in secret %s, of %s, expired at %s: put a new one there; it is used at once",
			d.source(), who, claims.Expires.UTC().Format(time.RFC3339))
	case v == remote.Unauthorized:
		return refused, fmt.Sprintf("the hub at %s refuses the token in secret %s, of %s: the account or its token was deleted, or it is another hub's; "+
			"put a new one there; it is used at once", d.Server, d.source(), who)
	case who == "":
		who = "the one of the token in secret " + d.source()
	}
	return absent, fmt.Sprintf("the hub knows no member %s for this identity yet: apply a MemberCluster named %s whose identity is %s, "+
		"or put the token of the account that it names into secret %s (%s)", d.Name, d.Name, who, d.source(), session.Explain(err))
}

func (d *membership) howToGetAToken() string {
	return fmt.Sprintf("kubectl get secret %s-hub-cluster-access-token -n fleet-system -o jsonpath='{.data.token}' | base64 -d", d.Name)
}
