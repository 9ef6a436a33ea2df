package jms

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A setter puts the text of an option where it belongs. nil: the option is known
// and means nothing here, as it tunes Java's own workings.
type setter func(text string) error

// unused accepts an option that tunes Java's own workings.
var unused setter = func(string) error { return nil }

func boolInto(p *bool) setter {
	return func(s string) error {
		switch strings.ToLower(s) {
		case "true":
			*p = true
		case "false":
			*p = false
		default:
			return fmt.Errorf("%q is neither true nor false", s)
		}
		return nil
	}
}

func intInto(p *int) setter { return wholeInto(p, 32) }

func int64Into(p *int64) setter { return wholeInto(p, 64) }

// wholeInto takes a whole number that fits into so many bits, as Java's int and long.
func wholeInto[T int | int64](p *T, bits int) setter {
	return func(s string) error {
		n, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return fmt.Errorf("%q is no whole number", s)
		}
		*p = T(n)
		return nil
	}
}

func floatInto(p *float64) setter {
	return func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%q is no number", s)
		}
		*p = f
		return nil
	}
}

func textInto(p *string) setter {
	return func(s string) error { *p = s; return nil }
}

// millisInto reads milliseconds.
func millisInto(p *time.Duration) setter {
	return func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no number of milliseconds", s)
		}
		*p = fromMillisDelay(n)
		return nil
	}
}

// prefetchInto reads a window, which has an upper limit.
func prefetchInto(targets ...*int) setter {
	return func(s string) error {
		var n int
		if err := intInto(&n)(s); err != nil {
			return err
		}
		for _, p := range targets {
			*p = min(max(n, 0), maxPrefetch)
		}
		return nil
	}
}

// policySetters are the properties of a redelivery policy (section 1.1).
func policySetters(p *RedeliveryPolicy) map[string]setter {
	return map[string]setter{
		"maximumRedeliveries":    intInto(&p.MaximumRedeliveries),
		"initialRedeliveryDelay": millisInto(&p.InitialRedeliveryDelay),
		"redeliveryDelay":        millisInto(&p.RedeliveryDelay),
		"maximumRedeliveryDelay": millisInto(&p.MaximumRedeliveryDelay),
		"useExponentialBackOff":  boolInto(&p.UseExponentialBackOff),
		"backOffMultiplier":      floatInto(&p.BackOffMultiplier),
		"useCollisionAvoidance":  boolInto(&p.UseCollisionAvoidance),
		"collisionAvoidancePercent": func(s string) error {
			var percent int
			if err := intInto(&percent)(s); err != nil {
				return err
			}
			p.CollisionAvoidanceFactor = float64(percent) * 0.01
			return nil
		},
		"collisionAvoidanceFactor": floatInto(&p.CollisionAvoidanceFactor), // R-POL-01, better
		"preDispatchCheck":         boolInto(&p.PreDispatchCheck),
	}
}

// factorySetters are the jms.* options (R-URI-11).
func factorySetters(f *ConnectionFactory, policy *RedeliveryPolicy) map[string]setter {
	o := &f.Options
	m := map[string]setter{
		"nonBlockingRedelivery":                boolInto(&o.NonBlockingRedelivery),
		"transactedIndividualAck":              boolInto(&o.TransactedIndividualAck),
		"messagePrioritySupported":             boolInto(&o.MessagePrioritySupported),
		"checkForDuplicates":                   boolInto(&o.CheckForDuplicates),
		"auditDepth":                           intInto(&o.AuditDepth),
		"auditMaximumProducerNumber":           unused,
		"consumerFailoverRedeliveryWaitPeriod": millisInto(&o.ConsumerFailoverRedeliveryWaitPeriod),
		"consumerExpiryCheckEnabled":           boolInto(&o.ConsumerExpiryCheckEnabled),
		"optimizeAcknowledge":                  boolInto(&o.OptimizeAcknowledge),
		"optimizeAcknowledgeTimeOut":           millisInto(&o.OptimizeAcknowledgeTimeOut),
		"optimizedAckScheduledAckInterval":     millisInto(&o.OptimizedAckScheduledAckInterval),
		"sendAcksAsync":                        boolInto(&o.SendAcksAsync),
		"dispatchAsync":                        boolInto(&o.Consumer.DispatchAsync),
		"exclusiveConsumer":                    boolInto(&o.Consumer.Exclusive),
		"useRetroactiveConsumer":               boolInto(&o.Consumer.Retroactive),
		"optimizedMessageDispatch":             boolInto(&o.Consumer.OptimizedMessageDispatch),
		"useAsyncSend":                         boolInto(&o.Send.UseAsyncSend),
		"alwaysSyncSend":                       boolInto(&o.Send.AlwaysSyncSend),
		"useCompression":                       boolInto(&o.Send.UseCompression),
		"disableTimeStampsByDefault":           boolInto(&o.Send.DisableTimeStamps),
		"producerWindowSize":                   intInto(&o.Send.ProducerWindowBytes),
		"closeTimeout":                         millisInto(&o.Timeouts.Close),
		"sendTimeout":                          millisInto(&o.Timeouts.Send),
		"requestTimeout":                       millisInto(&o.Timeouts.Request),
		"connectResponseTimeout":               millisInto(&o.Timeouts.ConnectResponse),
		"watchTopicAdvisories":                 boolInto(&o.WatchTopicAdvisories),
		"clientIDPrefix":                       textInto(&o.ClientIDPrefix),
		"connectionIDPrefix":                   textInto(&o.ConnectionIDPrefix),
		"clientID":                             textInto(&f.ClientID),
		"userName":                             textInto(&f.UserName),
		"password":                             textInto(&f.Password),

		"prefetchPolicy.queuePrefetch":                prefetchInto(&o.Prefetch.Queue),
		"prefetchPolicy.queueBrowserPrefetch":         prefetchInto(&o.Prefetch.QueueBrowser),
		"prefetchPolicy.topicPrefetch":                prefetchInto(&o.Prefetch.Topic),
		"prefetchPolicy.durableTopicPrefetch":         prefetchInto(&o.Prefetch.DurableTopic),
		"prefetchPolicy.optimizeDurableTopicPrefetch": prefetchInto(&o.Prefetch.OptimizeDurableTopic),
		"prefetchPolicy.maximumPendingMessageLimit":   intInto(&o.Prefetch.MaximumPendingMessageLimit),
		"prefetchPolicy.all": prefetchInto(&o.Prefetch.Queue, &o.Prefetch.QueueBrowser, &o.Prefetch.Topic,
			&o.Prefetch.DurableTopic, &o.Prefetch.OptimizeDurableTopic),
	}
	for _, name := range []string{"alwaysSessionAsync", "copyMessageOnSend", "maxThreadPoolSize", "nestedMapAndListEnabled",
		"objectMessageSerializationDefered", "rmIdFromConnectionId", "statsEnabled", "trustAllPackages", "trustedPackages",
		"useDedicatedTaskRunner", "warnAboutUnstartedConnectionTimeout", "xaAckMode", "properties",
		"blobTransferPolicy.uploadUrl", "blobTransferPolicy.brokerUploadUrl", "blobTransferPolicy.defaultUploadUrl", "blobTransferPolicy.bufferSize"} {
		m[name] = unused
	}
	for name, set := range policySetters(policy) {
		m["redeliveryPolicy."+name] = set
	}
	return m
}

// An option is one of a URI, in its order.
type option struct{ name, value string }

// parseOptions reads "a=1&b=2". An option without "=" has no value (R-URI-10).
func parseOptions(query string) ([]option, error) {
	var all []option
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err1 := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil {
			return nil, &Error{Op: "parse URI", Kind: ErrInvalidOption, Text: fmt.Sprintf("%q is not URL-encoded", part)}
		}
		all = append(all, option{name, value})
	}
	return all, nil
}

// apply sets options, and names all that are unknown or do not fit (R-URI-12).
func apply(op string, options []option, setters map[string]setter) error {
	var bad []string
	for _, o := range options {
		set, ok := setters[o.name]
		if !ok {
			bad = append(bad, o.name+": unknown"+nearest(o.name, setters))
			continue
		}
		if err := set(o.value); err != nil {
			bad = append(bad, o.name+": "+err.Error())
		}
	}
	if bad == nil {
		return nil
	}
	return &Error{Op: op, Kind: ErrInvalidOption, Text: "invalid options: " + strings.Join(bad, "; ")}
}

// nearest suggests an option that differs in case alone.
func nearest(name string, setters map[string]setter) string {
	var names []string
	for n := range setters {
		if strings.EqualFold(n, name) {
			names = append(names, n)
		}
	}
	if names == nil {
		return ""
	}
	slices.Sort(names)
	return " (did you mean " + names[0] + "?)"
}

// cutQuery parts a URI at its first "?".
func cutQuery(s string) (before, query string, ok bool) { return strings.Cut(s, "?") }

// hasScheme reports whether a destination's text names its kind.
func hasScheme(s string) bool { return strings.Contains(s, "://") }
