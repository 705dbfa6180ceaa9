package drift

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

func TestNoteCountsOnlyForTheRevisionAndTheObjectsThatWereCompared(t *testing.T) {
	made := release.Summary{
		Name: "web", Namespace: "shop", Version: 3, DeployedAt: time.Unix(1000, 5).UTC(), DeploymentID: "s-1:2", ServiceAccount: "apps",
	}
	key := func(name string) Key {
		return Key{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps", Namespace: "shop", Name: name}
	}
	keys := []Key{key("a"), key("b"), key("c")}
	is := summary{uid: "u", fields: 1, content: 2}
	compared := &Set{release: made, keys: keys, diff: "null", results: map[Key]result{
		keys[0]: {summary: is}, keys[1]: {summary: is, modified: modifiedStatus(keys[1])}, // and keys[2] is missing
	}}
	note, more := compared.Note()
	if !more {
		t.Fatal("the note says no more than none")
	}
	compared.SetNote(note)
	if _, more := compared.Note(); more {
		t.Error("the note that is stored is not the one that is made")
	}
	for name, row := range map[string]struct {
		edit func(s *release.Summary, keys *[]Key, is *summary)
		want bool
	}{
		"nothing":                       {func(*release.Summary, *[]Key, *summary) {}, true},
		"what the hub has of it":        {func(s *release.Summary, _ *[]Key, _ *summary) { s.HubVersion = "9" }, true},
		"its readiness":                 {func(_ *release.Summary, _ *[]Key, is *summary) { is.readiness.Message = "2 of 3" }, true},
		"another content":               {func(_ *release.Summary, _ *[]Key, is *summary) { is.content = 3 }, false},
		"other fields that are ours":    {func(_ *release.Summary, _ *[]Key, is *summary) { is.fields = 2 }, false},
		"another object of that name":   {func(_ *release.Summary, _ *[]Key, is *summary) { is.uid = "v" }, false},
		"another revision":              {func(s *release.Summary, _ *[]Key, _ *summary) { s.Version = 4 }, false},
		"another release":               {func(s *release.Summary, _ *[]Key, _ *summary) { s.Namespace = "other" }, false},
		"a revision that was made anew": {func(s *release.Summary, _ *[]Key, _ *summary) { s.DeployedAt = time.Unix(1000, 6) }, false},
		"another deployment":            {func(s *release.Summary, _ *[]Key, _ *summary) { s.DeploymentID = "s-1:3" }, false},
		"none":                          {func(s *release.Summary, _ *[]Key, _ *summary) { s.DeploymentID = "" }, false},
		"another account":               {func(s *release.Summary, _ *[]Key, _ *summary) { s.ServiceAccount = "" }, false},
		"other objects":                 {func(_ *release.Summary, keys *[]Key, _ *summary) { (*keys)[2].Name = "d" }, false},
		"an object more":                {func(_ *release.Summary, keys *[]Key, _ *summary) { *keys = append(*keys, key("d")) }, false},
		"a note that is cut off":        {func(s *release.Summary, _ *[]Key, _ *summary) { s.Compared = s.Compared[:8] }, false},
		"a note that is none":           {func(s *release.Summary, _ *[]Key, _ *summary) { s.Compared = "{}" }, false},
	} {
		s, now, all := made, is, append([]Key(nil), keys...)
		s.Compared = note
		row.edit(&s, &all, &now)
		later := &Set{release: s, keys: all}
		if err := later.leaveOut(nil); err != nil {
			t.Fatal(err)
		}
		if got := later.isNoted(keys[0], now); got != row.want {
			t.Errorf("with %s it is noted: %t", name, got)
		}
		if later.isNoted(keys[1], now) || later.isNoted(keys[2], now) {
			t.Errorf("with %s it is noted of an object that was modified or missing", name)
		}
	}
	if err := compared.leaveOut(&fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{Kind: "ConfigMap", Name: "a"}}}); err != nil {
		t.Fatal(err)
	}
	if compared.isNoted(keys[0], is) || len(compared.results) > 0 {
		t.Error("what was compared counts for other diff options")
	}
}

func TestNoteIsBoundedAndKeepsWhatIsModifiedNow(t *testing.T) {
	s := &Set{release: release.Summary{Name: "web", DeploymentID: "d"}, results: map[Key]result{}}
	for i := range 3 * maxNoted {
		key := Key{Name: time.Duration(i).String()}
		s.keys = append(s.keys, key)
		s.results[key] = result{summary: summary{uid: "u", content: uint64(i)}} //nolint:gosec // a number
	}
	note, more := s.Note()
	if !more || len(note) > 11*maxNoted {
		t.Errorf("the note has %d bytes", len(note))
	}
	s.SetNote(note)
	s.results[s.keys[0]] = result{summary: summary{uid: "u", content: 77}, modified: modifiedStatus(s.keys[0])}
	if again, more := s.Note(); more || again != note {
		t.Error("an object that is modified changes the note")
	}
	if !s.isNoted(s.keys[0], summary{uid: "u"}) || s.isNoted(s.keys[0], summary{uid: "u", content: 77}) {
		t.Error("the object is noted as it is now, or not as it was")
	}
}
