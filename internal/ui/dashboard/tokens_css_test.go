package dashboard

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// colors returns the colors of the style sheet by name, for light and for dark pages.
func colors(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := assets.ReadFile("assets/tokens.css")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	color := regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`)
	for _, line := range color.FindAllStringSubmatch(string(text), -1) {
		found[line[1]] = [2]string{line[2], line[3]}
	}
	return found
}

// luminance is the relative luminance of a color such as #aabbcc (WCAG 2.2, 1.4.3).
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	number, err := strconv.ParseUint(color[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for shift, weight := range map[int]float64{16: .2126, 8: .7152, 0: .0722} {
		part := float64(number>>shift&0xff) / 255
		if part <= .04045 {
			sum += weight * part / 12.92
		} else {
			sum += weight * math.Pow((part+.055)/1.055, 2.4)
		}
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	one, other := luminance(t, a), luminance(t, b)
	return (max(one, other) + .05) / (min(one, other) + .05)
}

// TestEachPairOfColorsHasContrast computes the contrast of each text on each of its surfaces, and
// of the frames of fields.
func TestEachPairOfColorsHasContrast(t *testing.T) {
	all := colors(t)
	want := map[[2]string]float64{{"on-accent", "accent"}: 4.5, {"on-danger", "danger"}: 4.5, {"surface", "text"}: 4.5}
	for _, surface := range []string{"back", "surface", "raised"} {
		for _, text := range []string{"text", "soft", "link", "ok", "warn", "bad", "idle"} {
			want[[2]string{text, surface}] = 4.5
		}
		want[[2]string{"control", surface}] = 3
		plots := []string{"plot-joined", "plot-back", "plot-lost", "plot-median", "plot-most", "plot-axis"}
		for _, part := range plots { // graphics, WCAG 2.2, 1.4.11
			want[[2]string{part, surface}] = 3
		}
	}
	for _, tone := range []string{"ok", "warn", "bad", "idle"} {
		want[[2]string{tone, tone + "-back"}] = 4.5
	}
	for pair, least := range want {
		for theme, name := range []string{"light", "dark"} {
			text, surface := all[pair[0]][theme], all[pair[1]][theme]
			if text == "" || surface == "" {
				t.Fatalf("there is no color %s or %s", pair[0], pair[1])
			}
			if got := contrast(t, text, surface); got < least {
				t.Errorf("%s: %s on %s has a contrast of %s, want %g", name, pair[0], pair[1], fmt.Sprintf("%.2f", got), least)
			}
		}
	}
	if got := contrast(t, "#ffffff", "#000000"); math.Abs(got-21) > .001 {
		t.Errorf("white on black has a contrast of %g", got)
	}
}
