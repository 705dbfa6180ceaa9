package bucket

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/muster-fleet/muster/internal/testbucket"
)

// TestAnErrorOfAServerNamesTheRemedyAndNoSecret has a row for each mistake of a user.
func TestAnErrorOfAServerNamesTheRemedyAndNoSecret(t *testing.T) {
	s := serve(t)
	own := s.Environment("writer", "hub/", forWriting...)
	const wrong = "a-wrong-secret-key"
	with := func(name, value string) map[string]string {
		changed := maps.Clone(own)
		changed[name] = value
		return changed
	}
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = writer\naws_secret_access_key = "+wrong+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	right := Settings{Endpoint: s.Endpoint, CAFile: s.CAFile}
	for name, row := range map[string]struct {
		variables map[string]string
		settings  Settings
		object    string
		want      string
	}{
		"a wrong secret key":    {with("AWS_SECRET_ACCESS_KEY", wrong), right, "backups/hub/a", "correct AWS_SECRET_ACCESS_KEY"},
		"an unknown access key": {with("AWS_ACCESS_KEY_ID", "unknown"), right, "backups/hub/a", "correct AWS_ACCESS_KEY_ID"},
		"a wrong key in a file": {map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, right, "backups/hub/a",
			"correct AWS_SECRET_ACCESS_KEY"},
		"no such bucket":           {own, right, "other/hub/a", "there is no such bucket: create it"},
		"a name without the right": {own, right, "backups/others/a", "have no right to do this"},
		"another region": {own, Settings{Endpoint: s.Endpoint, CAFile: s.CAFile, Region: "eu-west-1"}, "backups/hub/a",
			"correct --s3-region"},
		"an authority that is not trusted": {own, Settings{Endpoint: s.Endpoint}, "backups/hub/a", "check the address, the network and the " +
			"certificate authority"},
		"no server": {own, Settings{Endpoint: "https://127.0.0.1:1", CAFile: s.CAFile}, "backups/hub/a", "connection refused"},
		"no TLS":    {own, Settings{Endpoint: strings.Replace(s.Endpoint, "https", "http", 1)}, "backups/hub/a", "s3://backups/hub/a"},
	} {
		t.Run(name, func(t *testing.T) {
			setEnvironment(t, row.variables)
			c, err := New(row.settings)
			if err != nil {
				t.Fatal(err)
			}
			o, err := Parse("s3://" + row.object)
			if err != nil {
				t.Fatal(err)
			}
			err = write(context.Background(), c, o, []byte("text"))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), o.String()) {
				t.Fatalf("the error is %v", err)
			}
			for _, secret := range []string{own["AWS_SECRET_ACCESS_KEY"], wrong} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error has a secret: %v", err)
				}
			}
		})
	}
	if keys := s.Keys(); len(keys) != 0 {
		t.Errorf("the bucket has %q", keys)
	}
}

// hourAhead sends requests as from a machine whose clock is an hour ahead.
type hourAhead struct{ http.RoundTripper }

func (h hourAhead) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	const form = "20060102T150405Z"
	r.Header.Set("X-Amz-Date", time.Now().UTC().Add(time.Hour).Format(form))
	return h.RoundTripper.RoundTrip(r)
}

func TestAWrongClockIsNamed(t *testing.T) {
	s := serve(t)
	variables := s.Environment("writer", "", forWriting...)
	c := of(t, s, variables)
	transport, err := Settings{CAFile: s.CAFile}.transport(true)
	if err != nil {
		t.Fatal(err)
	}
	core, err := minio.NewCore(strings.TrimPrefix(s.Endpoint, "https://"), &minio.Options{
		Creds:  credentials.NewStaticV4(variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"], ""),
		Secure: true, Region: defaultRegion, Transport: hourAhead{transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.core = *core
	err = write(context.Background(), c, Object{Bucket: testbucket.Name, Key: "hub.age"}, []byte("text"))
	if err == nil || !strings.Contains(err.Error(), "the clock of this machine differs") {
		t.Errorf("the error is %v", err)
	}
}

func TestCredentialsComeFromTheEnvironmentOnly(t *testing.T) {
	for name, row := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"none":                      {nil, "there are no credentials of the S3 server"},
		"no secret key":             {map[string]string{"AWS_ACCESS_KEY_ID": "a"}, "has no AWS_SECRET_ACCESS_KEY"},
		"a web identity, no role":   {map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, "has no AWS_ROLE_ARN"},
		"an authority that is none": {map[string]string{"AWS_CA_BUNDLE": "/dev/null", "AWS_ACCESS_KEY_ID": "a"}, "has no certificate in PEM"},
		"an endpoint with a password": {map[string]string{"AWS_ENDPOINT_URL": "https://a:hidden-word@s3.example.com"},
			"the address of the S3 server is not https://"},
		"an endpoint without a scheme": {map[string]string{"AWS_ENDPOINT_URL_S3": "s3.example.com"}, "is not https://"},
	} {
		t.Run(name, func(t *testing.T) {
			setEnvironment(t, row.variables)
			_, err := New(Settings{}.WithEnvironment())
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hidden-word") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAnAddressNamesABucketAndAnObject(t *testing.T) {
	for text, want := range map[string]Object{
		"s3://backups/a.age": {"backups", "a.age"}, "s3://my.bucket-1/hub/2026/a.age": {"my.bucket-1", "hub/2026/a.age"},
	} {
		if got, err := Parse(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s is %v: %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "backups/a", "s3://", "s3://backups", "s3://backups/", "s3://B/a", "s3://backups//a", "s3://backups/a//b", "s3://backups/../a",
		"s3://backups/a/./b", "s3://back_ups/a", "s3://user:word@backups/a", "s3://backups/a?b", "s3://backups/a b", "s3://backups/a\n",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got, err := ParsePrefix("s3://backups/hub/"); err != nil || got != (Object{"backups", "hub"}) {
		t.Errorf("the prefix is %v: %v", got, err)
	}
}
