import { assert, describe, it } from "@effect/vitest"
import type * as Acknowledgement from "../../src/policy/Acknowledgement.ts"
import * as Delay from "../../src/message/Delay.ts"
import type { Received } from "../../src/message/Handler.ts"
import * as fc from "fast-check"

import type { Group, Item } from "../../src/consume/internal/item.ts"
import { Task } from "../../src/consume/internal/task.ts"
import { delivery, item } from "../items.ts"

const render = ([item, verdict]: readonly [Item, Acknowledgement.Verdict | undefined]) =>
  `${item.key} ${verdict?._tag === "Ack" ? "ack" : (verdict?.delay ?? "retry")}`

const start = (...names: ReadonlyArray<string>) => {
  const [final, ignored]: [Array<string>, Array<string>] = [[], []]
  const task = new Task(
    {
      queue: "work",
      longest: 3_600_000,
      onFinal: (...decision) => final.push(render(decision)),
      onIgnored: (item, call) => ignored.push(`${item?.key ?? "batch"} ${call._tag}`),
      enlist: () => Promise.resolve()
    },
    names.map((name) => item(name)),
    0,
    () => {}
  )
  const batch = task.toBatch()
  /** Ends the run so, and tells what was not told before. */
  const close = (outcome: Acknowledgement.Outcome) => {
    task.close()
    return task.items.flatMap((item, index) =>
      task.isReported(index) ? [] : [render([item, task.verdict(index, outcome)])]
    )
  }
  return { task, close, batch, final, ignored, messages: batch.messages as ReadonlyArray<Received<unknown>> }
}

describe("a call that is not made on its message", () => {
  const calls = ["ack", "retry", "fail"] as const
  const others: ReadonlyArray<readonly [string, (message: Received<unknown>) => unknown]> = [
    ["nothing", () => undefined],
    ["a copy", (message) => ({ ...message })],
    ["a clone", (message) => structuredClone(message)],
    ["what inherits from it", (message) => Object.create(message)],
    ["a proxy of it", (message) => new Proxy(message, {})]
  ]
  it.each(others)("but on %s, says so, and decides nothing", (_, toOther) => {
    const { close, messages } = start("a")
    for (const call of calls) {
      const method: unknown = Reflect.get(messages[0]!, call)
      assert.throws(
        () => Reflect.apply(method as () => void, toOther(messages[0]!), []),
        TypeError,
        `message.${call}: must be called on its message, as in message.${call}(); a copy of a message has no methods`
      )
    }
    assert.deepStrictEqual(close("success"), ["a ack"])
  })
})

describe("task", () => {
  it("lets go at once of what nothing can change any more", () => {
    const { batch, final, messages, close } = start("a", "b", "c", "d")
    messages[0]!.ack()
    messages[1]!.retry({ delay: "5 seconds" })
    messages[2]!.retry()
    assert.deepStrictEqual(final, ["a ack", "b 5000"])
    batch.retryAll({ delay: 9 })
    assert.deepStrictEqual(final, ["a ack", "b 5000"])
    messages[3]!.retry({ delay: 0 })
    assert.deepStrictEqual(final, ["a ack", "b 5000", "d 0"])
    assert.deepStrictEqual(close("success"), ["c 9"])
  })

  it("ackAll lets go of all", () => {
    const { batch, final, close } = start("a", "b")
    batch.ackAll()
    assert.deepStrictEqual(final, ["a ack", "b ack"])
    assert.deepStrictEqual(close("failure"), [])
  })

  it("tells of every call that changes nothing, before and after the end", () => {
    const { batch, ignored, messages, close } = start("a", "b")
    messages[0]!.ack()
    messages[0]!.retry()
    batch.ackAll()
    batch.retryAll()
    close("success")
    messages[1]!.ack()
    batch.ackAll()
    assert.deepStrictEqual(ignored, ["a Retry", "batch RetryAll", "b Ack", "batch AckAll"])
  })

  it("counts what is without a verdict", () => {
    const { messages, task } = start("a", "b", "c")
    messages[0]!.ack()
    messages[2]!.retry()
    assert.strictEqual(task.undecided(), 1)
    task.toBatch().ackAll()
    assert.strictEqual(task.undecided(), 0)
  })

  it("abandoned, it parts the decided from the undecided", () => {
    const { batch, final, ignored, messages, task } = start("a", "b", "c", "d")
    messages[0]!.ack()
    messages[1]!.retry()
    task.close()
    const parted = task.items.map((item, index) => {
      const verdict = task.verdict(index, undefined)
      return verdict === undefined ? String(item.key) : render([item, verdict])
    })
    assert.deepStrictEqual(final, ["a ack"])
    assert.deepStrictEqual(parted, ["a ack", "b retry", "c", "d"])
    assert.isTrue(task.isReported(0) && !task.isReported(1))
    batch.ackAll()
    assert.deepStrictEqual(ignored, ["batch AckAll"])
  })

  it("refuses a delay that cannot be, and takes no verdict from the call", () => {
    const { batch, messages, close } = start("a")
    assert.throws(() => messages[0]!.retry({ delay: -1 }), Delay.InvalidDelay, "message.retry.delay")
    assert.throws(() => messages[0]!.retry({ delay: "2 hours" }), Delay.InvalidDelay, "to 1h")
    assert.throws(() => batch.retryAll({ delay: Number.NaN }), Delay.InvalidDelay, "batch.retryAll.delay")
    assert.deepStrictEqual(close("success"), ["a ack"])
  })

  it("shows a message's data as own properties", () => {
    const { metadata } = delivery("a")
    const message = start("a").messages[0]!
    assert.deepStrictEqual(
      { ...message },
      { id: "a", body: "a", headers: {}, timestamp: metadata.firstPublished, attempts: 1 }
    )
    assert.isFalse("receipt" in message)
  })

  it("asks for the broker's own facts when a handler does, and does not print them", () => {
    let asked = 0
    const plain = item("a")
    const get = () => Object.freeze({ memory: ++asked })
    const facts = Object.assign(item("a"), {
      delivery: Object.defineProperty({ ...plain.delivery }, "native", { get })
    })
    const options = {
      queue: "work",
      longest: 0,
      onFinal: () => {},
      onIgnored: () => {},
      enlist: () => Promise.resolve()
    }
    const message = new Task(options, [facts], 0, () => {}).toMessage()
    assert.strictEqual(asked, 0)
    assert.deepStrictEqual(message.native, { memory: 1 })
    assert.isFalse(JSON.stringify(message).includes("memory"))
    const bare = new Task(options, [item("a")], 0, () => {}).toMessage()
    assert.deepStrictEqual(bare.native, {})
    assert.isTrue(Object.isFrozen(bare.native))
  })
})

describe("calls on the messages of a large batch", () => {
  const one: Group = { name: "g", out: new Set(), behind: [], following: new Set(), isClosed: true }

  /** How often a task reads one of its items while all are acked, for each of them. */
  const readsFor = (size: number, group: Group | undefined, order: "forwards" | "backwards"): number => {
    let reads = 0
    const items = Array.from({ length: size }, (_, n) => Object.assign(item(String(n)), { group }))
    const counted = new Proxy(items, {
      get: (target, key, receiver) => {
        if (typeof key === "string" && /^\d+$/.test(key)) reads++
        return Reflect.get(target, key, receiver) as unknown
      }
    })
    let told = 0
    const task = new Task(
      { queue: "work", longest: 0, onFinal: () => told++, onIgnored: () => {}, enlist: () => Promise.resolve() },
      counted,
      0,
      () => {}
    )
    const messages = task.toBatch().messages as ReadonlyArray<Received<unknown>>
    reads = 0
    for (const message of order === "forwards" ? messages : messages.toReversed()) message.ack()
    assert.strictEqual(told, size)
    return reads / size
  }

  it.each([
    ["forwards", undefined],
    ["backwards", undefined],
    ["forwards", one],
    ["backwards", one]
  ] as const)("cost the same each, whatever its size: %s, group %j", (order, group) => {
    const few = readsFor(10, group, order)
    assert.isAtMost(few, 4)
    for (const size of [100, 1000]) assert.isAtMost(readsFor(size, group, order), few)
  })

  it("a group's order holds whatever the order of the calls", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(undefined, "a", "b"), { minLength: 1, maxLength: 8 }),
        fc.array(fc.tuple(fc.nat(7), fc.boolean()), { maxLength: 12 }),
        (names, calls) => {
          const groups = new Map(["a", "b"].map((name) => [name, { ...one, name }]))
          const items = names.map((name, n) => Object.assign(item(String(n)), { group: name && groups.get(name) }))
          const told: Array<Item> = []
          const options = {
            queue: "work",
            longest: 99,
            onFinal: (each: Item) => told.push(each),
            onIgnored: () => {},
            enlist: () => Promise.resolve()
          }
          const task = new Task(options, items, 0, () => {})
          const messages = task.toBatch().messages as ReadonlyArray<Received<unknown>>
          const first = new Map<number, boolean>()
          for (const [index, isAck] of calls.filter(([each]) => each < items.length)) {
            if (!first.has(index)) first.set(index, isAck)
            if (isAck) messages[index]!.ack()
            else messages[index]!.retry({ delay: 9 })
            // What may go: of no group if it was called, of a group if it and all before it were acked.
            const expected = items.filter(({ group }, n) =>
              group === undefined
                ? first.has(n)
                : items.slice(0, n + 1).every((each, m) => each.group !== group || first.get(m) === true)
            )
            assert.sameMembers(told, expected)
          }
          for (const group of groups.values()) {
            const indexes = told.filter((each) => each.group === group).map((each) => items.indexOf(each))
            assert.deepStrictEqual(
              indexes,
              indexes.toSorted((x, y) => x - y)
            )
          }
          assert.strictEqual(new Set(told).size, told.length)
        }
      )
    )
  })
})
