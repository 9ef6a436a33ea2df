package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/message"
)

// topicQueues are the queues of a virtual topic: prefix, some words with a dot behind, any
// of which may be *, before the names of the topics that a pattern covers.
type topicQueues struct{ prefix, topics string }

// topicOf is the topic whose queue a name is.
func (t topicQueues) topicOf(queue string) (string, bool) {
	first := strings.Split(strings.TrimSuffix(t.prefix, "."), ".")
	words := strings.Split(queue, ".")
	if len(words) <= len(first) {
		return "", false
	}
	for i, w := range first {
		if w != "*" && w != words[i] {
			return "", false
		}
	}
	topic := strings.Join(words[len(first):], ".")
	return topic, message.MatchName(t.topics, topic)
}

// topicAddresses lets address-settings know the queues of virtual topics.
func (c *Config) topicAddresses() {
	if c.Addresses == nil || c.Interceptors == nil {
		return
	}
	for _, v := range c.Interceptors.VirtualTopics {
		if v.Postfix == "" && strings.HasSuffix(v.Prefix, ".") {
			c.Addresses.topics = append(c.Addresses.topics, topicQueues{v.Prefix, v.Name})
		}
	}
}

// virtualConsumers reads virtualTopicConsumerWildcards of an acceptor: patterns of queues,
// each with how many of their first words are not the topic's, and whether it is aware of
// selectors. "Consumer.*.>;2" is what ActiveMQ has as virtual topics with the prefix
// "Consumer.*.".
func virtualConsumers(text, source string) ([]VirtualTopic, error) {
	var all []VirtualTopic
	for one := range strings.SplitSeq(text, ",") {
		parts := strings.Split(strings.TrimSpace(one), ";")
		bad := func(what string) ([]VirtualTopic, error) {
			return nil, fmt.Errorf("%q %s; write a pattern of queues and the number of its words before the topic's name, such as Consumer.*.>;2 (in a URI %%3B stands for the semicolon)", one, what)
		}
		if len(parts) < 2 {
			return bad("says no number of words")
		}
		words := strings.Split(parts[0], ".")
		n, err := parseInt(strings.TrimSpace(parts[1]), 1, int64(len(words)-1))
		if err != nil || slices.Contains(words, "") || slices.Contains(words[:n], ">") {
			return bad("is no pattern with a topic's name behind so many words")
		}
		v := DefaultVirtualTopic()
		v.Prefix, v.Name, v.Source = strings.Join(words[:n], ".")+".", strings.Join(words[n:], "."), source
		for _, option := range parts[2:] {
			name, value, _ := strings.Cut(option, "=")
			if v.SelectorAware, err = parseBool(value); err != nil || name != "selectorAware" {
				return bad("has an option that is not selectorAware=true or false")
			}
		}
		all = append(all, v)
	}
	return all, nil
}
