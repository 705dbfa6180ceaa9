package credential

import "testing"

func TestServerURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://hub":                         "https://hub",
		" https://hub:6443/ \n":               "https://hub:6443",
		"https://hub/k8s/clusters/local":      "https://hub/k8s/clusters/local",
		"https://[::1]:6443":                  "https://[::1]:6443",
		"hub:6443":                            "",
		"http://hub":                          "",
		"https://":                            "",
		"https://:6443":                       "",
		"https://user:pass@hub":               "",
		"https://hub?token=x":                 "",
		"https://hub:port":                    "",
		"":                                    "",
		"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0": "",
	} {
		got, err := ParseServer(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
}
