package policy

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/nixiemq/nixie/internal/redelivery"
)

// urlOption finds the options of a Java client's URL that concern redelivery.
var urlOption = regexp.MustCompile(`\bjms\.redeliveryPolicy\.([A-Za-z]*)=([^&,)]*)`)

// takeURL reads the redelivery policy out of the URL that a Java client connects
// with, such as failover:(tcp://mq1:61616)?jms.redeliveryPolicy.maximumRedeliveries=3.
// Everything else of the URL is left alone; without such an option the client has
// ActiveMQ's default.
func takeURL(p *redelivery.Policy, text string) error {
	for _, m := range urlOption.FindAllStringSubmatch(text, -1) {
		name := m[1]
		value, err := url.QueryUnescape(m[2])
		if err != nil {
			return fmt.Errorf("jms.redeliveryPolicy.%s: %w", name, err)
		}
		set, ok := urlOptions[name]
		if !ok {
			return fmt.Errorf("jms.redeliveryPolicy.%s is no property of a RedeliveryPolicy", name)
		}
		if err := set(p, value); err != nil {
			what := "is no number that it can be"
			if strings.HasPrefix(name, "use") || name == "preDispatchCheck" {
				what = "is neither true nor false"
			}
			return fmt.Errorf("jms.redeliveryPolicy.%s: %q %s", name, value, what)
		}
	}
	return nil
}

// urlOptions are the properties of a RedeliveryPolicy (R-POL-01).
var urlOptions = map[string]func(*redelivery.Policy, string) error{
	"maximumRedeliveries": func(p *redelivery.Policy, s string) (err error) {
		p.MaximumRedeliveries, err = strconv.Atoi(s)
		return err
	},
	"initialRedeliveryDelay": func(p *redelivery.Policy, s string) error {
		ms, err := strconv.ParseInt(s, 10, 64)
		p.InitialRedeliveryDelay = redelivery.FromMillis(ms)
		return err
	},
	"redeliveryDelay": func(p *redelivery.Policy, s string) error {
		ms, err := strconv.ParseInt(s, 10, 64)
		p.RedeliveryDelay = redelivery.FromMillis(ms)
		return err
	},
	"maximumRedeliveryDelay": func(p *redelivery.Policy, s string) error {
		ms, err := strconv.ParseInt(s, 10, 64)
		p.MaximumRedeliveryDelay = redelivery.FromMillis(ms)
		return err
	},
	"useExponentialBackOff": func(p *redelivery.Policy, s string) (err error) {
		p.UseExponentialBackOff, err = strconv.ParseBool(s)
		return err
	},
	"backOffMultiplier": func(p *redelivery.Policy, s string) (err error) {
		p.BackOffMultiplier, err = strconv.ParseFloat(s, 64)
		return err
	},
	"useCollisionAvoidance": func(p *redelivery.Policy, s string) (err error) {
		p.UseCollisionAvoidance, err = strconv.ParseBool(s)
		return err
	},
	"collisionAvoidancePercent": func(p *redelivery.Policy, s string) error {
		percent, err := strconv.ParseInt(s, 10, 16)
		p.SetCollisionAvoidancePercent(int(percent))
		return err
	},
	"preDispatchCheck": func(p *redelivery.Policy, s string) (err error) {
		p.PreDispatchCheck, err = strconv.ParseBool(s)
		return err
	},
}
