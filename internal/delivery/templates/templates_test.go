package templates

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	data := map[string]any{"ClusterName": "one", "ClusterLabels": map[string]any{"env": "prod", "a.b/c": "d"}}
	for text, want := range map[string]string{
		"nothing to fill {{ here }}":                                            "nothing to fill {{ here }}",
		"${ .ClusterName | upper }":                                             "ONE",
		"${ if eq .ClusterLabels.env \"prod\" }3${ else }1${ end }":             "3",
		"${ get .ClusterLabels \"a.b/c\" }":                                     "d",
		"${ range $i, $e := until 3 }${ $i }${ end }":                           "012",
		"${ printf \"%s-%03d\" .ClusterName 7 }":                                "one-007",
		"${ $d := dict \"a\" 1 }${ $_ := set $d \"b\" 2 }${ $d | toJson }":      `{"a":1,"b":2}`,
		"${ $d := dict \"a\" 1 }${ merge $d (dict \"b\" (list 1 2)) | toJson }": `{"a":1,"b":[1,2]}`,
		"${ define \"a\" }x${ . }${ end }${ template \"a\" 1 }":                 "x1",
		"${ list 1 2 2 | uniq | join \",\" }":                                   "1,2",
		"${ regexReplaceAll \"[^a-z]\" \"a-b\" \"\" }":                          "ab",
		"${ semverCompare \">=1.2\" \"1.3.0\" }":                                "true",
		"${ print 1 2 }${ println }":                                            "1 2\n",
		"${ .ClusterName | b64enc | b64dec | quote | indent 2 }":                `  "one"`,
		"${ range 3 }${ . }${ if eq . 1 }${ break }${ end }${ end }":            "01",
		"${ with .ClusterName }${ . }${ end }":                                  "one",
	} {
		if got, err := newFiller().Fill(text, data); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestWhatChangesByItselfIsUnknown(t *testing.T) {
	for _, text := range []string{
		"now", "uuidv4", "randAlpha 3", "env \"HOME\"", "genCA \"a\" 1", "shuffle \"abc\"", "derivePassword 1 \"long\" \"a\" \"b\" \"c\"",
		"getHostByName \"a\"",
	} {
		if _, err := newFiller().Fill("${ "+text+" }", nil); err == nil || !strings.Contains(err.Error(), "not defined") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTheWorstTemplateCostsABoundedAmountOfMemory(t *testing.T) {
	big := "${ $b := repeat 1000000 \"x\" }"
	for name, text := range map[string]string{
		"a repetition":                         "${ repeat 2000000000 \"xx\" }",
		"repetitions of repetitions":           "${ repeat 1000 (repeat 1000 (repeat 1000 \"xx\")) }",
		"ranges that say nothing":              "${ range until 60000 }${ range until 60000 }${ range until 60000 }${ end }${ end }${ end }",
		"a range over a number":                "${ range 2000000000 }${ end }",
		"ranges over numbers":                  "${ range 60000 }${ range 60000 }${ end }${ end }",
		"a long list":                          "${ until 2000000000 }",
		"a long list backwards":                "${ untilStep 2000000000 -2000000000 -1 }",
		"a sequence":                           "${ seq 2000000000 }",
		"templates that call each other twice": "${ define \"a\" }${ template \"a\" }${ template \"a\" }${ end }${ template \"a\" }",
		"a text that doubles":                  "${ $x := \"xx\" }${ range until 60 }${ $x = print $x $x }${ end }${ $x }",
		"a list that doubles":                  "${ $x := list 1 }${ range until 60 }${ $x = list $x $x }${ end }${ $x }",
		"a dict that doubles":                  "${ $x := dict \"a\" 1 }${ range until 60 }${ $_ := set $x (toString .) $x }${ end }${ $x }",
		"a dict in itself":                     "${ $x := dict }${ range until 200 }${ $_ := set $x \"a\" $x }${ end }${ $x | deepCopy }",
		"a dict merged with itself": "${ $x := dict \"b\" (dict \"c\" 1) }${ range until 200 }${ $_ := merge $x (dict \"a\" $x) }${ " +
			"end }${ $x }",
		"a width":                           "${ range until 1000 }${ $x := printf \"%999999d%999999d\" 1 1 }${ end }",
		"a width that is given":             "${ range until 1000 }${ $x := printf \"%*d\" 999999 1 }${ end }",
		"a text that is printed many times": big + "${ printf \"" + strings.Repeat("%[1]s", 5000) + "\" $b }",
		"a text that is given many times":   big + "${ cat " + strings.Repeat("$b ", 5000) + " }",
		"a replacement":                     big + "${ replace \"x\" $b $b }",
		"a replacement of nothing":          big + "${ replace \"\" $b $b }",
		"a replacement of what matches":     big + "${ regexReplaceAll \"x\" $b $b }",
		"an expression with many states":    big + "${ regexMatch \"(x?){1000}y\" $b }",
		"a long expression":                 "${ regexMatch (repeat 30000 \"x{1000}\") \"x\" }",
		"a list that is joined":             big + "${ join $b (until 10000) }",
		"an indent":                         "${ indent 1000000 (repeat 100000 \"\\n\") }",
		"a wrap":                            big + "${ wrapWith 1 $b $b }",
		"a long list without repetitions":   "${ until 60000 | uniq }",
		"a text that is split":              big + "${ splitList \"\" $b }",
		"deep JSON":                         "${ repeat 100000 \"[\" | fromJson }",
		"texts that are compared":           big + "${ $c := print $b }${ range 100000 }${ if eq $b $c }${ end }${ end }",
		"a long template":                   "${ 1 }" + strings.Repeat("x", maxText),
		"many parentheses":                  "${ " + strings.Repeat("(", maxText/2-10) + "1" + strings.Repeat(")", maxText/2-10) + " }",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text, err := newFiller().Fill(text, nil)
			runtime.ReadMemStats(&after)
			if err == nil && len(text) > maxResult {
				t.Errorf("it yields %d bytes", len(text))
			}
			if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 1024 {
				t.Errorf("it made %d MiB: %v", made, err)
			}
			if grown := after.Sys - before.Sys; grown > 512<<20 {
				t.Errorf("the process grew by %d MiB", grown>>20)
			}
			if err == nil {
				t.Logf("it is filled: %d bytes", len(text))
			} else if len(err.Error()) > 4096 {
				t.Errorf("the error is %d bytes long", len(err.Error()))
			} else {
				t.Log(err)
			}
		})
	}
}

func TestEachClusterHasTheWholeAllowance(t *testing.T) {
	for range 3 {
		if err := With(func(f *Filler) error {
			_, err := f.Fill("${ repeat 1000000 \"x\" | len }${ repeat 1000000 \"y\" | len }${ repeat 1000000 \"z\" | len }", nil)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllTextsOfAClusterShareOneAllowance(t *testing.T) {
	f := newFiller()
	var err error
	for i := range 1000 {
		if _, err = f.Fill("${ repeat 500000 \"x\" | len }", nil); err != nil {
			t.Log(fmt.Sprintf("after %d: ", i), err)
			break
		}
	}
	if !errors.Is(err, errAllowance) {
		t.Errorf("it ends with %v", err)
	}
}
