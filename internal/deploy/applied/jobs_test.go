package applied

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestWhetherAJobHasHadItsRun(t *testing.T) {
	for name, test := range map[string]struct {
		run    Run
		passes bool
		seen   types.UID
		want   string
	}{
		"nothing is known":                         {Run{}, true, "", ""},
		"it has ended":                             {Run{"h", "1", JobComplete, ""}, true, "1", JobComplete},
		"it has ended, and has no TTL":             {Run{"h", "1", JobComplete, ""}, false, "1", JobComplete},
		"it has failed, before this agent began":   {Run{"h", "1", JobFailed, "x"}, true, "", JobFailed},
		"it has failed, and a user deleted it":     {Run{"h", "1", JobFailed, "x"}, false, "", ""},
		"other content has ended":                  {Run{"x", "1", JobComplete, ""}, true, "1", ""},
		"this agent saw that it had not ended":     {Run{"h", "1", "", ""}, true, "1", ""},
		"it went before this agent began":          {Run{"h", "1", "", ""}, true, "", JobUnseen},
		"it went unseen, and has no TTL":           {Run{"h", "1", "", ""}, false, "", ""},
		"it went, and this agent knew another one": {Run{"h", "1", "", ""}, true, "0", JobUnseen},
	} {
		if ended, is := test.run.Over("h", test.passes, test.seen); ended != test.want || is != (ended != "") {
			t.Errorf("%s: %q, %v", name, ended, is)
		}
	}
}
