package bundle

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// named is what a field is that has no effect and is named by the condition Supported.
const named = ""

// effect says of every field of a Bundle which test shows what it does; of an agent that does not
// know the field that it names it.
var effect = map[string]string{
	"paused":                         "TestAPausedClusterIsLeftAloneAndThenGetsOnlyTheLast",
	"rolloutStrategy.maxUnavailable": "TestRollout",
	"rolloutStrategy.maxUnavailablePartitions": "TestRollout",
	"rolloutStrategy.autoPartitionSize":        "TestRollout",
	"rolloutStrategy.autoPartitionThreshold":   "TestRollout",
	"rolloutStrategy.maxNew":                   "TestRolloutCounts",
	"rolloutStrategy.partitions":               "TestWavesWaitForEachOther",
	"resources":                                "TestManyAndLargeResourcesArrive",
	"targets":                                  "TestMatch",
	"targetCustomizationMode":                  "TestMatch",
	"targetRestrictions":                       "TestMatch",
	"dependsOn":                                "TestDeploymentThatWaitsHoldsNoOtherUp",
	"contentsId":                               named,
	"helmOpOptions":                            named,
	"valuesHash":                               "TestValuesThatTheCLITookOutOfABundleAreDeployed",

	"defaultNamespace":             "TestPlainYAMLIsDeployedReportedUpgradedAndRemoved",
	"namespace":                    "TestReleaseMovesToAnotherNamespace",
	"kustomize.dir":                "TestFilesBecomeTheChartThatTheyMean",
	"yaml.overlays":                "TestFilesBecomeTheChartThatTheyMean",
	"helm.chart":                   "TestUnusableFilesAreNamed",
	"helm.repo":                    "TestAChartComesFromARepository",
	"helm.version":                 "TestAChartComesFromARepository",
	"helm.releaseName":             "TestChartGetsItsValuesFromEverywhere",
	"helm.timeoutSeconds":          "TestAnAtomicUpgradeThatFailsIsRolledBackAndSaysSo",
	"helm.values":                  "TestChartGetsItsValuesFromEverywhere",
	"helm.templateValues":          "TestTemplatesInValues",
	"helm.valuesFrom":              "TestChartGetsItsValuesFromEverywhere",
	"helm.valuesFiles":             "TestFilesBecomeTheChartThatTheyMean",
	"helm.force":                   "TestForceReplacesWhatOthersAdded",
	"helm.takeOwnership":           "TestObjectOfTwoBundlesIsNamedWithBoth",
	"helm.maxHistory":              "TestAsManyRevisionsAreKeptAsAreAskedFor",
	"helm.waitForJobs":             "TestADeploymentWaitsForItsJobsIfAskedTo",
	"helm.atomic":                  "TestAnAtomicUpgradeThatFailsIsRolledBackAndSaysSo",
	"helm.disablePreProcess":       "TestTemplatesInValues",
	"helm.disableDNS":              "TestAChartLooksUpNoNamesIfItMayNot",
	"helm.skipSchemaValidation":    "TestChartGetsItsValuesFromEverywhere",
	"helm.disableDependencyUpdate": "TestFilesBecomeTheChartThatTheyMean",
	"helm.secretName":              "TestAChartWithALoginComesFromItsRepository",
	"helm.crds":                    "TestAnUpgradeBringsNewFieldsOfTheDefinitionsOfItsChart",
	"serviceAccount":               "TestBundleOfAnAccountDoesNothingThatTheAccountMayNot",
	"createNamespace":              "TestBadInputIsNamed",
	"forceSyncGeneration":          "TestAnotherSyncGenerationDeploysAgain",
	"diff.comparePatches":          "TestDifferencesThatAreLeftOutAreNoDrift",
	"keepResources":                "TestKeptResourcesStay",
	"deleteNamespace":              "TestTheNamespaceGoesWithTheBundleIfAskedFor",
	"ignore.conditions":            "TestConditionsThatAreLeftOutDoNotCountAgainstReadiness",
	"correctDrift.enabled":         "TestChangeByHandIsShownAndCorrectedOnlyIfAsked",
	"correctDrift.force":           "TestACorrectionReplacesWhatCannotBeChangedOnlyWithForce",
	"correctDrift.keepFailHistory": "TestACorrectionThatFailsIsKeptInTheHistoryIfThatIsAskedFor",
	"namespaceLabels":              "TestANamespaceIsMadeAsAskedFor",
	"namespaceAnnotations":         "TestANamespaceIsMadeAsAskedFor",
	"deleteCRDResources":           "TestKindsStayUnlessTheyAreToGoWithTheirBundle",
	"downstreamResources":          "TestDownstreamResourcesComeWithTheirRelease",
	"overwrites":                   named,

	"allowedTargetNamespaceSelector": "TestBadInputIsNamed",
	"namespaceCreationForbiddenBy":   "TestAPolicyForbidsADeploymentToCreateNamespaces",
}

// leaves sets the fields below a value one by one and reports the path of each.
func leaves(prefix string, of reflect.Value, report func(path string)) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		path, value := prefix+name, of.Field(i)
		if name == "" {
			leaves(prefix, value, report)
			continue
		}
		pointed := value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct
		if pointed && !slices.Contains([]reflect.Type{
			reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.LabelSelector](), reflect.TypeFor[intstr.IntOrString](),
		}, value.Type().Elem()) {
			value.Set(reflect.New(value.Type().Elem()))
			leaves(path+".", value.Elem(), report)
		} else {
			fill(value)
			report(path)
		}
		value.SetZero()
	}
}

// fill gives a value something that is not empty.
func fill(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
	case reflect.String:
		value.SetString("x")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(1)
	default:
		panic(fmt.Sprintf("a field of kind %s", value.Kind()))
	}
}

func TestNoFieldOfABundleIsWithoutEffectInSilence(t *testing.T) {
	tests := testsBelow(t, "../../..")
	check := func(bundle *fleet.Bundle, shown, path string) {
		test, known := effect[path]
		condition := supported(bundle)
		says := condition.Status == corev1.ConditionFalse && strings.Contains(condition.Message, "spec."+shown)
		switch {
		case !known:
			t.Errorf("spec.%s has no effect that a test shows, and is not named", shown)
		case (test == named) != says:
			t.Errorf("spec.%s: it is said %q", shown, condition.Message)
		case test != named && !tests[test]:
			t.Errorf("spec.%s: there is no %s", shown, test)
		}
	}
	seen := map[string]bool{}
	bundle := &fleet.Bundle{}
	leaves("", reflect.ValueOf(&bundle.Spec).Elem(), func(path string) {
		seen[path] = true
		check(bundle, path, path)
	})
	target := &fleet.BundleTarget{}
	leaves("", reflect.ValueOf(&target.BundleDeploymentOptions).Elem(), func(path string) {
		check(&fleet.Bundle{Spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{*target, *target}}}, "targets[]."+path, path)
	})
	for path := range effect {
		if !seen[path] {
			t.Errorf("there is no field %s", path)
		}
	}
}

var function = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsBelow are the names of the tests below a directory.
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range function.FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
