package config

// Advisories are the news of a destination that are told only on request; false by
// default, as in ActiveMQ.
type Advisories struct {
	ForDiscardingMessages, ForConsumed, ForDelivery, ForDispatched bool
	ForSlowConsumers, ForFastProducers, WhenFull                   bool
	// IncludeBody lets advisories of messages carry the whole message.
	IncludeBody bool
	// IfNoConsumers sends a copy of a message that is not persistent and that nobody
	// consumes to an advisory topic.
	IfNoConsumers bool
}

// An AdvisoryFlag is one of them, by its name in files.
type AdvisoryFlag struct {
	Name  string
	Value *bool
}

// Flags are all of them, in the order in which they are shown.
func (a *Advisories) Flags() []AdvisoryFlag {
	return []AdvisoryFlag{
		{"advisoryForDiscardingMessages", &a.ForDiscardingMessages},
		{"advisoryForConsumed", &a.ForConsumed},
		{"advisoryForDelivery", &a.ForDelivery},
		{"advisoryForDispatched", &a.ForDispatched},
		{"advisoryForSlowConsumers", &a.ForSlowConsumers},
		{"advisoryForFastProducers", &a.ForFastProducers},
		{"advisoryWhenFull", &a.WhenFull},
		{"includeBodyForAdvisory", &a.IncludeBody},
		{"sendAdvisoryIfNoConsumers", &a.IfNoConsumers},
	}
}
