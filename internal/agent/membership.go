package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/deployer"
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
	server, err := credential.ParseServer(m.Server)
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

	member  *local.Cluster
	secrets *local.Secrets
	secret  *client.Mirror[*corev1.Secret]
	// told is what the hub told; see recall.
	told *client.Mirror[*corev1.ConfigMap]
}

func newMembership(m Membership, member *local.Cluster, changed chan struct{}) (*membership, error) {
	secrets, err := member.SecretsIn(m.SecretNamespace)
	if err != nil {
		return nil, err
	}
	return &membership{
		Membership: m, member: member, secrets: secrets,
		secret: client.NewMirror[*corev1.Secret](changed), told: client.NewMirror[*corev1.ConfigMap](changed),
	}, nil
}

func (d *membership) follow(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { client.FollowOne(ctx, d.secret, d.secrets, d.SecretName) })
	following.Go(func() { client.FollowOne(ctx, d.told, d.member.ConfigMaps, naming.LearnedHubConfigMap) })
	following.Wait()
}

func (d *membership) observe(s *seen) {
	secret, synced := d.secret.Get()
	told, seen := d.told.Get()
	// A chart from before there was this ConfigMap gives no right to it: then the hub has told nothing.
	seen = seen || apierrors.IsForbidden(d.told.Failure())
	s.source, s.synced, s.failure = d.source(), synced && seen, text(d.secret.Failure())
	if s.failure == "" && !seen {
		s.failure = text(d.told.Failure())
	}
	configured, err := d.configured(secret)
	s.stored, s.record = configured, configured.Record()
	if secret == nil {
		return
	}
	s.credential = object{version: identity.Digest(secret), problem: text(err)}
	if learned, ok := recall(told, configured); ok {
		s.stored, s.fallback = learned, &configured
	}
}

// configured is the credential as the user gave it, at the address that the user gave.
func (d *membership) configured(secret *corev1.Secret) (identity.Credential, error) {
	c := identity.Credential{Server: d.Server, CA: []byte(d.CA), MemberNamespace: naming.MemberClusterNamespace(d.Name), Cluster: d.Name}
	if secret == nil {
		return c, nil
	}
	token, ca, err := identity.ReadToken(secret)
	c.Token, c.CA = token, []byte(cmp.Or(d.CA, string(ca), d.FallbackCA))
	return c, err
}

func (*membership) decide(o observed, now time.Time) decision { return decideMember(o, now) }

// trust is the CA alone if there is one: whoever names it means it.
func (d *membership) trust(_ seen, c identity.Credential) trust.Policy {
	return trust.Policy{Mode: d.mode("", c.Mode, c.CA), Settings: trust.Settings{
		URL:   "config.hubURL",
		SetCA: "set config.hubCA to the CA of the hub, or put it as ca.crt into secret " + d.source(),
	}}
}

func (d *membership) mode(_, asked trust.Mode, ca []byte) trust.Mode {
	switch {
	case d.Insecure:
		return trust.Insecure
	case asked == trust.Strict, len(ca) > 0:
		return trust.Strict
	}
	return trust.SystemStore
}

func (*membership) learn(c *identity.Credential, to address) {
	c.Server, c.CA, c.Mode = to.server, to.ca, to.mode
}

// keep stores the address alone: the token is the user's.
func (d *membership) keep(ctx context.Context, c identity.Credential) error {
	secret, _ := d.secret.Get()
	configured, _ := d.configured(secret) // an unusable Secret is told by observe
	err := d.member.StoreConfigMap(ctx, learnedAddress(d.member.Namespace, c, configured))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: upgrade the chart member-agent, which gives the agent this right", err)
	}
	return err
}

func (d *membership) source() string { return d.SecretNamespace + "/" + d.SecretName }

func (d *membership) spent(begun string) string { return begun }

func (*membership) tidy() {}

// deliver carries out Works: there are no Bundles for a MemberCluster.
func (*membership) deliver(ctx context.Context, r *runner) { r.deliver(ctx, deployer.Works) }

func (*membership) features() []string { return nil }

func (*membership) deliveryOff() string { return "delivery=false" }

func (*membership) parts(*runner) []func(context.Context) { return nil }

// refused tells a token that the hub does not know from one for which it has nothing, which may change at any moment.
func (d *membership) refused(session *remote.Session, v remote.Verdict, err error) (verdict, string) {
	claims := identity.ReadClaims(session.Credential.Token)
	who := claims.Subject
	switch {
	case v == remote.Unauthorized && who == "":
		return refused, fmt.Sprintf("the hub at %s refuses the token in secret %s, which is not that of a service account: copy it again from the hub: %s",
			session.Server(), d.source(), d.howToGetAToken())
	case v == remote.Unauthorized && !claims.Expires.IsZero() && session.Now().After(claims.Expires):
		return refused, fmt.Sprintf("the token in secret %s, of %s, expired at %s: put a new one there; it is used at once",
			d.source(), who, claims.Expires.UTC().Format(time.RFC3339))
	case v == remote.Unauthorized:
		return refused, fmt.Sprintf("the hub at %s refuses the token in secret %s, of %s: the account or its token was deleted, or it is another hub's; "+
			"put a new one there; it is used at once", session.Server(), d.source(), who)
	case who == "":
		who = "the one of the token in secret " + d.source()
	}
	return absent, fmt.Sprintf("the hub knows no member %s for this identity yet: apply a MemberCluster named %s whose identity is %s, "+
		"or put the token of the account that it names into secret %s (%s)", d.Name, d.Name, who, d.source(), session.Explain(err))
}

func (d *membership) howToGetAToken() string {
	return fmt.Sprintf("kubectl get secret %s-hub-cluster-access-token -n fleet-system -o jsonpath='{.data.token}' | base64 -d", d.Name)
}
