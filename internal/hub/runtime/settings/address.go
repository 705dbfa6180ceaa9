package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
)

// The limits of the fallbacks, as in the definition of a report.
const (
	maxFallbacks     = 4
	minFallbackAfter = 10 * time.Second
	maxFallbackAfter = time.Hour
)

// Fallbacks holds the further addresses of the hub for members.
type Fallbacks struct {
	// Addresses are in the order of their use.
	Addresses []clusterv1beta1.HubFallback
	// After is the time without an answer before an agent uses the next one; 0 for the default of the
	// agent.
	After time.Duration
	// Tokens has the token of each address, with no Secret for an address without one; nil if no
	// address has one.
	Tokens []StandbyToken
}

// wireFallbacks is the form of Fallbacks in the ConfigMap.
type wireFallbacks struct {
	APIServerFallbacks []struct {
		APIServerURL string `json:"apiServerURL"`
		APIServerCA  string `json:"apiServerCA"`
		TokenSecret  struct {
			Name string `json:"name"`
			Key  string `json:"key"`
		} `json:"tokenSecret"`
	} `json:"apiServerFallbacks"`
	APIServerFallbackAfter metav1.Duration `json:"apiServerFallbackAfter"`
}

// fallbacks reads the further addresses of a hub with a first one.
func (w wireFallbacks) fallbacks(first string) (Fallbacks, error) {
	after := w.APIServerFallbackAfter.Duration
	switch count := len(w.APIServerFallbacks); {
	case after != 0 && (after < minFallbackAfter || after > maxFallbackAfter):
		return Fallbacks{}, fmt.Errorf("apiServerFallbackAfter %s: want between %s and %s", after, minFallbackAfter, maxFallbackAfter)
	case count == 0:
		return Fallbacks{}, nil
	case first == "":
		return Fallbacks{}, errors.New("apiServerFallbacks: set apiServerURL to the first address, too")
	case count > maxFallbacks:
		return Fallbacks{}, fmt.Errorf("apiServerFallbacks has %d addresses: want at most %d", count, maxFallbacks)
	}
	parsed, urls := Fallbacks{After: after}, []string{first}
	for i, given := range w.APIServerFallbacks {
		url, err := credential.ParseServer(given.APIServerURL)
		if err != nil {
			return Fallbacks{}, fmt.Errorf("apiServerFallbacks[%d].apiServerURL %q: %w", i, given.APIServerURL, err)
		}
		if slices.Contains(urls, url) {
			return Fallbacks{}, fmt.Errorf("apiServerFallbacks[%d].apiServerURL %q: want another address than the ones before", i, url)
		}
		ca, err := credential.ParseCA(given.APIServerCA)
		if err != nil {
			return Fallbacks{}, fmt.Errorf("apiServerFallbacks[%d].apiServerCA: %w", i, err)
		}
		urls = append(urls, url)
		token := StandbyToken{Secret: given.TokenSecret.Name, Key: cmp.Or(given.TokenSecret.Key, standby.Key)}
		if token.Secret != "" && len(validation.IsDNS1123Subdomain(token.Secret)) > 0 {
			return Fallbacks{}, fmt.Errorf("apiServerFallbacks[%d].tokenSecret.name %q is no name of a Secret", i, token.Secret)
		}
		parsed.Tokens = append(parsed.Tokens, token)
		parsed.Addresses = append(parsed.Addresses, clusterv1beta1.HubFallback{APIServerURL: url, APIServerCA: string(ca)})
	}
	if !slices.ContainsFunc(parsed.Tokens, func(t StandbyToken) bool { return t.Secret != "" }) {
		parsed.Tokens = nil
	}
	return parsed, nil
}

// parseAddresses reads the address of the hub and its fallbacks.
func (w wire) parseAddresses(into *Config) (err error) {
	if w.APIServerURL != "" {
		if into.APIServerURL, err = credential.ParseServer(w.APIServerURL); err != nil {
			return fmt.Errorf("apiServerURL %q: %w", w.APIServerURL, err)
		}
	}
	ca, err := credential.ParseCA(w.APIServerCA)
	if err != nil {
		return fmt.Errorf("apiServerCA: %w", err)
	}
	into.APIServerCA = string(ca)
	into.Fallbacks, err = w.fallbacks(into.APIServerURL)
	return err
}

// Hub returns the address of the hub for members. It is nil if each member's chart sets the
// address, and then also agentTLSMode.
func (c Config) Hub() *clusterv1beta1.HubAddress {
	if c.APIServerURL == "" && c.APIServerCA == "" {
		return nil
	}
	return &clusterv1beta1.HubAddress{
		APIServerURL: c.APIServerURL, APIServerCA: c.APIServerCA, AgentTLSMode: c.AgentTLSMode,
		Fallbacks: c.Fallbacks.Addresses, FallbackAfterSeconds: int32(c.Fallbacks.After.Seconds()),
	}
}
