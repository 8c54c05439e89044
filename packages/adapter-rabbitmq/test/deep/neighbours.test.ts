/** One route fails for good, under load on others: those see nothing of it. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { permit, readerAndWriter } from "../real/adoptedBooks.ts"
import { counted } from "./counted.ts"
import { server } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const one = await server()
const { managementUrl } = one.broker

/** Sends to a route, at a steady pace, for as long as the scope lives. */
const load = (broker: Broker.Service, queue: string, perSecond: number, delay = 0) =>
  Effect.gen(function* () {
    let sent = 0
    const failed: Array<string> = []
    const confirmed: Array<string> = []
    const send = (id: string) =>
      Effect.match(broker.publish([outgoing(queue, id, { delay })]), {
        onFailure: ({ reason }) => void failed.push(reason),
        onSuccess: () => void confirmed.push(id)
      })
    const began = performance.now()
    yield* Effect.forkScoped(
      Effect.forever(
        Effect.gen(function* () {
          const due = ((performance.now() - began) * perSecond) / 1000
          while (sent < due) yield* Effect.forkScoped(send(`m${sent++}`))
          yield* Effect.sleep(4)
        })
      )
    )
    return { queue, failed, confirmed }
  })

/** The exchange by which a delay of 800 ms enters the levels; one of 100 ms does not pass it. */
const entry = (prefix: string) => `${prefix}.v1.q.level.50.4`

const all = ".*"
const allBut = (name: string) => `^(?!${name.replaceAll(".", "\\.")}$).*`

const kinds: ReadonlyArray<{
  readonly name: string
  /** The names that may be configured, and those that may be written. */
  readonly permissions: (exchange: string) => readonly [configure: string, write: string]
  readonly isGone: boolean
}> = [
  {
    name: "is gone and may not be declared",
    permissions: (exchange) => [allBut(exchange), all],
    isGone: true
  },
  {
    name: "may not be written",
    permissions: (exchange) => [all, allBut(exchange)],
    isGone: false
  }
]

test.runIf(managementUrl !== undefined).each(kinds.flatMap((kind) => [5, 100].map((rate) => ({ ...kind, rate }))))(
  "an exchange that $name, sent to $rate times a second, disturbs no other route",
  async ({ isGone, permissions, rate }) => {
    const [prefix, user] = [queueName("p").slice(0, 20), queueName("user")]
    const [bad, other, later] = [queueName("bad"), queueName("other"), queueName("later")]
    const exchange = entry(prefix)
    const login = await readerAndWriter(managementUrl!, user)
    await permit(managementUrl!, user, all)
    const sent = new Map<string, ReadonlyArray<string>>()
    await on({ url: one.proxied, ...login, prefix }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(bad, "first", { delay: 800 }), outgoing(later, "first", { delay: 100 })])
        const [neighbour, delayed] = [yield* load(broker, other, 250), yield* load(broker, later, 250, 100)]
        yield* until("a start", () => neighbour.confirmed.length > 50 && delayed.confirmed.length > 50)
        yield* Effect.promise(() => permit(managementUrl!, user, ...permissions(exchange)))
        if (isGone) yield* Effect.promise(() => raw(one.url, (channel) => channel.deleteExchange(exchange)))
        const seen = yield* counted(one)
        const refused = yield* load(broker, bad, rate, 800)
        yield* Effect.sleep("5 seconds")
        assert.isAtMost(seen.channels(), 100)
        assert.isAtMost(seen.declarations(), 500)
        assert.deepStrictEqual([...new Set(refused.failed)], ["AccessRefused"])
        assert.deepStrictEqual(refused.confirmed, [])
        for (const { confirmed, failed, queue } of [neighbour, delayed]) {
          assert.deepStrictEqual(failed, [], queue)
          sent.set(queue, [...confirmed])
        }
      })
    )
    for (const [queue, confirmed] of sent) {
      const queued: Array<string> = []
      const look = Effect.promise(async () => queued.push(...(await drainIds(one.url, queue))))
      const isThere = () => Effect.runPromise(Effect.map(look, () => confirmed.every((id) => queued.includes(id))))
      await Effect.runPromise(until(`what was confirmed in ${queue}`, isThere))
      assert.strictEqual(queued.length, new Set(queued).size, `messages of ${queue} that are there twice`)
    }
  }
)
