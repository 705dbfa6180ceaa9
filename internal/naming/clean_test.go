package naming

import (
	"strings"
	"testing"
)

func TestCleanNamesOfClustersAreLabelsAndStayDifferent(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("a", 64)
	for name, want := range map[string]string{
		"web": "web", strings.Repeat("a", 63): strings.Repeat("a", 63), "prod.eu": "prod-eu-", "prod-eu": "prod-eu", "prod..eu": "prod-eu-",
		"Prod": "prod-", long: strings.Repeat("a", 57) + "-", long[:56] + "..b" + long: strings.Repeat("a", 56) + "-", "...": "-",
	} {
		got := CleanCluster(name)
		if !strings.HasPrefix(got, want) && name != "..." || len(got) > 63 || !isLabel.MatchString(got) || seen[got] != "" {
			t.Errorf("%s becomes %s, also of %q", name, got, seen[got])
		}
		seen[got] = name
	}
}
