/** The settler of a channel: what it acknowledges, in how many frames, and what waits for a copy. */
import * as fc from "fast-check"
import { assert, describe, test } from "vitest"
import type { Channel, Incoming } from "../src/internal/client.ts"
import type { Consumer, Credit } from "../src/internal/consume/credit.ts"
import type { Receipt } from "../src/internal/consume/receipt.ts"
import { make } from "../src/internal/consume/settler.ts"

interface Tagged {
  readonly fields: { readonly deliveryTag: number }
}

const consumer: Consumer = { name: "c", prefetch: 100, unsettled: 0, isCancelled: false }

/** A server that knows what it waits for, and a settler that answers it. */
const world = () => {
  const unanswered = new Set<number>()
  const acked = new Set<number>()
  let [frames, settled, tag, isOpen] = [0, 0, 0, true]
  let moments: Array<() => void> = []
  let barrier: Promise<void> | undefined

  const answer = (asked: ReadonlyArray<number>): void => {
    frames++
    // A real server closes the channel.
    if (asked.length === 0) throw new Error("unknown delivery tag")
    for (const each of asked) unanswered.delete(each)
  }
  const requeued = ({ fields: { deliveryTag } }: Tagged) => answer([deliveryTag].filter((each) => unanswered.has(each)))
  const channel = {
    ack: ({ fields: { deliveryTag } }: Tagged, all: boolean) => {
      const asked = [...unanswered].filter((each) => (all ? each <= deliveryTag : each === deliveryTag))
      answer(asked)
      for (const each of asked) acked.add(each)
    },
    nack: requeued,
    reject: requeued
  } as unknown as Channel
  const credit = { barrier: () => barrier, settled: () => void settled++ } as unknown as Credit
  const settler = make({
    channel,
    credit,
    end: () => (isOpen = false),
    isOpen: () => isOpen,
    after: (_, run) => void moments.push(run),
    wrote: () => {}
  })
  const arrive = (): Receipt => {
    const receipt: Receipt = {
      tag: ++tag,
      state: "open",
      settler,
      consumer,
      message: {} as Incoming,
      returns: 0,
      formerReturns: undefined,
      isUncounted: false,
      name: null
    }
    unanswered.add(receipt.tag)
    settler.add(receipt)
    return receipt
  }
  return {
    settler,
    acked,
    arrive: (count: number) => Array.from({ length: count }, arrive),
    ack: (...receipts: ReadonlyArray<Receipt>) => {
      for (const receipt of receipts) settler.claim(receipt)
      return settler.ack(receipts)
    },
    moment: () => {
      const due = moments
      moments = []
      for (const run of due) run()
    },
    seen: () => ({ frames, acked: acked.size, settled }),
    isOpen: () => isOpen,
    /** Credit falls, and its cancels are written when the function is called that this returns. */
    lower: () => {
      let written: () => void = () => {}
      barrier = new Promise((resolve) => {
        written = () => {
          barrier = undefined
          resolve()
        }
      })
      return () => written()
    }
  }
}

/** A hundred deliveries, of which a copy of the first is under way. */
const behindCopy = () => {
  const one = world()
  const [copied, ...others] = one.arrive(100) as [Receipt, ...Array<Receipt>]
  one.settler.claim(copied)
  return { ...one, copied, others }
}

describe("acknowledgements behind a copy that is not stored yet", () => {
  test("wait for it, and are one frame with it", () => {
    const { ack, copied, others, seen } = behindCopy()
    ack(...others.slice(0, 20))
    ack(...others.slice(20, 40))
    assert.deepStrictEqual(seen(), { frames: 0, acked: 0, settled: 0 })
    ack(copied)
    assert.deepStrictEqual(seen(), { frames: 1, acked: 41, settled: 41 })
  })

  test("wait no longer when it is not stored", () => {
    const { ack, copied, others, seen, settler } = behindCopy()
    ack(...others.slice(0, 20))
    settler.unclaim(copied)
    assert.deepStrictEqual(seen(), { frames: 20, acked: 20, settled: 20 })
  })

  test("wait for a moment at most", () => {
    const { ack, moment, others, seen } = behindCopy()
    ack(...others.slice(0, 20))
    moment()
    assert.deepStrictEqual(seen(), { frames: 20, acked: 20, settled: 20 })
    ack(...others.slice(20, 30))
    moment()
    assert.strictEqual(seen().acked, 30)
  })

  test("wait no longer when the channel is about to close", () => {
    const { ack, others, seen, settler } = behindCopy()
    ack(...others.slice(0, 20))
    settler.flush()
    assert.strictEqual(seen().acked, 20)
    ack(others[20]!)
    assert.strictEqual(seen().acked, 21)
  })

  test("are not waited for by a channel that is about to close, and the copy is", async () => {
    const { ack, copied, settler } = behindCopy()
    let isOver = false
    const over = settler.copied().then(() => (isOver = true))
    await Promise.resolve()
    assert.isFalse(isOver)
    ack(copied)
    await over
  })

  test("wait for no handler", () => {
    const one = world()
    const [, second] = one.arrive(100)
    one.ack(second!)
    assert.strictEqual(one.seen().acked, 1)
  })
})

/** The end of the job of the event loop. */
const endOfJob = () => new Promise(setImmediate)

describe("a message that goes back", () => {
  test("does so at the end of the job, and acknowledgements behind it are one frame", async () => {
    const { ack, arrive, seen, settler } = world()
    const [back, ...others] = arrive(20) as [Receipt, ...Array<Receipt>]
    settler.claim(back)
    assert.isTrue(settler.requeue(back, "Nack"))
    ack(...others)
    assert.deepStrictEqual(seen(), { frames: 0, acked: 0, settled: 0 })
    await endOfJob()
    assert.deepStrictEqual(seen(), { frames: 2, acked: 19, settled: 20 })
  })

  test("waits until the cancels of lowered credit are written, and the channel does not close before", async () => {
    const { arrive, lower, seen, settler } = world()
    const [back] = arrive(1) as [Receipt]
    settler.claim(back)
    settler.requeue(back, "Reject")
    const written = lower()
    let isOver = false
    const over = settler.copied().then(() => (isOver = true))
    await endOfJob()
    assert.deepStrictEqual([seen().frames, isOver], [0, false])
    written()
    await over
    assert.deepStrictEqual(seen(), { frames: 1, acked: 0, settled: 1 })
  })
})

test("whatever comes, is copied, fails and is given back: all that was acknowledged is, once, and nothing else", async () => {
  const index = fc.nat({ max: 200 })
  const step = fc.oneof(
    fc.record({ arrive: fc.integer({ min: 1, max: 50 }) }),
    fc.record({ ack: fc.array(index, { maxLength: 60 }) }),
    fc.record({ copy: index }),
    fc.record({ stored: index }),
    fc.record({ failed: index }),
    fc.record({ back: index, how: fc.constantFrom("Reject", "Nack") }),
    fc.constant({ moment: true })
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { ack, acked, arrive, isOpen, moment, seen, settler } = world()
      const [open, copying]: [Array<Receipt>, Array<Receipt>] = [[], []]
      const asked = new Set<number>()
      let back = 0
      const take = (from: Array<Receipt>, at: number) => from.splice(at % Math.max(1, from.length), 1)
      const acking = (receipts: ReadonlyArray<Receipt>): void => {
        for (const { tag } of receipts) asked.add(tag)
        if (receipts.length > 0) ack(...receipts)
      }
      for (const each of steps) {
        if ("arrive" in each) open.push(...arrive(each.arrive))
        else if ("ack" in each) acking(each.ack.flatMap((at) => take(open, at)))
        else if ("stored" in each) acking(take(copying, each.stored))
        else if ("copy" in each)
          for (const one of take(open, each.copy)) {
            settler.claim(one)
            copying.push(one)
          }
        else if ("failed" in each)
          for (const one of take(copying, each.failed)) {
            settler.unclaim(one)
            open.push(one)
          }
        else if ("back" in each)
          for (const one of take(open, each.back)) {
            settler.claim(one)
            settler.requeue(one, each.how)
            back++
          }
        else moment()
        await Promise.resolve()
        assert.isTrue([...acked].every((tag) => asked.has(tag)))
        assert.strictEqual(seen().settled, acked.size + back, "credit is for what the server knows")
        const oldest = Math.min(...copying.map(({ tag }) => tag))
        assert.isTrue(
          [...asked].every((tag) => acked.has(tag) || tag > oldest),
          "what waits, waits for a copy"
        )
      }
      settler.flush()
      assert.deepStrictEqual(acked, asked)
      assert.isTrue(isOpen())
    })
  )
})
