package bill

// Default is configs/prices.yaml, for commands without a table. Edit both together; a
// test compares them.
func Default() Prices {
	const (
		seen   = "2026-11-22"
		blobs  = "azure.microsoft.com/pricing/details/storage/blobs, hot, LRS, a US region; second-hand"
		tables = "azure.microsoft.com/pricing/details/storage/tables, LRS, a US region; second-hand"
	)
	price := func(p float64, source string) Price { return Price{Price: &p, Source: source, Date: seen} }
	elsewhere := func(name string, gb, million float64, keeps int, source string) Elsewhere {
		return Elsewhere{Name: name, GB: &gb, Million: million, Keeps: keeps, Source: source, Date: seen}
	}
	return Prices{
		Currency: "USD",
		Here: Here{
			Name:         "Azure Blob Storage",
			Storage:      price(0.018, blobs),
			Writes:       price(0.065, blobs),
			Lists:        price(0.065, blobs),
			TableStorage: price(0.045, tables),
			TableWrites:  price(0.00036, tables),
		},
		Elsewhere: []Elsewhere{
			elsewhere("Azure Monitor, Analytics logs", 2.3, 0, 31,
				"azure.microsoft.com/pricing/details/monitor, pay as you go, as quoted by monitoringcost.com/azure-monitor-cost"),
			elsewhere("Azure Monitor, Basic logs", 0.5, 0, 30,
				"azure.microsoft.com/pricing/details/monitor, as quoted by monitoringcost.com/azure-monitor-cost; queries cost extra"),
			elsewhere("Azure Monitor, Auxiliary logs", 0.05, 0, 30,
				"azure.microsoft.com/pricing/details/monitor, as quoted by monitoringcost.com/azure-monitor-cost; queries cost extra"),
			elsewhere("Amazon CloudWatch Logs, Standard", 0.5, 0, 0,
				"aws.amazon.com/cloudwatch/pricing, us-east-1, as quoted by c3x.dev/blog/cloudwatch-logs-cost-optimization; storage and queries cost extra"),
			elsewhere("Google Cloud Logging", 0.466, 0, 30,
				"cloud.google.com/stackdriver/pricing, 0.50 a GiB, second-hand"),
			elsewhere("Datadog, indexed logs", 0.1, 1.7, 15,
				"datadoghq.com/pricing, 0.10 a GB and 1.70 a million events by the year, as quoted by michaelscodingspot.com/datadog-logs-pricing"),
		},
	}
}
