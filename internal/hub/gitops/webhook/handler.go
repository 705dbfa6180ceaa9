// Package webhook receives the pushes of Git servers, and triggers the GitRepos of the pushed
// branches and tags.
//
// It writes status.webhookCommit and lastWebhookTime of GitRepos. Its invariant: a push counts only
// with the secret of the GitRepo, or with the hub's. Bytes and requests are limited, and the answer
// to a caller without a secret does not depend on the GitRepos.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/gitops/clone"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// Secret is the Secret of the system namespace for all GitRepos, as in Rancher Fleet.
	Secret = "gitjob-webhook"
	// maxBody bounds a request.
	maxBody = 5 << 20
	// perSecond and burst bound the requests of all forges.
	perSecond, burst = 50, 200
	// secretAge is the time a Secret is cached: a flood of requests must not reach the API server.
	secretAge = 10 * time.Second
	// indexRepository is the index of GitRepos by the key of their repository.
	indexRepository = "repository"
)

// isCommit matches the ID of an existing commit.
var isCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// deleted is the commit of a deleted branch or tag.
var deleted = strings.Repeat("0", 40)

// Handler serves the webhook.
type Handler struct {
	// Client reads GitRepos from the cache and writes their status.
	client.Client
	// Live reads Secrets.
	Live            client.Reader
	Clock           clock.PassiveClock
	Log             logr.Logger
	SystemNamespace string

	limiter *rate.Limiter
	secrets *cache.Expiring
}

// Index adds the index of GitRepos to a cache.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, anyform.Object("GitRepo"), indexRepository, func(o client.Object) []string {
		if repo, err := decode(o); err == nil {
			if key := keyOf(repo.Spec.Repo); key != "" {
				return []string{key}
			}
		}
		return nil
	})
}

// New returns the handler with the fields of another one.
func New(h Handler) *Handler {
	h.limiter, h.secrets = rate.NewLimiter(perSecond, burst), cache.NewExpiring()
	return &h
}

// keyOf returns the host and path of a repository, the same for https and ssh; empty for no
// address.
func keyOf(address string) string {
	parsed, err := clone.ParseURL(address)
	if err != nil {
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(parsed.Path, "/"), ".git")
	host := parsed.Hostname()
	if below, found := strings.CutPrefix(path, "v3/"); found && host == "ssh.dev.azure.com" {
		if parts := strings.Split(below, "/"); len(parts) == 3 {
			host, path = "dev.azure.com", parts[0]+"/"+parts[1]+"/_git/"+parts[2]
		}
	}
	return strings.ToLower(host + "/" + path)
}

// ServeHTTP answers a forge.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, text := h.serve(w, r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the forge shows it
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (int, string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	from := recognize(r.Header)
	switch {
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed, "this address accepts only webhooks, as POST requests"
	case !h.limiter.AllowN(h.Clock.Now(), 1):
		return http.StatusTooManyRequests, "too many webhooks: try again later"
	case kind != "application/json":
		return http.StatusUnsupportedMediaType, "set the content type of the webhook to application/json"
	case from == nil:
		return http.StatusBadRequest, "no header of GitHub, GitLab, Gitea, Gogs, Bitbucket or Azure DevOps"
	case !from.isPush(r.Header):
		return http.StatusOK, "ignored: only pushes of branches and tags count"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the webhook has more than %d MiB, or could not be read", maxBody>>20)
	}
	pushed, err := from.parse(body)
	if err != nil {
		return http.StatusBadRequest, "the body is no push of " + from.name
	}
	woken, verified, err := h.wake(r.Context(), from, r.Header, body, pushed)
	switch {
	case err != nil:
		h.Log.Error(err, "Webhook not processed", "forge", from.name)
		return http.StatusInternalServerError, "the hub could not process the webhook: its log has the reason"
	case !verified:
		h.Log.Info("Webhook refused", "forge", from.name)
		return http.StatusUnauthorized, "the webhook lacks the secret that spec.webhookSecret of a GitRepo of this repository names, or of " +
			"Secret " + Secret + " in the hub's namespace"
	}
	h.Log.Info("Webhook received", "forge", from.name, "gitRepos", woken)
	return http.StatusOK, fmt.Sprintf("%d GitRepos follow this branch or tag", woken)
}

// wake notes a push in its GitRepos. verified reports whether the push has the secret of the hub,
// or of any GitRepo of the repository.
func (h *Handler) wake(ctx context.Context, from *forge, header http.Header, body []byte,
	pushed push) (woken int, verified bool, err error) {
	systemWide, err := h.verifies(ctx, from, header, body, types.NamespacedName{Namespace: h.SystemNamespace, Name: Secret})
	if err != nil {
		return 0, false, err
	}
	verified = systemWide
	followers, err := h.followers(ctx, pushed)
	for _, repo := range followers {
		authentic := systemWide
		if name := repo.Spec.WebhookSecret; name != "" { // it replaces the hub's
			authentic, err = h.verifies(ctx, from, header, body, types.NamespacedName{Namespace: repo.Namespace, Name: name})
			if err != nil {
				return woken, verified, err
			}
		}
		verified = verified || authentic
		commit := followed(repo, pushed.refs)
		if !authentic || commit == "" {
			continue
		}
		if err := h.note(ctx, repo, commit); err != nil {
			return woken, verified, err
		}
		woken++
	}
	return woken, verified, err
}

// followers returns the GitRepos of a repository.
func (h *Handler) followers(ctx context.Context, pushed push) (repos []*fleet.GitRepo, err error) {
	seen := map[types.UID]bool{}
	for _, address := range pushed.addresses {
		key := keyOf(address)
		if key == "" {
			continue
		}
		list := anyform.List("GitRepo")
		if err := h.List(ctx, list, client.MatchingFields{indexRepository: key}); err != nil {
			return nil, fmt.Errorf("listing the GitRepos of a repository: %w", err)
		}
		for i := range list.Items {
			repo, err := decode(&list.Items[i])
			if err != nil || seen[repo.UID] || !repo.DeletionTimestamp.IsZero() {
				continue
			}
			seen[repo.UID] = true
			repos = append(repos, repo)
		}
	}
	return repos, nil
}

func decode(o client.Object) (*fleet.GitRepo, error) {
	repo := &fleet.GitRepo{}
	return repo, anyform.Decode(o.(*unstructured.Unstructured), repo)
}

// followed returns the new commit of a GitRepo's branch or tag; empty if there is none.
func followed(repo *fleet.GitRepo, refs []ref) string {
	branch := cmp.Or(repo.Spec.Branch, fleet.DefaultBranch)
	for _, one := range refs {
		follows := one.branch == branch && repo.Spec.Revision == "" || one.tag != "" && one.tag == repo.Spec.Revision
		if follows && isCommit.MatchString(one.commit) && one.commit != deleted {
			return one.commit
		}
	}
	return ""
}

// note writes the commit into the status of a GitRepo, and so triggers the active replica.
func (h *Handler) note(ctx context.Context, repo *fleet.GitRepo, commit string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": repo.UID},
		"status":   map[string]any{"webhookCommit": commit, "lastWebhookTime": h.Clock.Now().UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return err
	}
	err = h.Status().Patch(ctx, repo, client.RawPatch(types.MergePatchType, patch), kube.FieldOwner)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) { // a conflict is another GitRepo of the name
		return fmt.Errorf("writing the status of GitRepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	return nil
}

// verifies reports whether a request is authentic by a Secret. A missing Secret, or one still
// unreadable for the program, verifies nothing.
func (h *Handler) verifies(ctx context.Context, from *forge, header http.Header, body []byte, key types.NamespacedName) (bool, error) {
	if data, found := h.secrets.Get(key); found {
		return from.verify(header, body, data.(map[string][]byte)), nil
	}
	secret := &corev1.Secret{}
	if err := h.Live.Get(ctx, key, secret); err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return false, fmt.Errorf("reading Secret %s: %w", key, err)
		}
		secret = &corev1.Secret{}
	}
	h.secrets.Set(key, secret.Data, secretAge)
	return from.verify(header, body, secret.Data), nil
}

// Server returns the server of the webhook, for a manager. Each replica serves.
func (h *Handler) Server(address string) *manager.Server {
	return &manager.Server{Name: "webhook", Server: &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout: 20 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}}
}
