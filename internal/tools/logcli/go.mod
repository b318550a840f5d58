// The replacements and the exclusion are those of Loki's own go.mod: Go reads them from the
// main module only. github.com/grafana/loki/pkg/push comes as a module.
module logcli

go 1.26.5

require github.com/grafana/loki/v3 v3.7.8

replace (
	github.com/Azure/azure-sdk-for-go => github.com/Azure/azure-sdk-for-go v68.0.0+incompatible
	github.com/Azure/azure-storage-blob-go => github.com/MasslessParticle/azure-storage-blob-go v0.14.1-0.20240322194317-344980fda573
	github.com/gocql/gocql => github.com/grafana/gocql v0.0.0-20200605141915-ba5dc39ece85
	github.com/grafana/regexp => github.com/grafana/regexp v0.0.0-20240518133315-a468a5bfb3bc
	github.com/hashicorp/memberlist => github.com/grafana/memberlist v0.3.1-0.20251126142931-6f9f62ab6f86
	github.com/influxdata/go-syslog/v3 => github.com/leodido/go-syslog/v4 v4.3.0
	github.com/thanos-io/objstore => github.com/grafana/objstore v0.0.0-20250728171719-b5d3b766d1b0
)

exclude k8s.io/client-go v8.0.0+incompatible
