package release

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARewrittenRevisionKeepsWhatIsNotRewritten(t *testing.T) {
	before := `{"name":"web","namespace":"apps","version":2,"config":{"big":12345678901234567890,"text":"<&>"},"unknown":{"a":[1.50]}}`
	for name, stored := range map[string]string{"packed": "", "plain": before} {
		data := []byte(base64.StdEncoding.EncodeToString([]byte(stored)))
		if stored == "" {
			packed, err := rewrite([]byte(base64.StdEncoding.EncodeToString([]byte(before))), nil)
			if err != nil {
				t.Fatal(err)
			}
			data = packed
		}
		rewritten, err := rewrite(data, map[string]any{"name": "db", "version": 5})
		if err != nil {
			t.Fatal(err)
		}
		text, err := unpack(rewritten)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"config":{"big":12345678901234567890,` +
			`"text":"\u003c\u0026\u003e"},"name":"db","namespace":"apps","unknown":{"a":[1.50]},"version":5}`
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestTheFieldsOfWhoeverDeployedAnObjectAreTakenOver(t *testing.T) {
	const mark = `"f:metadata":{"f:annotations":{"f:meta.helm.sh/release-name":{}}}`
	theirs := entry("fleetagent", metav1.ManagedFieldsOperationUpdate, `{"f:data":{".":{},"f:a":{}},`+mark+`}`)
	applied := entry("other-agent", metav1.ManagedFieldsOperationApply, `{"f:data":{"f:b":{}},`+mark+`}`)
	user := entry("kubectl-edit", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:c":{}}}`)
	ours := entry(FieldManager, metav1.ManagedFieldsOperationApply, `{"f:data":{"f:d":{}}}`)
	for name, row := range map[string]struct{ before, after []metav1.ManagedFieldsEntry }{
		"what their agent wrote is ours": {
			[]metav1.ManagedFieldsEntry{theirs, user},
			[]metav1.ManagedFieldsEntry{user, entry(FieldManager, metav1.ManagedFieldsOperationApply, `{"f:data":{".":{},"f:a":{}},`+mark+`}`)},
		},
		"beside what is ours already": {
			[]metav1.ManagedFieldsEntry{ours, theirs, applied},
			[]metav1.ManagedFieldsEntry{entry(FieldManager, metav1.ManagedFieldsOperationApply,
				`{"f:data":{".":{},"f:a":{},"f:b":{},"f:d":{}},`+mark+`}`)},
		},
		"what a user wrote is not": {[]metav1.ManagedFieldsEntry{ours, user}, nil},
	} {
		got, err := takenOver(row.before)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.after, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOfTwoReleasesOfABundleTheOneThatWasDeployedLastCounts(t *testing.T) {
	at := func(history, name string, minute int, copied bool) Summary {
		return Summary{Name: name, Namespace: "apps", History: history, DeployedAt: metav1.Unix(int64(60*minute), 0).Time, Copied: copied}
	}
	for name, row := range map[string]struct{ one, other Summary }{
		"an earlier version's after their agent's":           {at("agent", "web", 2, false), at("apps", "web", 1, false)},
		"their agent's after an earlier version's":           {at("apps", "web", 2, false), at("agent", "web", 1, false)},
		"what is being moved is the one that is no copy":     {at("agent", "web", 1, false), at("apps", "web", 1, true)},
		"also if only an earlier revision was copied so far": {at("apps", "old", 2, false), at("apps", "new", 1, true)},
	} {
		if !row.one.supersedes(row.other) || row.other.supersedes(row.one) {
			t.Errorf("%s: it is not", name)
		}
	}
}

func TestOnlyReleasesOfOneMoveAreOfOneBundleDeployment(t *testing.T) {
	at := func(name string, minute int, leaves string) Summary {
		return Summary{Name: name, Namespace: "apps", History: "apps", DeployedAt: metav1.Unix(int64(60*minute), 0).Time, Leaves: leaves}
	}
	first, second, third, stray := at("one", 1, ""), at("two", 2, "apps/one"), at("three", 3, "apps/two apps/one"), at("stray", 0, "")
	for name, row := range map[string]struct{ all, want []Summary }{
		"one":                                {[]Summary{first}, []Summary{first}},
		"one that nobody moved":              {[]Summary{first, stray}, []Summary{first}},
		"a move":                             {[]Summary{second, first, stray}, []Summary{second, first}},
		"a move that was taken back":         {[]Summary{at("one", 4, "apps/two"), second}, []Summary{at("one", 4, "apps/two"), second}},
		"two moves, over what one leads to":  {[]Summary{third, second, first}, []Summary{third, second, first}},
		"a move of which the middle is gone": {[]Summary{third, first}, []Summary{third, first}},
		"the first one, deployed last":       {[]Summary{at("one", 4, ""), second, stray}, []Summary{at("one", 4, ""), second}},
	} {
		if diff := cmp.Diff(row.want, linked(row.all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, row := range map[string]struct {
		one, by Summary
		is      bool
	}{
		"the one before, by the one that was moved":     {first, second, true},
		"the one that was moved, by the one before":     {second, first, false},
		"the one before, deployed again since":          {at("one", 4, "apps/two"), second, false},
		"the one before, deployed again and moved anew": {at("one", 1, "apps/two"), second, true},
	} {
		if row.one.SupersededBy(row.by) != row.is {
			t.Errorf("%s: it is not %t", name, row.is)
		}
	}
}
