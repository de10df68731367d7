{{- define "prfaas.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "prfaas.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "prfaas.labels" -}}
{{ include "prfaas.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "prfaas.serviceAccount" -}}
{{ default (include "prfaas.name" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "prfaas.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}

{{- /* Namespaces that the operator acts on, as JSON: a list, or ["*"]. */}}
{{- define "prfaas.namespaces" -}}
{{ .Values.namespaces | default (list .Release.Namespace) | toJson }}
{{- end }}

{{- define "prfaas.binding" }}
subjects:
- kind: ServiceAccount
  name: {{ include "prfaas.serviceAccount" .root }}
  namespace: {{ .root.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
{{- end }}
