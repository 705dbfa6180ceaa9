package dashboard

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/muster-fleet/muster/internal/testbrowser"
)

// The bounds of a picture in the documentation.
const (
	pictureWidth = 1440
	maxPicture   = 200_000 // bytes
)

// images is the directory of the pictures.
const images = "../../../docs/images"

// picture is a page that the documentation shows.
type picture struct {
	// name is the name of the file, without dashboard- and .png.
	name, path string
	// has is text of the page that makes the picture worth showing.
	has string
	// height of the picture in pixels.
	height int64
}

// pictures are the pages of the fleet of staged.
var pictures = []picture{
	{"fleet", "/", "Needs attention", 1200},
	{"member", "/members/stores/oslo", "AgentLost", 680},
	{"deliveries", "/deliveries", "checkout", 620},
	{"bundle", "/deliveries/bundles/stores/checkout", "set on the member only", 1020},
	{"repositories", "/deliveries/gitrepos/stores/web-shop", "3f9c1a7", 620},
	{"requests", "/registration", "requires approval", 780},
}

// TestThePicturesOfTheDocumentation checks that each picture has a page, and shows the page of the
// staged fleet. With MUSTER_PICTURES it renews the pictures in this directory:
//
//	MUSTER_PICTURES=$PWD/docs/images go test ./internal/ui/dashboard -run TestThePictures
func TestThePicturesOfTheDocumentation(t *testing.T) {
	r := newRig(t)
	staged(r)
	entrance := r.owned()
	jar, err := cookiejar.New(nil)
	r.check(err)
	visitor := &http.Client{Jar: jar}
	origin := originOf(t, visitor, entrance)
	for _, p := range pictures {
		if text := pageText(t, visitor, origin+p.path); !strings.Contains(text, p.has) {
			t.Errorf("docs/images/dashboard-%s.png: the page %s has no %q any more:\n%s", p.name, p.path, p.has, text)
		}
	}
	dir := os.Getenv("MUSTER_PICTURES")
	if dir == "" || t.Failed() {
		return
	}
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	origin = b.JS("location.origin")
	for _, p := range pictures {
		looksAt(b, origin+p.path, "light", pictureWidth)
		b.Do(chromedp.EmulateViewport(pictureWidth, p.height))
		b.JS(settled)
		b.JS(aged)
		b.Becomes("the page is live", liveness, "live")
		shot, err := chromedp.Run(b.Context, chromedp.CaptureScreenshot())
		r.check(err)
		small, err := paletted(shot)
		r.check(err)
		r.check(os.WriteFile(filepath.Join(dir, "dashboard-"+p.name+".png"), small, 0o644))
	}
}

const (
	// settled hides the caret and the scroll bars.
	settled = `document.documentElement.style.scrollbarWidth = "none", document.activeElement.blur()`
	// aged gives the objects an age of some hours: the API server sets the times of their creation.
	aged = `document.querySelector("section[aria-labelledby=recent]")?.remove(),
		document.querySelectorAll("time").forEach(t => { if (/^\d+s$/.test(t.textContent.trim())) t.textContent = "17h"; })`
)

// TestEachPictureIsShownAndSmall compares the list of pictures with the files, and the files with
// the pages that show them.
func TestEachPictureIsShownAndSmall(t *testing.T) {
	files, err := filepath.Glob(images + "/dashboard-*.png")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, p := range pictures {
		listed["dashboard-"+p.name+".png"] = true
	}
	var shown strings.Builder
	for _, page := range []string{"../../../README.md", "../../../docs/how-to/dashboard.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(text)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if !listed[name] {
			t.Errorf("docs/images/%s has no page in pictures: add the page, or delete the file", name)
		}
		delete(listed, name)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		config, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if config.Width != pictureWidth || len(data) > maxPicture {
			t.Errorf("docs/images/%s is %d pixels wide and has %d bytes, want %d and at most %d", name, config.Width, len(data),
				pictureWidth, maxPicture)
		}
		if !strings.Contains(shown.String(), "images/"+name) {
			t.Errorf("neither README.md nor docs/how-to/dashboard.md shows docs/images/%s", name)
		}
	}
	for name := range listed {
		t.Errorf("docs/images/%s is missing: run the test with MUSTER_PICTURES", name)
	}
}

// originOf enters a dashboard, and returns its address.
func originOf(t *testing.T, visitor *http.Client, entrance string) string {
	t.Helper()
	pageText(t, visitor, entrance)
	scheme, rest, _ := strings.Cut(entrance, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

func pageText(t *testing.T, visitor *http.Client, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := visitor.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s", url, response.Status)
	}
	return text.String()
}

// paletted encodes a picture with its 256 most frequent colors. Every other color becomes the
// nearest of them.
func paletted(data []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	palette := frequent(full, 256)
	bounds, nearest := full.Bounds(), map[color.Color]uint8{}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := full.At(x, y)
			index, found := nearest[c]
			if !found {
				index = uint8(palette.Index(c))
				nearest[c] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&out, small)
	return out.Bytes(), err
}
