import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Credit from "../src/internal/consume/credit.ts"

/** A channel that writes down what is asked, and answers one request at a time when told to. */
const fake = () => {
  const log: Array<string> = []
  const open: Array<() => void> = []
  let names = 0
  const ask = (text: string) => {
    log.push(text)
    return new Promise<void>((resolve) => open.push(resolve))
  }
  const consumers: Array<Credit.Consumer> = []
  const credit = Credit.make({
    uniqueName: () => `c${++names}`,
    consume: (consumer) => {
      consumers.push(consumer)
      return ask(`consume ${consumer.name} ${consumer.prefetch}`)
    },
    cancel: ({ name }) => ask(`cancel ${name}`)
  })
  /** Answers everything that is asked, and what is asked then. */
  const settle = async () => {
    while (open.length > 0) {
      open.shift()!()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { credit, consumers, log, settle }
}

describe("credit", () => {
  it("starts with nothing", () => assert.deepStrictEqual(fake().log, []))

  it("is one consumer with so much prefetch", async () => {
    const { credit, log, settle } = fake()
    credit.set(20)
    await settle()
    credit.set(20)
    await settle()
    assert.deepStrictEqual(log, ["consume c1 20"])
  })

  it("0 cancels at once, so that what is settled later is written later", async () => {
    const { credit, log, settle } = fake()
    credit.set(2)
    await settle()
    credit.set(0)
    assert.deepStrictEqual(log, ["consume c1 2", "cancel c1"])
    assert.isUndefined(credit.barrier())
  })

  it("0 while a request is open holds settlements back until the cancel is written", async () => {
    const { credit, log, settle } = fake()
    credit.set(2)
    credit.set(0)
    const barrier = credit.barrier()
    assert.isDefined(barrier)
    await settle()
    await barrier
    assert.deepStrictEqual(log, ["consume c1 2", "cancel c1"])
  })

  it("counts what cancelled consumers left unsettled", async () => {
    const { consumers, credit, log, settle } = fake()
    credit.set(5)
    await settle()
    for (let i = 0; i < 5; i++) credit.arrived(consumers[0]!)
    credit.set(0)
    await settle()
    credit.set(1)
    await settle()
    assert.deepStrictEqual(log.slice(2), [])
    for (let i = 0; i < 5; i++) credit.settled(consumers[0]!)
    await settle()
    assert.deepStrictEqual(log.slice(2), ["consume c2 1"])
  })

  it("grows by a consumer with the difference", async () => {
    const { consumers, credit, log, settle } = fake()
    credit.set(1)
    await settle()
    credit.arrived(consumers[0]!)
    credit.set(10)
    await settle()
    assert.deepStrictEqual(log, ["consume c1 1", "consume c2 9"])
  })

  it("lets everybody go when the channel ends", async () => {
    const { credit } = fake()
    credit.set(2)
    credit.set(0)
    const barrier = credit.barrier()
    credit.end()
    await barrier
    assert.isUndefined(credit.barrier())
  })

  it("is never exceeded, and always used up in the end, whatever happens in which order", async () => {
    const step = fc.oneof(
      fc.record({ set: fc.integer({ min: 0, max: 8 }) }),
      fc.constant("deliver" as const),
      fc.constant("settle" as const),
      fc.constant("answer" as const)
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        // A model of the server: consumers with room, and the deliveries that they have.
        const rooms = new Set<Credit.Consumer>()
        const out: Array<Credit.Consumer> = []
        const requests: Array<() => void> = []
        let names = 0
        let limit = 0
        const ask = (act: () => void) =>
          new Promise<void>((resolve) =>
            requests.push(() => {
              act()
              resolve()
            })
          )
        const credit = Credit.make({
          uniqueName: () => `c${++names}`,
          consume: (consumer) => ask(() => rooms.add(consumer)),
          cancel: (consumer) => ask(() => rooms.delete(consumer))
        })
        const held = (consumer: Credit.Consumer) => out.filter((each) => each === consumer).length
        const deliver = () => {
          const free = [...rooms].find((consumer) => held(consumer) < consumer.prefetch)
          if (free === undefined) return false
          out.push(free)
          credit.arrived(free)
          return true
        }
        const answer = async () => {
          requests.shift()?.()
          await new Promise((resolve) => setImmediate(resolve))
        }
        for (const each of steps) {
          if (typeof each === "object") credit.set((limit = each.set))
          else if (each === "deliver") deliver()
          else if (each === "answer") await answer()
          else {
            const consumer = out.shift()
            if (consumer !== undefined) credit.settled(consumer)
          }
        }
        while (requests.length > 0) await answer()
        const before = out.length
        while (deliver()) assert.isAtMost(out.length, Math.max(limit, before))
        while (out.length > 0) credit.settled(out.shift()!)
        while (requests.length > 0) await answer()
        while (deliver());
        assert.strictEqual(out.length, limit)
      }),
      { numRuns: 300 }
    )
  })
})
