package testkube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ClientCertificate returns a client certificate of a user and its key as PEM. The user has no
// account in the cluster, like an identity of a cloud.
func ClientCertificate(t *testing.T, config *rest.Config, user string) (certificate, key []byte) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	der, err := x509.MarshalECPrivateKey(private)
	check(err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, private)
	check(err)
	kube, err := kubernetes.NewForConfig(config)
	check(err)
	requests := kube.CertificatesV1().CertificateSigningRequests()
	signing, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "user-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	check(err)
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}
	approved.Reason = string(approved.Type)
	signing.Status.Conditions = append(signing.Status.Conditions, approved)
	_, err = requests.UpdateApproval(t.Context(), signing.Name, signing, metav1.UpdateOptions{})
	check(err)
	Eventually(t, "the certificate of "+user+" is signed", func() error {
		found, err := requests.Get(context.Background(), signing.Name, metav1.GetOptions{})
		if err != nil || len(found.Status.Certificate) == 0 {
			return fmt.Errorf("it is not: %v", err)
		}
		certificate = found.Status.Certificate
		return nil
	})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
