// Package chartfetch fetches Helm charts from repositories and registries.
//
// Its invariant: it verifies the digest of an archive, if the index or the registry has one.
// Credentials go to one host, by https only. Sizes and times are limited.
package chartfetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/registry"
	"helm.sh/helm/v4/pkg/repo/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// maxAnswer bounds the answer of a repository or registry, because it is held in memory.
	maxAnswer = 24 << 20
	// fetchTimeout bounds each request.
	fetchTimeout = time.Minute

	scheme = registry.OCIScheme + "://"
)

// Fetcher fetches charts from outside their Bundle. A https URL may only redirect to https, unless
// a digest identifies the chart: over plain http, an attacker on the network could replace it.
type Fetcher struct {
	client *http.Client
	// credential returns the credential for a registry; nil without Credentials.
	credential auth.CredentialFunc
}

// NewFetcher returns a Fetcher with a client; nil means a client with the proxy settings of the
// environment.
func NewFetcher(client *http.Client) *Fetcher {
	if client == nil {
		client = &http.Client{}
	}
	bounded := *client
	if bounded.Transport == nil {
		bounded.Transport = http.DefaultTransport
	}
	bounded.Transport, bounded.Timeout, bounded.CheckRedirect = bounding{bounded.Transport}, fetchTimeout, checkRedirect
	return &Fetcher{client: &bounded}
}

// IsURL reports whether a chart is given by its address, and not by its name or directory.
func IsURL(chart string) bool {
	return strings.HasPrefix(chart, scheme) || strings.HasPrefix(chart, "https://") || strings.HasPrefix(chart, "http://")
}

// Archive is a fetched chart, packed.
type Archive struct {
	Data []byte
	// From is the source of the archive.
	From string
}

// Fetch fetches the archive of the chart in the options. An empty version or a range selects the
// newest match. The credentials may be nil.
func (f *Fetcher) Fetch(ctx context.Context, options fleet.HelmOptions, credentials *Credentials) (*Archive, error) {
	from := strings.TrimSpace(options.Repo + " " + options.Chart + " " + options.Version)
	packed, err := f.fetch(ctx, options, credentials)
	if err != nil {
		return nil, fmt.Errorf("fetching chart %s: %w", from, err)
	}
	return &Archive{Data: packed, From: from}, nil
}

func (f *Fetcher) fetch(ctx context.Context, options fleet.HelmOptions, credentials *Credentials) ([]byte, error) {
	f, done, err := f.as(credentials, options)
	if err != nil {
		return nil, err
	}
	defer done()
	switch reference := ociReference(options); {
	case reference != "":
		return f.pull(reference, options.Version)
	case IsURL(options.Chart):
		return f.get(ctx, options.Chart)
	}
	version, err := f.find(ctx, options)
	if err != nil {
		return nil, err
	}
	return f.fetchVersion(ctx, options, version)
}

// Version returns the version of a chart as selected by Fetch, without its archive; empty if the
// address itself identifies the archive. The credentials may be nil.
func (f *Fetcher) Version(ctx context.Context, options fleet.HelmOptions, credentials *Credentials) (string, error) {
	f, done, err := f.as(credentials, options)
	if err != nil {
		return "", err
	}
	defer done()
	switch reference := ociReference(options); {
	case IsFixed(options):
		return "", nil
	case reference != "":
		client, err := f.registry()
		if err != nil {
			return "", err
		}
		return selectTag(client, reference, options.Version)
	}
	version, err := f.find(ctx, options)
	if err != nil {
		return "", err
	}
	return version.Version, nil
}

// IsFixed reports whether the address of a chart itself identifies the archive.
func IsFixed(options fleet.HelmOptions) bool {
	if reference := ociReference(options); reference != "" {
		return tagged(reference)
	}
	return IsURL(options.Chart)
}

// ociReference returns the name of a chart in a registry, without the scheme; empty for a chart
// elsewhere.
func ociReference(options fleet.HelmOptions) string {
	switch {
	case strings.HasPrefix(options.Chart, scheme):
		return strings.TrimPrefix(options.Chart, scheme)
	case strings.HasPrefix(options.Repo, scheme) && options.Chart == "":
		return strings.TrimSuffix(strings.TrimPrefix(options.Repo, scheme), "/")
	case strings.HasPrefix(options.Repo, scheme):
		return strings.TrimSuffix(strings.TrimPrefix(options.Repo, scheme), "/") + "/" + options.Chart
	}
	return ""
}

// tagged reports whether a reference has a tag or a digest.
func tagged(reference string) bool {
	return strings.ContainsAny(reference[strings.LastIndex(reference, "/")+1:], ":@")
}

// fetchVersion fetches a version of the index.
func (f *Fetcher) fetchVersion(ctx context.Context, options fleet.HelmOptions, version *repo.ChartVersion) ([]byte, error) {
	if len(version.URLs) == 0 {
		return nil, fmt.Errorf("the index of the repository names no address for version %s", version.Version)
	}
	address, err := repo.ResolveReferenceURL(options.Repo, version.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("reading the address in the index of the repository: %w", err)
	}
	if strings.HasPrefix(address, scheme) {
		return f.pull(strings.TrimPrefix(address, scheme), version.Version)
	}
	promised := strings.TrimPrefix(version.Digest, "sha256:")
	if promised == "" && plain(address) && !plain(options.Repo) {
		return nil, fmt.Errorf("the index of the repository leads from https to %s and has no digest for it: give the index one, or serve the "+
			"archive by https", address)
	}
	archive, err := f.get(ctx, address)
	if err != nil {
		return nil, err
	}
	if promised != "" && promised != naming.Digest(archive) {
		return nil, fmt.Errorf("the archive at %s is not the one that the index of the repository promises: its hash is %s, not %s",
			address, naming.Digest(archive), promised)
	}
	return archive, nil
}

// registry returns a client of registries.
func (f *Fetcher) registry() (*registry.Client, error) {
	settings := []registry.ClientOption{registry.ClientOptHTTPClient(f.client)}
	if f.credential != nil {
		settings = append(settings, registry.ClientOptAuthorizer(auth.Client{Client: f.client, Credential: f.credential}))
	}
	client, err := registry.NewClient(settings...)
	if err != nil {
		return nil, fmt.Errorf("preparing the client of registries: %w", err)
	}
	return client, nil
}

// selectTag returns the tag of a chart for a version or a range.
func selectTag(client *registry.Client, reference, version string) (string, error) {
	tags, err := client.Tags(reference)
	if err != nil {
		return "", fmt.Errorf("listing its versions: %w", err)
	}
	tag, err := registry.GetTagMatchingVersionOrConstraint(tags, version)
	if err != nil {
		return "", fmt.Errorf("looking for its version: %w", err)
	}
	return tag, nil
}

// pull fetches a chart from a registry. The registry client verifies its digest.
func (f *Fetcher) pull(reference, version string) ([]byte, error) {
	client, err := f.registry()
	if err != nil {
		return nil, err
	}
	if !tagged(reference) {
		tag, err := selectTag(client, reference, version)
		if err != nil {
			return nil, err
		}
		reference += ":" + strings.ReplaceAll(tag, "+", "_")
	}
	pulled, err := client.Pull(reference)
	if err != nil {
		return nil, err
	}
	return pulled.Chart.Data, nil
}

func (f *Fetcher) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// plain reports whether an attacker on the network can change the answer of a URL.
func plain(url string) bool { return strings.HasPrefix(strings.ToLower(url), "http://") }

// maxRedirects is the limit of Go's own client.
const maxRedirects = 10

// checkRedirect refuses to go from https to plain http.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("redirected %d times", len(via))
	}
	if request.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https" {
		return fmt.Errorf("redirected from https to %s: name an address that stays with https", request.URL.Redacted())
	}
	return nil
}

// bounding ends answers above the limit.
type bounding struct{ http.RoundTripper }

func (b bounding) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		answer.Body = &bounded{ReadCloser: answer.Body, left: maxAnswer, of: request.URL.Redacted()}
	}
	return answer, err
}

type bounded struct {
	io.ReadCloser
	left int
	of   string
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, fmt.Errorf("%s answers with more than %d MiB", b.of, maxAnswer>>20)
	}
	return n, err
}
