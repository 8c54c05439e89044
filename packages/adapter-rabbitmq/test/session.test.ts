/** What a session asks the server for, and in which order: as credit falls, and before its channel closes. */
import { Direct, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { Channel, Incoming } from "../src/internal/client.ts"
import type { Receipt, Received } from "../src/internal/consume/receipt.ts"
import * as Session from "../src/internal/consume/session.ts"
import * as Settle from "../src/internal/settle/settle.ts"

/** A session on a channel whose server sends so many messages with its answer to a consumer; each is claimed. */
const opened = (messages: number) => {
  const asked: Array<string> = []
  const claimed: Array<Receipt> = []
  const ask = (name: string) => {
    asked.push(name)
    return Promise.resolve()
  }
  const incoming = (deliveryTag: number) => ({ fields: { deliveryTag } }) as unknown as Incoming
  const channel = {
    on: () => {},
    prefetch: () => ask("qos"),
    consume: (_: string, onMessage: (message: Incoming) => void) => {
      if (!asked.includes("consume")) for (let tag = 1; tag <= messages; tag++) onMessage(incoming(tag))
      return ask("consume")
    },
    cancel: () => ask("cancel"),
    close: () => ask("close"),
    nack: () => void ask("nack"),
    reject: () => void ask("reject"),
    ack: () => void ask("ack")
  } as unknown as Channel
  let names = 0
  const session = Session.make(channel, {
    queue: "q",
    isSingle: false,
    priority: 0,
    isFlushed: true,
    uniqueName: () => `${++names}`,
    after: (millis, run) => void setTimeout(run, millis),
    toReceived: (message, settler, consumer) => {
      const { deliveryTag: tag } = message.fields
      const counts = { returns: 0, formerReturns: undefined, isUncounted: false }
      const receipt: Receipt = { tag, state: "open", settler, consumer, message, name: null, ...counts }
      return { receipt } as Received
    },
    onDelivery: ({ receipt }) => {
      receipt.settler.claim(receipt)
      claimed.push(receipt)
    },
    onTakenBack: () => {},
    onConsuming: () => {}
  })
  session.credit.set(messages)
  return { asked, claimed, session }
}

describe("credit that falls because a message goes back", () => {
  const ways = [
    ["Nack", Settlement.Release()],
    ["Reject", Settlement.Retry(0, { name: "Error", message: "no" })]
  ] as const

  // A server before 4.3 counts the message twice that it delivers to a consumer which is cancelled next.
  test.each(ways)("is written before the message goes back by a %s", async (command, settlement) => {
    const { asked, claimed, session } = opened(2)
    // One more consumer.
    session.credit.set(3)
    await new Promise(setImmediate)
    const settle = Settle.make({
      queue: "q",
      toCommand: () => ({ _tag: command }),
      publish: () => Effect.succeed([]),
      fork: Effect.runFork,
      settled: () => {}
    })
    const [receipt] = claimed as [Receipt, Receipt]
    receipt.state = "open"
    const delivery = { receipt } as unknown as Received
    // As the core does it: what is settled has left its room.
    Direct.run(settle([{ delivery, settlement }]), Effect.runFork, () => session.credit.set(2))
    await new Promise(setImmediate)
    assert.deepStrictEqual(asked.slice(4), ["cancel", "cancel", command.toLowerCase(), "qos", "consume"])
  })
})

describe("a channel that closes", () => {
  // A cancel is answered after the first 32 settlements, and a further request after all of them.
  test("waits for settlements that were written before the cancel", async () => {
    const { asked, claimed, session } = opened(40)
    for (const receipt of claimed) receipt.settler.requeue(receipt, "Nack")
    await session.close()
    assert.deepStrictEqual(
      asked.filter((name) => name !== "nack"),
      ["qos", "consume", "cancel", "qos", "consume", "cancel", "close"]
    )
  })

  test("asks for nothing more where few were written", async () => {
    const { asked, claimed, session } = opened(5)
    for (const receipt of claimed) receipt.settler.requeue(receipt, "Nack")
    await session.close()
    assert.deepStrictEqual(
      asked.filter((name) => name !== "nack"),
      ["qos", "consume", "cancel", "close"]
    )
  })

  test("waits for copies that are not stored yet, and acknowledges their originals", async () => {
    const { asked, claimed, session } = opened(2)
    const closed = session.close()
    await new Promise(setImmediate)
    assert.notInclude(asked, "close")
    for (const receipt of claimed) receipt.settler.ack([receipt])
    await closed
    assert.deepStrictEqual(asked.slice(-3), ["ack", "ack", "close"])
  })

  test("waits for half a second at most", async () => {
    const { asked, session } = opened(2)
    const began = performance.now()
    await session.close()
    assert.isAtLeast(performance.now() - began, 490)
    assert.strictEqual(asked.at(-1), "close")
  })
})
