package cli

import (
	"strings"
	"testing"
)

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
