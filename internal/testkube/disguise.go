package testkube

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Disguise makes the cluster look like another one, at an address of its own. Its namespace
// kube-system has the given UID. Before each request there it calls pass, if it is set. Client
// still uses the undisguised cluster.
func (c Cluster) Disguise(t testing.TB, uid string, pass func(*http.Request)) Cluster {
	t.Helper()
	target, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	trust := rest.AnonymousClientConfig(c.Config)
	transport, err := rest.TransportFor(trust)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      quiet,
		ModifyResponse: func(response *http.Response) error {
			if response.Request.URL.Path == "/api/v1/namespaces/kube-system" && response.StatusCode == http.StatusOK {
				return replaceUID(response, uid)
			}
			return nil
		},
	}
	server := ServeTLS(t, func(w http.ResponseWriter, r *http.Request) {
		if pass != nil {
			pass(r)
		}
		proxy.ServeHTTP(w, r)
	})
	return c.Behind(server)
}

// Behind returns the cluster at the address of a server. Requests there need a bearer token.
func (c Cluster) Behind(server *httptest.Server) Cluster {
	c.Config = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	return c
}

// quiet discards the server's log about connections that end early.
var quiet = log.New(io.Discard, "", 0)

// ServeTLS starts a server on a loopback address. Its connections end with the test.
func ServeTLS(t testing.TB, answer http.HandlerFunc, prepare ...func(*httptest.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = quiet
	for _, change := range prepare {
		change(server)
	}
	server.StartTLS()
	t.Cleanup(server.CloseClientConnections)
	return server
}

func replaceUID(response *http.Response, uid string) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var object map[string]any
	if json.Unmarshal(body, &object) == nil {
		if meta, ok := object["metadata"].(map[string]any); ok {
			meta["uid"] = uid
		}
		if body, err = json.Marshal(object); err != nil {
			return err
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// Account creates a ServiceAccount in namespace default, with a ClusterRole if one is given, and
// returns a token for it.
func (c Cluster) Account(t testing.TB, name, clusterRole string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	c.ensure(t, account)
	if clusterRole != "" {
		c.ensure(t, bindingOf(name, clusterRole, metav1.NamespaceDefault, name))
	}
	request := &authenticationv1.TokenRequest{}
	if err := c.Client(t).SubResource("token").Create(context.Background(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// Kubeconfig returns a kubeconfig for the cluster with a bearer token, as in a Secret of Cluster
// API.
func (c Cluster) Kubeconfig(t testing.TB, token string) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "default"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
