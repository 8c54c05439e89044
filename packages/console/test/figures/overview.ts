/**
 * Measures the overview of 200 queues, each with its dead-letter queue: the first page of a console that has just started, and
 * later ones, each of which asks the broker anew.
 *
 *     node --conditions=@requeue/source test/figures/overview.ts URL [--filled]
 */
import * as Effect from "effect/Effect"
import { BrokerSource, Console } from "../../src/index.ts"
import * as Queues from "./queues.ts"

const [url = "memory:", isFilled] = process.argv.slice(2)
const queues = Queues.names(200)

/** Milliseconds between two pages, after which an answer is no longer good. */
const pause = 2500

const median = (all: ReadonlyArray<number>): number => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!

const program = Effect.gen(function* () {
  const config = yield* Queues.configured(url, queues)
  if (isFilled === undefined) yield* Queues.filled(config, queues)
  const brokers = yield* BrokerSource.ofConfiguration(config)
  const { fetch } = yield* Console.make({ brokers, audit: () => {} })
  const page = Effect.promise(async () => {
    const begun = performance.now()
    const response = await fetch(new Request("http://localhost/"), { address: "127.0.0.1" })
    const text = await response.text()
    const unknown = text.match(/>–</g)?.length ?? 0
    return { millis: performance.now() - begun, size: text.length, unknown, isLate: text.includes("not answered yet") }
  })
  const first = yield* page
  const later: Array<Effect.Success<typeof page>> = []
  for (let n = 0; n < 10; n++) {
    yield* Effect.sleep(pause)
    later.push(yield* page)
  }
  const times = later.map(({ millis }) => Math.round(millis))
  console.log(JSON.stringify({ first, p50: median(times), max: Math.max(...times), times, last: later.at(-1) }))
})

await Effect.runPromise(Effect.scoped(program))
