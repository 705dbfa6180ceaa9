package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxSinks bounds the number of receivers: each has a queue of its own.
const maxSinks = 16

// Sink is a receiver of notifications about members.
type Sink struct {
	// Name identifies the sink in logs and metrics.
	Name string
	// URL is the address of the receiver. It may hold a secret, so no message contains it.
	URL string
	// SecretName is the name of the Secret with the signing key, in the hub's namespace.
	SecretName string
	// Reasons lists the changes to send; none for all.
	Reasons []clusterv1beta1.HistoryReason
	// Workspaces limits the notifications to Clusters and requests of these workspaces; none for all
	// members.
	Workspaces []string
	// CABundle is the receiver's CA as PEM; empty for the authorities of the system.
	CABundle string
	// AllowLoopback permits a receiver on the hub's own machine.
	AllowLoopback bool
}

// Wants reports whether the sink gets a change of an object in a workspace. MemberClusters have no
// workspace.
func (s *Sink) Wants(reason clusterv1beta1.HistoryReason, workspace string) bool {
	return (len(s.Reasons) == 0 || slices.Contains(s.Reasons, reason)) && (len(s.Workspaces) == 0 || slices.Contains(s.Workspaces, workspace))
}

// wireSink is the form of a Sink in the ConfigMap.
type wireSink struct {
	Name          string   `json:"name"`
	URL           string   `json:"url"`
	SecretName    string   `json:"secretName"`
	Reasons       []string `json:"reasons"`
	Workspaces    []string `json:"workspaces"`
	CABundle      string   `json:"caBundle"`
	AllowLoopback bool     `json:"allowLoopback"`
}

// parseSinks reads notifications.
func parseSinks(entries []wireSink) (sinks []Sink, err error) {
	if len(entries) > maxSinks {
		return nil, fmt.Errorf("notifications has %d entries: want at most %d", len(entries), maxSinks)
	}
	for i, one := range entries {
		if problems := validation.IsDNS1123Label(one.Name); len(problems) > 0 {
			return nil, fmt.Errorf("notifications[%d].name %q: %s", i, one.Name, problems[0])
		}
		if slices.ContainsFunc(sinks, func(s Sink) bool { return s.Name == one.Name }) {
			return nil, fmt.Errorf("notifications[%d].name %q is taken by an entry before it: give each a name of its own", i, one.Name)
		}
		sink, err := one.parse()
		if err != nil {
			return nil, fmt.Errorf("notifications %q: %w", one.Name, err)
		}
		sinks = append(sinks, sink)
	}
	return sinks, nil
}

func (w wireSink) parse() (Sink, error) {
	sink := Sink{Name: w.Name, URL: w.URL, SecretName: w.SecretName, Workspaces: w.Workspaces, AllowLoopback: w.AllowLoopback}
	if err := sink.checkURL(); err != nil {
		return Sink{}, err
	}
	if problems := validation.IsDNS1123Subdomain(w.SecretName); len(problems) > 0 {
		return Sink{}, fmt.Errorf("secretName %q: want the name of a Secret in the hub's namespace with the signing key: %s", w.SecretName,
			problems[0])
	}
	for _, text := range w.Reasons {
		reason := clusterv1beta1.HistoryReason(text)
		if !slices.Contains(history.Reasons, reason) {
			var known []string
			for _, one := range history.Reasons {
				known = append(known, string(one))
			}
			return Sink{}, fmt.Errorf("reasons has %q, which is no change of a member: want some of %s", kube.Clip(text, 64),
				kube.JoinNames(known, len(known)))
		}
		sink.Reasons = append(sink.Reasons, reason)
	}
	for _, workspace := range w.Workspaces {
		if problems := validation.IsDNS1123Label(workspace); len(problems) > 0 {
			return Sink{}, fmt.Errorf("workspaces has %q: %s", workspace, problems[0])
		}
	}
	ca, err := credential.ParseCA(w.CABundle)
	if err != nil {
		return Sink{}, fmt.Errorf("caBundle: %w", err)
	}
	sink.CABundle = string(ca)
	return sink, nil
}

// checkURL returns an error if the hub cannot or must not send to the URL. The error does not
// contain the URL, because it may hold a secret.
func (s *Sink) checkURL() error {
	address, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return errors.New("url is no valid URL")
	case address.Scheme != "https" && address.Scheme != "http":
		return errors.New("url has no scheme https or http: write https://HOST/PATH")
	case address.Hostname() == "":
		return errors.New("url names no host: write https://HOST/PATH")
	case address.User != nil:
		return errors.New("url contains a user or a password: leave them out, because each request is signed")
	case address.Fragment != "":
		return errors.New("url has a part after #, which is never sent: leave it out")
	}
	if ip, err := netip.ParseAddr(address.Hostname()); err == nil {
		return s.CheckAddress(ip)
	}
	return nil
}

// CheckAddress returns an error if the hub must not send to an address, by the rules for servers in
// kubeconfigs.
func (s *Sink) CheckAddress(address netip.Addr) error {
	err := kubeconfig.CheckAddress(address, s.AllowLoopback)
	switch {
	case errors.Is(err, kubeconfig.ErrLoopback):
		return errors.New("url leads to a loopback address, which is the hub's own machine: allowLoopback permits that")
	case err != nil:
		return errors.New("url leads to a link-local, multicast or unspecified address, where no receiver is")
	}
	return nil
}
