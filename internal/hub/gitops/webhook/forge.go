package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// push is a push to branches or tags of a repository.
type push struct {
	// addresses are the addresses of the repository, by https and ssh.
	addresses []string
	refs      []ref
}

// ref is a branch or tag with its new commit.
type ref struct{ branch, tag, commit string }

// refOf reads a full name such as refs/heads/main.
func refOf(name, commit string) ref {
	if branch, found := strings.CutPrefix(name, "refs/heads/"); found {
		return ref{branch: branch, commit: commit}
	}
	return ref{tag: strings.TrimPrefix(name, "refs/tags/"), commit: commit}
}

// forge is a kind of Git server.
type forge struct {
	name string
	// header is the identifying header, and pushes its values for pushes. Empty: the body has the
	// event.
	header string
	pushes []string
	parse  func(body []byte) (push, error)
	// verify reports whether a request is authentic by the data of a Secret.
	verify func(header http.Header, body []byte, secret map[string][]byte) bool
}

// forges are in the order of their recognition: some send the header of another one, too.
var forges = []forge{
	{"Gitea", "X-Gitea-Event", []string{"push"}, parseGitHub, signed("X-Gitea-Signature", "gitea", "gogs")},
	{"Gogs", "X-Gogs-Event", []string{"push"}, parseGitHub, signed("X-Gogs-Signature", "gogs")},
	{"GitHub", "X-GitHub-Event", []string{"push"}, parseGitHub, signed("X-Hub-Signature-256", "github")},
	{"GitLab", "X-Gitlab-Event", []string{"Push Hook", "Tag Push Hook"}, parseGitLab, equal("X-Gitlab-Token", "gitlab")},
	{"Bitbucket", "X-Hook-Uuid", nil, parseBitbucket, verifyBitbucket},
	{"Bitbucket Server", "X-Event-Key", []string{"repo:refs_changed"}, parseBitbucketServer,
		signed("X-Hub-Signature", "bitbucket-server")},
	{"Azure DevOps", "X-Vss-Activityid", nil, parseAzure, verifyAzure},
}

// recognize returns the forge of a request; nil if it is unknown.
func recognize(header http.Header) *forge {
	for i := range forges {
		if header.Get(forges[i].header) != "" {
			return &forges[i]
		}
	}
	return nil
}

// isPush reports whether a request can be a push.
func (f *forge) isPush(header http.Header) bool {
	if f.name == "Bitbucket" {
		return header.Get("X-Event-Key") == "repo:push"
	}
	return len(f.pushes) == 0 || slices.Contains(f.pushes, header.Get(f.header))
}

// signed verifies an HMAC of the body with SHA-256. The first key with a value counts.
func signed(name string, keys ...string) func(http.Header, []byte, map[string][]byte) bool {
	return func(header http.Header, body []byte, secret map[string][]byte) bool {
		for _, key := range keys {
			if len(secret[key]) > 0 {
				return hmacMatches(header.Get(name), body, secret[key])
			}
		}
		return false
	}
}

func hmacMatches(signature string, body, key []byte) bool {
	got, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hmac.Equal(got, mac.Sum(nil))
}

// equal verifies a header by its value.
func equal(name, key string) func(http.Header, []byte, map[string][]byte) bool {
	return func(header http.Header, _ []byte, secret map[string][]byte) bool {
		return len(secret[key]) > 0 && same(header.Get(name), secret[key])
	}
}

// same compares in constant time.
func same(got string, want []byte) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256(want)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// verifyBitbucket takes a signature or, like Rancher Fleet, the UUID of the webhook.
func verifyBitbucket(header http.Header, body []byte, secret map[string][]byte) bool {
	key := secret["bitbucket"]
	if len(key) == 0 {
		return false
	}
	if signature := header.Get("X-Hub-Signature"); signature != "" {
		return hmacMatches(signature, body, key)
	}
	return same(header.Get("X-Hook-Uuid"), key)
}

func verifyAzure(header http.Header, _ []byte, secret map[string][]byte) bool {
	user, password, found := (&http.Request{Header: header}).BasicAuth()
	if !found || len(secret["azure-password"]) == 0 {
		return false
	}
	isUser, isPassword := same(user, secret["azure-username"]), same(password, secret["azure-password"])
	return isUser && isPassword
}

// parseGitHub also reads the pushes of Gitea and Gogs.
func parseGitHub(body []byte) (push, error) {
	var payload struct {
		Ref, After string
		Repository struct {
			CloneURL string `json:"clone_url"`
			SSHURL   string `json:"ssh_url"`
			HTMLURL  string `json:"html_url"`
		}
	}
	err := json.Unmarshal(body, &payload)
	r := payload.Repository
	return push{[]string{r.CloneURL, r.SSHURL, r.HTMLURL}, []ref{refOf(payload.Ref, payload.After)}}, err
}

func parseGitLab(body []byte) (push, error) {
	var payload struct {
		Ref, After string
		// CheckoutSHA is the commit of an annotated tag.
		CheckoutSHA string `json:"checkout_sha"`
		Project     struct {
			HTTP string `json:"git_http_url"`
			SSH  string `json:"git_ssh_url"`
			Web  string `json:"web_url"`
		}
	}
	err := json.Unmarshal(body, &payload)
	if payload.CheckoutSHA != "" {
		payload.After = payload.CheckoutSHA
	}
	p := payload.Project
	return push{[]string{p.HTTP, p.SSH, p.Web}, []ref{refOf(payload.Ref, payload.After)}}, err
}

func parseBitbucket(body []byte) (push, error) {
	var payload struct {
		Push struct {
			Changes []struct {
				New *struct {
					Type, Name string
					Target     struct{ Hash string }
				}
			}
		}
		Repository struct {
			Links struct{ HTML struct{ Href string } }
		}
	}
	err := json.Unmarshal(body, &payload)
	found := push{addresses: []string{payload.Repository.Links.HTML.Href}}
	for _, change := range payload.Push.Changes {
		switch {
		case change.New == nil: // deleted
		case change.New.Type == "tag":
			found.refs = append(found.refs, ref{tag: change.New.Name, commit: change.New.Target.Hash})
		default:
			found.refs = append(found.refs, ref{branch: change.New.Name, commit: change.New.Target.Hash})
		}
	}
	return found, err
}

func parseBitbucketServer(body []byte) (push, error) {
	var payload struct {
		Changes []struct {
			Ref    struct{ ID string }
			ToHash string
		}
		Repository struct {
			Links struct{ Clone []struct{ Href string } }
		}
	}
	err := json.Unmarshal(body, &payload)
	var found push
	for _, link := range payload.Repository.Links.Clone {
		found.addresses = append(found.addresses, link.Href)
	}
	for _, change := range payload.Changes {
		found.refs = append(found.refs, refOf(change.Ref.ID, change.ToHash))
	}
	return found, err
}

func parseAzure(body []byte) (push, error) {
	var payload struct {
		Resource struct {
			RefUpdates []struct{ Name, NewObjectID string }
			Repository struct{ RemoteURL string }
		}
	}
	err := json.Unmarshal(body, &payload)
	found := push{addresses: []string{payload.Resource.Repository.RemoteURL}}
	for _, update := range payload.Resource.RefUpdates {
		found.refs = append(found.refs, refOf(update.Name, update.NewObjectID))
	}
	return found, err
}
