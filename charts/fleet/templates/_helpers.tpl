{{/* The labels that Kubernetes recommends. Nothing is selected by them, and none of them changes with the version, which would restart Pods for nothing. */}}
{{- define "fleet.recommendedLabels" -}}
app.kubernetes.io/name: fleet
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: hub
app.kubernetes.io/part-of: muster
{{- end }}

{{/* An image, with the registry in front if there is one: (list . .Values.image). */}}
{{- define "fleet.image" -}}
{{- $root := first . -}}
{{- $image := last . -}}
{{- $registry := dig "cattle" "systemDefaultRegistry" "" ($root.Values.global | default dict) -}}
{{- if $registry }}{{ trimSuffix "/" $registry }}/{{ end -}}
{{- $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion -}}
{{- end }}

{{/* The pull secrets as a JSON list of {name: ...}, given as names or as objects. */}}
{{- define "fleet.imagePullSecrets" -}}
{{- $global := .Values.global | default dict -}}
{{- $secrets := list -}}
{{- range concat (dig "imagePullSecrets" list $global | default list) (dig "cattle" "imagePullSecrets" list $global | default list) -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end }}

{{/* The CA as PEM, whether it was given as PEM or as base64 of PEM; empty if it is neither. */}}
{{- define "fleet.ca" -}}
{{- $given := .Values.apiServerCA | default "" | toString | trim -}}
{{- $decoded := regexReplaceAll "\\s" $given "" | b64dec -}}
{{- if contains "-----BEGIN CERTIFICATE-----" $given }}{{ $given }}
{{- else if contains "-----BEGIN CERTIFICATE-----" $decoded }}{{ $decoded | trim }}
{{- end }}
{{- end }}

{{/* The namespace with the answers to agents of Rancher Fleet, as the hub derives it from its own. */}}
{{- define "fleet.registrationNamespace" -}}
{{- $parts := splitn "-system" 2 .Release.Namespace -}}
{{ $parts._0 }}-clusters-system{{ $parts._1 }}
{{- end }}

{{/* The namespaces of the value access, as a list in CEL. */}}
{{- define "fleet.toolNamespaces" -}}
{{- $namespaces := list -}}
{{- range $key := list "argocdNamespace" "fluxNamespace" "inventoryNamespace" -}}
{{- with index ($.Values.access | default dict) $key }}{{ $namespaces = append $namespaces (printf "'%s'" .) }}{{ end -}}
{{- end -}}
[{{ join ", " (uniq $namespaces) }}]
{{- end }}

{{/* Whether the cluster has ValidatingAdmissionPolicies. Rendering without a cluster, as "helm template" does, knows only its version. */}}
{{- define "fleet.admissionPolicies" -}}
{{- if or (.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}yes{{ end -}}
{{- end }}

{{/* The version of MutatingAdmissionPolicies that the cluster serves; empty if none. */}}
{{- define "fleet.mutatingPolicies" -}}
{{- $api := .Capabilities.APIVersions -}}
{{- if $api.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}v1
{{- else if $api.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" }}v1beta1
{{- end }}
{{- end }}
