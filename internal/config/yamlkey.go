package config

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/message"
)

// top are the keys of the document.
func (y yamlReader) top() []yamlKey {
	c := y.cfg
	defaults := yamlReader{loader: &loader{cfg: &Config{Store: defaultStore()}}}
	return []yamlKey{
		y.name("brokerName", &c.BrokerName).says("The name of the broker; default localhost."),
		y.dataDirectory("data").says("The directory for messages, relative to the working directory, or :memory: to keep nothing; default ./nixie-data. --data wins."),
		y.admin("admin").says("HOST:PORT of the admin listener, or off; default 127.0.0.1:8161."),
		y.flag("allowAnonymous", &y.fileAllowsAnonymous).says("Permit listening beyond loopback without authentication; default false."),
		y.flag("populateJMSXUserID", &c.UserID).says("Write who sent a message into its JMSXUserID, whatever the sender says; default false."),
		y.advisories("advisories").says("Tell what happens in the broker on advisory topics; false: nothing but temporary destinations, which clients depend on (advisorySupport of ActiveMQ); default true."),
		y.flag("rejectDurableConsumers", &c.RejectDurableConsumers).says("Refuse durable subscriptions; default false."),
		y.flag("deleteAllMessagesOnStartup", &c.DeleteAllMessages).says("Empty the store at every start, subscriptions and scheduled messages included; default false."),
		y.duration("offlineDurableSubscriberTimeout", 0, &c.OfflineSubscriptionLimit).says("Remove durable subscriptions that nobody has used for so long, with their messages; default 0: never."),
		y.duration("offlineDurableSubscriberTaskSchedule", 0, &c.OfflineSubscriptionCheck).says("How often is looked for them; 0: every five minutes."),
		y.duration("keepTemporaryQueues", 0, &c.KeepTemporaryQueues).says("How long the temporary queues of a failover: client are kept when its connection is lost, with what they hold; 0: not at all; default 5s."),
		y.flag("makeTemporaryQueues", &c.MakeTemporaryQueues).says("Make a temporary queue that is sent to and is not there, and keep it as keepTemporaryQueues says, instead of refusing the message (allowTempAutoCreationOnSend of ActiveMQ); default false."),
		y.flag("handOutMarks", &c.HandOutMarks).says("Record every hand-out in the store, so that redelivery flags are right after a power cut; default true."),
		y.bytes("memory", &c.MemoryBytes).says("What messages may take in memory before they are left to the store alone; 0: the broker's default."),
		y.listeners("listeners").says("Where clients connect; default tcp://127.0.0.1:61616. --listen takes the place of all."),
		y.cluster("cluster").says("The brokers that clients may use, this one perhaps among them: URIs, or name and uri. Listeners with updateClusterClients=true tell clients of them. Messages are not passed between them."),
		y.certificates("tls").says("The certificates of listeners with ssl:// that name none of their own in their URI."),
		y.group("store", y.store(), defaults.store()).says("When producers are stopped."),
		y.scheduler("scheduler").says("Schedule messages with AMQ_SCHEDULED properties; default true."),
		y.count("maxSchedulerRepeat", 0, math.MaxInt32, &c.MaxSchedulerRepeat).says("How often a scheduled message may be repeated; 0: the broker's default."),
		y.duration("transactionTimeout", 0, &c.TransactionTimeout).says("How long a distributed (XA) transaction may be neither prepared nor ended before it is rolled back; default 0: for ever."),
		word(y, "preparedTransactions", preparedFates, &c.Prepared).says("What becomes at the start of distributed (XA) transactions that were prepared before it: keep them for their transaction manager, commit or rollback (purgeRecoveredXATransactionStrategy of ActiveMQ); default keep."),
		y.policies("policies").says("What holds for destinations, as ActiveMQ's policyEntry. One is chosen for a destination, whole; they are not merged."),
		section(y, "defaultPolicy", &c.DefaultPolicy, func() *PolicyEntry { return &PolicyEntry{} },
			func(y yamlReader, p *PolicyEntry) []yamlKey { return y.entry("defaultPolicy", p) }, func(_ string, node ast.Node, p *PolicyEntry) {
				p.Source = y.source(first(node))
				p.named("default policy")
			}).says("What holds where none of policies matches."),
		y.addressSettings("addressSettings").says("Settings of a HornetQ or Artemis file, which merge. Then there are no policies, and no redeliveryPlugin or discardingPlugin."),
		y.redeliveryPlugin("redeliveryPlugin").says("Redelivery by the broker with patterns of its own, as ActiveMQ's redeliveryPlugin. A policy with a redelivery goes before it."),
		y.discarding("discardingPlugin").says("Drop what would become a dead letter, as ActiveMQ's discardingDLQBrokerPlugin."),
		y.timeStamping("timeStamping").says("Set time stamps and expirations by the broker's clock, as ActiveMQ's timeStampingBrokerPlugin."),
		y.choice("forcePersistent", &c.ForcePersistent).says("Make every message that clients send persistent (true) or not (false); default: as they were sent."),
		y.destinations("destinations").says("Queues and topics that are made at start."),
		y.virtualTopics("virtualTopics").says("Topics whose messages also go to queues of their applications; default VirtualTopic.>. An empty list: none."),
		y.composites("compositeDestinations").says("Destinations that hand what is sent to them on to others."),
		y.queueFilters("queueFilters").says("Queues that take only some of what is sent to them; the rest is dropped."),
		y.selectorCache("selectorCache").says("Remember what consumers of queues of virtual topics with selectorAware select, and give these queues that also while the consumers are away, as ActiveMQ's virtualSelectorCacheBrokerPlugin; absent: nothing is remembered."),
		y.mirroredQueues("mirroredQueues").says("Topics that get what is sent to all queues, as ActiveMQ's mirroredQueue; default none."),
		y.access("access").says("Who clients are and what they may do; absent: nobody is asked."),
	}
}

// dataDirectory is the data directory.
func (y yamlReader) dataDirectory(name string) yamlKey {
	c := y.cfg
	return y.value(name, yamlForm{kind: formText}, func(s string) error {
		switch {
		case s == "":
			return errors.New("is empty; give a directory, or :memory: to keep nothing")
		case !y.data.given: // else --data wins
			c.DataDir, c.Persistent = s, s != Memory
		}
		return nil
	}, func() yamlValue { return yamlText(c.DataDir) })
}

// admin is the address of the admin listener.
func (y yamlReader) admin(name string) yamlKey {
	c := y.cfg
	k := y.text(name, &c.Admin)
	k.take = func(part string, node ast.Node) {
		y.adminPlace = y.at(node, part, "")
		if y.text(name, &c.Admin).take(part, node); c.Admin == "off" {
			c.Admin = ""
		}
	}
	k.show = func() yamlValue {
		if c.Admin == "" {
			return yamlPlain("off")
		}
		return yamlText(c.Admin)
	}
	return k
}

// advisories turns advisories on or off.
func (y yamlReader) advisories(name string) yamlKey {
	c := y.cfg
	return y.value(name, yamlForm{kind: formBoolean}, func(s string) error {
		b, err := parseBool(s)
		c.NoAdvisories = err == nil && !b
		return err
	}, func() yamlValue { return yamlPlain(strconv.FormatBool(!c.NoAdvisories)) })
}

// scheduler turns the message scheduler on or off.
func (y yamlReader) scheduler(name string) yamlKey {
	c := y.cfg
	return y.value(name, yamlForm{kind: formBoolean}, func(s string) (err error) {
		c.SchedulerSupport, err = parseBool(s)
		c.NoScheduler = err == nil && !c.SchedulerSupport
		return err
	}, func() yamlValue {
		switch {
		case c.SchedulerSupport:
			return yamlPlain("true")
		case c.NoScheduler:
			return yamlPlain("false")
		}
		return nil
	})
}

// onFullWords say what becomes of a producer whose message does not fit.
var onFullWords = []yamlWord[OnFull]{{string(Fail), Fail}, {string(Block), Block}}

// store are the keys under store.
func (y yamlReader) store() []yamlKey {
	s := &y.cfg.Store
	return []yamlKey{
		y.bytes("minFree", &s.MinFreeBytes).says("The reserve of the disk that producers may not use; the larger of this and minFreePercent; default 256 mb."),
		y.percent("minFreePercent", &s.MinFreePercent).says("The same as a percentage of the file system; default 2."),
		y.bytes("max", &s.MaxBytes).says("The most that the store may use before producers are stopped; the smaller of this and maxPercent; default 0: no such limit."),
		y.percent("maxPercent", &s.MaxPercent).says("The same as a percentage of the file system; default 0: no such limit."),
		word(y, "onFull", onFullWords, &s.OnFull).says("Refuse the producer's message with an error, or let the producer wait; default fail."),
		y.duration("failAfter", 0, &s.FailAfter).says("How long a producer waits before its message is refused all the same; default 0s: without end."),
	}
}

// listeners is the list of listeners: URIs, or mappings with name and uri.
func (y yamlReader) listeners(name string) yamlKey {
	named := yamlForm{kind: formMapping, keys: y.namedListener(new(string), new(string), nil), needs: []string{"uri"}}
	element := yamlForm{kind: formEither, either: []yamlForm{{kind: formText}, named}}
	return yamlKey{name, yamlForm{kind: formList, of: &element},
		func(part string, node ast.Node) { y.sequence(part, node, y.listener) },
		func() yamlValue {
			list := yamlList{}
			for _, l := range y.cfg.Listeners {
				uri := yamlText(showListener(l))
				if l.Name == l.Protocol {
					list = append(list, uri)
					continue
				}
				list = append(list, yamlMap{pairs: []yamlPair{{"name", yamlText(l.Name)}, {"uri", uri}}})
			}
			return list
		}}
}

// showListener writes a listener as a URI. Its own does, unless the options were
// written in another way than ActiveMQ's, as those of an acceptor are.
func showListener(l Listener) string {
	if own := parseListener(l.URI); len(own.errors) == 0 && own.listener.Options == l.Options && own.listener.Address() == l.Address() {
		return l.URI
	}
	var options []string
	d := DefaultListenerOptions()
	add := func(differs bool, name string, value any) {
		if differs {
			options = append(options, fmt.Sprintf("%s=%v", name, value))
		}
	}
	o := l.Options
	add(o.MaxFrameBytes != d.MaxFrameBytes, "wireFormat.maxFrameSize", o.MaxFrameBytes)
	add(o.MaximumConnections != d.MaximumConnections, "maximumConnections", o.MaximumConnections)
	add(o.MaximumConsumers != 0, "maximumConsumersAllowedPerConnection", o.MaximumConsumers)
	add(o.MaximumProducers != 0, "maximumProducersAllowedPerConnection", o.MaximumProducers)
	add(o.MaxInactivity != d.MaxInactivity, "wireFormat.maxInactivityDuration", o.MaxInactivity.Milliseconds())
	add(o.MaxInactivityInitialDelay != d.MaxInactivityInitialDelay, "wireFormat.maxInactivityDurationInitalDelay", o.MaxInactivityInitialDelay.Milliseconds())
	add(o.SocketBufferBytes != d.SocketBufferBytes, "socketBufferSize", o.SocketBufferBytes)
	add(o.NoDelay != d.NoDelay, "transport.tcpNoDelay", o.NoDelay)
	add(o.KeepAlive != d.KeepAlive, "keepAlive", o.KeepAlive)
	add(o.AllowLinkStealing, "allowLinkStealing", o.AllowLinkStealing)
	add(o.AnycastPrefix != "", "anycastPrefix", url.QueryEscape(o.AnycastPrefix))
	add(o.MulticastPrefix != "", "multicastPrefix", url.QueryEscape(o.MulticastPrefix))
	add(o.UpdateClusterClients, "updateClusterClients", o.UpdateClusterClients)
	add(o.RebalanceClusterClients, "rebalanceClusterClients", o.RebalanceClusterClients)
	add(o.UpdateClusterClientsOnRemove, "updateClusterClientsOnRemove", o.UpdateClusterClientsOnRemove)
	add(o.UpdateClusterFilter != "", "updateClusterFilter", url.QueryEscape(o.UpdateClusterFilter))
	showTLS(o.TLS, add)
	uri := l.Scheme() + "://" + l.Address()
	if len(options) > 0 {
		uri += "?" + strings.Join(options, "&")
	}
	return uri
}

// namedListener are the keys of a listener with a name. place, which may be nil, is
// told where the URI stands.
func (y yamlReader) namedListener(name, uri *string, place *ast.Node) []yamlKey {
	k := y.text("uri", uri).says("Where to listen, such as tcp://127.0.0.1:61616?maximumConnections=1000.")
	take := k.take
	k.take = func(part string, n ast.Node) {
		if place != nil {
			*place = n
		}
		take(part, n)
	}
	return []yamlKey{y.text("name", name).says("What the ready line and the log call it; default openwire."), k}
}

// listener reads one element of listeners.
func (y yamlReader) listener(part string, node ast.Node) {
	var name, uri string
	place, before := node, len(y.problems)
	if s, ok := y.scalar(node); ok {
		uri = s
	} else {
		y.mapping(part, node, y.namedListener(&name, &uri, &place))
	}
	if len(y.opts.Listen) > 0 {
		y.warn(y.at(place, part, "is left out: --listen takes the place of the file's listeners"))
		return
	}
	if uri == "" && len(y.problems) > before {
		return
	}
	r := parseListener(uri)
	if r.notOffer != "" {
		r.errors = append(r.errors, r.notOffer+" is not offered yet")
	}
	for _, text := range r.errors {
		y.fail(y.at(place, part, text))
	}
	for _, text := range r.warnings {
		y.warn(y.at(place, part, text))
	}
	if len(r.errors) > 0 {
		return
	}
	if name != "" {
		r.listener.Name = name
	}
	r.listener.Source = y.source(place)
	y.cfg.Listeners = append(y.cfg.Listeners, r.listener)
}

// first returns the node where a mapping begins: its own token is the colon of
// its first pair.
func first(node ast.Node) ast.Node {
	if pairs := pairsOf(node); len(pairs) > 0 {
		return pairs[0].Key
	}
	return node
}

// pairsOf are the pairs of a mapping; nil where the node is none.
func pairsOf(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// patternKeys are the four keys that say for which destinations an entry is. into
// gets the pattern, which may be a composite.
func (y yamlReader) patternKeys(into *message.Destination) []yamlKey {
	var keys []yamlKey
	for _, k := range policyAttr {
		keys = append(keys, y.value(k.name, yamlForm{kind: formText}, func(s string) error {
			d, err := message.ParseDestination(s, k.kind)
			if err != nil {
				return errors.New(`names no destination; give a name or a pattern such as ">"`)
			}
			*into = d
			return nil
		}, func() yamlValue {
			if into.Kind != k.kind {
				return nil
			}
			return yamlText(into.Name)
		}).says(fmt.Sprintf("The %ss it is for: a name, a pattern with * for one step and > for the rest, or several with commas.", kindText(k.kind))))
	}
	return keys
}

func kindText(k message.DestinationKind) string {
	return map[message.DestinationKind]string{message.Queue: "queue", message.Topic: "topic", message.TempQueue: "temporary queue", message.TempTopic: "temporary topic"}[k]
}

// patternNames are the names of patternKeys.
var patternNames = []string{"queue", "topic", "tempQueue", "tempTopic"}
