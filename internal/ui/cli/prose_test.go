package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// TestOnlyEqualAdviceIsLeftOut has findings with one remedy, and different meanings and commands.
func TestOnlyEqualAdviceIsLeftOut(t *testing.T) {
	finding := func(message, means, command string) explain.Finding {
		return explain.Finding{Problem: explain.Problem{Kind: "Bundle", Name: "web", Reason: "X", Message: message}, Means: means,
			Remedy: "Correct the field.", OnHub: []string{command}}
	}
	var out bytes.Buffer
	e := &explainer{IOStreams: genericiooptions.IOStreams{Out: &out}, access: newAccess()}
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}}
	if err := e.print(bundle, []explain.Finding{
		finding("first", "One.", "a"), finding("second", "One.", "a"), finding("third", "Two.", "a"), finding("fourth", "Two.", "b"),
	}, nil); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"One.": 1, "Two.": 2, "Correct the field.": 3, "fourth": 1, "on the hub:    b": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", text, got, want, out.String())
		}
	}
}

func TestATerminalShowsWholeWords(t *testing.T) {
	for _, row := range []struct {
		text      string
		width, in int
		want      string
	}{
		{
			"  What to do: See to what the sentence names: the address, or the token.", 0, 2,
			"  What to do: See to what the sentence names: the address, or the token.",
		},
		{
			"  What to do: See to what the sentence names: the address, or the token.", 40, 2,
			"  What to do: See to what the sentence\n  names: the address, or the token.",
		},
		{
			"  ok       answers    Kubernetes v1.34.1 at https://hub.example.com:6443", 50, 22,
			"  ok       answers    Kubernetes v1.34.1 at\n" + strings.Repeat(" ", 22) + "https://hub.example.com:6443",
		},
		{
			"https://a-name-that-is-longer.than.the.terminal.is.wide:6443 is down", 30, 2,
			"https://a-name-that-is-longer.than.the.terminal.is.wide:6443\n  is down",
		},
		{"exactly as wide", 15, 2, "exactly as wide"},
		{"ähnlich öde", 11, 2, "ähnlich öde"},
		{"a terminal of three letters is taken for one of some more", 3, 2, "a terminal of three\n  letters is taken for\n  one of some more"},
	} {
		if got := hanging(row.text, row.width, row.in); got != row.want {
			t.Errorf("in %d letters it is\n%s\ninstead of\n%s", row.width, got, row.want)
		}
	}
}

// TestQuietPrintsResultsOnly passes the flag as a user does.
func TestQuietPrintsResultsOnly(t *testing.T) {
	for flag, want := range map[string]string{"--quiet": "done\n", "--quiet=false": "   0s  waits\ndone\n"} {
		h, root, out := newAccess(), &cobra.Command{Use: "muster"}, bytes.Buffer{}
		h.addQuiet(root)
		root.RunE = func(*cobra.Command, []string) error {
			p := h.in("other", "the cluster").newProgress(&out)
			p.step("waits")
			p.line("done")
			return p.err
		}
		root.SetArgs([]string{flag})
		if err := root.Execute(); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", flag, out.String(), err)
		}
	}
}
