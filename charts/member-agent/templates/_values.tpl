{{/* The values of the chart, as values.schema.json has them. */}}
{{- define "member-agent.values" -}}
config config.hubURL config.memberClusterName config.memberNamespace config.hubCA config.provider secret secret.name secret.namespace
namespace delivery upgradedByHub tlsClientInsecure useCAAuth image image.repository image.tag image.pullPolicy imagePullSecrets logVerbosity resources
nodeSelector tolerations affinity priorityClassName proxy noProxy hubKubeconfig hubKubeconfig.secret
hubKubeconfig.context facts facts.configMap extraEnv extraVolumes extraVolumeMounts initContainers podLabels podAnnotations serviceAccount
serviceAccount.annotations global hosted hosted.part hosted.memberKubeconfigSecret hosted.memberKubeconfigKey
{{- end }}

{{/* Values of upstream's chart that mean nothing to this one. They are accepted, so that a file of values can be taken along, and the notes name them. */}}
{{- define "member-agent.upstreamValues" -}}
azure enableNamespaceCollectionInPropertyProvider enablePprof enableV1Alpha1APIs enableV1Beta1APIs hubPprofPort pprofPort priorityQueue
propertyProvider refreshtoken region replicaCount workApplierRequeueRateLimiter config.CABundle config.azureCloudConfig config.identityCert
config.identityKey
{{- end }}

{{/* The keys in the values that the chart does not know, and the keys that only the upstream chart has: (list .Values KNOWN UPSTREAM). KNOWN and
UPSTREAM are lists of keys. A map below a key is checked if the lists have keys below it. */}}
{{- define "member-agent.strange" -}}
{{- $known := concat (index . 1) (index . 2) -}}
{{- $paths := list -}}
{{- range $key, $value := first . -}}
{{- $below := false -}}
{{- range $known }}{{ if hasPrefix (printf "%s." $key) . }}{{ $below = true }}{{ end }}{{ end -}}
{{- if not (kindIs "invalid" $value) }}{{ $paths = append $paths $key }}{{ end -}}
{{- if and $below (kindIs "map" $value) }}{{ range $child, $it := $value }}{{ if not (kindIs "invalid" $it) }}{{ $paths = append $paths (printf "%s.%s" $key $child) }}{{ end }}{{ end }}{{ end -}}
{{- end -}}
{{- $unknown := list }}{{ $ignored := list -}}
{{- range $path := sortAlpha $paths -}}
{{- if has $path (index $ 2) }}{{ $ignored = append $ignored $path }}{{ else if not (has $path (index $ 1)) }}{{ $unknown = append $unknown $path }}{{ end -}}
{{- end -}}
{{- dict "unknown" $unknown "ignored" $ignored | toJson -}}
{{- end }}

{{/* The key of a list with the most pairs of letters in common with another key: (list KEY KEYS). It is empty if no key is similar. */}}
{{- define "member-agent.nearest" -}}
{{- $key := first . | lower -}}
{{- $best := 600 }}{{ $nearest := "" -}}
{{- range $candidate := last . -}}
{{- $shared := 0 -}}
{{- range $i := until (max 0 (sub (len $key) 1) | int) }}{{ if contains (substr $i (add $i 2 | int) $key) (lower $candidate) }}{{ $shared = add $shared 1 }}{{ end }}{{ end -}}
{{- $likeness := div (mul 2000 $shared) (add (len $key) (len $candidate)) -}}
{{- if gt (int $likeness) (int $best) }}{{ $best = $likeness }}{{ $nearest = $candidate }}{{ end -}}
{{- end -}}
{{- $nearest -}}
{{- end }}
