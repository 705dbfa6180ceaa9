package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

const (
	// answersWithin bounds the time of a check.
	answersWithin = 10 * time.Second
	// diagnosedWithin bounds the time of a diagnosis after a failed check.
	diagnosedWithin = 5 * time.Second
	// maxSkew bounds the difference of clocks. Beyond it, credentials count as expired or not
	// yet valid.
	maxSkew = time.Minute
	// oldest is the lowest version of Kubernetes for the charts.
	oldest = "1.28.0"
)

// check is a requirement of a cluster.
type check struct {
	// about names the subject in a word or two.
	about string
	// first reports that later checks depend on this one.
	first bool
	// run returns a description of the present state. The error has the problem and the remedy.
	run func(ctx context.Context) (says string, err error)
}

// notAsked wraps the error of a check without a result.
type notAsked struct{ error }

func (n notAsked) Unwrap() error { return n.error }

// require runs checks and returns the first problem. Checks without a result pass: the first
// use of the cluster shows the problem.
func require(ctx context.Context, checks []check) error {
	for _, c := range checks {
		if _, err := c.run(ctx); err != nil && !errors.As(err, &notAsked{}) {
			return err
		}
	}
	return nil
}

// runChecks prints the results of checks, and returns the number of problems.
func runChecks(ctx context.Context, out io.Writer, checks []check) (wrong int, err error) {
	p := newProse(out)
	for _, c := range checks {
		says, err := c.run(ctx)
		verdict := "ok"
		switch {
		case errors.As(err, &notAsked{}):
			verdict, says = "unknown", err.Error()
		case err != nil:
			verdict, says = "WRONG", err.Error()
			wrong++
		}
		p.paragraph(22, "  %-8s %-10s %s", verdict, c.about, says)
		if err != nil && c.first {
			break
		}
	}
	return wrong, p.err
}

// checked is a cluster under check.
type checked struct {
	*access
	client.Client
	config *rest.Config
	server string
	// ahead is the lead of the cluster's clock over this machine's clock.
	ahead time.Duration
}

func (h *access) checked() (*checked, error) {
	c, server, err := h.client()
	if err != nil {
		return nil, err
	}
	config, err := h.ToRESTConfig()
	if err == nil {
		err = rest.LoadTLSFiles(config) // agents get the CA and cannot read the user's files
	}
	return &checked{access: h, Client: c, config: config, server: server}, err
}

// reachable returns the checks of every cluster.
func (c *checked) reachable() []check {
	return []check{
		{"answers", true, func(ctx context.Context) (says string, err error) {
			says, c.ahead, err = c.answers(ctx)
			return says, err
		}},
		{"clock", false, func(context.Context) (string, error) {
			if c.ahead.Abs() > maxSkew {
				return "", fmt.Errorf("the clocks of %s and of this machine differ by %s: correct the wrong one, else credentials count as expired",
					c.role, c.ahead.Abs().Round(time.Second))
			}
			return "agrees with this machine's", nil
		}},
	}
}

// answers requests the version of the API server, and measures the lead of its clock.
func (c *checked) answers(command context.Context) (says string, ahead time.Duration, err error) {
	ctx, cancel := context.WithTimeout(command, answersWithin)
	defer cancel()
	calls, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return "", 0, fmt.Errorf("the credential of the kubeconfig cannot be used: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.server, "/")+"/version", http.NoBody)
	if err != nil {
		return "", 0, err
	}
	response, err := calls.Do(request)
	if command.Err() != nil {
		return "", 0, command.Err()
	}
	if err != nil {
		return "", 0, errors.New(c.unreachable(command, err))
	}
	defer response.Body.Close() //nolint:errcheck // it is read only
	var info apiversion.Info
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return "", 0, fmt.Errorf("%s does not accept the credential of the kubeconfig, which may have expired", c.server)
	case response.StatusCode == http.StatusForbidden, response.StatusCode >= http.StatusInternalServerError:
		return "", 0, fmt.Errorf("%s does not report its version: %s", c.server, answered(response))
	case json.NewDecoder(response.Body).Decode(&info) != nil || info.GitVersion == "":
		return "", 0, fmt.Errorf("the server at %s is not a Kubernetes API server (%s)", c.server, response.Status)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		ahead = time.Until(date)
	}
	if has, err := version.ParseSemantic(info.GitVersion); err == nil && has.LessThan(version.MustParseSemantic(oldest)) {
		return "", ahead, fmt.Errorf("%s runs Kubernetes %s: the charts need %s or newer", c.role, info.GitVersion, oldest)
	}
	return fmt.Sprintf("Kubernetes %s at %s", info.GitVersion, c.server), ahead, nil
}

// answered returns the message of a server's error response, in the words of an API server if
// it is one.
func answered(response *http.Response) string {
	var said metav1.Status
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil || said.Message == "" {
		return response.Status
	}
	return response.Status + ": " + said.Message
}

// unreachable returns the failed step of a connection. Each step has a time limit of its own,
// since the limit of the connection may be over.
func (c *checked) unreachable(ctx context.Context, err error) string {
	ctx, cancel := context.WithTimeout(ctx, diagnosedWithin)
	defer cancel()
	server, parsed := url.Parse(c.server)
	if parsed != nil {
		return err.Error()
	}
	proxy := http.ProxyFromEnvironment
	if c.config.Proxy != nil {
		proxy = c.config.Proxy
	}
	if by, proxied := proxy(&http.Request{URL: server}); proxied == nil && by != nil {
		return fmt.Sprintf("%s does not answer by way of the proxy %s: %s", c.server, by.Host, plainly(err))
	}
	host, port := server.Hostname(), server.Port()
	if port == "" {
		port = "443"
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, host); err != nil {
		return fmt.Sprintf("the name %s cannot be resolved: %s", host, plainly(err))
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Sprintf("nothing accepts connections at %s: %s; check that the cluster is running, and check for a firewall in between",
			net.JoinHostPort(host, port), plainly(err))
	}
	defer connection.Close() //nolint:errcheck // nothing was written
	settings, err := rest.TLSConfigFor(c.config)
	if err != nil {
		return fmt.Sprintf("%s does not answer: the kubeconfig's certificates cannot be used (%v)", c.server, err)
	}
	if settings == nil { // the CAs of the system
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if settings.ServerName == "" {
		settings.ServerName = host
	}
	return untrusted(c.server, tls.Client(connection, settings).HandshakeContext(ctx))
}

// untrusted returns the cause of a failed TLS handshake. After a successful handshake, the
// error is the missing answer.
func untrusted(server string, err error) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case err == nil, errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s accepts connections and does not answer", server)
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s is signed by %q, not trusted by the kubeconfig: check certificate-authority-data, and check "+
			"for a proxy in between", server, unknown.Cert.Issuer.String())
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s is valid from %s to %s: renew it, or set the clock right",
			server, invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	case errors.As(err, &name):
		return fmt.Sprintf("the certificate of %s is for %s: use such a name, or have one issued for this one",
			server, strings.Join(name.Certificate.DNSNames, ", "))
	}
	return fmt.Sprintf("%s offers no trusted TLS: %s", server, plainly(err))
}

// plainly takes the request off an error.
func plainly(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}

// right is one permission of a user.
type right struct{ verb, group, resource, namespace string }

func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// may checks the permissions of the user for an action.
func (c *checked) may(what string, rights ...right) check {
	return check{"rights", false, func(ctx context.Context) (string, error) {
		var missing []string
		for _, r := range rights {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: r.verb, Group: r.group, Resource: r.resource, Namespace: r.namespace,
				},
			}}
			if err := c.Create(ctx, review); err != nil {
				return "", notAsked{fmt.Errorf("checking whether you may %s: %w", r, err)}
			}
			if !review.Status.Allowed {
				missing = append(missing, r.String())
			}
		}
		if len(missing) > 0 {
			return "", fmt.Errorf("you may not %s on %s, as needed to %s: use the credential of an administrator",
				strings.Join(missing, ", "), c.role, what)
		}
		return "you may " + what, nil
	}}
}

// hubRuns checks that the cluster is a hub with a leader.
func (c *checked) hubRuns() []check {
	return []check{
		{"kinds", true, func(ctx context.Context) (string, error) {
			err := c.List(ctx, &fleet.ClusterRegistrationTokenList{}, client.Limit(1))
			switch {
			case kube.NotServed(err):
				return "", fmt.Errorf("%s serves no fleet: it is not a hub; install the hub with muster init", c.server)
			case apierrors.IsForbidden(err):
				return "the fleet's are served", nil
			case err != nil:
				return "", notAsked{err}
			}
			return "the fleet's are served", nil
		}},
		{"hub", false, c.leader},
	}
}

// leader returns the leader of the hub on a cluster.
func (c *checked) leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubLease}, lease)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("the hub on %s has had no leader yet: wait some seconds after an installation, or install it with muster init",
			c.server)
	case err != nil:
		return "", notAsked{fmt.Errorf("reading the leader of the hub: %w", err)}
	}
	return leads(lease, time.Now().Add(c.ahead)) // the Lease has the time of the hub's cluster
}

// leads returns the leader of a hub from its Lease.
func leads(lease *coordinationv1.Lease, now time.Time) (string, error) {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return "", errors.New("the hub has no leader at the moment; a running hub gets one within seconds")
	}
	if silent := now.Sub(spec.RenewTime.Time); silent > 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second {
		return "", fmt.Errorf("the hub has had no leader since %s; check its Pods: kubectl -n %s get pods -l app=fleet-controller",
			view.Since(spec.RenewTime.Time, now), naming.SystemNamespace)
	}
	holder, _, _ := strings.Cut(*spec.HolderIdentity, "_")
	return holder + " leads", nil
}

// clusterID returns the UID of the namespace kube-system, the identity of a cluster.
func (c *checked) clusterID(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace); err != nil {
		return "", fmt.Errorf("reading the namespace kube-system of %s, the identity of the cluster: %w", c.role, err)
	}
	return string(namespace.UID), nil
}
