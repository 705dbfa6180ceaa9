package agent

import (
	"testing"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestWhichIssuedCredentialAnAgentAdopts(t *testing.T) {
	issued := func(account string, after, sequence int64, sealed string) *clusterv1beta1.IssuedCredential {
		return &clusterv1beta1.IssuedCredential{AccountUID: account, After: after, Sequence: sequence, Sealed: []byte(sealed)}
	}
	for _, c := range []struct {
		name   string
		issued *clusterv1beta1.IssuedCredential
		has    int64
		want   bool
	}{
		{"none", nil, 2, false},
		{"the next one", issued("uid", 2, 3, "sealed"), 2, true},
		{"the first one after the registration", issued("uid", 0, 1, "sealed"), 0, true},
		{"one that was issued instead of one that never arrived", issued("uid", 2, 4, "sealed"), 2, true},
		{"one of a hub of an earlier version", issued("uid", 0, 3, "sealed"), 2, true},
		{"the one that it has", issued("uid", 2, 3, "sealed"), 3, false},
		{"an older one", issued("uid", 2, 3, "sealed"), 4, false},
		{"one that was withdrawn", issued("uid", 2, 3, ""), 2, false},
		{"that of another account", issued("other", 2, 3, "sealed"), 2, false},
		{"one for an agent with a newer credential, of which this one is a copy", issued("uid", 2, 3, "sealed"), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := adoptable(c.issued, "uid", c.has); got != c.want {
				t.Errorf("adopted %v, want %v", got, c.want)
			}
		})
	}
}
