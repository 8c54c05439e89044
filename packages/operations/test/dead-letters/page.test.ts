/** Pages of a sweep: what becomes of letters that the broker shows again. */
import { assert, it } from "@effect/vitest"
import { type Broker, BrokerError, type Delivery } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Page from "../../src/dead-letters/internal/page.ts"
import * as Publishing from "../../src/dead-letters/internal/publishing.ts"
import * as Seen from "../../src/dead-letters/internal/seen.ts"
import * as SweepStats from "../../src/dead-letters/internal/sweepStats.ts"

const letter = {
  body: new Uint8Array(),
  headers: {},
  metadata: Metadata.make("a", 0)
} as unknown as Delivery.Delivery // Cast, because nothing else of it is read.

const failed = new BrokerError.BrokerError({
  broker: "test",
  operation: "settle",
  queue: "orders.dlq",
  reason: "LeaseLost",
  detail: "the lease has ended"
})

/** Shows the letter on each of as many pages; the broker has lost it at each removal but the last. */
const shown = (pages: number) =>
  Effect.gen(function* () {
    const calls = { selected: 0, published: 0, removed: 0 }
    const identify = () => "letter"
    const books = SweepStats.make(5, Number.POSITIVE_INFINITY, 0, undefined, identify)
    const sweep: Page.Sweep = {
      browser: {
        next: () => Effect.succeed([]),
        remove: (letters) =>
          Effect.sync(() => {
            const isLast = ++calls.removed === pages
            return isLast ? [] : letters.map((delivery) => ({ delivery, error: failed, fate: "lost" as const }))
          }),
        identify,
        browsed: () => ({ isWhole: false, hidden: 0 })
      } satisfies Broker.Browser,
      books,
      seen: Seen.make(identify),
      work: {
        select: () => ++calls.selected > 0,
        copy: () => Effect.sync(() => void calls.published++)
      },
      admit: () => Effect.void,
      publish: Publishing.make(() => 0, Publishing.ending()),
      now: () => 0,
      end: Publishing.ending(),
      step: Effect.void,
      held: 0,
      undecided: 0
    }
    for (let page = 0; page < pages; page++) yield* Page.work(sweep, [{ delivery: letter, due: undefined }])
    return { ...calls, held: sweep.held, summary: books.summary() }
  })

it.effect("a published letter that was lost is removed when it is shown again, and not published again", () =>
  Effect.gen(function* () {
    const { held, summary, ...calls } = yield* shown(3)
    assert.deepStrictEqual(calls, { selected: 1, published: 1, removed: 3 })
    assert.deepInclude(summary, { selected: 1, removed: 1, unremoved: 0, queued: 4 })
    assert.strictEqual(held, 0)
  })
)
