package agent

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/identity"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/trust"
	"github.com/muster-fleet/muster/internal/naming"
)

// registration is the door of a Cluster: a registration token buys a credential, which the agent keeps and renews.
type registration struct {
	member     *local.Cluster
	credential *client.Mirror[*corev1.Secret]
	bootstrap  *client.Mirror[*corev1.Secret]
	config     *client.Mirror[*corev1.ConfigMap]
	// tidyUp tells a joined agent that one of them may have changed.
	tidyUp chan struct{}
}

func newRegistration(member *local.Cluster, changed chan struct{}) *registration {
	return &registration{
		member:     member,
		credential: client.NewMirror[*corev1.Secret](changed),
		bootstrap:  client.NewMirror[*corev1.Secret](changed),
		config:     client.NewMirror[*corev1.ConfigMap](changed),
		tidyUp:     make(chan struct{}, 1),
	}
}

func (d *registration) follow(ctx context.Context) {
	var following sync.WaitGroup
	following.Go(func() { client.FollowOne(ctx, d.credential, d.member.Secrets, naming.AgentSecret) })
	following.Go(func() { client.FollowOne(ctx, d.bootstrap, d.member.Secrets, naming.AgentBootstrapSecret) })
	following.Go(func() { client.FollowOne(ctx, d.config, d.member.ConfigMaps, naming.AgentConfigMap) })
	following.Wait()
}

func (d *registration) observe(s *seen) {
	s.namespace = d.member.Namespace
	credential, sawCredential := d.credential.Get()
	bootstrap, sawBootstrap := d.bootstrap.Get()
	config, sawConfig := d.config.Get()
	s.synced = sawCredential && sawBootstrap && sawConfig
	for _, failure := range []error{d.credential.Failure(), d.bootstrap.Failure(), d.config.Failure()} {
		if failure != nil {
			s.failure = failure.Error()
		}
	}
	var err error
	if credential != nil {
		s.stored, err = identity.FromSecret(credential)
		s.credential = object{version: credential.ResourceVersion, problem: text(err)}
		s.record = s.stored.Record()
	}
	if bootstrap != nil {
		s.bootstrap, err = join.ParseBootstrap(bootstrap)
		s.observed.bootstrap = object{version: bootstrap.ResourceVersion, problem: text(err)}
	}
	s.config, err = join.ParseConfig(config)
	s.observed.config.problem = text(err)
	if config != nil {
		s.observed.config.version = config.ResourceVersion
	}
	if bootstrap == nil || s.observed.bootstrap.problem != "" {
		return
	}
	s.unconfigured = s.bootstrap.ConfigDigest != "" && s.bootstrap.ConfigDigest != s.config.Digest
	if credential != nil {
		s.used = leftOver(*cmp.Or(s.inUse, &s.stored), credential.CreationTimestamp.Time, s.bootstrap, s.config.ClientID)
	}
}

// leftOver says whether a credential, first stored at a time, was bought with just this registration token. An agent that does not remember,
// because it joined before it could, goes by where the token registers, and by whether it was issued before the agent had joined.
func leftOver(c identity.Credential, stored time.Time, b join.Bootstrap, clientID string) bool {
	if c.JoinedWith != "" {
		return c.JoinedWith == b.Digest(clientID)
	}
	return c.Server == b.Server && c.Workspace == b.Workspace && !b.Claims.Issued.IsZero() && b.Claims.Issued.Before(stored)
}

func (*registration) decide(o observed, now time.Time) decision { return decide(o, now) }

// trust is the chart's setting, unless the hub has asked for another since.
func (*registration) trust(s seen, c identity.Credential) trust.Policy {
	policy := s.config.Trust()
	if c.Mode != "" && c.ChartMode == policy.Mode {
		policy.Mode = c.Mode
	}
	return policy
}

func (*registration) mode(_, asked trust.Mode, _ []byte) trust.Mode { return asked }

func (d *registration) learn(c *identity.Credential, to address) {
	configMap, _ := d.config.Get()
	config, _ := join.ParseConfig(configMap) // what is unusable is no mode of the chart's
	c.Server, c.CA, c.Mode, c.ChartMode = to.server, to.ca, to.mode, config.Mode
}

// keep stores a credential over the one of the same registration only: another agent of this cluster may have registered it anew.
func (d *registration) keep(ctx context.Context, c identity.Credential) error {
	secret, err := c.Secret(d.member.Namespace)
	if err != nil {
		return err
	}
	stored, _ := d.credential.Get()
	if stored == nil {
		return d.member.Store(ctx, secret)
	}
	if there, err := identity.FromSecret(stored); err == nil && there.JoinedWith != c.JoinedWith {
		return fmt.Errorf("secret %s holds the credential of another registration of this cluster, which stays", d.source())
	}
	secret.ResourceVersion = stored.ResourceVersion
	return d.member.Replace(ctx, secret)
}

func (d *registration) source() string { return d.member.Namespace + "/" + naming.AgentSecret }

// refused says when the token ran out if that is it.
func (*registration) refused(session *remote.Session, _ remote.Verdict, err error) (verdict, string) {
	claims := identity.ReadClaims(session.Credential.Token)
	if !claims.Expires.IsZero() && session.Now().After(claims.Expires) {
		return refused, fmt.Sprintf("its token expired at %s while the agent could not renew it", claims.Expires.UTC().Format(time.RFC3339))
	}
	return refused, session.Explain(err)
}

// spent is the Secret as it is now: renewals rewrote it.
func (d *registration) spent(begun string) string {
	if secret, _ := d.credential.Get(); secret != nil {
		return secret.ResourceVersion
	}
	return begun
}

func (*registration) deliver(ctx context.Context, r *runner) {
	r.deliver(ctx, deployer.Bundles, deployer.Works)
}

func (*registration) features() []string { return []string{clusterv1beta1.FeatureManagedAgent} }

func (*registration) deliveryOff() string { return "fleetAgent.delivery=false" }

func (d *registration) tidy() { poke(d.tidyUp) }

func (d *registration) parts(r *runner) []func(context.Context) {
	renewer := &identity.Renewer{
		Token:   r.session.Credential.Token,
		Request: r.session.RequestToken,
		Keep: func(ctx context.Context, token string) error {
			return r.change(ctx, func(c *identity.Credential) { c.Token = token })
		},
		Explain: r.session.Explain, Now: r.session.Now, Clock: r.clock,
	}
	tidier := &tidier{runner: r, door: d}
	return []func(context.Context){renewer.Run, tidier.run}
}
