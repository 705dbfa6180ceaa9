package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"
)

// hostAddress is the address of this machine for the clusters: localkube's bridge.
const hostAddress = "10.213.0.1"

// refusedInstall installs an agent into a namespace that refuses its Pod. Helm must fail, and an
// event must have the reason.
func (e *env) refusedInstall(ctx context.Context, namespace, because string) error {
	_, err := e.sh(ctx, e.two, hubAddressOf(e)+`
helm -n `+namespace+
		` install --wait --timeout 15s --set config.hubURL="$API_SERVER_URL" --set config.memberClusterName=none --set namespace=`+namespace+` \
  member-agent fleet/charts/member-agent`)
	if err == nil {
		return errors.New("helm says that an agent without a Pod has joined")
	}
	return errors.Join(e.expect(ctx, e.two, "kubectl -n "+namespace+" get events -o 'jsonpath={.items[*].message}'", because),
		e.removeNamespace(ctx, e.two, namespace))
}

// limitForbids: the namespace forbids the resources that the chart requests.
func limitForbids(ctx context.Context, e *env) (string, error) {
	if _, err := e.sh(ctx, e.two, restricted("narrow")+`kubectl apply -f - <<END
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: narrow}
spec: {limits: [{type: Container, max: {memory: 32Mi}}]}
END`); err != nil {
		return "", err
	}
	return "", e.refusedInstall(ctx, "narrow", "maximum memory usage per Container is 32Mi")
}

// webhookRefuses uses a webhook served by this program.
func webhookRefuses(ctx context.Context, e *env) (string, error) {
	const because = "no agents on a Saturday"
	listener, authority, err := serveRefusals(because)
	if err != nil {
		return "", err
	}
	err = e.behindWebhook(ctx, "hooked", listener.Addr().String(), authority, because)
	return "", errors.Join(err, listener.Close())
}

// webhookIsDown uses a webhook without a server and with the failure policy Fail.
func webhookIsDown(ctx context.Context, e *env) (string, error) {
	listener, authority, err := serveRefusals("")
	if err != nil {
		return "", err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return "", err
	}
	return "", e.behindWebhook(ctx, "unhooked", address, authority, "failed calling webhook")
}

// behindWebhook installs an agent in a namespace with a webhook for Pods.
func (e *env) behindWebhook(ctx context.Context, namespace, address string, authority []byte, because string) error {
	if _, err := e.sh(ctx, e.two, "kubectl create namespace "+namespace+`
kubectl apply -f - <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refusing}
webhooks:
- name: refusing.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  clientConfig: {url: "https://`+address+`/", caBundle: `+base64.StdEncoding.EncodeToString(authority)+`}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+namespace+`}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
END`); err != nil {
		return err
	}
	// An API server takes a moment to apply a new webhook.
	err := e.expect(ctx, e.two, "kubectl -n "+namespace+" run x --image=x --dry-run=server 2>&1 || true", because)
	if err == nil {
		err = e.refusedInstall(ctx, namespace, because)
	}
	_, removed := e.sh(ctx, e.two, "kubectl delete validatingwebhookconfiguration refusing")
	return errors.Join(err, removed)
}

// serveRefusals serves a webhook that refuses everything, and returns the certificate to trust.
func serveRefusals(because string) (net.Listener, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(hostAddress)},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	listener, err := tls.Listen("tcp", hostAddress+":0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("listening for admission reviews: %w", err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the API server treats a missing answer as a refusal too
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": review.Request.UID, "allowed": false, "status": map[string]any{"message": because}},
		})
	})}
	go func() { _ = server.Serve(listener) }() // until the listener is closed
	return listener, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), nil
}
