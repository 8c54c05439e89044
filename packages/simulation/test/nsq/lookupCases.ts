/** The known nsqd, and the reports where they cannot be known: nsqlookupd restarts, is away, or answers nonsense. */
import { NsqOperator } from "@requeue/adapter-nsq"
import type { Driver, HttpResponse } from "@requeue/adapter-nsq/driver"
import { Wait, Workload } from "@requeue/conformance"
import { type Broker, BrokerError, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { type Bench, consume, no, type OwnCase, recorded, type Run, send } from "./Bench.ts"

const queue = "orders"
const lookup = "http://lookup:4161"

const broken: ReadonlyArray<readonly [string, (bench: Bench) => void, ReadonlyArray<RegExp>]> = [
  ["is away", ({ lookupd }) => lookupd.restart(1e9), [/nsqlookupd does not answer: .*lookup:4161.*ECONNREFUSED/]],
  ["has restarted and knows no nsqd", ({ lookupd }) => lookupd.restart(1), []]
]

const ready = (broker: Broker.Service) => Effect.map(broker.admin.counts(`${queue}.dlq`), (counts) => counts.ready)

const lasting = ([name, breakIt, missing]: (typeof broken)[number]): OwnCase => ({
  name: `while nsqlookupd ${name}, counts, browsers, redrives and purges reach every nsqd that a process is connected to`,
  settings: {
    nodes: 3,
    by: "nsqlookupd",
    options: { requestTimeout: 3000, publishOver: "all", lookupdInterval: 500 }
  },
  program: (bench) =>
    bench.on((broker) =>
      Effect.gen(function* () {
        const told = (all: ReadonlyArray<BrokerError.BrokerError>) => {
          assert.lengthOf(all, missing.length)
          for (const [index, text] of missing.entries()) assert.match(all[index]!.message, text)
        }
        yield* consume(queue, [], { retry: RetryPolicy.make({ maxRetries: 0 }), concurrency: 10 }, no)
        yield* Workload.publishAll(broker, queue, Workload.ids(30), 1)
        const dead = yield* DeadLetters.make(`${queue}.dlq`)
        const letters = Effect.map(ready(broker), (count) => count === 30 || undefined)
        yield* Wait.found("the dead letters", letters)
        // Another process, which has published nothing, and consumes nothing.
        const idle = yield* bench.open()
        breakIt(bench)
        yield* Effect.sleep(2)
        for (const each of [broker, idle]) {
          const { missing: unknown = [], ready: count } = yield* each.admin.counts(`${queue}.dlq`)
          assert.strictEqual(count, 30)
          told(unknown)
        }
        assert.lengthOf(yield* dead.list(), 30)
        assert.strictEqual((yield* dead.group())[0]?.count, 30)
        assert.strictEqual((yield* dead.redrive({ limit: 10 })).redriven, 10)
        yield* Wait.found("those that come back", letters)
        assert.strictEqual(yield* dead.purge({ all: true }), 30)
        told(yield* dead.missing)
      })
    )
})

const startError = ({ open }: Bench) =>
  Effect.filterOrFail(Effect.flip(Effect.scoped(open())), (error) => error instanceof BrokerError.BrokerError)

const unknown: ReadonlyArray<OwnCase> = [
  {
    name: "after a restart of nsqlookupd, a process without a connection reports that no nsqd is registered",
    settings: { nodes: 2, by: "nsqlookupd" },
    program: (bench) =>
      Effect.gen(function* () {
        bench.lookupd.restart(1)
        yield* Effect.sleep(2)
        const questions: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          NsqOperator.pause(queue, bench.options),
          NsqOperator.verify(queue, bench.options)
        ]
        for (const question of questions) {
          const error = yield* Effect.flip(bench.within(question))
          assert.match(String(error), /no nsqd is registered with http:\/\/lookup:4161/)
        }
        assert.match((yield* startError(bench)).message, /no nsqd is registered with http:\/\/lookup:4161/)
      })
  },
  {
    name: "while nsqlookupd is away, an nsqd that is given is asked, and the rest is reported as unknown",
    settings: { options: { lookupd: ["nowhere:4161"] } },
    program: (bench) =>
      Effect.gen(function* () {
        yield* bench.on((broker) =>
          Effect.gen(function* () {
            yield* send(broker, queue, "m")
            const { missing = [], ready: count } = yield* broker.admin.counts(queue)
            assert.strictEqual(count, 1)
            assert.match(missing.join(), /nsqlookupd does not answer: .*nowhere:4161/)
          })
        )
        const findings = yield* bench.within(NsqOperator.verify(queue, bench.options))
        assert.match(findings.map(({ detail }) => detail).join(), /nsqlookupd does not answer/)
      })
  }
]

/** Answers some requests itself. */
const answering =
  (answer: (url: string, path: string) => Partial<HttpResponse> | Promise<HttpResponse> | undefined) =>
  (driver: Driver): Driver => ({
    ...driver,
    ask: (base, path, options) => {
      const own = answer(base.url, path)
      if (own === undefined) return driver.ask(base, path, options)
      return own instanceof Promise ? own : Promise.resolve({ status: 200, body: "", date: undefined, ...own })
    }
  })

const nonsense = (
  [
    ["garbage", { body: "<html>" }, /Unexpected token/],
    ["nothing", {}, /not from NSQ: undefined/],
    ["null", { body: "null" }, /not from NSQ: null/],
    ["a list", { body: "[]" }, /not from NSQ: \[\]/],
    ["no list of nsqd", { body: '{"producers":null}' }, /not from NSQ: \{"producers":null\}/],
    ["an error", { status: 500, body: "oops" }, /HTTP status 500/],
    ["never", new Promise<HttpResponse>(() => {}), /no answer within 1s/]
  ] as const
).map(
  ([name, answer, because]): OwnCase => ({
    name: `a start reports why no nsqd is known where nsqlookupd answers ${name}`,
    settings: {
      by: "nsqlookupd",
      options: { requestTimeout: 1000 },
      driver: answering((url) => (url === lookup ? answer : undefined))
    },
    program: (bench) =>
      Effect.map(startError(bench), ({ message, remedy }) => {
        assert.match(message, /nsqlookupd does not answer: http:\/\/lookup:4161: /)
        assert.match(message, because)
        assert.match(remedy ?? "", /lookupd/)
      })
  })
)

const topic = { topic_name: "t", depth: 0, channels: [] }
const channel = { channel_name: "requeue", depth: 1, in_flight_count: 0, deferred_count: 0 }
const statistics = (...topics: ReadonlyArray<unknown>) => JSON.stringify({ version: "1.3.0", topics })

const lies = [
  "null",
  "[]",
  "{}",
  '{"topics":null}',
  '{"version":"1.3.0","topics":"all"}',
  statistics(null),
  statistics({ ...topic, depth: -3 }),
  statistics({ ...topic, channels: null }),
  statistics({ ...topic, channels: [{ ...channel, in_flight_count: -10 }] }),
  statistics({ ...topic, channels: [{ ...channel, depth: "x" }] }),
  statistics({ ...topic, channels: [null] })
].map(
  (answer): OwnCase => ({
    name: `an nsqd whose HTTP interface answers nonsense is missing, with its answer: ${answer}`,
    settings: {
      nodes: 2,
      driver: answering((url, path) =>
        url === "http://n1:4151" && path.startsWith("stats") ? { body: answer } : undefined
      )
    },
    program: ({ on }) =>
      on((broker) =>
        Effect.gen(function* () {
          yield* send(broker, queue, "m")
          const { missing = [], ...counts } = yield* broker.admin.counts(queue)
          assert.deepStrictEqual(counts, { ready: 1, inFlight: 0, delayed: 0 })
          assert.lengthOf(missing, 1)
          assert.include(missing[0]!.message, "n1:4150")
          assert.include(missing[0]!.message, `not from NSQ: ${answer}`)
        })
      )
  })
)

/** A consumer that has found its nsqd goes on, whatever nsqlookupd says. */
const stale: OwnCase = {
  name: "a consumer stays with the nsqd that it has, while nsqlookupd has forgotten them, and finds a topic on a further one later",
  settings: { nodes: 2, by: "nsqlookupd", options: { lookupdInterval: 500 } },
  program: ({ lookupd, network, nsqd: [first, second], on }) =>
    on((broker) =>
      Effect.gen(function* () {
        const sent = recorded(network)
        const subscriptions = () =>
          sent("SUB").filter(({ command, nsqd }) => nsqd === first && command.args[0] === queue)
        const runs: Array<Run> = []
        first!.topic(queue).channel("requeue")
        yield* consume(queue, runs)
        yield* send(broker, queue, "a")
        yield* Wait.until("a run", () => runs.length === 1)
        lookupd.restart(3000)
        yield* Effect.sleep(10_000)
        first!.topic(queue).put(Buffer.from(JSON.stringify("b")), 0, undefined)
        yield* Wait.until("a run", () => runs.length === 2)
        second!.topic(queue).put(Buffer.from(JSON.stringify("c")), 0, undefined)
        yield* Wait.until("a run from the other", () => runs.length === 3)
        assert.lengthOf(subscriptions(), 1)
      })
    )
}

export const cases: ReadonlyArray<OwnCase> = [...broken.map(lasting), ...unknown, ...nonsense, ...lies, stale]
