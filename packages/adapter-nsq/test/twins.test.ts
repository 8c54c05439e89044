/** Sessions on one nsqd by two addresses: which of them has a message, without nsqd. */
import { assert, describe, it } from "@effect/vitest"
import { Metadata } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Credit from "../src/internal/consume/credit.ts"
import * as NsqdClock from "../src/internal/connect/nsqdClock.ts"
import type { Node } from "../src/internal/connect/nodes.ts"
import type { Connection } from "../src/internal/driver.ts"
import { type Receipt, receiptOf } from "../src/internal/consume/receipt.ts"
import * as Session from "../src/internal/consume/session.ts"

const identity = { version: "1.3.0", maxRdyCount: 2500, msgTimeout: 1000, maxMsgTimeout: 2500, notes: [] }
const topic = { topic: "orders", channel: "requeue", isOwn: false }

const nodeAt = (host: string): Node => ({
  name: `${host}:4150`,
  address: { host, port: 4150, http: undefined },
  clock: NsqdClock.make()
})

/** A message's frame as nsqd sends it. */
const payload = (id: string, deliveries: number, stored = 1): Buffer => {
  const bytes = Buffer.alloc(27)
  bytes.writeBigInt64BE(BigInt(stored), 0)
  bytes.writeUInt16BE(deliveries, 8)
  bytes.write(id.padEnd(16, "0"), 10)
  return bytes
}

/** Sessions of one subscription on these nodes, with a credit of 1. */
const open = (...nodes: ReadonlyArray<Node>) => {
  const credit = Credit.make(() => 0)
  const received: Array<Receipt> = []
  const written: Array<string> = []
  const sessions = new Set<Session.Session>()
  const connection: Connection = {
    clientId: "ours",
    identity,
    isOpen: () => true,
    heard: () => 0,
    write: (commands) => void written.push(...commands.trim().split("\n")),
    stop: () => Promise.resolve(),
    end: () => {},
    destroy: () => {}
  }
  const opened = nodes.map((node) =>
    Session.make({
      node,
      topic,
      connection,
      sessions,
      isFinished: () => false,
      gone: Deferred.makeUnsafe(),
      elapsed: () => 0,
      decode: ({ attempts, body }) => ({
        body,
        headers: {},
        attempts,
        metadata: Metadata.make("m", 0),
        nonce: undefined
      }),
      onDelivery: (delivery) => void received.push(receiptOf(delivery))
    })
  )
  for (const session of opened) {
    sessions.add(session)
    session.begin(credit)
  }
  const finish = (receipt: Receipt): boolean => {
    const isHeld = receipt.session.take(receipt)
    if (isHeld) receipt.session.answer("FIN id\n", () => {})
    return isHeld
  }
  /** Whether nothing counts against the credit: else it would exceed a credit of 1, and RDY would stay 0. */
  const isWhole = (): boolean => {
    credit.set(0)
    credit.set(1)
    return written.at(-1) === "RDY 1"
  }
  return { finish, isWhole, opened, received }
}

describe("a message that nsqd redelivers on another connection of the consumer", () => {
  it("counts once against the credit", () => {
    const { finish, isWhole, opened, received } = open(nodeAt("a"), nodeAt("b"))
    opened[0]!.receive(payload("m", 1))
    opened[1]!.receive(payload("m", 2))
    assert.isTrue(finish(received[1]!))
    assert.isFalse(finish(received[0]!))
    assert.isTrue(isWhole())
  })

  it("is not taken from its later delivery by an earlier one that arrives after it", () => {
    const { finish, isWhole, opened, received } = open(nodeAt("a"), nodeAt("b"))
    opened[1]!.receive(payload("m", 3))
    opened[0]!.receive(payload("m", 2))
    assert.lengthOf(received, 1)
    assert.isTrue(finish(received[0]!))
    assert.isTrue(isWhole())
  })

  it("is another message if it was stored at another time: another nsqd may use its id", () => {
    const { finish, isWhole, opened, received } = open(nodeAt("a"), nodeAt("b"))
    opened[0]!.receive(payload("m", 1))
    opened[1]!.receive(payload("m", 2, 2))
    assert.deepStrictEqual(received.map(finish), [true, true])
    assert.isTrue(isWhole())
  })
})
