// A consumer or a producer of go-nsq, the client of NSQ's own authors, for tests beside ours.
//
//	go-nsq consume -nsqd host:port,... -topic t -channel c [-in-flight n] [-work d] [-fail n] [-requeue d]
//	go-nsq produce -nsqd host:port -topic t < bodies
//
// A consumer writes a line for every run: milliseconds since the epoch, attempts, id, and in base64 the body without its
// envelope. It ends with its standard input.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/nsqio/go-nsq"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// unwrap cuts a message of Requeue's into its JSON and its body. Any other message is all body.
func unwrap(message []byte) (envelope, body []byte) {
	if len(message) < 6 || !bytes.Equal(message[:4], []byte("\x00RK\x01")) {
		return nil, message
	}
	end := 6 + int(binary.BigEndian.Uint16(message[4:6]))
	return message[6:end], message[end:]
}

func consume(args []string) {
	flags := flag.NewFlagSet("consume", flag.ExitOnError)
	nsqds := flags.String("nsqd", "", "addresses of nsqd, with commas between them")
	lookupds := flags.String("lookupd", "", "HTTP addresses of nsqlookupd")
	poll := flags.Duration("poll", time.Minute, "the time between two questions to nsqlookupd")
	topic := flags.String("topic", "", "")
	channel := flags.String("channel", "", "")
	inFlight := flags.Int("in-flight", 1, "messages in flight, and handlers at a time")
	work := flags.Duration("work", 0, "how long a handler takes")
	fail := flags.Uint("fail", 0, "attempts of each message that fail")
	requeue := flags.Duration("requeue", 90*time.Second, "the delay of a failed message, times its attempts")
	check(flags.Parse(args))

	config := nsq.NewConfig()
	config.MaxInFlight = *inFlight
	config.DefaultRequeueDelay = *requeue
	config.LookupdPollInterval = *poll
	// A failure does not slow down the consumer: messages are retried, and nothing else.
	config.MaxBackoffDuration = 0
	consumer, err := nsq.NewConsumer(*topic, *channel, config)
	check(err)
	// It would log every failure of the handler, and they are meant.
	consumer.SetLogger(log.New(io.Discard, "", 0), nsq.LogLevelError)
	handler := nsq.HandlerFunc(func(message *nsq.Message) error {
		at := float64(time.Now().UnixMicro()) / 1000
		_, body := unwrap(message.Body)
		text := base64.StdEncoding.EncodeToString(body)
		// One write for a line, so that those of several handlers do not mix.
		fmt.Printf("%.3f %d %s %s\n", at, message.Attempts, message.ID[:], text)
		time.Sleep(*work)
		if uint(message.Attempts) <= *fail {
			return errors.New("no")
		}
		return nil
	})
	consumer.AddConcurrentHandlers(handler, *inFlight)
	if *lookupds != "" {
		check(consumer.ConnectToNSQLookupds(strings.Split(*lookupds, ",")))
	} else {
		check(consumer.ConnectToNSQDs(strings.Split(*nsqds, ",")))
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	check(err)
	consumer.Stop()
	<-consumer.StopChan
}

func produce(args []string) {
	flags := flag.NewFlagSet("produce", flag.ExitOnError)
	nsqd := flags.String("nsqd", "", "the address of nsqd")
	topic := flags.String("topic", "", "")
	check(flags.Parse(args))
	producer, err := nsq.NewProducer(*nsqd, nsq.NewConfig())
	check(err)
	producer.SetLoggerLevel(nsq.LogLevelError)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		check(producer.Publish(*topic, lines.Bytes()))
	}
	check(lines.Err())
	producer.Stop()
}

func main() {
	commands := map[string]func([]string){"consume": consume, "produce": produce}
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		commands[os.Args[1]](os.Args[2:])
		return
	}
	log.Fatal("go-nsq consume or produce, with flags")
}
