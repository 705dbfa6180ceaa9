package importer

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestNoAddressOfTheHubsOwnSurroundingsIsDialled(t *testing.T) {
	c := New(Deps{
		Deps: controller.Deps{Config: settings.New(nil, nil, "system"), Clock: clock.RealClock{}}, Hub: &rest.Config{
			Host: "https://127.0.0.1:6443",
		},
	})
	local, loopback := kubeconfig.ErrLocal, kubeconfig.ErrLoopback
	for address, want := range map[string]error{
		"192.0.2.1:6443": nil, "10.0.0.1:6443": nil, "[2001:db8::1]:6443": nil,
		"169.254.169.254:80": local, "[::ffff:169.254.169.254]:80": local, "[fe80::1%eth0]:6443": local, "0.0.0.0:6443": local,
		"[::]:6443": local, "224.0.0.1:6443": local,
		"127.0.0.1:6443": loopback, "127.1.2.3:443": loopback, "[::1]:6443": loopback, "[::ffff:127.0.0.1]:6443": loopback,
	} {
		if err := c.control("https://a.example.com")("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	if err := c.control("https://127.0.0.1:6443/")("tcp", "127.0.0.1:6443", nil); err != nil {
		t.Errorf("the hub does not find itself: %v", err)
	}
	t.Setenv("HTTPS_PROXY", "http://proxy.example.com:3128") // which dials what the hub does not see
	if _, err := c.connect(kubeconfig.Kubeconfig{Config: &rest.Config{Host: "https://169.254.169.254"},
		Server: "https://169.254.169.254"}); !errors.Is(err, kubeconfig.ErrLocal) {
		t.Errorf("a link-local address behind a proxy: %v", err)
	}
}
