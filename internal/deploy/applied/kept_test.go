package applied

import (
	"fmt"
	"strings"
	"testing"
)

func TestKeptDeliveriesAreNamedInABoundedMessage(t *testing.T) {
	release := func(name string) Kept { return Kept{"release " + name, "helm uninstall RELEASE -n NAMESPACE"} }
	work := func(name string) Kept { return Kept{"Work " + name, "kubectl delete appliedwork WORK"} }
	secret := func(name string) Kept { return Kept{"Secret " + name, "kubectl delete KIND NAME -n NAMESPACE"} }
	long := strings.Repeat("x", 500)
	for name, row := range map[string]struct {
		kept []Kept
		says []string
		not  string
	}{
		"one release": {[]Kept{release("shop/web")}, []string{
			"does not know release shop/web. All", "create its Bundle, placement or object on the hub again",
			"cluster: helm uninstall RELEASE -n NAMESPACE"}, "kubectl"},
		"a release and a Work": {[]Kept{work("crp-shop"), release("shop/web")}, []string{"know Work crp-shop, release shop/web. All",
			"helm uninstall RELEASE -n NAMESPACE; kubectl delete appliedwork WORK"}, "more"},
		"many": {[]Kept{release("g"), release("f"), release("e"), release("d"), release("c"), release("b"), release("a")},
			[]string{"release a, release b, release c, release d, release e and 2 more."}, "release f"},
		"a release behind many objects": {[]Kept{secret("a"), secret("b"), secret("c"), secret("d"), secret("e"), release("shop/web")},
			[]string{"does not know Secret a, release shop/web, Secret b, Secret c, Secret d and 1 more."}, "Secret e"},
		"a long name":   {[]Kept{release(long), release("z")}, []string{"x... and 1 more. All"}, "release z"},
		"two long ones": {[]Kept{release(long[:90]), work(long[:90])}, []string{"and 1 more. All"}, "release"},
	} {
		got := DescribeKept(row.kept)
		for _, part := range row.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q does not say %q", name, got, part)
			}
		}
		if strings.Contains(strings.Split(got, ". All of")[0], row.not) {
			t.Errorf("%s: %q says %q", name, got, row.not)
		}
		if len(got) > 400 {
			t.Errorf("%s: the message has %d bytes: %s", name, len(got), got)
		}
	}
	var all []Kept
	for i := range 9999 {
		all = append(all, release(fmt.Sprint(i, long)), work(fmt.Sprint(i, long)), secret(fmt.Sprint(i, long)))
	}
	if got := DescribeKept(all); len(got) > 400 {
		t.Errorf("the message about %d deliveries has %d bytes: %s", len(all), len(got), got)
	}
}
