package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/naming"
)

// issuedType distinguishes the Secret with the issued credential from a user's Secret of the same
// name, because the type of a Secret cannot change.
const issuedType corev1.SecretType = "muster/member-credential"

// Keys of the Secret with the issued credential, besides token and ca.crt. ca.crt has the CA of the
// user's Secret. The user can then delete the Secret.
const (
	keySequence        = "sequence"
	keyReconnect       = "reconnectToken"
	keyMember          = "memberClusterName"
	keyMemberNamespace = "memberNamespace"
	// keyServers are the addresses of this hub: the configured one and the one in use.
	keyServers = "servers"
	// keyAddresses are the addresses that the hub has named.
	keyAddresses = "hubAddresses"
	// keyFormer is the credential of the lost hub that this hub succeeds.
	keyFormer = "lostHub"
)

// lostHub is the stored form of the credential of a lost hub, for the same member.
type lostHub struct {
	hubclient.Address
	// Addresses are the addresses that the lost hub has named, in their stored form.
	Addresses json.RawMessage `json:"addresses"`
}

// issuedSecret returns the stored form of an issued credential, with the configuration at the time.
func (m *membership) issuedSecret(c hubclient.Credential, given *corev1.Secret) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: naming.MemberAgentCredentialSecret, Namespace: m.member.Namespace}, Type: issuedType,
		Data: map[string][]byte{
			corev1.ServiceAccountTokenKey: []byte(c.Token), keySequence: []byte(strconv.FormatInt(c.Sequence, 10)),
			keyMember: []byte(c.Cluster), keyMemberNamespace: []byte(c.MemberNamespace), keyServers: []byte(m.Server + " " + c.Server),
			corev1.ServiceAccountRootCAKey: []byte(m.givenCA(given)),
		},
	}
	if encoded := c.Addresses.Encode(); encoded != nil {
		secret.Data[keyAddresses] = encoded
	}
	if c.Reconnect != "" {
		secret.Data[keyReconnect] = []byte(c.Reconnect)
	}
	if former := c.Former; former != nil {
		content, err := json.Marshal(lostHub{
			hubclient.Address{Server: former.Server, CA: former.CA, Token: former.Token}, former.Addresses.Encode(),
		})
		if err != nil {
			panic(err) // plain data: a mistake in this program
		}
		secret.Data[keyFormer] = content
	}
	return secret
}

// exchangedCredential reads a Secret of issuedSecret, except for the address.
func exchangedCredential(secret *corev1.Secret) (hubclient.Credential, error) {
	sequence, err := strconv.ParseInt(string(secret.Data[keySequence]), 10, 64)
	c := hubclient.Credential{
		Token: string(secret.Data[corev1.ServiceAccountTokenKey]), Sequence: sequence, Reconnect: string(secret.Data[keyReconnect]),
		Cluster: string(secret.Data[keyMember]), MemberNamespace: string(secret.Data[keyMemberNamespace]),
		Addresses: hubclient.ParseAddresses(secret.Data[keyAddresses]),
	}
	var lost lostHub
	if content := secret.Data[keyFormer]; len(content) > 0 && json.Unmarshal(content, &lost) == nil {
		c.Former = &hubclient.Credential{
			Server: lost.Server, CA: lost.CA, Token: lost.Token, Addresses: hubclient.ParseAddresses(lost.Addresses),
			Cluster: c.Cluster, MemberNamespace: c.MemberNamespace,
		}
	}
	if secret.Type != issuedType || err != nil || sequence < 1 || c.Account() == "" {
		return hubclient.Credential{}, errors.New("it holds no credential that a hub has issued")
	}
	return c, nil
}

// givenCA returns the CA of the user's Secret, or its last CA after the Secret was deleted.
func (m *membership) givenCA(given *corev1.Secret) string {
	if given != nil && m.kubeconfig.Secret != "" {
		if login, err := m.kubeconfig.login(given); err == nil {
			return string(login.CA)
		}
	} else if given != nil {
		if _, ca, err := hubclient.TokenFromSecret(given); err == nil {
			return string(ca)
		}
	}
	issued, _ := m.issued.Get()
	if issued == nil || issued.Type != issuedType {
		return ""
	}
	return string(issued.Data[corev1.ServiceAccountRootCAKey])
}

// observeIssued prefers the issued credential to the user's token, if it belongs to the same hub
// and member.
func (m *membership) observeIssued(o *observation, secret *corev1.Secret) {
	if secret == nil {
		return
	}
	name := m.member.Namespace + "/" + naming.MemberAgentCredentialSecret
	issued, err := exchangedCredential(secret)
	if err == nil && (issued.Cluster != m.Name || issued.MemberNamespace != m.Namespace ||
		!slices.Contains(strings.Fields(string(secret.Data[keyServers])), m.Server)) {
		err = fmt.Errorf("it is for member %s in namespace %s of the hub at %s", issued.Cluster, issued.MemberNamespace, secret.Data[keyServers])
	}
	if err != nil {
		o.unused = fmt.Sprintf(" (secret %s is not used: %v)", name, err)
		return
	}
	version := fmt.Sprintf("%s.%d", issued.Account(), issued.Sequence)
	// A session begun with the user's token uses the credential stored since.
	o.exchanged = o.inUse != nil && (o.inUse.Sequence > 0 || !strings.HasSuffix(o.trial.version, "/"+version))
	if o.credential.version != "" && o.credential.problem == "" {
		given := o.stored
		o.given = &given
	}
	o.stored = o.stored.WithoutLogin()
	o.stored.Token, o.stored.Sequence, o.stored.Reconnect = issued.Token, issued.Sequence, issued.Reconnect
	o.stored.Addresses, o.stored.Former = issued.Addresses, issued.Former
	o.credential, o.source = object{version: o.credential.version + "/" + version}, name
}

// explainIssued explains why the hub refuses a credential it has issued. The user's token may have
// to replace it.
func (m *membership) explainIssued(session *hubclient.Session, r hubclient.Result, err error) (result, string) {
	why := session.Explain(err)
	if expires := credential.ClaimsOf(session.Credential.Token).Expires; r == hubclient.Unauthorized && !expires.IsZero() &&
		session.Now().After(expires) {
		why = "it expired at " + expires.UTC().Format(time.RFC3339)
	}
	return cmp.Or(map[hubclient.Result]result{hubclient.Unauthorized: refused}[r], absent), fmt.Sprintf(
		"the hub at %s refuses the credential that it issued to %s: %s; put %s of the identity of the MemberCluster into secret %s, which "+
			"is used at once",
		session.Server(), session.Credential.Record(), why, m.kubeconfig.kind(), m.credentialRef())
}
