package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// shortLife is the shortest life that the TokenRequest API grants a token.
	shortLife = 10 * time.Minute
	// issuers is the number of concurrent requests for tokens.
	issuers = 32
	// explained is the number of missing members with an explanation in the notes.
	explained = 3
)

// comeBack measures the time of all members to come back at once with their key. Their credentials
// have expired while they had no network.
func (r *run) comeBack() {
	if r.options.kind != "native" {
		return // no other agent has a key
	}
	var away sync.WaitGroup
	for _, m := range r.members {
		away.Go(m.silence)
	}
	away.Wait()
	r.outlive(r.shorten())
	r.eventually("all members are lost", func() bool {
		_, s, err := r.leader()
		return err == nil && s.members("Lost") == len(r.members)
	})
	before := r.accounts()
	r.settled()
	from := r.now()
	took := r.backWithin(r.patience)
	missing := len(r.members) - len(took)
	r.result.add("return: half of the members back", rig.Percentile(took, 0.5).Seconds(), "s")
	r.result.add("return: 99 % back", rig.Percentile(took, 0.99).Seconds(), "s")
	r.result.add("return: all back", rig.Percentile(took, 1).Seconds(), "s")
	r.result.add("return: failed", float64(missing), "members")
	r.eventually("no member is lost any more", func() bool {
		_, s, err := r.leader()
		return err == nil && s.members("Lost") == 0
	})
	r.result.add("return: none is lost any more", time.Since(from.at).Seconds(), "s")
	settled := r.settled()
	r.result.add("return: settled", settled.Sub(from.at).Seconds(), "s")
	to := r.now()
	r.costs(from, to, len(r.members))
	all := (to.api.written() - from.api.written()) / float64(len(r.members))
	r.result.add("return: all writes per member, heartbeats included", all, "writes")
	same := 0
	for m, uid := range r.accounts() {
		if uid == before[m] {
			same++
		}
	}
	r.result.add("return: credentials that were not issued anew", float64(same), "members")
}

// shorten replaces the credential of each stopped member with another one of the same account, with
// the shortest life that the API server allows. It returns the credential with the latest expiry.
func (r *run) shorten() (last string) {
	var issuing sync.WaitGroup
	var mu sync.Mutex
	var latest time.Time
	members := make(chan *native)
	for range issuers {
		issuing.Go(func() {
			for n := range members {
				token, err := r.issue(n)
				r.check(err)
				mu.Lock()
				if expires := credential.ClaimsOf(token).Expires; expires.After(latest) {
					last, latest = token, expires
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range r.members {
		members <- m.(*native)
	}
	close(members)
	issuing.Wait()
	return last
}

// issue requests a short-lived credential of a member's account and stores it on the member.
func (r *run) issue(n *native) (string, error) {
	secret, err := n.api.stored()
	if err != nil {
		return "", err
	}
	is := credential.ClaimsOf(string(secret.Data["token"]))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: is.Namespace, Name: is.Account}}
	token, err := kube.RequestToken(r.ctx, r.SubResource("token"), account, shortLife)
	if err != nil {
		return "", fmt.Errorf("shortening the credential of %s: %w", n.id, err)
	}
	secret.Data["token"] = []byte(token)
	n.api.put("secrets", secret)
	return token, nil
}

// outlive waits until the API server refuses a credential, some time after its expiry.
func (r *run) outlive(token string) {
	c, err := r.as(token)
	r.check(err)
	is := credential.ClaimsOf(token)
	lease := client.ObjectKey{Namespace: is.Namespace, Name: naming.HeartbeatLease}
	time.Sleep(time.Until(is.Expires))
	took := r.eventually("the API server refuses the credentials that have run out", func() bool {
		return apierrors.IsUnauthorized(c.Get(r.ctx, lease, &coordinationv1.Lease{}))
	})
	r.note("return: the API server refuses a credential %.0f s after its end", took.Seconds())
}

// accounts returns the UIDs of the accounts in the members' stored credentials.
func (r *run) accounts() map[string]string {
	uids := map[string]string{}
	for _, m := range r.members {
		secret, err := m.(*native).api.stored()
		r.check(err)
		uids[m.record()] = credential.ClaimsOf(string(secret.Data["token"])).AccountUID
	}
	return uids
}

// backWithin starts all agents at once, and returns in order the time of each until the hub
// accepted a heartbeat. It notes the state of some agents that did not come back.
func (r *run) backWithin(patience time.Duration) (took []time.Duration) {
	begun := time.Now()
	for _, m := range r.members {
		r.check(m.start())
	}
	missing := slices.Clone(r.members)
	for ; len(missing) > 0 && time.Since(begun) < patience; time.Sleep(20 * time.Millisecond) {
		missing = slices.DeleteFunc(missing, func(m member) bool {
			if !m.joined() {
				return false
			}
			took = append(took, time.Since(begun))
			return true
		})
	}
	for _, m := range missing[:min(explained, len(missing))] {
		r.note("%s is not back, and its agent says: %s", m.record(), m.(*native).says())
	}
	return took
}

// stored returns a copy of the Secret with the agent's credential.
func (m *memberAPI) stored() (*corev1.Secret, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, found := m.objects["secrets/"+naming.AgentSecret]
	if !found {
		return nil, fmt.Errorf("the member has no Secret %s", naming.AgentSecret)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s of the member: %w", naming.AgentSecret, err)
	}
	return object.(*corev1.Secret), nil
}

// written returns the number of successful writes to the API server, from all clients.
func (s samples) written() (count float64) {
	for request, of := range s.requests() {
		verb, _, _ := strings.Cut(request, " ")
		_, code, _ := strings.Cut(request, "→ ")
		if slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE", "APPLY"}, verb) && strings.HasPrefix(code, "2") {
			count += of
		}
	}
	return count
}
