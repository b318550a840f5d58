// Command shop logs a little of a shop's day with the logger that its argument names, so
// that the table of loggers has the real output of loggers of Go.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

func main() {
	rows := rows()
	if len(os.Args) != 2 {
		names := make([]string, 0, len(rows))
		for name := range rows {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Println(name)
		}
		return
	}
	write, ok := rows[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "shop: no row %s\n", os.Args[1])
		os.Exit(64)
	}
	write()
}

// rows returns the function that logs, by the name of the row.
func rows() map[string]func() {
	return map[string]func(){
		"go-apex-json":                  apexJSON,
		"go-apex-logfmt":                apexLogfmt,
		"go-apex-text":                  apexText,
		"go-charm-json":                 charmJSON,
		"go-charm-text":                 charmText,
		"go-chi-access":                 chiAccess,
		"go-containerd":                 containerdText,
		"go-controller-runtime":         controllerJSON,
		"go-controller-runtime-console": controllerConsole,
		"go-echo-json":                  echoJSON,
		"go-echo-access":                echoAccess,
		"go-etcd":                       etcd,
		"go-fiber-access":               fiberAccess,
		"go-gin-recovery":               ginRecovery,
		"go-gorm":                       gormText,
		"go-otel-stdout":                otelStdout,
		"go-stdr":                       stdrText,
		"go-gin-access":                 ginAccess,
		"go-glog":                       glogText,
		"go-gorilla-combined":           gorillaCombined,
		"go-grpc":                       grpcText,
		"go-hclog-json":                 hclogJSON,
		"go-hclog-text":                 hclogText,
		"go-kit-json":                   kitJSON,
		"go-kit-logfmt":                 kitLogfmt,
		"go-klog":                       klogText,
		"go-kubernetes-json":            kubernetesJSON,
		"go-log":                        logText,
		"go-log-flags":                  logFlags,
		"go-logrus-json":                logrusJSON,
		"go-logrus-terminal":            logrusTerminal,
		"go-logrus-text":                logrusText,
		"go-nats-server":                natsServer,
		"go-phuslu-console":             phusluConsole,
		"go-phuslu-json":                phusluJSON,
		"go-prometheus":                 prometheus,
		"go-slog-default":               slogDefault,
		"go-slog-json":                  slogJSON,
		"go-slog-text":                  slogText,
		"go-zap-development":            zapDevelopment,
		"go-zap-development-warn":       zapDevelopmentWarn,
		"go-zap-production":             zapProduction,
		"go-zap-production-console":     zapProductionConsole,
		"go-zero-json":                  zeroJSON,
		"go-zero-plain":                 zeroPlain,
		"go-zerolog-console":            zerologConsole,
		"go-zerolog-console-rfc3339":    zerologConsoleRFC3339,
		"go-zerolog-json":               zerologJSON,
		"go-zerolog-unixms":             zerologUnixMs,
	}
}

// errDeclined is the answer of a bank.
var errDeclined = errors.New("card declined")

// charge fails as a payment does.
func charge(order int) error {
	return fmt.Errorf("charge order %d: %w", order, errDeclined)
}

// must ends the program if a logger cannot be made.
func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(65)
	}
	return v
}
