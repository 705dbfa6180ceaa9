{{/* The labels that Kubernetes recommends. Nothing is selected by them, and none of them changes with the version, which would restart Pods for nothing. */}}
{{- define "fleet-agent.recommendedLabels" -}}
app.kubernetes.io/name: fleet-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ include "fleet-agent.onHost" . | empty | ternary "agent" "hosted-agent" }}
app.kubernetes.io/part-of: muster
{{- end }}

{{/* The part of a hosted agent: member, host, or empty for an agent on its own cluster. Values that Helm reused of another chart do not have it. */}}
{{- define "fleet-agent.part" }}{{ (.Values.hosted | default dict).part }}{{ end }}

{{/* Not empty for the part on the host. */}}
{{- define "fleet-agent.onHost" }}{{ eq (include "fleet-agent.part" .) "host" | ternary "host" "" }}{{ end }}

{{/* The name of the Deployment and its account. On a host there may be many. */}}
{{- define "fleet-agent.name" }}{{ include "fleet-agent.onHost" . | empty | ternary "fleet-agent" .Release.Name }}{{ end }}

{{/* The labels that select the Pods. */}}
{{- define "fleet-agent.selector" -}}
app: fleet-agent
{{- if include "fleet-agent.onHost" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end }}

{{/* The image, with the registry in front if there is one. Values that Helm reused of the chart of Rancher Fleet name the image of its agent. */}}
{{- define "fleet-agent.image" -}}
{{- $registry := dig "cattle" "systemDefaultRegistry" "" (.Values.global | default dict) -}}
{{- if $registry }}{{ trimSuffix "/" $registry }}/{{ end -}}
{{- if include "fleet-agent.upstreamImage" . }}muster-agent:{{ .Chart.AppVersion -}}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* Not empty if the values name the image of Rancher Fleet's agent, which cannot run here. */}}
{{- define "fleet-agent.upstreamImage" -}}
{{- if regexMatch "(^|/)rancher/fleet-agent$" (toString .Values.image.repository) }}{{ .Values.image.repository }}{{ end -}}
{{- end }}

{{/* Not empty if the agent deploys. Values that Helm reused of another chart do not have this one. */}}
{{- define "fleet-agent.delivery" -}}
{{- if and (hasKey .Values.fleetAgent "delivery") (not .Values.fleetAgent.delivery) }}{{ else }}delivery{{ end -}}
{{- end }}

{{/* The resources of the container. Values that Helm reused of another chart do not have them. */}}
{{- define "fleet-agent.resources" -}}
{{- if hasKey .Values.fleetAgent "resources" -}}
{{- with .Values.fleetAgent.resources }}{{ toYaml . }}{{ end -}}
{{- else -}}
requests:
  cpu: 10m
  memory: 48Mi
limits:
  memory: 512Mi
{{- end -}}
{{- end }}

{{/* The names of the pull secrets, given as names or as objects. */}}
{{- define "fleet-agent.imagePullSecrets" -}}
{{- $global := .Values.global | default dict -}}
{{- range concat (dig "imagePullSecrets" list $global | default list) (dig "cattle" "imagePullSecrets" list $global | default list) }}
- name: {{ kindIs "string" . | ternary . (get (kindIs "map" . | ternary . dict) "name") | quote }}
{{- end }}
{{- end }}

{{/* The CA as PEM, whether it was given as PEM or as base64 of PEM; empty if it is neither. */}}
{{- define "fleet-agent.ca" -}}
{{- $given := .Values.apiServerCA | default "" | toString | trim -}}
{{- $decoded := regexReplaceAll "\\s" $given "" | b64dec -}}
{{- if contains "-----BEGIN CERTIFICATE-----" $given }}{{ $given }}
{{- else if contains "-----BEGIN CERTIFICATE-----" $decoded }}{{ $decoded | trim }}
{{- end }}
{{- end }}

{{/* The content of the token as JSON; {} if it is not a JWT. */}}
{{- define "fleet-agent.claims" -}}
{{- $parts := splitList "." (.Values.token | default "" | toString | trim) -}}
{{- $claims := dict -}}
{{- if eq (len $parts) 3 -}}
{{- $payload := index $parts 1 | replace "-" "+" | replace "_" "/" -}}
{{- $padding := index (list "" "===" "==" "=") (mod (len $payload) 4) -}}
{{- $claims = printf "%s%s" $payload $padding | b64dec | fromJson -}}
{{- end -}}
{{- hasKey $claims "Error" | ternary dict $claims | toJson -}}
{{- end }}

{{/* The labels as JSON: every value a text, as Kubernetes wants it. */}}
{{- define "fleet-agent.labels" -}}
{{- $labels := dict -}}
{{- range $key, $value := .Values.labels | default dict -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $labels $key (kindIs "string" $value | ternary $value (toJson $value)) -}}
{{- end -}}
{{- end -}}
{{- toJson $labels -}}
{{- end }}

{{/* The agent's configuration as JSON. */}}
{{- define "fleet-agent.config" -}}
{{- $clientID := .Values.clientID | default "" -}}
{{- dict
  "labels" (include "fleet-agent.labels" . | fromJson)
  "clientID" (kindIs "string" $clientID | ternary $clientID (toJson $clientID))
  "agentTLSMode" .Values.agentTLSMode
  "garbageCollectionInterval" .Values.garbageCollectionInterval
  | toJson -}}
{{- end }}

{{/* Not empty if the agent has joined with just this token, so that it needs none. */}}
{{- define "fleet-agent.joined" -}}
{{- with .Values.internal.joinedWith }}{{ eq . ($.Values.token | default "" | toString | trim | sha256sum) | ternary "joined" "" }}{{ end -}}
{{- end }}

{{/* What of the configuration restarts the agent: not the labels, which count when a Cluster is created. */}}
{{- define "fleet-agent.checksum" -}}
{{- $config := omit (include "fleet-agent.config" . | fromJson) "labels" | toJson -}}
{{- printf "%s\n%s" $config (.Values.internal.generation | default (include "fleet-agent.bootstrap" .)) | sha256sum -}}
{{- end }}

{{/* The data of the bootstrap Secret as YAML. */}}
{{- define "fleet-agent.bootstrap" -}}
apiServerURL: {{ .Values.apiServerURL | trim | b64enc | quote }}
apiServerCA: {{ with include "fleet-agent.ca" . }}{{ printf "%s\n" . | b64enc | quote }}{{ else }}""{{ end }}
token: {{ .Values.token | default "" | toString | trim | b64enc | quote }}
tokenName: {{ .Values.tokenName | default "" | toString | b64enc | quote }}
clusterNamespace: {{ .Values.clusterNamespace | default "" | toString | b64enc | quote }}
systemRegistrationNamespace: {{ .Values.systemRegistrationNamespace | default "" | toString | b64enc | quote }}
{{- end }}

{{/* The kubeconfig of the member for the part on the host: a volume, so that the agent needs no right to read Secrets. */}}
{{- define "fleet-agent.hostVolumes" -}}
{{- if include "fleet-agent.onHost" . -}}
- name: member-kubeconfig
  secret:
    secretName: {{ .Values.hosted.memberKubeconfigSecret }}
{{- end -}}
{{- end }}
{{- define "fleet-agent.hostMounts" -}}
{{- if include "fleet-agent.onHost" . -}}
- name: member-kubeconfig
  mountPath: /var/run/muster/member
  readOnly: true
{{- end -}}
{{- end }}
