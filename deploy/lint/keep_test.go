package lint

import (
	_ "github.com/CycloneDX/cyclonedx-go"
	_ "golang.org/x/vuln/scan"
)
