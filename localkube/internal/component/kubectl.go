package component

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // registers the login plugins
)

// Kubectl acts as kubectl with the given arguments and returns its exit code.
func Kubectl(args []string) int {
	// kubectl reads os.Args itself to find its plugins.
	os.Args = append([]string{"kubectl"}, args...)
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		kubectlutil.CheckErr(err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints it and exits
	}
	return 0
}
