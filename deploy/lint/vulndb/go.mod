// The Go vulnerability database, as the module that its authors publish: data/osv of it
// is what `make vuln` reads where vuln.go.dev cannot be reached. Nothing imports it, so
// leave `go mod tidy` out here. A newer one: go get golang.org/x/vulndb@latest
module blobtail/deploy/lint/vulndb

go 1.26.1

require golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018
