package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/join"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// reported waits until the report has a condition Joined of this status and reason whose
// message says all parts.
func (h *testHub) reported(agent *running, status metav1.ConditionStatus, reason string, parts ...string) {
	h.t.Helper()
	agent.until("the report says "+reason, func() error {
		report, err := h.report()
		if err != nil {
			return err
		}
		own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
		if own == nil {
			return errors.New("it says nothing")
		}
		if joined := meta.FindStatusCondition(own.Conditions, "Joined"); joined.Status == status && joined.Reason == reason {
			return containsAll(joined.Message, parts...)
		}
		return fmt.Errorf("it says %+v", own.Conditions)
	})
}

// beatsAgain waits for a beat that comes from now on.
func (h *testHub) beatsAgain(agent *running) {
	h.t.Helper()
	first := h.beat()
	agent.until("another beat", func() error {
		if !h.beat().After(first) {
			return errors.New("the Lease stands still")
		}
		return nil
	})
}

// joinedAt waits until the agent beats for a member of this hub, with a stored credential.
func (h *testHub) joinedAt(agent *running, member *testMember) hubclient.Credential {
	h.t.Helper()
	var stored hubclient.Credential
	agent.until("joined as "+h.workspace+"/my-cluster", func() error {
		secret := member.secret(naming.AgentSecret)
		if secret == nil {
			return errors.New("nothing is stored")
		}
		var err error
		stored, err = hubclient.CredentialFromSecret(secret)
		_, reason, ready := agent.Status()
		if err != nil || stored.Workspace != h.workspace || !ready ||
			!strings.Contains(reason, "joined as "+h.workspace+"/my-cluster at "+h.config.Host) {
			return fmt.Errorf("stored is that of %s (%v), and the agent says: %s", stored.Record(), err, reason)
		}
		return nil
	})
	return stored
}

func (m *testMember) untilForgotten(agent *running) {
	m.t.Helper()
	agent.until("the registration token is forgotten", func() error {
		if m.secret(naming.AgentBootstrapSecret) != nil {
			return errors.New("the Secret is there")
		}
		return nil
	})
}

func digestOfConfig(t *testing.T, text string) string {
	t.Helper()
	member := testMember{t: t}
	config, err := join.ParseConfig(member.configMap(text))
	check(t, err)
	return config.Digest
}

// behind makes the hub reachable at an address that can be cut for good.
func (h *testHub) behind() (address string, cut func()) {
	h.t.Helper()
	return h.behindWhen(func() bool { return true })
}

// behindWhen is behind, for connections during which the hub is there.
func (h *testHub) behindWhen(present func() bool) (address string, cut func()) {
	h.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(h.t, err)
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			if !present() {
				_ = in.Close()
				continue
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(h.config.Host, "https://"))
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			go func() { _, _ = io.Copy(in, out) }()
			go func() { _, _ = io.Copy(out, in) }()
		}
	}()
	return "https://" + listener.Addr().String(), func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, connection := range open {
			_ = connection.Close()
		}
	}
}

// silentUntil returns the address of a hub that accepts no connection before the channel is closed.
func silentUntil(t *testing.T, config *rest.Config, open <-chan struct{}) (address string) {
	t.Helper()
	hub := testHub{t: t, config: config}
	address, cut := hub.behindWhen(func() bool {
		select {
		case <-open:
			return true
		default:
			return false
		}
	})
	t.Cleanup(cut)
	return address
}
