/** Topics, channels, and the HTTP interface. */
import * as Effect from "effect/Effect"
import {
  ask,
  channel,
  counts,
  create,
  createTopic,
  dpub,
  mpub,
  nsqd,
  pub,
  publish,
  type Row,
  settled,
  subscribe,
  until
} from "./Script.ts"

const http = `${nsqd}http.go`

/** Requests, and their answers. */
const requests = (
  name: string,
  all: ReadonlyArray<readonly [method: "GET" | "POST", path: string]>,
  answer: ReadonlyArray<unknown>
): Row => ({
  name,
  source: http,
  script: (bench) =>
    Effect.forEach(all, ([method, path]) => ask(bench, method, path.replaceAll("TOPIC", bench.name("t")))),
  answer
})

const message = (text: string) => ({ message: text })
const at = (action: string) => `channel/${action}?topic=TOPIC&channel=${channel}`

export const rows: ReadonlyArray<Row> = [
  {
    name: "messages wait in a topic without channels, and the first channel gets them",
    source: `${nsqd}topic.go messagePump`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* publish(bench, mpub(topic, ["a", "b"]))
        const before = yield* counts(bench, topic)
        yield* create(bench, topic)
        const first = yield* settled(bench, topic)
        yield* create(bench, topic, "later")
        return [before, first, yield* settled(bench, topic)]
      }),
    answer: [{ topic: 2 }, { topic: 0, work: "2, 0, 0" }, { topic: 0, work: "2, 0, 0", later: "0, 0, 0" }]
  },
  {
    name: "each channel gets each message, with the same id and time, and counts its own attempts",
    source: `${nsqd}topic.go messagePump`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const one = yield* subscribe(bench, topic, { name: "one" })
        const other = yield* subscribe(bench, topic, { name: "other" })
        yield* publish(bench, pub(topic, "m"))
        yield* one.write("RDY 1")
        const first = yield* one.next
        yield* one.write(`REQ ${first.id} 0`)
        const again = yield* one.next
        yield* other.write("RDY 1")
        const copy = yield* other.next
        return [
          first.id === copy.id && first.timestamp === copy.timestamp && again.timestamp === first.timestamp,
          [first, again, copy].map(({ attempts }) => attempts)
        ]
      }),
    answer: [true, [1, 2, 1]]
  },
  {
    name: "a paused topic keeps its messages from its channels",
    source: "https://nsq.io/components/nsqd.html#post-topicpause",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* create(bench, topic)
        yield* ask(bench, "POST", `topic/pause?topic=${topic}`)
        yield* publish(bench, pub(topic, "m"))
        const paused = yield* counts(bench, topic)
        yield* ask(bench, "POST", `topic/unpause?topic=${topic}`)
        return [paused, yield* settled(bench, topic)]
      }),
    answer: [
      { topic: 1, work: "0, 0, 0" },
      { topic: 0, work: "1, 0, 0" }
    ]
  },
  {
    name: "a paused channel sends nothing, and settles what is in flight",
    source: `${nsqd}client_v2.go IsReadyForMessages`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { isQuiet, next, write } = yield* subscribe(bench, topic)
        yield* publish(bench, mpub(topic, ["a", "b"]))
        yield* write("RDY 1")
        const { id } = yield* next
        yield* ask(bench, "POST", `channel/pause?topic=${topic}&channel=${channel}`)
        yield* write(`FIN ${id}`)
        const quiet = yield* isQuiet
        const paused = yield* counts(bench, topic)
        yield* ask(bench, "POST", `channel/unpause?topic=${topic}&channel=${channel}`)
        const { body } = yield* next
        return [quiet, paused, body]
      }),
    answer: [true, { topic: 0, work: "1, 0, 0" }, "b"]
  },
  {
    name: "emptying a channel removes what waits, is deferred, and is in flight",
    source: `${nsqd}channel.go Empty`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, refusal, write } = yield* subscribe(bench, topic)
        yield* publish(bench, mpub(topic, ["a", "b"]), dpub(topic, 10_000, "c"))
        yield* write("RDY 1")
        const { id } = yield* next
        const before = yield* until(counts(bench, topic), (all) => JSON.stringify(all).includes("1, 1, 1"))
        yield* write("RDY 0")
        yield* ask(bench, "POST", `channel/empty?topic=${topic}&channel=${channel}`)
        const after = yield* counts(bench, topic)
        yield* write(`FIN ${id}`)
        return [before, after, (yield* refusal).replace(id, "ID")]
      }),
    answer: [
      { topic: 0, work: "1, 1, 1" },
      { topic: 0, work: "0, 0, 0" },
      "E_FIN_FAILED FIN ID failed ID not in flight"
    ]
  },
  {
    name: "after a channel was emptied, its clients have all their credit",
    source: `${nsqd}client_v2.go Empty`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic)
        yield* publish(bench, pub(topic, "a"))
        yield* write("RDY 1")
        yield* next
        yield* ask(bench, "POST", `channel/empty?topic=${topic}&channel=${channel}`)
        yield* publish(bench, pub(topic, "b"))
        return (yield* next).body
      }),
    answer: "b"
  },
  ...["topic/delete?topic=TOPIC", at("delete")].map(
    (path): Row => ({
      name: `${path.split("?")[0]} ends the connections of consumers`,
      source: `${nsqd}channel.go exit`,
      script: (bench) =>
        Effect.gen(function* () {
          const topic = bench.name("t")
          const { closed } = yield* subscribe(bench, topic)
          yield* publish(bench, pub(topic, "m"))
          yield* ask(bench, "POST", path.replace("TOPIC", topic))
          return [yield* closed, yield* counts(bench, topic)]
        }),
      answer: ["nsqd closed the connection", path.startsWith("topic") ? undefined : { topic: 0 }]
    })
  ),
  {
    name: "an ephemeral channel ends with its last client, and an ephemeral topic with its last channel",
    source: "https://nsq.io/overview/design.html",
    script: (bench) =>
      Effect.gen(function* () {
        const [topic, ephemeral] = [bench.name("t"), `${bench.name("e")}#ephemeral`]
        for (const each of [topic, ephemeral]) {
          yield* Effect.scoped(subscribe(bench, each, { name: "c#ephemeral" }))
        }
        const gone = yield* until(counts(bench, topic), (all) => JSON.stringify(all) === '{"topic":0}')
        return [gone, yield* until(counts(bench, ephemeral), (all) => all === undefined)]
      }),
    answer: [{ topic: 0 }, undefined]
  },
  requests(
    "a channel is created, emptied, paused and deleted in an existing topic only",
    ["create", "empty", "pause", "unpause", "delete"].map((action) => ["POST", at(action)] as const),
    Array.from({ length: 5 }, () => [404, message("TOPIC_NOT_FOUND")])
  ),
  requests(
    "a missing channel is reported",
    [
      ["POST", "topic/create?topic=TOPIC"],
      ["POST", at("empty")],
      ["POST", at("pause")],
      ["POST", at("delete")],
      ["POST", at("create")],
      ["POST", at("empty")]
    ],
    [[200, ""], ...Array.from({ length: 3 }, () => [404, message("CHANNEL_NOT_FOUND")]), [200, ""], [200, ""]]
  ),
  requests(
    "a missing topic is reported when it is deleted or paused, and made by its creation",
    [
      ["POST", "topic/delete?topic=TOPIC"],
      ["POST", "topic/pause?topic=TOPIC"],
      ["POST", "topic/create?topic=TOPIC"],
      ["POST", "topic/create?topic=TOPIC"],
      ["POST", "topic/delete?topic=TOPIC"]
    ],
    [
      [404, message("TOPIC_NOT_FOUND")],
      [404, message("TOPIC_NOT_FOUND")],
      [200, ""],
      [200, ""],
      [200, ""]
    ]
  ),
  requests(
    "arguments are checked",
    [
      ["POST", "topic/create"],
      ["POST", "topic/create?topic=bad!"],
      ["POST", "channel/create?topic=bad!&channel=c"],
      ["POST", "channel/create?topic=t"],
      ["POST", "channel/create?topic=t&channel=bad!"]
    ],
    [
      [400, message("MISSING_ARG_TOPIC")],
      [400, message("INVALID_TOPIC")],
      [400, message("INVALID_ARG_TOPIC")],
      [400, message("MISSING_ARG_CHANNEL")],
      [400, message("INVALID_ARG_CHANNEL")]
    ]
  ),
  requests(
    "GET config reports the limits that IDENTIFY does not",
    [
      ["GET", "config/max_req_timeout"],
      ["GET", "config/max_msg_size"],
      ["GET", "config/max_body_size"],
      ["GET", "config/mem_queue_size"],
      ["GET", "config/nonsense"]
    ],
    [
      [200, 10_000_000_000],
      [200, 1000],
      [200, 3000],
      [200, 10_000],
      [400, message("INVALID_OPTION")]
    ]
  ),
  {
    name: "statistics leave out a missing topic",
    source: `${nsqd}stats.go GetStats`,
    script: (bench) => counts(bench, bench.name("t")),
    answer: undefined
  },
  {
    name: "one nsqd has one identity at all of its addresses",
    source: "https://nsq.io/components/nsqd.html#get-info",
    script: (bench) =>
      Effect.gen(function* () {
        const { address, alias } = bench.driver
        const [, one] = yield* ask(bench, "GET", "info", address.http)
        const [, other] = yield* ask(bench, "GET", "info", alias.http)
        return [address.host !== alias.host, JSON.stringify(one) === JSON.stringify(other)]
      }),
    answer: [true, true]
  },
  {
    name: "a topic is made at one address and seen at the other",
    source: "https://nsq.io/components/nsqd.html#get-info",
    script: (bench) =>
      Effect.andThen(
        publish(bench, pub(bench.name("t"), "m")),
        Effect.suspend(() =>
          counts({ ...bench, driver: { ...bench.driver, address: bench.driver.alias } }, bench.name("t"))
        )
      ),
    answer: { topic: 1 }
  },
  {
    name: "nsqlookupd knows an nsqd, and its topics from their first to their last moment; a deleted topic stays known",
    source: "https://github.com/nsqio/nsq/blob/v1.3.0/nsqlookupd/http.go",
    script: (bench) =>
      Effect.gen(function* () {
        const { lookupd } = bench.driver
        const topic = bench.name("t")
        const lookup = Effect.map(
          ask(bench, "GET", `lookup?topic=${topic}`, lookupd),
          ([status, json]) => [status, (json as { readonly producers?: ReadonlyArray<unknown> }).producers?.length] // documented
        )
        const missing = yield* lookup
        yield* createTopic(bench, topic)
        const known = yield* until(lookup, ([, producers]) => producers === 1)
        yield* ask(bench, "POST", `topic/delete?topic=${topic}`)
        return [missing, known, yield* until(lookup, ([, producers]) => producers === 0)]
      }),
    answer: [
      [404, undefined],
      [200, 1],
      [200, 0]
    ]
  }
]
