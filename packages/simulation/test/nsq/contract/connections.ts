/** Opening and closing connections. */
import * as Effect from "effect/Effect"
import { ask, counts, create, nsqd, pub, publish, type Row, settled, subscribe, until } from "./Script.ts"

const failureOf = <A>(effect: Effect.Effect<A, unknown>) => Effect.flip(effect)

export const rows: ReadonlyArray<Row> = [
  {
    name: "IDENTIFY returns the limits of the connection",
    source: "https://nsq.io/clients/tcp_protocol_spec.html#identify",
    script: (bench) =>
      Effect.map(subscribe(bench, bench.name("t"), { timeout: 2000 }), ({ connection }) => {
        const { maxMsgTimeout, maxRdyCount, msgTimeout } = connection.identity
        return { maxMsgTimeout, maxRdyCount, msgTimeout }
      }),
    answer: { maxMsgTimeout: 20_000, maxRdyCount: 10, msgTimeout: 2000 }
  },
  {
    name: "without a request, the lease is that of nsqd, although it is longer than the longest",
    source: `${nsqd}client_v2.go SetMsgTimeout`,
    script: (bench) =>
      Effect.map(subscribe(bench, bench.name("t")), ({ connection }) => connection.identity.msgTimeout),
    answer: 60_000
  },
  {
    name: "SUB creates the topic and the channel",
    source: `${nsqd}protocol_v2.go SUB`,
    script: (bench) =>
      Effect.andThen(
        subscribe(bench, bench.name("t")),
        Effect.suspend(() => counts(bench, bench.name("t")))
      ),
    answer: { topic: 0, work: "0, 0, 0" }
  },
  {
    name: "statistics list the connections of a channel by their client ids",
    source: "https://nsq.io/components/nsqd.html#get-stats",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const [one, other] = [yield* subscribe(bench, topic), yield* subscribe(bench, topic)]
        const [, json] = yield* ask(bench, "GET", `stats?format=json&topic=${topic}&include_clients=true`)
        const text = JSON.stringify(json)
        return [one, other].map(({ connection }) => text.includes(`"client_id":"${connection.clientId}"`))
      }),
    answer: [true, true]
  },
  {
    name: "heartbeats arrive while there are no messages",
    source: "https://nsq.io/clients/tcp_protocol_spec.html#heartbeats",
    script: (bench) =>
      Effect.gen(function* () {
        const { connection } = yield* subscribe(bench, bench.name("t"), { settings: { heartbeat: 1000 } })
        const before = connection.heard()
        yield* until(Effect.sync(connection.heard), (heard) => heard >= before + 2)
        return connection.isOpen()
      }),
    answer: true
  },
  {
    name: "what was written before the end of a connection is carried out",
    source: `${nsqd}protocol_v2.go IOLoop`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { closed, connection, next, write } = yield* subscribe(bench, topic)
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        yield* write(`FIN ${id}`)
        connection.end()
        return [yield* closed, yield* settled(bench, topic)]
      }),
    answer: ["nsqd closed the connection", { topic: 0, work: "0, 0, 0" }]
  },
  {
    name: "a message stays in flight when its connection is gone",
    source: `${nsqd}channel.go RemoveClient`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* create(bench, topic)
        yield* publish(bench, pub(topic, "m"))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { next, write } = yield* subscribe(bench, topic)
            yield* write("RDY 1")
            yield* next
          })
        )
        const clients = ask(bench, "GET", `stats?format=json&topic=${topic}`)
        yield* until(clients, ([, json]) => JSON.stringify(json).includes('"client_count":0'))
        return yield* counts(bench, topic)
      }),
    answer: { topic: 0, work: "0, 1, 0" }
  },
  {
    name: "nothing listens at another port",
    source: "connect(2)",
    script: (bench) => {
      const { driver } = bench
      const address = { ...driver.address, port: 1 }
      return Effect.map(
        failureOf(Effect.scoped(subscribe({ ...bench, driver: { ...driver, address } }, "t"))),
        (text) => String(text).includes("ECONNREFUSED")
      )
    },
    answer: true
  }
]
