package server

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestTheTimeoutOfTheLeaseIsThatOfNothingElse(t *testing.T) {
	config := &rest.Config{Host: "https://hub.example", UserAgent: "muster-hub"}
	if _, err := lock(config, "cattle-fleet-system", "hub-0_uid", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if config.Timeout != 0 || config.UserAgent != "muster-hub" {
		t.Errorf("the hub asks as %s, and for %s", config.UserAgent, config.Timeout)
	}
}
