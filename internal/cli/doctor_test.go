package cli

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-fleet/muster/internal/testkube"
)

// at is a user whose only context leads to a server.
func at(t *testing.T, server string, ca []byte) user {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: "s3cret"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	u := user{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := clientcmd.WriteToFile(*config, u.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestDoctorSaysAtWhichStepAConnectionFails(t *testing.T) {
	answers := func(version string, ahead time.Duration) (string, []byte) {
		server := testkube.ServeTLS(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
			switch r.URL.Path {
			case "/version":
				_, _ = w.Write([]byte(version)) // the client says what went wrong
			default:
				http.Error(w, "no", http.StatusForbidden)
			}
		})
		return server.URL, certificateOf(server)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := closed.Addr().String()
	_ = closed.Close() // nothing listens there from now on
	_, other := testkube.NewCertificate(t)
	current, ca := answers(`{"gitVersion":"v1.34.1"}`, 0)
	ahead, aheadCA := answers(`{"gitVersion":"v1.34.1"}`, time.Hour)
	old, oldCA := answers(`{"gitVersion":"v1.24.17"}`, 0)
	page, pageCA := answers("<html>welcome</html>", 0)
	refusing := testkube.ServeTLS(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	for what, c := range map[string]struct {
		server string
		ca     []byte
		says   string
	}{
		"it answers":                     {current, ca, "  ok       answers    Kubernetes v1.34.1 at " + current},
		"its name is not known":          {"https://nobody.invalid:6443", ca, "  WRONG    answers    the name nobody.invalid cannot be resolved: "},
		"nothing listens":                {"https://" + nowhere, ca, "  WRONG    answers    nothing takes connections at " + nowhere + ": "},
		"somebody else has signed":       {current, []byte(other), "  WRONG    answers    the certificate of " + current + " is signed by "},
		"it was issued for another name": {strings.Replace(current, "127.0.0.1", "localhost", 1), ca, "  WRONG    answers    the certificate of "},
		"an hour ahead":                  {ahead, aheadCA, "  WRONG    clock      the clocks of cluster c and of this machine differ by "},
		"too old":                        {old, oldCA, "  WRONG    answers    cluster c runs Kubernetes v1.24.17: the charts need 1.28.0 or newer"},
		"no API server":                  {page, pageCA, "  WRONG    answers    what answers at " + page + " is no Kubernetes API server (200 OK)"},
		"it does not know the user":      {refusing.URL, certificateOf(refusing), "  WRONG    answers    " + refusing.URL + " does not accept the credential of the kubeconfig"},
	} {
		t.Run(what, func(t *testing.T) {
			out, said, err := at(t, c.server, c.ca).run("doctor", "--context", "c")
			if !strings.Contains(out, c.says) || strings.Contains(out+said, "s3cret") || (err == nil) != !strings.Contains(out, "WRONG") {
				t.Errorf("it says, without %q: %v\n%s%s", c.says, err, out, said)
			}
		})
	}
}

// TestTheCAOfAKubeconfigMayBeAFile has the CA where an agent cannot read it.
func TestTheCAOfAKubeconfigMayBeAFile(t *testing.T) {
	_, ca := testkube.NewCertificate(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	u := at(t, "https://hub:6443", nil)
	config, err := clientcmd.LoadFromFile(u.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["c"].CertificateAuthority = file
	if err := clientcmd.WriteToFile(*config, u.kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", u.kubeconfig)
	if found, err := newAccess().checked(); err != nil || string(found.config.CAData) != ca {
		t.Errorf("what agents are given is %q: %v", found.config.CAData, err)
	}
}

func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestWhoLeadsAHubIsSaidByItsLease(t *testing.T) {
	now := time.Now()
	lease := func(holder string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(now.Add(-renewed)))}}
	}
	for what, c := range map[string]struct {
		lease       *coordinationv1.Lease
		says, wrong string
	}{
		"renewed just now":      {lease("fleet-controller-1_uid", time.Second), "fleet-controller-1 leads", ""},
		"renewed long ago":      {lease("fleet-controller-1_uid", time.Hour), "", "no hub leads since 60m"},
		"given up":              {lease("", time.Second), "", "no hub leads at the moment"},
		"nobody has led so far": {&coordinationv1.Lease{}, "", "no hub leads at the moment"},
	} {
		says, err := leads(c.lease, now)
		if says != c.says || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v", what, says, err)
		}
	}
}
