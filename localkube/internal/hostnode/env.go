package hostnode

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// lookup reads the objects behind a container's environment.
type lookup interface {
	secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	configMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
}

// facts are the values for fieldRef and resourceFieldRef besides the Pod.
type facts struct {
	podIP, hostIP string
	allocatable   corev1.ResourceList
}

// environment resolves envFrom and env in Kubernetes' order: later entries override, and $(NAME)
// sees earlier ones.
func environment(ctx context.Context, pod *corev1.Pod, container *corev1.Container, f facts, objects lookup) (map[string]string, error) {
	result := map[string]string{}
	for _, source := range container.EnvFrom {
		values, err := envFrom(ctx, pod.Namespace, source, objects)
		if err != nil {
			return nil, err
		}
		for name, value := range values {
			if name != "" && !strings.ContainsAny(name, "=\x00") {
				result[source.Prefix+name] = value
			}
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			result[variable.Name] = expand(variable.Value, result)
			continue
		}
		value, found, err := envValue(ctx, pod, container, variable.ValueFrom, f, objects)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		if found {
			result[variable.Name] = value
		}
	}
	return result, nil
}

func envFrom(ctx context.Context, namespace string, source corev1.EnvFromSource, objects lookup) (map[string]string, error) {
	switch {
	case source.ConfigMapRef != nil:
		object, err := objects.configMap(ctx, namespace, source.ConfigMapRef.Name)
		if optional(source.ConfigMapRef.Optional) && apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading configmap %s: %w", source.ConfigMapRef.Name, err)
		}
		return object.Data, nil
	case source.SecretRef != nil:
		object, err := objects.secret(ctx, namespace, source.SecretRef.Name)
		if optional(source.SecretRef.Optional) && apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading secret %s: %w", source.SecretRef.Name, err)
		}
		return texts(object.Data), nil
	}
	return nil, nil
}

// envValue returns a referenced value; found is false for a missing optional one.
func envValue(ctx context.Context, pod *corev1.Pod, container *corev1.Container, from *corev1.EnvVarSource, f facts,
	objects lookup) (value string, found bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = fieldValue(pod, from.FieldRef.FieldPath, f)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err = resourceValue(container, from.ResourceFieldRef, f.allocatable)
		return value, err == nil, err
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		object, err := objects.secret(ctx, pod.Namespace, ref.Name)
		var data map[string]string
		if err == nil {
			data = texts(object.Data)
		}
		return keyed("secret", ref.Name, ref.Key, optional(ref.Optional), data, err)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		object, err := objects.configMap(ctx, pod.Namespace, ref.Name)
		var data map[string]string
		if err == nil {
			data = object.Data
		}
		return keyed("configmap", ref.Name, ref.Key, optional(ref.Optional), data, err)
	}
	return "", false, fmt.Errorf("its source is not supported by localkube; use value, fieldRef, resourceFieldRef, secretKeyRef or " +
		"configMapKeyRef")
}

func keyed(kind, name, key string, optional bool, data map[string]string, err error) (string, bool, error) {
	if apierrors.IsNotFound(err) && optional {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	value, found := data[key]
	if !found && !optional {
		return "", false, fmt.Errorf("%s %s has no key %s", kind, name, key)
	}
	return value, found, nil
}

func fieldValue(pod *corev1.Pod, path string, f facts) (string, error) {
	if name, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[name], nil
	}
	if name, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[name], nil
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return f.podIP, nil
	case "status.hostIP", "status.hostIPs":
		return f.hostIP, nil
	}
	return "", fmt.Errorf("field %s is not supported by localkube", path)
}

// subscript reads the key of a path such as metadata.labels['key'].
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// resourceValue returns a limit or request, rounded up to whole divisors. An unset limit is the
// node's amount.
func resourceValue(container *corev1.Container, selector *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	kind, name, _ := strings.Cut(selector.Resource, ".")
	var quantity resource.Quantity
	var set bool
	switch kind {
	case "limits":
		if quantity, set = container.Resources.Limits[corev1.ResourceName(name)]; !set {
			quantity = allocatable[corev1.ResourceName(name)]
		}
	case "requests":
		quantity = container.Resources.Requests[corev1.ResourceName(name)]
	default:
		return "", fmt.Errorf("resource %s is not supported by localkube", selector.Resource)
	}
	divisor := selector.Divisor.AsApproximateFloat64()
	if divisor == 0 {
		divisor = 1
	}
	return fmt.Sprintf("%d", int64(math.Ceil(quantity.AsApproximateFloat64()/divisor))), nil
}

// expand replaces $(NAME) with its value. An unknown name stays unchanged, and $$ is a dollar sign.
func expand(text string, values map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		value, defined := values[name]
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && closed && defined:
			b.WriteString(value)
			text = after
		case strings.HasPrefix(rest, "(") && closed:
			b.WriteString("$(" + name + ")")
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

func expandAll(texts []string, values map[string]string) []string {
	var expanded []string
	for _, text := range texts {
		expanded = append(expanded, expand(text, values))
	}
	return expanded
}

// pairs returns the NAME=value strings of an environment, in a stable order.
func pairs(values map[string]string) []string {
	var result []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		result = append(result, name+"="+values[name])
	}
	return result
}

func texts(data map[string][]byte) map[string]string {
	result := map[string]string{}
	for key, value := range data {
		result[key] = string(value)
	}
	return result
}

func optional(flag *bool) bool { return flag != nil && *flag }
