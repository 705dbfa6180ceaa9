package hostnode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// tokenSeconds is the token life that a kubelet requests.
const tokenSeconds = 3607

func (r *runner) kubeconfigPath() string { return filepath.Join(r.dir, "account", "kubeconfig") }
func (r *runner) tokenPath() string      { return filepath.Join(r.dir, "account", "token") }

// prepareAccount writes the pod's kubeconfig and keeps its token fresh until the pod stops. It
// reports false if the pod stops before there is a token.
func (r *runner) prepareAccount(pod *corev1.Pod) bool {
	mounts := func(c corev1.Container) bool { return mountsAccount(&c) }
	if !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), mounts) {
		return true
	}
	told := ""
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		expires, err := r.writeAccount(r.stopping, pod)
		if err == nil {
			go r.refreshToken(pod, expires)
			return true
		}
		if r.stopping.Err() != nil {
			return false
		}
		if told != err.Error() {
			r.event(corev1.EventTypeWarning, "FailedMount", err.Error())
			told = err.Error()
		}
		r.holdAll("ContainerCreating", err.Error())
		if !pause(r.stopping, wait) {
			return false
		}
	}
}

func (r *runner) writeAccount(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	if err := os.MkdirAll(filepath.Dir(r.tokenPath()), 0o700); err != nil {
		return time.Time{}, fmt.Errorf("creating the account directory: %w", err)
	}
	expires, err := r.writeToken(ctx, pod)
	if err != nil {
		return time.Time{}, err
	}
	rest := r.node.config.REST
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: rest.Host, CertificateAuthorityData: rest.CAData}
	config.AuthInfos["account"] = &clientcmdapi.AuthInfo{TokenFile: r.tokenPath()}
	config.Contexts["pod"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "account", Namespace: pod.Namespace}
	config.CurrentContext = "pod"
	if err := clientcmd.WriteToFile(*config, r.kubeconfigPath()); err != nil {
		return time.Time{}, fmt.Errorf("writing the pod's kubeconfig: %w", err)
	}
	return expires, nil
}

func (r *runner) writeToken(ctx context.Context, pod *corev1.Pod) (time.Time, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	account := pod.Spec.ServiceAccountName
	answer, err := r.node.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("requesting a token of service account %s: %w", account, err)
	}
	// The file is replaced as a whole: a client may read it at any time.
	temporary := r.tokenPath() + ".new"
	if err := os.WriteFile(temporary, []byte(answer.Status.Token), 0o600); err != nil {
		return time.Time{}, fmt.Errorf("writing the token: %w", err)
	}
	if err := os.Rename(temporary, r.tokenPath()); err != nil {
		return time.Time{}, fmt.Errorf("writing the token: %w", err)
	}
	return answer.Status.ExpirationTimestamp.Time, nil
}

// refreshToken requests the next token at 80 % of the life of the last, and every ten seconds after
// a failure.
func (r *runner) refreshToken(pod *corev1.Pod, expires time.Time) {
	wait := time.Until(expires) * 8 / 10
	for pause(r.stopping, wait) {
		next, err := r.writeToken(r.stopping, pod)
		if err != nil {
			klog.FromContext(r.stopping).Error(err, "Refreshing the token; trying again", "pod", r.key)
			wait = 2 * retryMax
			continue
		}
		wait = time.Until(next) * 8 / 10
	}
}

// clusterObjects reads from the API server each time, because values may change between two starts
// of a container.
type clusterObjects struct{ client kubernetes.Interface }

func (o clusterObjects) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (o clusterObjects) configMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}
