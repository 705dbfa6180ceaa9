package main

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

func TestThePhaseThatWaitsForCredentialsToRunOutIsMeasuredOnlyIfItIsNamed(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		measured  bool
	}{
		{nil, false},
		{[]string{"-phases", "idle,return"}, true},
	} {
		o, err := parse(c.arguments)
		check(t, err)
		if got := slices.Contains(o.phases, returning); got != c.measured {
			t.Errorf("with %v it is measured: %t, want %t", c.arguments, got, c.measured)
		}
		if !slices.Contains(o.phases, "idle") {
			t.Errorf("with %v nothing else is measured: %v", c.arguments, o.phases)
		}
	}
}

func TestOnlyWritesThatTheAPIServerHasDoneAreCounted(t *testing.T) {
	request := func(verb, code string, count float64) sample {
		return sample{name: "apiserver_request_total", value: count,
			labels: `code="` + code + `",resource="leases",subresource="",verb="` + verb + `"}`}
	}
	all := samples{
		request("PATCH", "200", 1), request("APPLY", "201", 2), request("POST", "201", 4),
		request("DELETE", "200", 8), request("PUT", "200", 16),
		request("POST", "429", 100), request("PUT", "409", 100),
		request("GET", "200", 100), request("LIST", "200", 100), request("WATCH", "200", 100),
	}
	if got := all.written(); got != 31 {
		t.Errorf("%.0f writes are counted, want 31", got)
	}
}

func TestTheCredentialOfASimulatedMemberIsReadAsItWasStored(t *testing.T) {
	api := newMemberAPI("11111111-2222-3333-4444-555555555555")
	if _, err := api.stored(); err == nil {
		t.Error("there is a Secret before one was stored")
	}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: naming.AgentSecret}}
	kept.Data = map[string][]byte{"token": []byte("t")}
	api.put("secrets", kept)
	secret, err := api.stored()
	check(t, err)
	if string(secret.Data["token"]) != "t" {
		t.Errorf("it is %v", secret.Data)
	}
}
