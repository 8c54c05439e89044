/** Random lives of a queue, against a model too simple to be wrong. */
import { assert, it } from "@effect/vitest"
import { type Delivery } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { MemoryBroker } from "../src/index.ts"
import { probe, send, text } from "./harness.ts"

const boom = { name: "Boom", message: "no" }
const delays = fc.constantFrom(0, 0, 1, 5, 20)
const who = fc.nat({ max: 1 })

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("publish"), delay: delays }),
    fc.record({ do: fc.constant("credit"), who, limit: fc.nat({ max: 3 }) }),
    fc.record({
      do: fc.constant("settle"),
      who,
      which: fc.nat({ max: 2 }),
      as: fc.constantFrom("Ack", "Retry", "Release", "DeadLetter", "Drop"),
      delay: delays
    }),
    fc.record({ do: fc.constant("advance"), millis: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ do: fc.constant("cut") })
  ) as fc.Arbitrary<Step>,
  { maxLength: 60, size: "max" }
)

type Step =
  | { readonly do: "publish"; readonly delay: number }
  | { readonly do: "credit"; readonly who: number; readonly limit: number }
  | {
      readonly do: "settle"
      readonly who: number
      readonly which: number
      readonly as: Settlement.Settlement["_tag"]
      readonly delay: number
    }
  | { readonly do: "advance"; readonly millis: number }
  | { readonly do: "cut" }

interface Entry {
  readonly id: string
  deliveries: number
  place: number
  due: number
}

/** A queue as two arrays. */
const model = () => {
  const entries = new Map<string, Entry>()
  const ready: Array<Entry> = []
  let delayed: Array<Entry> = []
  let now = 0
  let places = 0
  const join = (entry: Entry) => {
    entry.place = places++
    ready.push(entry)
  }
  const enqueue = (id: string, delay: number) => {
    const entry = entries.get(id)!
    entry.due = now + delay
    if (delay === 0) join(entry)
    else delayed.push(entry)
  }
  return {
    enqueue,
    publish: (id: string, delay: number) => {
      entries.set(id, { id, deliveries: 0, place: 0, due: 0 })
      enqueue(id, delay)
    },
    release: (id: string, delay: number) => {
      entries.get(id)!.deliveries--
      if (delay > 0) return enqueue(id, delay)
      ready.push(entries.get(id)!)
      ready.sort((a, b) => a.place - b.place)
    },
    lose: (ids: ReadonlyArray<string>) => {
      ready.push(...ids.map((id) => entries.get(id)!))
      ready.sort((a, b) => a.place - b.place)
    },
    advance: (millis: number) => {
      now += millis
      const due = delayed.filter((entry) => entry.due <= now).toSorted((a, b) => a.due - b.due)
      delayed = delayed.filter((entry) => entry.due > now)
      due.forEach(join)
    },
    deliver: (credit: number): ReadonlyArray<string> =>
      ready.splice(0, credit).map((entry) => `${entry.id}#${++entry.deliveries}`),
    due: (id: string) => entries.get(id)!.due,
    counts: () => ({ ready: ready.length, delayed: delayed.length }),
    now: () => now
  }
}

const settlement = (step: Extract<Step, { do: "settle" }>): Settlement.Settlement => {
  switch (step.as) {
    case "Ack":
      return Settlement.Ack
    case "Retry":
      return Settlement.Retry(step.delay)
    case "Release":
      return Settlement.Release(step.delay)
    case "DeadLetter":
      return Settlement.DeadLetter("permanent", "q.dlq", boom)
    case "Drop":
      return Settlement.Drop("dropped", boom)
  }
}

const live = (life: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const { broker, control } = yield* MemoryBroker.makeControlled()
    const expected = model()
    let arrived: Array<Delivery.Delivery> = []
    const arrive = (delivery: Delivery.Delivery) => {
      arrived.push(delivery)
      assert.isAtLeast(expected.now(), expected.due(text(delivery)), "never early")
    }
    const consumers = [yield* probe(broker, "q", 0, arrive), yield* probe(broker, "q", 0, arrive)] as const
    const credits: [number, number] = [0, 0]
    let published = 0
    let gone = 0
    let dead = 0

    const apply = Effect.fnUntraced(function* (step: Step) {
      switch (step.do) {
        case "publish": {
          const id = `m${published++}`
          expected.publish(id, step.delay)
          return yield* send(broker, "q", [id], step.delay)
        }
        case "credit": {
          credits[step.who] = step.limit
          return consumers[step.who]!.credit(step.limit)
        }
        case "settle": {
          const consumer = consumers[step.who]!
          const [delivery] = consumer.inbox.splice(step.which, 1)
          if (delivery === undefined) return
          const id = text(delivery)
          if (step.as === "Retry") expected.enqueue(id, step.delay)
          else if (step.as === "Release") expected.release(id, step.delay)
          else if (step.as === "DeadLetter") dead++
          else gone++
          assert.deepStrictEqual(yield* consumer.settleOne(delivery, settlement(step)), [])
          const again = yield* consumer.settleOne(delivery, Settlement.Ack)
          return assert.strictEqual(again[0]?.error.reason, "LeaseLost")
        }
        case "advance": {
          expected.advance(step.millis)
          return yield* TestClock.adjust(step.millis)
        }
        case "cut": {
          expected.lose(consumers.flatMap(({ inbox }) => inbox.splice(0).map(text)))
          return yield* control.cut
        }
      }
    })

    for (const step of life) {
      arrived = []
      const before = consumers.map(({ inbox }) => inbox.length)
      yield* apply(step)
      const spare = consumers.map(({ inbox }, i) => {
        const kept = inbox.filter((delivery) => !arrived.includes(delivery)).length
        assert.isAtMost(inbox.length, Math.max(credits[i]!, before[i]!), "credit is never exceeded")
        return Math.max(0, credits[i]! - kept)
      })
      assert.deepStrictEqual(
        arrived.map((delivery) => `${text(delivery)}#${delivery.attempts}`),
        expected.deliver(spare[0]! + spare[1]!)
      )
      const inFlight = consumers[0].inbox.length + consumers[1].inbox.length
      const counts = yield* broker.admin.counts("q")
      assert.deepStrictEqual(counts, { ...expected.counts(), inFlight })
      const letters = yield* broker.admin.counts("q.dlq")
      assert.deepStrictEqual(letters, { ready: dead, inFlight: 0, delayed: 0 })
      assert.strictEqual(published, gone + dead + counts.ready! + counts.delayed! + inFlight, "nothing is lost")
    }
  }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))

it("lives as the model does", () =>
  fc.assert(
    fc.asyncProperty(steps, (life) => Effect.runPromise(live(life))),
    { numRuns: process.env["REQUEUE_CAMPAIGNS"] === "1" ? 5000 : 200 }
  ))
