package naming

import (
	"crypto/md5" //nolint:gosec // names as upstream's agents derive them; nothing is protected by it
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	// maxReleaseName is Helm's maximum length of a name.
	maxReleaseName = 53
	// replacedDigest, shortenedDigest and emptyDigest are the lengths of the digests in derived names
	// of releases.
	replacedDigest, shortenedDigest, emptyDigest = 8, 5, 24
)

var (
	unlikeRelease = regexp.MustCompile(`[^a-z0-9-]`)
	notInRelease  = regexp.MustCompile(`[^a-z0-9]+`)
)

// Release returns the name of the Helm release of a BundleDeployment without one, as with
// upstream's agents. A name with lost characters other than slashes gets a digest of the original
// name.
func Release(deployment string) string {
	name := strings.ReplaceAll(deployment, "/", "-")
	if unlikeRelease.MatchString(name) {
		name += "-" + md5Of(name)[:replacedDigest]
	}
	name = strings.Trim(notInRelease.ReplaceAllString(strings.ToLower(name), "-"), "-")
	switch {
	case name == "":
		return md5Of(deployment)[:emptyDigest]
	case len(name) <= maxReleaseName:
		return name
	}
	head := strings.TrimSuffix(name[:maxReleaseName-shortenedDigest-1], "-")
	return head + "-" + md5Of(name)[:shortenedDigest]
}

func md5Of(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
