package process

import "testing"

func TestAProgramListensWherePortForwardReachesItUnlessPodsShareALoopback(t *testing.T) {
	for _, c := range []struct{ address, pod, want string }{
		{":8081", "", ":8081"},
		{":8081", "10.42.0.7", ":8081"},
		{":8081", "fd00::7", ":8081"},
		{":8081", "127.3.0.7", "127.3.0.7:8081"},
		{":8081", "::1", "[::1]:8081"},
		{"127.0.0.1:18081", "127.3.0.7", "127.0.0.1:18081"},
		{"0.0.0.0:8081", "127.3.0.7", "0.0.0.0:8081"},
		{"0", "127.3.0.7", "0"},
		{"", "127.3.0.7", ""},
		{":8081", "no address", ":8081"},
	} {
		t.Setenv("POD_IP", c.pod)
		if got := BindAddress(c.address); got != c.want {
			t.Errorf("%q in a Pod with %q: %q, want %q", c.address, c.pod, got, c.want)
		}
	}
}
