{{/* The name of everything that belongs to the release. */}}
{{- define "member-agent.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "member-agent.selector" -}}
app.kubernetes.io/name: member-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "member-agent.labels" -}}
{{ include "member-agent.selector" . }}
app.kubernetes.io/component: {{ include "member-agent.onHost" . | empty | ternary "agent" "hosted-agent" }}
app.kubernetes.io/part-of: muster
{{- end }}

{{/* The part of a hosted agent: member, host, or empty for an agent on its own cluster. */}}
{{- define "member-agent.part" }}{{ (.Values.hosted | default dict).part }}{{ end }}

{{/* Not empty for the part on the host. */}}
{{- define "member-agent.onHost" }}{{ eq (include "member-agent.part" .) "host" | ternary "host" "" }}{{ end }}

{{/* The namespace of the Deployment. */}}
{{- define "member-agent.namespace" }}{{ include "member-agent.onHost" . | empty | ternary .Values.namespace .Release.Namespace }}{{ end }}

{{- define "member-agent.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion -}}
{{- end }}

{{/* The Secret of the user's: with a kubeconfig it is in the agent's namespace, because a kubeconfig may run a program. */}}
{{- define "member-agent.secretName" }}{{ (.Values.hubKubeconfig | default dict).secret | default .Values.secret.name }}{{ end }}
{{- define "member-agent.secretNamespace" }}{{ if (.Values.hubKubeconfig | default dict).secret }}{{ .Values.namespace }}{{ else }}{{ .Values.secret.namespace }}{{ end }}{{ end }}

{{- define "member-agent.imagePullSecrets" -}}
{{- range .Values.imagePullSecrets | default list }}
- name: {{ kindIs "string" . | ternary . (get (kindIs "map" . | ternary . dict) "name") | quote }}
{{- end }}
{{- end }}

{{/* A setting of config. A placeholder from documentation is no setting. */}}
{{- define "member-agent.setting" -}}
{{- $text := index . 0 | default "" | toString | trim -}}
{{- if not (regexMatch "^(<.*>|YOUR-.*|\\$\\{?[A-Z_]+\\}?)$" $text) }}{{ $text }}{{ end -}}
{{- end }}

{{- define "member-agent.hubURL" }}{{ include "member-agent.setting" (list .Values.config.hubURL) }}{{ end }}
{{- define "member-agent.memberClusterName" }}{{ include "member-agent.setting" (list .Values.config.memberClusterName) }}{{ end }}
{{- define "member-agent.memberNamespace" }}{{ include "member-agent.setting" (list .Values.config.memberNamespace) }}{{ end }}
{{- define "member-agent.givenCA" }}{{ include "member-agent.setting" (list .Values.config.hubCA) }}{{ end }}

{{- define "member-agent.chartCA" }}{{ .Files.Get "hub-ca.crt" | trim }}{{ end }}

{{- define "member-agent.ca" }}{{ include "member-agent.base64" (include "member-agent.givenCA" .) }}{{ end }}
{{- define "member-agent.fallbackCA" }}{{ include "member-agent.base64" (include "member-agent.chartCA" .) }}{{ end }}

{{/* A CA as base64 of PEM, whether it was given as PEM or as base64 of PEM; empty if it is neither. */}}
{{- define "member-agent.base64" -}}
{{- $given := . -}}
{{- $decoded := regexReplaceAll "\\s" $given "" | b64dec -}}
{{- if contains "-----BEGIN CERTIFICATE-----" $given }}{{ printf "%s\n" $given | b64enc }}
{{- else if contains "-----BEGIN CERTIFICATE-----" $decoded }}{{ $decoded | b64enc }}
{{- end }}
{{- end }}

{{/* The kubeconfig of the member for the part on the host: a volume, so that the agent needs no right to read Secrets. */}}
{{- define "member-agent.hostVolumes" -}}
{{- if include "member-agent.onHost" . -}}
- name: member-kubeconfig
  secret:
    secretName: {{ .Values.hosted.memberKubeconfigSecret }}
{{- end -}}
{{- end }}
{{- define "member-agent.hostMounts" -}}
{{- if include "member-agent.onHost" . -}}
- name: member-kubeconfig
  mountPath: /var/run/muster/member
  readOnly: true
{{- end -}}
{{- end }}
