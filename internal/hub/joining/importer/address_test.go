package importer

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestNoAddressOfTheHubsOwnSurroundingsIsDialled(t *testing.T) {
	c := New(Deps{
		Deps: controller.Deps{Config: settings.New(nil, nil, "system"), Clock: clock.RealClock{}}, Hub: &rest.Config{
			Host: "https://127.0.0.1:6443",
		},
	})
	for address, want := range map[string]error{
		"192.0.2.1:6443": nil, "10.0.0.1:6443": nil, "[2001:db8::1]:6443": nil,
		"169.254.169.254:80": errLocal, "[::ffff:169.254.169.254]:80": errLocal, "[fe80::1%eth0]:6443": errLocal, "0.0.0.0:6443": errLocal,
		"[::]:6443": errLocal, "224.0.0.1:6443": errLocal,
		"127.0.0.1:6443": errLoopback, "127.1.2.3:443": errLoopback, "[::1]:6443": errLoopback, "[::ffff:127.0.0.1]:6443": errLoopback,
	} {
		if err := c.control("https://a.example.com")("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	if err := c.control("https://127.0.0.1:6443/")("tcp", "127.0.0.1:6443", nil); err != nil {
		t.Errorf("the hub does not find itself: %v", err)
	}
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com:3128") // which dials what the hub does not see
	if _, err := c.connect(kubeconfig{config: &rest.Config{Host: "https://169.254.169.254"},
		server: "https://169.254.169.254"}); !errors.Is(err, errLocal) {
		t.Errorf("a link-local address behind a proxy: %v", err)
	}
}
