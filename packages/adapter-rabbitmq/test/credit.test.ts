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
  const timers: Array<() => void> = []
  const credit = Credit.make({
    uniqueName: () => `c${++names}`,
    after: (_, run) => timers.push(run),
    consume: (consumer) => {
      consumers.push(consumer)
      return ask(`consume ${consumer.name} ${consumer.prefetch}`)
    },
    cancel: ({ name }) => ask(`cancel ${name}`)
  })
  /** Answers what was asked first. */
  const answer = async () => {
    open.shift()!()
    await new Promise((resolve) => setImmediate(resolve))
  }
  /** Answers everything that is asked, and what is asked then. */
  const settle = async () => {
    while (open.length > 0) await answer()
  }
  return { answer, credit, consumers, log, settle, pass: () => timers.splice(0).forEach((run) => run()) }
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

  it("stops when the server has ended all consumers, one that it is about to begin among them", async () => {
    const { answer, credit, log } = fake()
    let isStopped = false
    credit.set(2)
    const stopping = credit.stop().then(() => (isStopped = true))
    await answer()
    assert.deepStrictEqual(log, ["consume c1 2", "cancel c1"])
    assert.isFalse(isStopped)
    await answer()
    await stopping
    await credit.stop()
    assert.lengthOf(log, 2)
  })

  it("stops when the channel ends", async () => {
    const { answer, credit } = fake()
    credit.set(2)
    const stopping = credit.stop()
    credit.end()
    await answer()
    await stopping
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

  it("does not wait for ever for deliveries that are held, and asks for few consumers", async () => {
    const { consumers, credit, log, pass, settle } = fake()
    credit.set(20)
    await settle()
    for (let i = 0; i < 20; i++) credit.arrived(consumers[0]!)
    credit.set(19)
    await settle()
    // Two of the twenty are held for hours.
    for (let i = 0; i < 18; i++) credit.settled(consumers[0]!)
    await settle()
    assert.deepStrictEqual(log.slice(2), ["consume c2 1", "consume c3 16"])
    credit.set(22)
    await settle()
    assert.deepStrictEqual(log.slice(4), [])
    pass()
    await settle()
    assert.deepStrictEqual(log.slice(4), ["consume c4 3"])
  })

  it("is on few consumers, however often it grows", async () => {
    const { consumers, credit, log, settle } = fake()
    for (let limit = 1; limit <= 100; limit++) {
      credit.set(limit)
      await settle()
      const live = consumers.filter(({ isCancelled }) => !isCancelled)
      assert.isAtMost(live.length, 8)
      assert.strictEqual(
        live.reduce((sum, { prefetch }) => sum + prefetch, 0),
        limit
      )
    }
    assert.isAtMost(log.length, 250)
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
      fc.record({ set: fc.integer({ min: 0, max: 24 }) }),
      fc.constant("deliver" as const),
      fc.constant("settle" as const),
      fc.constant("hold" as const),
      fc.constant("pass" as const),
      fc.constant("answer" as const)
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        // A model of the server: consumers with room, and the deliveries that they have.
        const rooms = new Set<Credit.Consumer>()
        const out: Array<Credit.Consumer> = []
        /** Those that are never settled. */
        const held: Array<Credit.Consumer> = []
        const requests: Array<() => void> = []
        const timers: Array<() => void> = []
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
          after: (_, run) => timers.push(run),
          consume: (consumer) => ask(() => rooms.add(consumer)),
          cancel: (consumer) => ask(() => rooms.delete(consumer))
        })
        const unsettled = (consumer: Credit.Consumer) => [...out, ...held].filter((each) => each === consumer).length
        const deliver = () => {
          const free = [...rooms].find((consumer) => unsettled(consumer) < consumer.prefetch)
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
          else if (each === "pass") timers.shift()?.()
          else if (each === "hold") held.push(...out.splice(0, 1))
          else {
            const consumer = out.shift()
            if (consumer !== undefined) credit.settled(consumer)
          }
        }
        /** Answers all requests, and lets the time pass. */
        const rest = async () => {
          while (requests.length + timers.length > 0) {
            while (requests.length > 0) await answer()
            timers.shift()?.()
          }
        }
        await rest()
        const total = () => out.length + held.length
        const before = total()
        while (deliver()) assert.isAtMost(total(), Math.max(limit, before))
        while (out.length > 0) credit.settled(out.shift()!)
        await rest()
        while (deliver());
        assert.strictEqual(total(), Math.max(limit, held.length))
        assert.isAtMost(rooms.size, 8)
      }),
      { numRuns: 300 }
    )
  })
})
