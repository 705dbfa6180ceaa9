package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/renewal"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// registration is the mode of an agent of a Cluster. A registration token buys a credential, and
// the agent stores and renews it.
type registration struct {
	member     *local.Cluster
	credential *kubeclient.Mirror[*corev1.Secret]
	bootstrap  *kubeclient.Mirror[*corev1.Secret]
	config     *kubeclient.Mirror[*corev1.ConfigMap]
	// given is the Secret of kubeconfig, whose identity replaces a registration token.
	kubeconfig HubKubeconfig
	given      *kubeclient.Mirror[*corev1.Secret]
}

func newRegistration(member *local.Cluster, kubeconfig HubKubeconfig, changed chan struct{}) *mode {
	r := &registration{
		member:     member,
		kubeconfig: kubeconfig,
		given:      kubeclient.NewMirror[*corev1.Secret](changed),
		credential: kubeclient.NewMirror[*corev1.Secret](changed),
		bootstrap:  kubeclient.NewMirror[*corev1.Secret](changed),
		config:     kubeclient.NewMirror[*corev1.ConfigMap](changed),
	}
	return &mode{
		credentialSource: r, credentialStore: r, hubPolicy: r,
		kinds:           []protocol.Kind{protocol.Bundles, protocol.Works},
		features:        []string{clusterv1beta1.FeatureManagedAgent, clusterv1beta1.FeatureHandOver},
		always:          []string{clusterv1beta1.FeatureLongDigest},
		deliverySetting: "fleetAgent.delivery=false", runnables: r.runnables, credentialChanged: notification(),
	}
}

// runnables returns the tasks for refreshing and storing the credential of a joined agent.
func (r *registration) runnables(s *session) []func(context.Context) {
	renewer := &renewal.Renewer{
		Token:   func() string { return s.credential.Load().Token },
		Request: s.hub.RequestToken,
		Keep: func(ctx context.Context, token string) error {
			return s.changeCredential(ctx, func(c *hubclient.Credential) { c.Token = token })
		},
		Explain: s.hub.Explain, Now: s.hub.Now, Clock: s.clock,
	}
	restorer := &restorer{session: s, secret: r.credential, read: hubclient.CredentialFromSecret}
	return []func(context.Context){renewer.Run, restorer.run, s.forgetFormer}
}

func (r *registration) follow(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { kubeclient.FollowOne(ctx, r.credential, r.member.Secrets, naming.AgentSecret) })
	following.Go(func() { kubeclient.FollowOne(ctx, r.bootstrap, r.member.Secrets, naming.AgentBootstrapSecret) })
	following.Go(func() { kubeclient.FollowOne(ctx, r.config, r.member.ConfigMaps, naming.AgentConfigMap) })
	if r.kubeconfig.Secret != "" {
		following.Go(func() { kubeclient.FollowOne(ctx, r.given, r.member.Secrets, r.kubeconfig.Secret) })
	}
	following.Wait()
}

func (r *registration) observe(o *observation) {
	o.namespace = r.member.Namespace
	credential, credentialSynced := r.credential.Get()
	bootstrap, bootstrapSynced := r.bootstrap.Get()
	config, configSynced := r.config.Get()
	o.synced = credentialSynced && bootstrapSynced && configSynced
	for _, failure := range []error{r.credential.Failure(), r.bootstrap.Failure(), r.config.Failure()} {
		if failure != nil {
			o.failure = failure.Error()
		}
	}
	var err error
	if credential != nil {
		o.stored, err = hubclient.CredentialFromSecret(credential)
		o.credential = object{version: credential.ResourceVersion, problem: text(err)}
		o.record = o.stored.Record()
	}
	if o.foreign = bootstrap != nil && join.IsOfAnotherChart(bootstrap); o.foreign {
		bootstrap = nil
	}
	if bootstrap != nil {
		o.bootstrap, err = join.ParseBootstrap(bootstrap, r.kubeconfig.Secret != "")
		o.observed.bootstrap = object{version: bootstrap.ResourceVersion, problem: text(err)}
		r.observeLogin(o)
	}
	o.config, err = join.ParseConfig(config)
	o.observed.config.problem = text(err)
	if config != nil {
		o.observed.config.version = config.ResourceVersion
	}
	if bootstrap == nil {
		r.reconnect(o)
		r.comeToStandby(o)
		return
	}
	if o.observed.bootstrap.problem != "" {
		return
	}
	o.unconfigured = o.bootstrap.ConfigDigest != "" && o.bootstrap.ConfigDigest != o.config.Digest
	o.used = o.spent(credential)
}

// observeLogin reads the kubeconfig that replaces a registration token. A token takes precedence.
func (r *registration) observeLogin(o *observation) {
	if r.kubeconfig.Secret == "" || o.bootstrap.Token != "" {
		return
	}
	secret, synced := r.given.Get()
	name := r.member.Namespace + "/" + r.kubeconfig.Secret
	switch {
	case !synced:
		o.loginProblem = "reading secret " + name + " with a kubeconfig of the hub"
		if failure := r.given.Failure(); failure != nil {
			o.loginProblem += ": " + failure.Error()
		}
	case secret == nil:
		o.loginProblem = fmt.Sprintf("there is no secret %s on this cluster: create it with a kubeconfig of the hub in its key %s; it is "+
			"used at once", name, hublogin.Key)
	default:
		login, err := r.kubeconfig.login(secret)
		if err != nil {
			o.loginProblem = fmt.Sprintf("secret %s: %v", name, err)
			return
		}
		o.loginVersion = "/" + r.kubeconfig.digest(secret)
		o.bootstrap.Login, o.bootstrap.LoginSecret = login, name
		if len(o.bootstrap.CA) == 0 {
			o.bootstrap.CA = login.CA
		}
	}
}

// spent reports whether the registration token has bought the credential of the session, or else
// the stored one. The watch of the Secret may lag behind the last store.
func (o observation) spent(stored *corev1.Secret) bool {
	switch {
	case stored != nil:
		return boughtWith(*cmp.Or(o.inUse, &o.stored), stored.CreationTimestamp.Time, o.bootstrap, o.config.ClientID)
	case o.inUse != nil:
		return boughtWith(*o.inUse, time.Time{}, o.bootstrap, o.config.ClientID)
	}
	return false
}

// reconnectVersion is the prefix of the version of a join without a registration token.
const reconnectVersion = "reconnect/"

// reconnect lets an agent with an expired credential join with its reconnect token. A running join
// continues after storing its credential.
func (r *registration) reconnect(o *observation) {
	if o.trial.result != expired || o.stored.Reconnect == "" ||
		o.trial.version != o.credential.version && !strings.HasPrefix(o.joining, reconnectVersion) {
		return
	}
	o.reconnecting, o.bootstrap = true, join.Reconnecting(o.stored)
	o.observed.bootstrap.version = reconnectVersion + o.trial.version
	o.config.Mode = r.trust(*o, o.stored).Mode
}

// boughtWith reports whether this registration token bought a credential, first stored at a time.
//
// A credential of an earlier agent has no digest. It must have the same hub and workspace, and the
// token must be issued no later than the credential was stored, to the second. If the token has no
// time of issue, a working credential of a Rancher Fleet agent is kept.
func boughtWith(c hubclient.Credential, stored time.Time, b join.Bootstrap, clientID string) bool {
	if c.JoinedWith != "" {
		return c.JoinedWith == b.Digest(clientID)
	}
	if c.Server != b.Server || c.Workspace != b.Workspace {
		return false
	}
	if b.Claims.Issued.IsZero() { // a token without an end has no time of issue
		return c.Upstream
	}
	return !b.Claims.Issued.After(stored)
}

func (*registration) decide(o observed, now time.Time) decision { return decide(o, now) }

// trust returns the chart's setting, unless the hub has requested another since.
func (*registration) trust(o observation, c hubclient.Credential) hubclient.Trust {
	trust := o.config.Trust()
	if c.Mode != "" && c.ChartMode == trust.Mode {
		trust.Mode = c.Mode
	}
	return trust
}

func (*registration) tlsMode(asked hubclient.TLSMode, _ []byte) hubclient.TLSMode { return asked }

// explainRefusal returns expired if the token has expired.
func (*registration) explainRefusal(session *hubclient.Session, _ hubclient.Result, err error) (result, string) {
	claims := credential.ClaimsOf(session.Credential.Token)
	if !claims.Expires.IsZero() && session.Now().After(claims.Expires) {
		return expired, fmt.Sprintf("its token expired at %s while the agent could not renew it", claims.Expires.UTC().Format(time.RFC3339))
	}
	return refused, session.Explain(err)
}

func (r *registration) credentialRef() string { return r.member.Namespace + "/" + naming.AgentSecret }

// credentialVersion returns the current version of the Secret, because renewals rewrite it.
func (r *registration) credentialVersion(begun string) string {
	if secret, _ := r.credential.Get(); secret != nil {
		return secret.ResourceVersion
	}
	return begun
}

func (r *registration) adoptAddress(c *hubclient.Credential, to address) {
	configMap, _ := r.config.Get()
	config, _ := join.ParseConfig(configMap) // an unusable ConfigMap sets no mode
	c.Server, c.CA, c.Mode, c.ChartMode = to.server, to.ca, to.mode, config.Mode
}

// storeCredential overwrites only a credential of the same registration, because another agent of
// this cluster may have registered it again.
func (r *registration) storeCredential(ctx context.Context, c hubclient.Credential) error {
	secret, err := c.Secret(r.member.Namespace)
	if err != nil {
		return err
	}
	stored, _ := r.credential.Get()
	if stored == nil {
		return r.member.Create(ctx, secret) // another agent may have stored its own meanwhile
	}
	if there, err := hubclient.CredentialFromSecret(stored); err == nil &&
		(there.JoinedWith != c.JoinedWith || there.Account() != c.Account()) {
		return fmt.Errorf("secret %s holds the credential of another registration of this cluster, which stays", r.credentialRef())
	}
	secret.ResourceVersion = stored.ResourceVersion
	return r.member.Replace(ctx, secret)
}
