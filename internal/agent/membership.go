package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// Membership configures an agent of a MemberCluster. The hub knows the member already; the user
// provides the token in a Secret.
type Membership struct {
	// Server is the URL of the hub.
	Server string
	// Name is the name of the MemberCluster.
	Name string
	// Namespace is the member namespace on the hub; defaults to the namespace of a MemberCluster
	// without a revocation.
	Namespace string
	// CA is the CA of the hub, as PEM or base64 of PEM. It defaults to the key ca.crt of the Secret,
	// then FallbackCA, then the system's CAs.
	CA string
	// FallbackCA is the CA from the chart, in the same form.
	FallbackCA string
	// SecretNamespace and SecretName name the Secret with the token.
	SecretNamespace, SecretName string
	// Insecure skips the verification of the hub.
	Insecure bool
	// Release is the Helm release of the agent, NAMESPACE/NAME; empty if the chart names none.
	Release string
	// UpgradedByUser is set if the chart refuses upgrades by the hub.
	UpgradedByUser bool
}

// Validate returns the membership in the agent's form, or an error with the setting to change.
func (m Membership) Validate() (Membership, error) {
	if m.Server == "" {
		return m, errors.New("config.hubURL (HUB_SERVER_URL, --hub-server-url) is required with a member's name: https://host:port of the " +
			"hub's API server")
	}
	server, err := credential.ParseServer(m.Server)
	if err != nil {
		return m, fmt.Errorf("config.hubURL (HUB_SERVER_URL, --hub-server-url) is %q: %w", m.Server, err)
	}
	m.Server = server
	if m.Name == "" {
		return m, errors.New("config.memberClusterName (MEMBER_CLUSTER_NAME, --member-cluster-name) is required with a hub's URL: the name of " +
			"the MemberCluster")
	}
	if problems := validation.IsDNS1123Label(m.Name); len(problems) > 0 || len(m.Name) > naming.MaxMemberClusterName {
		return m, fmt.Errorf("config.memberClusterName (MEMBER_CLUSTER_NAME, --member-cluster-name) is %q: a MemberCluster's name has at most "+
			"%d letters, digits and '-', all lower case, and begins and ends with a letter or digit", m.Name, naming.MaxMemberClusterName)
	}
	m.Namespace = cmp.Or(m.Namespace, naming.MemberClusterNamespace(m.Name))
	if !strings.HasPrefix(m.Namespace, naming.MemberClusterNamespace("")) || len(validation.IsDNS1123Label(m.Namespace)) > 0 {
		return m, fmt.Errorf("config.memberNamespace (MEMBER_NAMESPACE, --member-namespace) is %q: set the namespace in the condition "+
			"Joined of the MemberCluster, or leave it empty if the condition names none", m.Namespace)
	}
	ca, err := credential.ParseCA(m.CA)
	if err != nil {
		return m, fmt.Errorf("config.hubCA (HUB_CERTIFICATE_AUTHORITY, --hub-certificate-authority) is unusable: %w; set the "+
			"certificate-authority-data of the hub's kubeconfig, or its PEM", err)
	}
	m.CA = string(ca)
	if ca, err = credential.ParseCA(m.FallbackCA); err != nil {
		return m, fmt.Errorf("hub-ca.crt of the chart (HUB_CERTIFICATE_AUTHORITY_FALLBACK) is unusable: %w; it holds the PEM of the hub's CA",
			err)
	}
	m.FallbackCA = string(ca)
	if m.SecretNamespace == "" || m.SecretName == "" {
		return m, errors.New("--hub-token-secret (HUB_TOKEN_SECRET) must be NAMESPACE/NAME of the Secret with the hub's token")
	}
	return m, nil
}

// membership is the mode of an agent of a MemberCluster. The user provides the token of an account
// known to the hub.
type membership struct {
	Membership

	member *local.Cluster
	// kubeconfig replaces the token in the user's Secret, if it names a Secret.
	kubeconfig HubKubeconfig
	secret     *kubeclient.Mirror[*corev1.Secret]
	// adopted is the address from the hub; see adoptedAddress.
	adopted *kubeclient.Mirror[*corev1.ConfigMap]
	// issued is the Secret with the credential from the hub; see exchangedCredential.
	issued *kubeclient.Mirror[*corev1.Secret]
}

func newMembership(given Membership, member *local.Cluster, kubeconfig HubKubeconfig, changed chan struct{}) *mode {
	if kubeconfig.Secret != "" {
		given.SecretNamespace, given.SecretName = member.Namespace, kubeconfig.Secret
	}
	m := &membership{
		Membership: given, member: member, kubeconfig: kubeconfig,
		secret: kubeclient.NewMirror[*corev1.Secret](changed), adopted: kubeclient.NewMirror[*corev1.ConfigMap](changed),
		issued: kubeclient.NewMirror[*corev1.Secret](changed),
	}
	always := []string{clusterv1beta1.FeatureReconnect}
	if m.UpgradedByUser {
		always = append(always, clusterv1beta1.FeatureUpgradedByUser)
	}
	return &mode{
		credentialSource: m, credentialStore: m, hubPolicy: m,
		kinds: []protocol.Kind{protocol.Works}, deliverySetting: "delivery=false", // a MemberCluster has no Bundles
		features:  []string{clusterv1beta1.FeatureHandOver},
		always:    always,
		exchanges: true, upgradable: m.upgradable, runnables: m.runnables, credentialChanged: notification(),
	}
}

// upgradable reports whether the hub can upgrade the agent. The settings of the agent must be in
// the history of a Helm release, without files added to the chart by the user.
func (m *membership) upgradable(ctx context.Context) (bool, error) {
	namespace, name, named := strings.Cut(m.Release, "/")
	if !named || m.UpgradedByUser || m.FallbackCA != "" {
		return false, nil
	}
	return m.member.HasRelease(ctx, namespace, name)
}

// runnables returns the tasks for storing the issued credential, and for forgetting a lost hub.
func (m *membership) runnables(s *session) []func(context.Context) {
	return []func(context.Context){(&restorer{session: s, secret: m.issued, read: exchangedCredential}).run, s.forgetFormer}
}

func (m *membership) follow(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { kubeclient.FollowOne(ctx, m.secret, m.member.SecretsIn(m.SecretNamespace), m.SecretName) })
	following.Go(func() { kubeclient.FollowOne(ctx, m.adopted, m.member.ConfigMaps, naming.LearnedHubConfigMap) })
	following.Go(func() { kubeclient.FollowOne(ctx, m.issued, m.member.Secrets, naming.MemberAgentCredentialSecret) })
	following.Wait()
}

func (m *membership) observe(o *observation) {
	secret, synced := m.secret.Get()
	adopted, adoptedSynced := m.adopted.Get()
	issued, issuedSynced := m.issued.Get()
	// The chart of an earlier version gives no right to these objects. Then the hub has requested no
	// address and issued no credential.
	adoptedSynced = adoptedSynced || apierrors.IsForbidden(m.adopted.Failure())
	issuedSynced = issuedSynced || apierrors.IsForbidden(m.issued.Failure())
	o.source, o.synced, o.failure = m.credentialRef(), synced && adoptedSynced && issuedSynced, text(m.secret.Failure())
	if o.failure == "" && !adoptedSynced {
		o.failure = text(m.adopted.Failure())
	}
	if o.failure == "" && !issuedSynced {
		o.failure = text(m.issued.Failure())
	}
	o.kubeconfig = m.kubeconfig.Secret != ""
	configured, err := m.configured(secret)
	o.stored, o.record = configured, configured.Record()
	if secret != nil {
		o.credential = object{version: m.digest(secret), problem: text(err)}
	}
	m.observeIssued(o, issued)
	if moved, ok := adoptedAddress(adopted, configured); ok {
		for _, c := range []*hubclient.Credential{&o.stored, o.given} {
			if c != nil {
				c.Server, c.CA, c.Mode = moved.Server, moved.CA, moved.Mode
			}
		}
		o.fallback = &configured
	}
}

// configured returns the credential and address from the user.
func (m *membership) configured(secret *corev1.Secret) (hubclient.Credential, error) {
	c := hubclient.Credential{
		Server: m.Server, MemberNamespace: m.Namespace, Cluster: m.Name, CA: []byte(cmp.Or(m.CA, m.givenCA(secret), m.FallbackCA)),
	}
	if secret == nil {
		return c, nil
	}
	var err error
	if m.kubeconfig.Secret != "" {
		c.Login, err = m.kubeconfig.login(secret)
		return c, err
	}
	c.Token, _, err = hubclient.TokenFromSecret(secret)
	return c, err
}

// digest changes with the user's part of the credential.
func (m *membership) digest(secret *corev1.Secret) string {
	if m.kubeconfig.Secret != "" {
		return m.kubeconfig.digest(secret)
	}
	return hubclient.DigestOfTokenSecret(secret)
}

func (*membership) decide(o observed, now time.Time) decision { return decideMembership(o, now) }

// trust returns only the CA if there is one, because a user with a CA of their own trusts no other.
func (m *membership) trust(_ observation, c hubclient.Credential) hubclient.Trust {
	return hubclient.Trust{Mode: m.tlsMode(c.Mode, c.CA), Settings: hubclient.Settings{
		URL:   "config.hubURL",
		SetCA: "set config.hubCA to the CA of the hub, or put it as ca.crt into secret " + m.credentialRef(),
	}}
}

func (m *membership) tlsMode(asked hubclient.TLSMode, ca []byte) hubclient.TLSMode {
	switch {
	case m.Insecure:
		return hubclient.TLSInsecure
	case asked == hubclient.TLSStrict, len(ca) > 0:
		return hubclient.TLSStrict
	}
	return hubclient.TLSSystemStore
}

// explainRefusal distinguishes a token unknown to the hub from an account without a member yet. The
// latter may change at any moment.
func (m *membership) explainRefusal(session *hubclient.Session, r hubclient.Result, err error) (result, string) {
	claims := credential.ClaimsOf(session.Credential.Token)
	who := claims.Subject
	switch {
	case session.Credential.Sequence > 0:
		return m.explainIssued(session, r, err)
	case session.Credential.Login != nil:
		return m.explainLogin(session, r, err)
	case r == hubclient.Unauthorized && who == "":
		return refused, fmt.Sprintf("the hub at %s refuses the token in secret %s, which belongs to no service account: copy it again from "+
			"the hub: kubectl get secret %s-hub-cluster-access-token -n fleet-system -o jsonpath='{.data.token}' | base64 -d",
			session.Server(), m.credentialRef(), m.Name)
	case r == hubclient.Unauthorized && !claims.Expires.IsZero() && session.Now().After(claims.Expires):
		return refused, fmt.Sprintf("the token in secret %s, of %s, expired at %s: put a new one there; it is used at once",
			m.credentialRef(), who, claims.Expires.UTC().Format(time.RFC3339))
	case r == hubclient.Unauthorized:
		return refused, fmt.Sprintf("the hub at %s refuses the token in secret %s, of %s: the account or its token was deleted, or it is "+
			"another hub's; put a new one there; it is used at once", session.Server(), m.credentialRef(), who)
	case who == "":
		who = "the one of the token in secret " + m.credentialRef()
	}
	return absent, fmt.Sprintf("the hub knows no member %s for this identity yet: apply a MemberCluster named %s whose identity is %s, "+
		"or store the token of the account in its spec.identity in secret %s; if the member was revoked, set config.memberNamespace from "+
		"its condition Joined (%s)",
		m.Name, m.Name, who, m.credentialRef(), session.Explain(err))
}

// explainLogin explains why the hub refuses the identity of a kubeconfig.
func (m *membership) explainLogin(session *hubclient.Session, r hubclient.Result, err error) (result, string) {
	if r == hubclient.Unauthorized {
		return refused, fmt.Sprintf("the hub at %s refuses %s in secret %s: it does not trust the issuer of this identity, or the credential "+
			"was revoked", session.Server(), session.Credential.Login, m.credentialRef())
	}
	return absent, fmt.Sprintf("the hub knows no member %s for %s in secret %s yet: apply a MemberCluster named %s with the user of this "+
		"identity as spec.identity (kubectl auth whoami --kubeconfig FILE shows it); if the member was revoked, set "+
		"config.memberNamespace from its condition Joined (%s)",
		m.Name, session.Credential.Login, m.credentialRef(), m.Name, session.Explain(err))
}

func (m *membership) credentialRef() string { return m.SecretNamespace + "/" + m.SecretName }

func (*membership) credentialVersion(begun string) string { return begun }

func (*membership) adoptAddress(c *hubclient.Credential, to address) {
	c.Server, c.CA, c.Mode = to.server, to.ca, to.mode
}

// storeCredential stores the address and the issued credential. It does not change the user's
// token.
func (m *membership) storeCredential(ctx context.Context, c hubclient.Credential) error {
	secret, _ := m.secret.Get()
	configured, _ := m.configured(secret) // observe reports an unusable Secret
	if c.Sequence > 0 {
		if err := m.member.Store(ctx, m.issuedSecret(c, secret)); err != nil {
			return m.explainRights(err)
		}
	}
	configMap, _ := m.adopted.Get()
	adopted, _ := adoptedAddress(configMap, configured)
	if sameAddress(c, configured) || sameAddress(c, adopted) {
		return nil
	}
	return m.explainRights(m.member.StoreConfigMap(ctx, addressConfigMap(m.member.Namespace, c, configured)))
}

// explainRights adds the remedy for a missing right.
func (*membership) explainRights(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: upgrade the chart member-agent, which gives the agent this right", err)
	}
	return err
}
