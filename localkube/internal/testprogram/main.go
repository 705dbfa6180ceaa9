// Command testprogram runs in the Pods of the integration test. It prints its arguments, serves
// /healthz on its Pod's address and ends at SIGTERM.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	mode := "serve"
	if len(args) > 0 {
		mode = args[0]
	}
	switch mode {
	case "serve":
		return serve(args[1:])
	case "whoami":
		return whoAmI()
	case "exit":
		fmt.Println("ending as told")
		return errors.New("failed as told")
	case "sleep":
		time.Sleep(time.Hour)
		return nil
	}
	return fmt.Errorf("unknown mode %q", mode)
}

// serve starts a child in a session of its own. Such a child outlives its parent unless localkube
// finds it.
func serve(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	child := exec.Command(os.Args[0], "sleep")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting a child: %w", err)
	}
	fmt.Printf("serving %s as %s, child %d\n", args, os.Getenv("POD_NAME"), child.Process.Pid)
	server := &http.Server{Addr: net.JoinHostPort(os.Getenv("POD_IP"), "8080"), ReadHeaderTimeout: time.Second}
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		fmt.Println("stopping")
		return errors.Join(child.Process.Kill(), server.Close())
	}
}

// whoAmI queries the API server, with the account's kubeconfig.
func whoAmI() error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("loading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking who I am: %w", err)
	}
	fmt.Println("I am", review.Status.UserInfo.Username)
	return nil
}
