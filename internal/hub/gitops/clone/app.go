package clone

import (
	"cmp"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

// Keys of a Secret with a GitHub App, as in Rancher Fleet. The last one is a Muster addition.
const (
	keyApp          = "github_app_id"
	keyInstallation = "github_app_installation_id"
	keyPrivateKey   = "github_app_private_key"
	keyHost         = "github_app_host"
)

const (
	defaultHost = "github.com"
	// proofLife is the life of the proof for a token; GitHub allows ten minutes. proofAge dates it
	// back, to allow for differences between clocks.
	proofLife, proofAge = 5 * time.Minute, time.Minute
	// tokenReserve is how long before its end a token is no longer used.
	tokenReserve = 10 * time.Minute
	apiTimeout   = 20 * time.Second
	maxAnswer    = 64 << 10
)

// isID matches the ID of an App or an installation.
var isID = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

// App is a GitHub App, installed for repositories.
type App struct {
	id, installation string
	key              *rsa.PrivateKey
	// host is its server. No other server gets a proof, because GitHub would accept it from there.
	host string
}

// parseApp reads an App; nil if the Secret has none.
func parseApp(secret *corev1.Secret) (*App, error) {
	text := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	if secret.Type != corev1.SecretTypeOpaque || text(keyApp) == "" {
		return nil, nil
	}
	for _, key := range []string{keyApp, keyInstallation} {
		if !isID.MatchString(text(key)) {
			return nil, fmt.Errorf("secret %s: %s is no ID", secret.Name, key)
		}
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(secret.Data[keyPrivateKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s: %s is no PEM of a private key", secret.Name, keyPrivateKey)
	}
	return &App{text(keyApp), text(keyInstallation), key, strings.ToLower(cmp.Or(text(keyHost), defaultHost))}, nil
}

// api returns the address of the API of a server.
func api(host string) string {
	switch {
	case host == defaultHost || strings.HasSuffix(host, ".ghe.com"):
		return "https://api." + host
	default:
		return "https://" + host + "/api/v3"
	}
}

// Apps issues the tokens of Apps, and keeps each of them for most of its life.
type Apps struct {
	client *http.Client
	clock  clock.PassiveClock
	tokens *cache.Expiring
	api    func(host string) string
}

// NewApps returns Apps with a transport.
func NewApps(transport http.RoundTripper, clock clock.PassiveClock) *Apps {
	return &Apps{client: &http.Client{Transport: transport, Timeout: apiTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect would take the proof elsewhere
	}}, clock: clock, tokens: cache.NewExpiring(), api: api}
}

// Login returns credentials with a token in place of an App. Other credentials stay as they are.
func (a *Apps) Login(ctx context.Context, c *Credentials, address *url.URL) (*Credentials, error) {
	if c == nil || c.App == nil {
		return c, nil
	}
	if address.Scheme != "https" || !strings.EqualFold(address.Hostname(), c.App.host) {
		return nil, fmt.Errorf("secret %s has an App of %s, and spec.repo is no https address there: set %s in the Secret to the host of the "+
			"App, or use other credentials", c.Secret, c.App.host, keyHost)
	}
	token, err := a.token(ctx, c.App)
	if err != nil {
		return nil, fmt.Errorf("secret %s: %s issues no token for the App: %w", c.Secret, c.App.host, err)
	}
	return &Credentials{Secret: c.Secret, Username: "x-access-token", Password: token}, nil
}

func (a *Apps) token(ctx context.Context, app *App) (string, error) {
	now := a.clock.Now()
	proof, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{Issuer: app.id,
		IssuedAt: jwt.NewNumericDate(now.Add(-proofAge)), ExpiresAt: jwt.NewNumericDate(now.Add(proofLife))}).SignedString(app.key)
	if err != nil {
		return "", errors.New("its key signs nothing")
	}
	// The key is a part of the name, so only its owner gets the token again.
	name := strings.Join([]string{app.host, app.id, app.installation, app.key.N.String()}, "/")
	if token, found := a.tokens.Get(name); found {
		return token.(string), nil
	}
	address := a.api(app.host) + "/app/installations/" + app.installation + "/access_tokens"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+proof)
	request.Header.Set("Accept", "application/vnd.github+json")
	answer, err := a.client.Do(request)
	if err != nil {
		return "", withoutURL(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("it answers %s", answer.Status)
	}
	var issued struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal(body, &issued); err != nil || issued.Token == "" {
		return "", errors.New("its answer has no token")
	}
	if life := issued.ExpiresAt.Sub(now) - tokenReserve; life > 0 {
		a.tokens.Set(name, issued.Token, life)
	}
	return issued.Token, nil
}
